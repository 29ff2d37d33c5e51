"""Folding streams: how the repository of ``eventsourcing`` makes a state of one, by our ``evolve``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, get_args
from uuid import UUID

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.range_stream import EMPTY, evolve
from compaction_ledger.domain.window import window_stream as windows
from compaction_ledger.infrastructure.event_store.mapper import StreamEvent


class Versioned(Protocol):
    """What the facts of a stream say, and how many they are."""

    @property
    def version(self) -> int: ...


State = TypeVar("State", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Folded(Generic[State]):
    """A folded stream, as the repository returns it."""

    id: UUID
    version: int
    state: State


Projector = Callable[[Folded[State] | None, Iterable["StreamEvent"]], Folded[State] | None]
"""What the repository folds a stream with."""


def _projector(
    evolve: Callable[[State, Any], State], empty: State, kinds: frozenset[type[Fact]]
) -> Projector[State]:
    """The projector function of the repository: our ``evolve`` over the events of a stream."""

    def project(
        before: Folded[State] | None, events: Iterable[StreamEvent]
    ) -> Folded[State] | None:
        state = before.state if before else empty
        stream = before.id if before else None
        key = ""
        for event in events:
            stream = event.originator_id
            if event.originator_version != state.version + 1:
                raise DamagedLog(f"stream {stream.hex} has no event {state.version + 1}")
            if type(event.fact) not in kinds:
                raise DamagedLog(f"{type(event.fact).__name__} is no fact of stream {stream.hex}")
            if key and not event.key:
                raise DamagedLog(
                    f"event {event.originator_version} of stream {stream.hex} is not encrypted, "
                    "as those before it are"
                )
            key = event.key
            state = evolve(state, event.fact)
        return Folded(stream, state.version, state) if stream else None

    return project


project_range = _projector(evolve, EMPTY, frozenset(get_args(RangeFact)))
project_window = _projector(
    windows.evolve, windows.EMPTY, frozenset(get_args(windows.WindowStreamFact))
)
