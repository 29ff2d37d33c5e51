"""One chunk of a run, from its claim to its completion, failure or release (A1 to A6, C1 to C4, T7, T8,
T12, T13).

As with ranges, a failure here touches no request: the worst case is that there is no summary (A11).
"""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from compaction_ledger.domain.commands import GiveBackReason, ReleaseClaim, StartAttempt
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    BackingOff,
    ChunkOverlaps,
    Exhausted,
    InvalidSetting,
    LedgerError,
    Refused,
)
from compaction_ledger.domain.finish import Answer, FailureCode, Fault, sound_answer
from compaction_ledger.domain.ports import Admission, Gate
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.commands import ClaimChunk, FinishChunk
from compaction_ledger.domain.window.events import ChunkAttemptFailed, ChunkCompleted, WindowFact
from compaction_ledger.domain.window.judging import judge
from compaction_ledger.domain.window.summarization import ChunkSummarizer, ChunkVerdict
from compaction_ledger.usecases.renewing import Renewal, renewing
from compaction_ledger.usecases.stopping import Stop
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.source import ChunkSource, read_source
from compaction_ledger.usecases.window_session import WindowOutcome, WindowSession

logger = logging.getLogger(__name__)

ChunkResult = Literal[
    "completed",
    "failed",
    "exhausted",
    "waiting",
    "claimed_elsewhere",
    "already_completed",
    "overlaps",
    "source_changed",
    "refused",
    "not_admitted",
    "outage",
    "stopped",
]

_REFUSALS: dict[type[Refused], ChunkResult] = {
    AlreadyClaimed: "claimed_elsewhere",
    AlreadyCompleted: "already_completed",
    Exhausted: "exhausted",
    BackingOff: "waiting",
    ChunkOverlaps: "overlaps",
}


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """What became of one chunk. ``failures`` has one code for each attempt that failed; ``index`` is the
    completion's place in the log."""

    first: int
    last: int
    result: ChunkResult
    failures: tuple[FailureCode, ...] = ()
    index: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkCompactor:
    """A worker's way of compacting chunks of one run. Lease and longest attempt are microseconds.

    ``strict``: a summary that says what its source does not is a failed attempt (T13).
    """

    context: WindowContext
    summarizer: ChunkSummarizer
    admission: Admission
    gate: Gate
    holder: str
    lease: int
    longest_attempt: int
    stop: Stop
    strict: bool = False

    def compact(self, job: ChunkJob) -> ChunkOutcome:
        """Claim and attempt a planned chunk (D1, D2, D3). Refusals are outcomes, not errors.

        Raises :class:`DamagedOriginal` and kinds of :class:`StoreError` where its originals cannot be read;
        that is seen before the claim, so that trying it at each turn records nothing.
        """
        if self.stop.requested:
            return ChunkOutcome(job.first, job.last, "stopped")
        leave = self.admission.admit()
        if leave is None:
            return ChunkOutcome(job.first, job.last, "not_admitted")
        try:
            if not self.gate.may_claim(self.context.log.now()):
                return ChunkOutcome(job.first, job.last, "outage")
            claim = _Claim(self, job)
            try:
                return claim.run()
            finally:
                if not claim.asked:
                    self.gate.released_unused()
        finally:
            leave()


