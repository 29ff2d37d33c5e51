"""One worker's dealings with one stream: decide, append, and decide again when beaten to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compaction_ledger.domain.errors import (
    ConcurrentAppend,
    LedgerBusy,
    Refused,
    TimeHasPassed,
)
from compaction_ledger.domain.facts import StreamFact
from compaction_ledger.domain.log import StreamKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.range_stream import RangeState
from compaction_ledger.domain.window.window_state import WindowState

MAX_TRIES = 100

State = TypeVar("State", bound=RangeState | WindowState)
Command = TypeVar("Command")
Fact = TypeVar("Fact", bound=StreamFact)
Fact_co = TypeVar("Fact_co", bound=StreamFact, covariant=True)


class Decided(Protocol[Fact_co]):
    """What a stream's ``decide`` answers."""

    @property
    def facts(self) -> Sequence[Fact_co]: ...
    @property
    def refusal(self) -> Refused | None: ...
    @property
    def already(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class StreamOutcome(Generic[Fact]):
    """The facts that a command appended, and their indices. ``already`` if it was done before (A2)."""

    facts: Sequence[Fact]
    indices: Sequence[int]
    already: bool


class StreamSession(ABC, Generic[State, Command, Fact]):
    """Carries out commands on one stream, one after the other.

    The state is loaded once and carried along; the store's unique key says when it has become too old
    (A8), and then it is loaded and the command judged anew. Where nothing is known of the stream,
    ``expected`` saves the loading: if that is wrong, the key says so too.
    """

    def __init__(self, log: Log, key: StreamKey, expected: State | None = None) -> None:
        self._log = log
        self._key = key
        self._state = expected

    # --- what kind of stream it is ---

    @abstractmethod
    def _load(self) -> State: ...
    @abstractmethod
    def _decide(self, state: State, command: Command) -> Decided[Fact]: ...
    @abstractmethod
    def _fold(self, facts: Sequence[Fact], state: State) -> State: ...
    @abstractmethod
    def _steady(self, state: State, now: int) -> tuple[int, int]: ...
    @abstractmethod
    def _name(self) -> str: ...

    @property
    def state(self) -> State:
        """The stream's state as this session knows it."""
        if self._state is None:
            self._state = self._load()
        return self._state

    def execute(self, make: Callable[[int], Command]) -> StreamOutcome[Fact]:
        """Carry out the command that ``make`` builds for the present time of the store's clock.

        Raises :class:`Refused` kinds, after the facts that go with the refusal are stored (A5), and
        :class:`LedgerBusy` when others were faster a hundred times in a row.
        """
        fresh = self._state is None
        for _ in range(MAX_TRIES):
            state, now = self.state, self._log.now()
            decision = self._decide(state, make(now))
            indices: Sequence[int] = ()
            if decision.facts:
                try:
                    holds = self._steady(state, now)
                    indices = self._log.append(self._key, state, decision.facts, holds)
                except TimeHasPassed:
                    continue  # the state is as it was; what is due now is another question (A5)
                except ConcurrentAppend:
                    self._state, fresh = None, True
                    continue
                self._state = self._fold(decision.facts, state)
            elif not fresh:  # refused, or done already
                self._state, fresh = None, True  # an earlier snapshot never decides (A8)
                continue
            if decision.refusal is not None:
                raise decision.refusal
            return StreamOutcome(decision.facts, indices, decision.already)
        raise LedgerBusy(f"{self._name()} was changed by others {MAX_TRIES} times in a row")
