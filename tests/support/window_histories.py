"""Histories of windows in a store: workers by hand, and one history in which each kind of fact stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chunk_scenarios import (
    BUDGET,
    OTHER_MODEL,
    OTHER_WINDOW,
    SUMMARY,
    A,
    B,
    C,
    chunk,
    pin,
    verdict,
    window_delivery,
)
from histories import LEASE, TRUNCATED, UNAVAILABLE
from scenarios import good

from compaction_ledger.composition import Parts
from compaction_ledger.domain.commands import (
    GiveBackReason,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.finish import Answer, FailureCode, failures
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.commands import (
    AcceptPin,
    ClaimChunk,
    FinishChunk,
    WindowCommand,
)
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.summarization import ChunkVerdict
from compaction_ledger.usecases.window_session import WindowOutcome, WindowSession


@dataclass
class ChunkWorker:
    """A worker on one chunk, by hand: each step is one command at the store's present time."""

    parts: Parts
    job: ChunkJob = A
    name: str = "w"

    def __post_init__(self) -> None:
        self.session = WindowSession(self.parts.context.log, self.job.window)
        self.claim_id = f"{self.name}-claim"

    def claim(self, lease: int = LEASE) -> WindowOutcome:
        return self._do(
            lambda now: ClaimChunk(self.claim_id, self.name, self.job, BUDGET, now, lease)
        )

    def start(self, number: int = 1, lease: int = LEASE) -> WindowOutcome:
        return self._do(lambda now: StartAttempt(self.claim_id, self._attempt(number), now, lease))

    def renew(self, lease: int = LEASE) -> WindowOutcome:
        return self._do(lambda now: RenewClaim(self.claim_id, now, lease))

    def finish(
        self,
        answer: Answer | None = None,
        worth: ChunkVerdict | None = None,
        number: int = 1,
        retry_at: int | None = None,
    ) -> WindowOutcome:
        given, judged = answer or good(SUMMARY), worth or verdict()
        return self._do(
            lambda now: FinishChunk(
                self.claim_id, self._attempt(number), given, judged, now, retry_at
            )
        )

    def fail(
        self, answer: Answer = TRUNCATED, *codes: FailureCode, number: int = 1
    ) -> WindowOutcome:
        return self.finish(answer, verdict(*(codes or failures(answer))), number)

    def release(self, reason: GiveBackReason = "given_back") -> WindowOutcome:
        return self._do(lambda now: ReleaseClaim(self.claim_id, reason, now))

    def complete(self, text: str = SUMMARY) -> WindowOutcome:
        """Claim, start and finish well."""
        self.claim()
        self.start()
        return self.finish(worth=verdict(text=text))

    def exhaust(self) -> WindowOutcome:
        """Claim and fail twice."""
        self.claim()
        self.start(1)
        self.fail(number=1)
        self.start(2)
        return self.fail(number=2)

    def _attempt(self, number: int) -> str:
        return f"{self.claim_id}-attempt-{number}"

    def _do(self, make: Callable[[int], WindowCommand]) -> WindowOutcome:
        return self.session.execute(make)


def hold(parts: Parts, held: PinAccepted) -> WindowOutcome:
    """Accept a pin."""
    session = WindowSession(parts.context.log, held.window)
    return session.execute(lambda _now: AcceptPin(held))


def complete(parts: Parts, *jobs: ChunkJob) -> None:
    """Claim, start and finish each of these."""
    for job in jobs:
        ChunkWorker(parts, job, f"done-{job.first}-{job.last}-{len(job.replaces)}").complete()


def every_window_kind(parts: Parts) -> None:
    """A history in which each fact of a window stands at least once.

    Two chunks and one in their place; an exhausted one; one whose provider was away; one under way, whose
    lease was renewed; two pins and a correction; a window of another run; two deliveries.
    """
    complete(parts, A, B)
    complete(parts, chunk(1, 9, [A, B]))
    hold(parts, pin("p1", 3))
    hold(parts, pin("p2", 6))
    hold(parts, pin("p3", 8, "p1"))
    ChunkWorker(parts, C, "exhausted").exhaust()
    other = chunk(10, 20, model=OTHER_MODEL)
    waiting = ChunkWorker(parts, other, "waiting")
    waiting.claim()
    waiting.start()
    retry_at = parts.context.log.now() + 3_000_000
    waiting.finish(UNAVAILABLE, verdict(*failures(UNAVAILABLE)), retry_at=retry_at)
    waiting.release("backing_off")
    given_back = ChunkWorker(parts, chunk(10, 12), "given-back")
    given_back.claim()
    given_back.release()
    running = ChunkWorker(parts, chunk(10, 30), "running")
    running.claim()
    running.start()
    running.renew(2 * LEASE)
    complete(parts, chunk(0, 3, window=OTHER_WINDOW))
    parts.context.log.deliver(window_delivery("d-1"))
    parts.context.log.deliver(window_delivery("d-2", OTHER_WINDOW))
