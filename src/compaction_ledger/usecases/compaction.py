"""Compact: admit, claim, attempt, complete or fail (sections 5 to 7), for the due ranges of a conversation.

A failure here never touches a transcript or an answer: the worst case is that there is no summary (A11).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from compaction_ledger.domain.binding import pairs_of, source_hash
from compaction_ledger.domain.commands import ClaimRange, FinishAttempt, ReleaseClaim, StartAttempt
from compaction_ledger.domain.eligibility import Eligibility, eligible
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    Exhausted,
    InvalidJob,
    InvalidSetting,
    Refused,
    UnknownConversation,
)
from compaction_ledger.domain.events import AttemptFailed, RangeCompleted, RangeFact
from compaction_ledger.domain.finish import Answer, FailureCode, Fault
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.planning import PlannedRange
from compaction_ledger.domain.ports import Admission, Summarizer
from compaction_ledger.domain.summarization import SummaryRequest, summary_request
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.planning import ConversationPlan, plan_conversation
from compaction_ledger.usecases.range_session import RangeSession
from compaction_ledger.usecases.stopping import NeverStop, Stop

logger = logging.getLogger(__name__)

DEFAULT_LEASE = 300 * 1_000_000  # five minutes, in microseconds

RangeResult = Literal[
    "completed",
    "failed",
    "exhausted",
    "claimed_elsewhere",
    "already_completed",
    "source_changed",
    "refused",
    "not_admitted",
    "outage",
    "stopped",
]
GivenBack = Literal["source_changed", "backing_off", "stopped"]


class Gate(Protocol):
    """Holds claims back while the provider is out (D3). Times are microseconds."""

    def may_claim(self, now: int) -> bool: ...
    def succeeded(self) -> None: ...
    def unavailable(self, now: int, retry_after: float | None) -> int: ...
    def released_unused(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What became of one due range. ``failures`` has one code for each attempt that failed."""

    window: Range
    result: RangeResult
    failures: tuple[FailureCode, ...] = ()
    index: int | None = None
    detail: str | None = None


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
    """A worker's way of compacting conversations. ``holder`` names the worker in its claims."""

    context: Context
    summarizer: Summarizer
    admission: Admission
    gate: Gate
    holder: str
    lease: int = DEFAULT_LEASE
    stop: Stop = field(default_factory=NeverStop)

    def compact(
        self,
        scope: str,
        conversation: str,
        *,
        upgrade: bool = False,
        on_range: OnRange | None = None,
    ) -> CompactionReport:
        """Summarize every due range of a conversation. Raises :class:`UnknownConversation`.

        :class:`Stopped` goes on after the claim is released and the attempt recorded.
        """
        self.context.read_models.catch_up(self.context.log)
        plan = plan_conversation(
            self.context, scope, conversation, self.summarizer.model, upgrade=upgrade
        )
        source = _Source(self.context, plan)
        outcomes: list[RangeOutcome] = []
        due = plan.due
        if on_range:
            on_range(0, len(due), None)
        try:
            for planned in due:
                outcome = self._range(source, planned)
                outcomes.append(outcome)
                if on_range:
                    on_range(len(outcomes), len(due), outcome)
                if self.stop.requested:
                    break
        finally:
            self.context.read_models.catch_up(self.context.log)
        return CompactionReport(scope, conversation, plan, tuple(outcomes))

    def _range(self, source: _Source, planned: PlannedRange) -> RangeOutcome:
        """One range, from admission to its end (D1, D2, D3)."""
        if self.stop.requested:
            return RangeOutcome(planned.window, "stopped")
        leave = self.admission.admit()
        if leave is None:
            return RangeOutcome(planned.window, "not_admitted")
        try:
            if not self.gate.may_claim(self.context.log.now()):
                return RangeOutcome(planned.window, "outage")
            outcome = _Claim(self, source, planned).run()
            if outcome.result not in ("completed", "failed", "exhausted"):
                self.gate.released_unused()  # the provider may not have been asked
            return outcome
        finally:
            leave()


class _Source:
    """The conversation's pairs, read again only when its revision says that something changed (A6)."""

    def __init__(self, context: Context, plan: ConversationPlan) -> None:
        self._context = context
        self._plan = plan
        self._revision = plan.revision
        self._eligibility: Eligibility | None = plan.eligibility

    def request(self, planned: PlannedRange) -> SummaryRequest | None:
        """The replies of a range as they are now; ``None`` if its source is no longer the planned one."""
        job = planned.job
        try:
            self._refresh()
        except UnknownConversation:
            return None
        if self._eligibility is None:
            return None
        try:
            pairs = pairs_of(self._eligibility.pairs, planned.window)
        except InvalidJob:
            return None
        if source_hash(job.scope, job.conversation, pairs) != job.source_hash:
            return None
        return summary_request(job.prompt, pairs)

    def _refresh(self) -> None:
        plan, transcripts = self._plan, self._context.transcripts
        revision = transcripts.revision(plan.scope, plan.conversation)
        if revision is None or revision != self._revision:
            self._eligibility = eligible(transcripts.conversation(plan.scope, plan.conversation))
            self._revision = revision


