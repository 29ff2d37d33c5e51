"""Gathers what a compaction does while it runs, so that a stop loses none of the account."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction_ledger.cli.documents.compaction import (
    ConversationCompacted,
    ConversationError,
    RangeCompacted,
    RangeLeft,
)
from compaction_ledger.domain.errors import LedgerError
from compaction_ledger.domain.ports import Progress
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.compaction import CompactionReport, OnRange
from compaction_ledger.worker import ConversationFailure


@dataclass(slots=True)
class _Begun:
    due: int = 0
    outcomes: list[RangeOutcome] = field(default_factory=list[RangeOutcome])
    report: CompactionReport | None = None
    error: LedgerError | None = None


class Gathered:
    """One account per conversation, in the order they were begun."""

    def __init__(self) -> None:
        self.report: Progress | None = None
        self._begun: dict[tuple[str, str], _Begun] = {}

    def begin(self, scope: str, conversation: str) -> OnRange:
        """A conversation begins; returns what is told of its ranges."""
        begun = self._begun[scope, conversation] = _Begun()

        def on_range(done: int, due: int, outcome: RangeOutcome | None) -> None:
            begun.due = due
            if outcome is not None:
                begun.outcomes.append(outcome)
            if self.report is not None:
                self.report(done, due)

        return on_range

    def finish(self, report: CompactionReport) -> None:
        """A conversation is done."""
        self._begun[report.scope, report.conversation].report = report

    def failed(self, failure: ConversationFailure) -> None:
        """A conversation could not be compacted to its end."""
        self._begun[failure.scope, failure.conversation].error = failure.error

    def conversations(self) -> list[ConversationCompacted]:
        """What happened, as documents."""
        return [
            ConversationCompacted(
                scope=scope,
                conversation=conversation,
                due=begun.due,
                completed=sum(outcome.result == "completed" for outcome in begun.outcomes),
                ranges=[RangeCompacted.of(outcome) for outcome in begun.outcomes],
                left=_left(begun.report),
                error=None if begun.error is None else ConversationError.of(begun.error),
            )
            for (scope, conversation), begun in self._begun.items()
        ]


def _left(report: CompactionReport | None) -> list[RangeLeft]:
    """The ranges that were not due at the start and have no summary either."""
    if report is None:
        return []
    return [
        RangeLeft(
            from_pair=planned.window.from_pair,
            to_pair=planned.window.to_pair,
            status=planned.status,
        )
        for planned in report.plan.ranges
        if planned.status in ("running", "waiting", "exhausted")
    ]
