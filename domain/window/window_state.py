"""What the facts of a window say: its claims, the chunks that stand, and the pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from compaction_ledger.domain.claim_state import EMPTY as NO_CLAIMS
from compaction_ledger.domain.claim_state import ClaimState
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.events import ChunkCompleted, PinAccepted
from compaction_ledger.domain.window.keys import WindowKey


@dataclass(frozen=True, slots=True)
class StandingChunk:
    """A chunk with its summary, which no other has taken the place of. ``version``: where in the stream its
    completion is.
    """

    first: int
    last: int
    identity: str
    source_hash: str
    version: int


@dataclass(frozen=True, slots=True)
class WindowState:
    """What the facts of a window say.

    ``lifecycle``: the claims, attempts and completions, as of ranges; ``jobs`` whatever was claimed once, by
    identity. ``chunks`` stand in the order of their messages; ``replaced`` are the identities of those that
    bigger ones stand in the place of (T8). ``pins`` by id, as they were accepted; ``superseded`` says by
    which newer one a pin was corrected (T9).
    """

    lifecycle: ClaimState = NO_CLAIMS
    jobs: Mapping[str, ChunkJob] = field(default_factory=dict[str, ChunkJob])
    chunks: tuple[StandingChunk, ...] = ()
    replaced: frozenset[str] = frozenset()
    pins: Mapping[str, PinAccepted] = field(default_factory=dict[str, PinAccepted])
    superseded: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def version(self) -> int:
        """How many facts the stream has."""
        return self.lifecycle.version

    @property
    def key(self) -> WindowKey | None:
        """Whose window it is; ``None`` before the first fact."""
        return cast("WindowKey | None", self.lifecycle.key)

    @property
    def open_jobs(self) -> Mapping[str, ChunkJob]:
        """What is claimed and open, by claim id: also where the lease is over and nobody has said so."""
        held = self.lifecycle.open.values()
        return {claim.claim_id: self.jobs[claim.identity] for claim in held}


EMPTY = WindowState()


def current_pins(state: WindowState) -> tuple[PinAccepted, ...]:
    """The pins that no newer one has corrected, in the order of their acceptance (T9)."""
    return tuple(pin for name, pin in state.pins.items() if name not in state.superseded)


def same_words(one: PinAccepted, other: PinAccepted) -> bool:
    """Whether two pins are of the same words: not equal ones, these very ones."""
    return _place(one) == _place(other)


def with_chunk(state: WindowState, fact: ChunkCompleted) -> WindowState:
    """The state with a completed chunk standing, in the place of those that it replaces."""
    job = state.jobs[fact.identity]
    chunk = StandingChunk(job.first, job.last, fact.identity, fact.source_hash, state.version)
    others = (other for other in state.chunks if other.identity not in job.replaces)
    return replace(
        state,
        chunks=tuple(sorted((*others, chunk), key=lambda one: (one.first, one.version))),
        replaced=state.replaced.union(job.replaces),
    )


def with_pin(state: WindowState, fact: PinAccepted) -> WindowState:
    """The state with one pin more, which corrects the one that it names."""
    corrected = {} if fact.supersedes is None else {fact.supersedes: fact.pin_id}
    return replace(
        state,
        lifecycle=replace(state.lifecycle, version=state.version + 1, key=fact.window),
        pins={**state.pins, fact.pin_id: fact},
        superseded={**state.superseded, **corrected},
    )


def _place(pin: PinAccepted) -> tuple[int, str, int, int, int]:
    return (pin.message, pin.digest, pin.part, pin.start, pin.end)
