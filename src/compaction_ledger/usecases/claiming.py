"""One claim and its attempts (A1 to A6): from the claim to its completion, failure or release."""

from __future__ import annotations

import logging
import uuid
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Literal

from compaction_ledger.domain.commands import (
    ClaimRange,
    FinishAttempt,
    GiveBackReason,
    ReleaseClaim,
    StartAttempt,
)
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    BackingOff,
    Exhausted,
    InvalidSetting,
    Refused,
)
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    RangeCompleted,
    RangeFact,
)
from compaction_ledger.domain.finish import Answer, FailureCode, Fault, failures, sound_answer
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.planning import PlannedRange
from compaction_ledger.domain.ports import Gate, Summarizer
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.grounding import unfounded
from compaction_ledger.usecases.range_session import Outcome, RangeSession
from compaction_ledger.usecases.renewing import Renewal, renewing
from compaction_ledger.usecases.source import Source
from compaction_ledger.usecases.stopping import Stop
from compaction_ledger.usecases.watching import counted_claim, counted_finish, of_job, watched_call

logger = logging.getLogger(__name__)

RangeResult = Literal[
    "completed",
    "failed",
    "exhausted",
    "waiting",
    "claimed_elsewhere",
    "already_completed",
    "source_changed",
    "refused",
    "not_admitted",
    "outage",
    "stopped",
]

_REFUSALS: dict[type[Refused], RangeResult] = {
    AlreadyClaimed: "claimed_elsewhere",
    AlreadyCompleted: "already_completed",
    Exhausted: "exhausted",
    BackingOff: "waiting",
}
_TRIED_AGAIN: frozenset[RangeResult] = frozenset({"claimed_elsewhere", "failed", "waiting"})


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """What became of one due range. ``failures`` has one code for each attempt that failed.

    ``again_at`` is when it is worth trying again, where that is known, in microseconds by the store's clock.
    """

    window: Range
    result: RangeResult
    failures: tuple[FailureCode, ...] = ()
    index: int | None = None
    detail: str | None = None
    again_at: int | None = None

    @property
    def attempted(self) -> bool:
        """Whether the model was asked."""
        return self.result == "completed" or bool(self.failures)


