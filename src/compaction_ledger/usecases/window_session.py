"""One worker's dealings with the window of one run."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.log import RangeKey, StreamKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.window.commands import WindowCommand
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.window_state import WindowState
from compaction_ledger.domain.window.window_stream import (
    WindowDecision,
    WindowStreamFact,
    decide,
    fold,
    steady,
)
from compaction_ledger.usecases.range_session import RangeSession
from compaction_ledger.usecases.stream_session import StreamOutcome, StreamSession

WindowOutcome = StreamOutcome[WindowStreamFact]


class WindowSession(StreamSession[WindowState, WindowCommand, WindowStreamFact]):
    """Carries out commands on one window, one after the other."""

    def __init__(self, log: Log, key: WindowKey, expected: WindowState | None = None) -> None:
        super().__init__(log, key, expected)
        self._window = key

    def _load(self) -> WindowState:
        return self._log.load_window(self._window)

    def _decide(self, state: WindowState, command: WindowCommand) -> WindowDecision:
        return decide(state, command)

    def _fold(self, facts: Sequence[WindowStreamFact], state: WindowState) -> WindowState:
        return fold(facts, state)

    def _steady(self, state: WindowState, now: int) -> tuple[int, int]:
        return steady(state, now)

    def _name(self) -> str:
        return f"the window of run {self._window.run}"


def session_of(log: Log, key: StreamKey) -> RangeSession | WindowSession:
    """A session on a stream of either kind, for commands that both know."""
    return RangeSession(log, key) if isinstance(key, RangeKey) else WindowSession(log, key)
