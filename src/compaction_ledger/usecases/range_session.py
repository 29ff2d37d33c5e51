"""One worker's dealings with one range."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.commands import Command
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.range_stream import Decision, RangeState, decide, fold, steady
from compaction_ledger.usecases.stream_session import MAX_TRIES, StreamOutcome, StreamSession

__all__ = ["MAX_TRIES", "Outcome", "RangeSession"]

Outcome = StreamOutcome[RangeFact]


class RangeSession(StreamSession[RangeState, Command, RangeFact]):
    """Carries out commands on one range, one after the other."""

    def __init__(self, log: Log, key: RangeKey, expected: RangeState | None = None) -> None:
        super().__init__(log, key, expected)
        self._range = key

    def _load(self) -> RangeState:
        return self._log.load(self._range)

    def _decide(self, state: RangeState, command: Command) -> Decision:
        return decide(state, command)

    def _fold(self, facts: Sequence[RangeFact], state: RangeState) -> RangeState:
        return fold(facts, state)

    def _steady(self, state: RangeState, now: int) -> tuple[int, int]:
        return steady(state, now)

    def _name(self) -> str:
        return f"range {self._range.from_pair}"
