"""One worker's dealings with one range: decide, append, and decide again when beaten to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.commands import Command
from compaction_ledger.domain.errors import ConcurrentAppend, LedgerBusy, TimeHasPassed
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.range_stream import RangeState, decide, fold, steady

MAX_TRIES = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """The facts that a command appended, and their indices. ``already`` if it was done before (A2)."""

    facts: Sequence[RangeFact]
    indices: Sequence[int]
    already: bool


class RangeSession:
    """Carries out commands on one range, one after the other.

    The state is loaded once and carried along; the store's unique key says when it has become too old
    (A8), and then it is loaded and the command judged anew. Where nothing is known of the range,
    ``expected`` saves the loading: if that is wrong, the key says so too.
    """

    def __init__(self, log: Log, key: RangeKey, expected: RangeState | None = None) -> None:
        self._log = log
        self._key = key
        self._state = expected

    @property
    def state(self) -> RangeState:
        """The range's state as this session knows it."""
        if self._state is None:
            self._state = self._log.load(self._key)
        return self._state

    def execute(self, make: Callable[[int], Command]) -> Outcome:
        """Carry out the command that ``make`` builds for the present time of the store's clock.

        Raises :class:`Refused` kinds, after the facts that go with the refusal are stored (A5), and
        :class:`LedgerBusy` when others were faster a hundred times in a row.
        """
        fresh = self._state is None
        for _ in range(MAX_TRIES):
            state, now = self.state, self._log.now()
            decision = decide(state, make(now))
            indices: Sequence[int] = ()
            if decision.facts:
                try:
                    indices = self._log.append(self._key, state, decision.facts, steady(state, now))
                except TimeHasPassed:
                    continue  # the state is as it was; what is due now is another question (A5)
                except ConcurrentAppend:
                    self._state, fresh = None, True
                    continue
                self._state = fold(decision.facts, state)
            elif not fresh:  # refused, or done already
                self._state, fresh = None, True  # an earlier snapshot never decides (A8)
                continue
            if decision.refusal is not None:
                raise decision.refusal
            return Outcome(decision.facts, indices, decision.already)
        raise LedgerBusy(
            f"range {self._key.from_pair} was changed by others {MAX_TRIES} times in a row"
        )