@dataclass(slots=True)
class _Claim:
    compactor: ChunkCompactor
    job: ChunkJob
    asked: bool = False
    _claim_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _failures: list[FailureCode] = field(default_factory=list[FailureCode])
    _session: WindowSession = field(init=False)

    def __post_init__(self) -> None:
        self._session = WindowSession(self.compactor.context.log, self.compactor.context.key)

    def run(self) -> ChunkOutcome:
        if read_source(self.compactor.context, self.job) is None:
            return self._outcome("source_changed")
        try:
            self._session.execute(self._claim)
            outcome: ChunkOutcome | None = None
            while outcome is None:
                outcome = self._next()
        except Refused as refusal:
            result = _REFUSALS.get(type(refusal), "refused")
            return self._outcome(result, detail=str(refusal))
        return outcome

    def _next(self) -> ChunkOutcome | None:
        """The next attempt, on the originals as they are now (A6, T8); ``None`` when another may follow."""
        source = self._source()
        if source is None:
            return self._release("source_changed", "source_changed")
        if self.compactor.stop.requested:
            return self._release("stopped", "stopped")
        attempt_id = uuid.uuid4().hex
        self._session.execute(
            lambda now: StartAttempt(self._claim_id, attempt_id, now, self.compactor.lease)
        )
        answer = self._call(attempt_id, source)
        verdict = judge(
            answer,
            source.request,
            replaced_bytes=source.replaced_bytes,
            rendered_bytes=source.rendered_bytes,
            strict=self.compactor.strict,
        )
        for index, fact in self._finish(attempt_id, answer, verdict):
            if isinstance(fact, ChunkCompleted):
                return self._outcome("completed", index=index)
        if not self._is_open:
            return self._outcome("exhausted")
        if answer.fault == "cancelled":
            return self._release("stopped", "stopped")
        if answer.fault is not None:  # no answer came: the second attempt waits (D3)
            return self._release("backing_off", "failed")
        return None

    def _source(self) -> ChunkSource | None:
        """The originals of the chunk; where they cannot be read, the claim is given back at no cost (A6)."""
        try:
            return read_source(self.compactor.context, self.job)
        except BaseException:
            try:
                self._release("given_back", "refused")
            except LedgerError as error:  # the first one is to be told; the lease runs out (A5)
                logger.warning("claim %s is not given back: %s", self._claim_id, error)
            raise

    def _call(self, attempt_id: str, source: ChunkSource) -> Answer:
        """Call the model. An error of the summarizer itself is a failed attempt, never a summary (C4)."""
        compactor = self.compactor
        renewal = Renewal(
            compactor.context.log,
            compactor.context.key,
            self._claim_id,
            compactor.lease,
            compactor.context.telemetry,
        )
        try:
            with renewing(renewal, compactor.longest_attempt), compactor.stop.interruptible():
                return sound_answer(compactor.summarizer.summarize_chunk(source.request))
        except InvalidSetting as error:  # the caller's mistake: recorded, and theirs to see
            self._abandon(attempt_id, "provider_error", type(error).__name__, "given_back")
            raise
        except Exception as error:
            logger.warning("%s raised %s", compactor.summarizer.model, type(error).__name__)
            logger.debug("the summarizer raised", exc_info=True)
            return Answer(fault="provider_error", detail=type(error).__name__)
        except BaseException:  # a stop
            self._abandon(attempt_id, "cancelled", "interrupted", "stopped")
            raise

    def _abandon(self, attempt_id: str, fault: Fault, detail: str, reason: GiveBackReason) -> None:
        """Record an attempt that is given up, and give the claim back."""
        with suppress(Refused):
            answer = Answer(fault=fault, detail=detail)
            self._finish(attempt_id, answer, ChunkVerdict((fault,)))
            if self._is_open:
                self._release(reason, "stopped")

    def _finish(
        self, attempt_id: str, answer: Answer, verdict: ChunkVerdict
    ) -> list[tuple[int, WindowFact]]:
        retry_at = self._tell_gate(answer)
        outcome: WindowOutcome = self._session.execute(
            lambda now: FinishChunk(self._claim_id, attempt_id, answer, verdict, now, retry_at)
        )
        for fact in outcome.facts:
            if isinstance(fact, ChunkAttemptFailed):
                self._failures.append(fact.failure)
        return list(zip(outcome.indices, outcome.facts, strict=True))

    def _tell_gate(self, answer: Answer) -> int | None:
        if answer.fault == "cancelled":
            return None
        self.asked = True
        if answer.fault is None:
            self.compactor.gate.succeeded()
            return None
        return self.compactor.gate.unavailable(self.compactor.context.log.now(), answer.retry_after)

    def _claim(self, now: int) -> ClaimChunk:
        compactor = self.compactor
        return ClaimChunk(
            self._claim_id,
            compactor.holder,
            self.job,
            compactor.context.budget,
            now,
            compactor.lease,
        )

    def _release(self, reason: GiveBackReason, result: ChunkResult) -> ChunkOutcome:
        self._session.execute(lambda now: ReleaseClaim(self._claim_id, reason, now))
        return self._outcome(result)

    @property
    def _is_open(self) -> bool:
        return self._claim_id in self._session.state.lifecycle.open

    def _outcome(
        self, result: ChunkResult, *, index: int | None = None, detail: str | None = None
    ) -> ChunkOutcome:
        return ChunkOutcome(
            self.job.first, self.job.last, result, tuple(self._failures), index, detail
        )
