"""Compact the due ranges of a conversation: admit, then claim and attempt each (sections 5 to 7).

A failure here never touches a transcript or an answer: the worst case is that there is no summary (A11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from compaction_ledger.domain.planning import PlannedRange
from compaction_ledger.domain.ports import Admission, Gate, Summarizer
from compaction_ledger.usecases.claiming import Claim, RangeOutcome, RangeResult
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.planning import ConversationPlan, plan_conversation
from compaction_ledger.usecases.reading import follow
from compaction_ledger.usecases.source import Source
from compaction_ledger.usecases.stopping import NeverStop, Stop
from compaction_ledger.usecases.watching import of_model

DEFAULT_LEASE = 300 * 1_000_000  # five minutes, in microseconds
DEFAULT_LONGEST_ATTEMPT = 3_600 * 1_000_000
HELD_BACK: frozenset[RangeResult] = frozenset({"not_admitted", "outage"})
"""What would become of the next range as well."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What one call did, range by range, in one conversation."""

    scope: str
    conversation: str
    plan: ConversationPlan
    outcomes: tuple[RangeOutcome, ...]

    @property
    def completed(self) -> int:
        """How many summaries were made."""
        return sum(outcome.result == "completed" for outcome in self.outcomes)


OnRange = Callable[[int, int, RangeOutcome | None], None]
"""Called with ranges done, ranges due, and the newest outcome (``None`` at the start)."""


@dataclass(frozen=True, slots=True)
class Compactor:
    """A worker's way of compacting conversations. ``holder`` names the worker in its claims.

    The lease of an attempt is renewed while it runs, for ``longest_attempt`` and no longer; both are
    microseconds. ``strict``: a summary that says what its source does not is a failed attempt (T13).
    """

    context: Context
    summarizer: Summarizer
    admission: Admission
    gate: Gate
    holder: str
    lease: int = DEFAULT_LEASE
    longest_attempt: int = DEFAULT_LONGEST_ATTEMPT
    stop: Stop = field(default_factory=NeverStop)
    strict: bool = False

    def compact(
        self,
        scope: str,
        conversation: str,
        *,
        upgrade: bool = False,
        on_range: OnRange | None = None,
        at_most: int | None = None,
    ) -> CompactionReport:
        """Summarize every due range of a conversation. Raises :class:`UnknownConversation`.

        With ``at_most`` no more ranges than that are attempted, and none after one that was held back.
        :class:`Stopped` goes on after the claim is released and the attempt recorded.
        """
        with self.context.telemetry.span("compact", **of_model(self.summarizer.model)) as span:
            follow(self.context)
            plan = plan_conversation(
                self.context, scope, conversation, self.summarizer.model, upgrade=upgrade
            )
            span.tell(due=len(plan.due))
            outcomes = self._ranges(plan, on_range, at_most)
            report = CompactionReport(scope, conversation, plan, outcomes)
            span.tell(completed=report.completed)
            return report

    def _ranges(
        self, plan: ConversationPlan, on_range: OnRange | None, at_most: int | None
    ) -> tuple[RangeOutcome, ...]:
        """What became of the due ranges, one after the other."""
        source = Source(self.context, plan)
        telemetry, model = self.context.telemetry, of_model(self.summarizer.model)
        outcomes: list[RangeOutcome] = []
        due = plan.due
        if on_range:
            on_range(0, len(due), None)
        try:
            for planned in due:
                outcome = self._range(source, planned)
                outcomes.append(outcome)
                telemetry.count("ranges", result=outcome.result, **model)
                if on_range:
                    on_range(len(outcomes), len(due), outcome)
                if self.stop.requested or _is_enough(outcomes, at_most):
                    break
        finally:
            follow(self.context)
        return tuple(outcomes)

    def _range(self, source: Source, planned: PlannedRange) -> RangeOutcome:
        """One range, from admission to its end (D1, D2, D3)."""
        if self.stop.requested:
            return RangeOutcome(planned.window, "stopped")
        leave = self.admission.admit()
        if leave is None:
            self.context.telemetry.count("admissions_refused")
            return RangeOutcome(planned.window, "not_admitted")
        try:
            now = self.context.log.now()
            if not self.gate.may_claim(now):
                again_at = self.gate.shut_until(now)
                return RangeOutcome(planned.window, "outage", again_at=again_at)
            claim = Claim(
                context=self.context,
                summarizer=self.summarizer,
                gate=self.gate,
                holder=self.holder,
                lease=self.lease,
                longest_attempt=self.longest_attempt,
                stop=self.stop,
                source=source,
                planned=planned,
                strict=self.strict,
            )
            try:
                return claim.run()
            finally:
                if not claim.asked:
                    self.gate.released_unused()
        finally:
            leave()


def _is_enough(outcomes: list[RangeOutcome], at_most: int | None) -> bool:
    """Whether no more ranges are to be tried in this call."""
    if at_most is None:
        return False
    attempted = sum(outcome.attempted for outcome in outcomes)
    return attempted >= at_most or outcomes[-1].result in HELD_BACK
