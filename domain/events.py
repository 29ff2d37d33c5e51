"""The facts of the log, in past tense, as frozen records.

Facts of a range (ledger.md section 5): one stream per scope, conversation and range. They carry no
time of their own: the time of recording stands in the sealed envelope (L3). Lease ends and retry times are
microseconds since the epoch. Nothing here is checked on construction: history loads for ever (A10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from compaction_ledger.domain.finish import FailureCode, FinishFacts, Usage
from compaction_ledger.domain.identity import Job
from compaction_ledger.domain.windows import PolicyNumbers

if TYPE_CHECKING:
    from pydantic import ConfigDict


class Stored:
    """Stored payloads are read strictly: no unknown key, no conversion (A10)."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid", "strict": True}


ReleaseReason = Literal[
    "given_back", "source_changed", "expired", "backing_off", "stopped", "exhausted", "outdone"
]


@dataclass(frozen=True, slots=True)
class RangeClaimed(Stored):
    """A worker holds the right to summarize one source once, until ``expires_at``."""

    claim_id: str
    holder: str
    identity: str
    job: Job
    policy: PolicyNumbers
    expires_at: int


@dataclass(frozen=True, slots=True)
class AttemptStarted(Stored):
    """The summarizing model is about to be called. ``number`` is 1 or 2 (A3); the lease is renewed."""

    claim_id: str
    attempt_id: str
    identity: str
    number: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class ClaimRenewed(Stored):
    """The holder is still at its attempt: its lease ends at ``expires_at``, later than before (A5)."""

    claim_id: str
    identity: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class AttemptFailed(Stored):
    """The attempt brought no acceptable summary (C4). ``also`` are the further codes that applied."""

    claim_id: str
    attempt_id: str
    identity: str
    failure: FailureCode
    also: tuple[FailureCode, ...]
    finish: FinishFacts
    usage: Usage
    output_digest: str | None
    retry_at: int | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class RangeCompleted(Stored):
    """The one completion of an identity (A2)."""

    claim_id: str
    attempt_id: str
    identity: str
    source_hash: str
    text: str
    finish: FinishFacts
    usage: Usage


@dataclass(frozen=True, slots=True)
class ClaimReleased(Stored):
    """The claim is over without a completion of its own.

    Given back by its holder; ``expired``, as found by whoever came next (A5); ``exhausted`` with the last
    attempt of its identity (A3); or ``outdone`` by an import of the same identity.
    """

    claim_id: str
    identity: str
    reason: ReleaseReason


@dataclass(frozen=True, slots=True)
class SummaryImported(Stored):
    """A summary brought from another store; ``origin`` says from where. The completion of its identity.

    ``made_at`` is when it was made there, in microseconds since the epoch, where that is known.
    """

    import_id: str
    identity: str
    job: Job
    text: str
    origin: str
    made_at: int | None


RangeFact = (
    RangeClaimed
    | AttemptStarted
    | ClaimRenewed
    | AttemptFailed
    | RangeCompleted
    | ClaimReleased
    | SummaryImported
)


@dataclass(frozen=True, slots=True)
class DeliveredSummary(Stored):
    """A summary that stood in a request: its pair range, identity and place in the log."""

    from_pair: int
    to_pair: int
    identity: str
    index: int


@dataclass(frozen=True, slots=True)
class DeliveredPairs(Stored):
    """Consecutive pairs that were treated alike in a request; ``reason`` where they were left out.

    ``source_hash`` is that of these pairs as they were (B1, of however many pairs), so that it can be shown
    later which messages they were; ``None`` where they were left out, and in what was stored without it.
    """

    from_pair: int
    to_pair: int
    disposition: Literal["verbatim", "summarized", "left_out"]
    reason: str | None
    source_hash: str | None


@dataclass(frozen=True, slots=True)
class DeliveredRejection(Stored):
    """A stored summary that did not stand in a request, and why."""

    identity: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeliveredReplacement(Stored):
    """How many characters of a message the wire could not carry (E6)."""

    message_id: str
    count: int


@dataclass(frozen=True, slots=True)
class RequestDelivered(Stored):
    """What one request to the model was really given (section 0, Delivery). One stream per delivery."""

    delivery_id: str
    scope: str
    conversation: str
    run: str | None
    shape: str
    mode: str
    pairs: tuple[DeliveredPairs, ...]
    summaries: tuple[DeliveredSummary, ...]
    rejected: tuple[DeliveredRejection, ...]
    replaced: tuple[DeliveredReplacement, ...]
    bytes_used: int
    bytes_allowed: int
    request_digest: str
