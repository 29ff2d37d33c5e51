"""What a worker may ask of a range. Times are microseconds since the epoch, from the store's clock (A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from compaction_ledger.domain.finish import Answer, FailureCode
from compaction_ledger.domain.identity import Job
from compaction_ledger.domain.windows import WindowPolicy

GiveBackReason = Literal["given_back", "source_changed", "backing_off", "stopped"]
GIVE_BACK_REASONS: frozenset[str] = frozenset(get_args(GiveBackReason))


@dataclass(frozen=True, slots=True)
class ClaimRange:
    """Claim ``job`` for ``holder``; ``lease`` is in microseconds."""

    claim_id: str
    holder: str
    job: Job
    policy: WindowPolicy
    now: int
    lease: int


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """The claim's holder is about to call the model; the lease begins anew."""

    claim_id: str
    attempt_id: str
    now: int
    lease: int


@dataclass(frozen=True, slots=True)
class RenewClaim:
    """The model is still at work: the claim's holder lets the lease begin anew (A5)."""

    claim_id: str
    now: int
    lease: int


@dataclass(frozen=True, slots=True)
class FinishAttempt:
    """The model answered, or did not: success or failure is decided by the contract C1 to C4.

    ``retry_at`` is when a second attempt may be tried after ``provider_unavailable`` (D3). ``found`` is
    what else is wrong with a sound answer: its source was compared with it (T13).
    """

    claim_id: str
    attempt_id: str
    answer: Answer
    now: int
    retry_at: int | None = None
    found: tuple[FailureCode, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """The holder gives the claim back."""

    claim_id: str
    reason: GiveBackReason
    now: int


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """Bring in a summary made elsewhere; the only way an older prompt version can enter."""

    import_id: str
    job: Job
    text: str
    origin: str
    made_at: int | None = None


Command = ClaimRange | StartAttempt | RenewClaim | FinishAttempt | ReleaseClaim | ImportSummary