class _Claim:
    """One claim and its attempts."""

    def __init__(self, compactor: Compactor, source: _Source, planned: PlannedRange) -> None:
        self._compactor = compactor
        self._source = source
        self._planned = planned
        self._claim_id = uuid.uuid4().hex
        self._failures: list[FailureCode] = []
        job = planned.job
        key = RangeKey(job.scope, job.conversation, job.from_pair)
        self._session = RangeSession(compactor.context.log, key)

    def run(self) -> RangeOutcome:
        """Claim, attempt at most twice, and say how it ended. Refusals are outcomes, not errors."""
        try:
            self._session.execute(self._claim)
            outcome: RangeOutcome | None = None
            while outcome is None:
                outcome = self._next()
        except AlreadyClaimed as refusal:
            outcome = self._outcome("claimed_elsewhere", detail=str(refusal))
        except AlreadyCompleted as refusal:
            outcome = self._outcome("already_completed", detail=str(refusal))
        except Exhausted as refusal:
            outcome = self._outcome("exhausted", detail=str(refusal))
        except Refused as refusal:  # past the lease, or taken over: this work is lost, nothing else
            outcome = self._outcome("refused", detail=str(refusal))
        return outcome

    def _next(self) -> RangeOutcome | None:
        """The next attempt, if the source is still the claimed one (A6); ``None`` when another may follow."""
        request = self._source.request(self._planned)
        if request is None:
            return self._release("source_changed", "source_changed")
        if self._compactor.stop.requested:
            return self._release("stopped", "stopped")
        attempt_id = uuid.uuid4().hex
        self._session.execute(
            lambda now: StartAttempt(self._claim_id, attempt_id, now, self._compactor.lease)
        )
        answer = self._call(attempt_id, request)
        for index, fact in self._finish(attempt_id, answer):
            if isinstance(fact, RangeCompleted):
                return self._outcome("completed", index=index)
        if not self._is_open:
            return self._outcome("exhausted")
        if answer.fault == "cancelled":
            return self._release("stopped", "stopped")
        if answer.fault is not None:  # no answer came: the second attempt waits (D3)
            return self._release("backing_off", "failed")
        return None

    def _call(self, attempt_id: str, request: SummaryRequest) -> Answer:
        """Call the model. An error of the summarizer itself is a failed attempt, never a summary (C4)."""
        compactor = self._compactor
        try:
            with compactor.stop.interruptible():
                return compactor.summarizer.summarize(request)
        except InvalidSetting as error:  # the caller's mistake: recorded, and theirs to see
            self._abandon(attempt_id, "provider_error", type(error).__name__)
            raise
        except Exception as error:
            logger.warning("%s raised %s", compactor.summarizer.model, type(error).__name__)
            logger.debug("the summarizer raised", exc_info=True)
            return Answer(fault="provider_error", detail=type(error).__name__)
        except BaseException:  # a stop
            self._abandon(attempt_id, "cancelled", "interrupted")
            raise

    def _abandon(self, attempt_id: str, fault: Fault, detail: str) -> None:
        """Record an attempt that is given up, and give the claim back."""
        with suppress(Refused):
            self._finish(attempt_id, Answer(fault=fault, detail=detail))
            if self._is_open:
                self._release("stopped", "stopped")

    def _finish(self, attempt_id: str, answer: Answer) -> list[tuple[int, RangeFact]]:
        """Record how the attempt ended; the facts and their indices."""
        retry_at = self._tell_gate(answer)
        outcome = self._session.execute(
            lambda now: FinishAttempt(self._claim_id, attempt_id, answer, now, retry_at)
        )
        for fact in outcome.facts:
            if isinstance(fact, AttemptFailed):
                self._failures.append(fact.failure)
        return list(zip(outcome.indices, outcome.facts, strict=True))

    def _tell_gate(self, answer: Answer) -> int | None:
        """Tell the gate whether the provider is there; when a second attempt may follow (D3)."""
        gate = self._compactor.gate
        if answer.fault is None:
            gate.succeeded()
        elif answer.fault == "cancelled":
            gate.released_unused()
        else:
            return gate.unavailable(self._compactor.context.log.now(), answer.retry_after)
        return None

    def _claim(self, now: int) -> ClaimRange:
        compactor = self._compactor
        return ClaimRange(
            self._claim_id,
            compactor.holder,
            self._planned.job,
            compactor.context.policy,
            now,
            compactor.lease,
        )

    def _release(self, reason: GivenBack, result: RangeResult) -> RangeOutcome:
        self._session.execute(lambda now: ReleaseClaim(self._claim_id, reason, now))
        return self._outcome(result)

    @property
    def _is_open(self) -> bool:
        return self._claim_id in self._session.state.open

    def _outcome(
        self, result: RangeResult, *, index: int | None = None, detail: str | None = None
    ) -> RangeOutcome:
        return RangeOutcome(self._planned.window, result, tuple(self._failures), index, detail)