@dataclass(slots=True)
class Claim:
    """A worker's claim on a planned range. ``asked`` says whether the gate has heard of the provider.

    ``strict``: a summary that says what its source does not is a failed attempt (T13).
    """

    context: Context
    summarizer: Summarizer
    gate: Gate
    holder: str
    lease: int
    longest_attempt: int
    stop: Stop
    source: Source
    planned: PlannedRange
    strict: bool = False
    asked: bool = False
    _claim_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _failures: list[FailureCode] = field(default_factory=list[FailureCode])
    _again_at: int | None = None
    _key: RangeKey = field(init=False)
    _session: RangeSession = field(init=False)

    def __post_init__(self) -> None:
        job = self.planned.job
        self._key = RangeKey(job.scope, job.conversation, job.from_pair)
        expected = EMPTY if self.planned.is_new else None
        self._session = RangeSession(self.context.log, self._key, expected)

    def run(self) -> RangeOutcome:
        """Claim, attempt at most twice, and say how it ended. Refusals are outcomes, not errors."""
        with self.context.telemetry.span("claim", **of_job(self.planned.job)) as span:
            outcome = self._run()
            span.tell(result=outcome.result)
            return outcome

    def _run(self) -> RangeOutcome:
        try:
            with counted_claim(self.context.telemetry, self.planned.job):
                self._session.execute(self._claim)
            outcome: RangeOutcome | None = None
            while outcome is None:
                outcome = self._next()
        except Refused as refusal:  # what was done is lost, nothing else
            self._again_at = _again_at(refusal)
            return self._outcome(_REFUSALS.get(type(refusal), "refused"), detail=str(refusal))
        return outcome

    def _next(self) -> RangeOutcome | None:
        """The next attempt, if the source is still the claimed one (A6); ``None`` when another may follow."""
        request = self._request()
        if request is None:
            return self._release("source_changed", "source_changed")
        if self.stop.requested:
            return self._release("stopped", "stopped")
        attempt_id = uuid.uuid4().hex
        started = self._session.execute(
            lambda now: StartAttempt(self._claim_id, attempt_id, now, self.lease)
        )
        answer, found = self._call(attempt_id, request, _number(started))
        for index, fact in self._finish(attempt_id, answer, found):
            if isinstance(fact, RangeCompleted):
                return self._outcome("completed", index=index)
        if not self._is_open:
            return self._outcome("exhausted")
        if answer.fault == "cancelled":
            return self._release("stopped", "stopped")
        if answer.fault is not None:  # no answer came: the second attempt waits (D3)
            return self._release("backing_off", "failed")
        return None

    def _request(self) -> SummaryRequest | None:
        """The source as it is now. Where it cannot be read, the claim is given back at no cost (A6)."""
        try:
            return self.source.request(self.planned)
        except BaseException:
            with suppress(Refused):
                self._release("given_back", "refused")
            raise

    def _call(
        self, attempt_id: str, request: SummaryRequest, number: int | None
    ) -> tuple[Answer, tuple[FailureCode, ...]]:
        """Call the model; its answer, and what the source says against it.

        An error of the summarizer itself is a failed attempt, never a summary (C4).
        """
        watched = watched_call(self.context.telemetry, self.planned.job, number)
        try:
            with self._renewing(), watched as answered:
                with self.stop.interruptible():
                    answer = sound_answer(self.summarizer.summarize(request))
                found = self._against(answer, request)
                answered(answer, found)
                return answer, found
        except InvalidSetting as error:  # the caller's mistake: recorded, and theirs to see
            self._abandon(attempt_id, "provider_error", type(error).__name__, "given_back")
            raise
        except Exception as error:
            logger.warning("%s raised %s", self.summarizer.model, type(error).__name__)
            logger.debug("the summarizer raised", exc_info=True)
            return Answer(fault="provider_error", detail=type(error).__name__), ()
        except BaseException:  # a stop
            self._abandon(attempt_id, "cancelled", "interrupted", "stopped")
            raise

    def _against(self, answer: Answer, request: SummaryRequest) -> tuple[FailureCode, ...]:
        """What the source says against an answer that ended well (T13)."""
        if self.strict and not failures(answer) and unfounded(answer.text, request.replies):
            return ("ungrounded",)
        return ()

    def _renewing(self) -> AbstractContextManager[None]:
        """Around a model call: the lease is renewed for as long as it may take (A5)."""
        renewal = Renewal(
            self.context.log, self._key, self._claim_id, self.lease, self.context.telemetry
        )
        return renewing(renewal, self.longest_attempt)

    def _abandon(self, attempt_id: str, fault: Fault, detail: str, reason: GiveBackReason) -> None:
        """Record an attempt that is given up, and give the claim back."""
        with suppress(Refused):
            self._finish(attempt_id, Answer(fault=fault, detail=detail))
            if self._is_open:
                self._release(reason, "stopped")

    def _finish(
        self, attempt_id: str, answer: Answer, found: tuple[FailureCode, ...] = ()
    ) -> list[tuple[int, RangeFact]]:
        """Record how the attempt ended; the facts and their indices."""
        self._again_at = retry_at = self._tell_gate(answer)
        with counted_finish(self.context.telemetry, self.planned.job) as facts:
            outcome = self._session.execute(
                lambda now: FinishAttempt(self._claim_id, attempt_id, answer, now, retry_at, found)
            )
            facts.extend(outcome.facts)
        for fact in outcome.facts:
            if isinstance(fact, AttemptFailed):
                self._failures.append(fact.failure)
        return list(zip(outcome.indices, outcome.facts, strict=True))

    def _tell_gate(self, answer: Answer) -> int | None:
        """Tell the gate whether the provider is there; when a second attempt may follow (D3)."""
        if answer.fault == "cancelled":
            return None
        self.asked = True
        if answer.fault is None:
            self.gate.succeeded()
            return None
        return self.gate.unavailable(self.context.log.now(), answer.retry_after)

    def _claim(self, now: int) -> ClaimRange:
        policy = self.context.policy
        return ClaimRange(self._claim_id, self.holder, self.planned.job, policy, now, self.lease)

    def _release(self, reason: GiveBackReason, result: RangeResult) -> RangeOutcome:
        self._session.execute(lambda now: ReleaseClaim(self._claim_id, reason, now))
        return self._outcome(result)

    @property
    def _is_open(self) -> bool:
        return self._claim_id in self._session.state.open

    def _outcome(
        self, result: RangeResult, *, index: int | None = None, detail: str | None = None
    ) -> RangeOutcome:
        again_at = self._again_at if result in _TRIED_AGAIN else None
        failures = tuple(self._failures)
        return RangeOutcome(self.planned.window, result, failures, index, detail, again_at)


def _number(started: Outcome) -> int | None:
    """Which attempt of its identity it is; ``None`` where it was recorded before, and the answer lost."""
    return next((fact.number for fact in started.facts if isinstance(fact, AttemptStarted)), None)


def _again_at(refusal: Refused) -> int | None:
    """When what is refused now may be granted."""
    match refusal:
        case AlreadyClaimed():
            return refusal.expires_at
        case BackingOff():
            return refusal.retry_at
        case _:
            return None
