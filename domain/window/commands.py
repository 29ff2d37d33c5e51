"""What may be asked of a window. Times are microseconds since the epoch, from the store's clock (A5)."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.commands import ReleaseClaim, RenewClaim, StartAttempt
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.summarization import ChunkVerdict


@dataclass(frozen=True, slots=True)
class ClaimChunk:
    """Claim ``job`` for ``holder``; ``lease`` is in microseconds (A1, T11)."""

    claim_id: str
    holder: str
    job: ChunkJob
    budget: WindowBudget
    now: int
    lease: int


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """The model answered, or did not; ``verdict`` is what its answer is worth (T7, T12, T13).

    Whatever the verdict, an answer that did not end as one should (C1, C2) is a failure. ``retry_at`` is when
    a second attempt may be tried after ``provider_unavailable`` (D3).
    """

    claim_id: str
    attempt_id: str
    answer: Answer
    verdict: ChunkVerdict
    now: int
    retry_at: int | None = None


@dataclass(frozen=True, slots=True)
class AcceptPin:
    """Hold a constraint in the user's exact words (T9). That they are the user's has been proved before."""

    pin: PinAccepted


WindowCommand = ClaimChunk | StartAttempt | RenewClaim | FinishChunk | ReleaseClaim | AcceptPin
