"""The facts of a window, in past tense, as frozen records: one stream per scope, conversation and run.

The claim, attempts and completion of a chunk follow the rules A1 to A6 of ranges; a chunk has an identity
of its own. Lease ends and retry times are microseconds since the epoch. Nothing is checked on construction
(A10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.events import ReleaseReason, Stored
from compaction_ledger.domain.finish import FailureCode, FinishFacts, Usage
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import BudgetNumbers


@dataclass(frozen=True, slots=True)
class ChunkClaimed(Stored):
    """A worker holds the right to summarize one chunk once, until ``expires_at`` (A1, T11)."""

    claim_id: str
    holder: str
    identity: str
    job: ChunkJob
    budget: BudgetNumbers
    expires_at: int


@dataclass(frozen=True, slots=True)
class ChunkAttemptStarted(Stored):
    """The summarizing model is about to be called. ``number`` is 1 or 2 (A3); the lease is renewed."""

    claim_id: str
    attempt_id: str
    identity: str
    number: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class ChunkClaimRenewed(Stored):
    """The holder is still at its attempt: its lease ends at ``expires_at`` (A5)."""

    claim_id: str
    identity: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class ChunkAttemptFailed(Stored):
    """The attempt brought no acceptable summary (C4, T7, T12, T13)."""

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
class ChunkCompleted(Stored):
    """The one completion of a chunk's identity (A2). ``text`` is the structured summary as canonical JSON
    (T7).
    """

    claim_id: str
    attempt_id: str
    identity: str
    source_hash: str
    text: str
    ungrounded: tuple[Ungrounded, ...]
    finish: FinishFacts
    usage: Usage


@dataclass(frozen=True, slots=True)
class ChunkClaimReleased(Stored):
    """The claim is over without a completion of its own."""

    claim_id: str
    identity: str
    reason: ReleaseReason


PinProposer = Literal["caller", "rule", "model"]


@dataclass(frozen=True, slots=True)
class PinAccepted(Stored):
    """A constraint in the user's exact words (T9): ``quote`` stands at ``start`` to ``end`` (characters) of
    a part.

    ``digest`` is that of the message (:func:`message_digest`), ``exchange`` its pair index. ``supersedes``
    is the id of the pin that this one corrects.
    """

    window: WindowKey
    pin_id: str
    message: int
    digest: str
    part: int
    start: int
    end: int
    quote: str
    exchange: int
    proposer: PinProposer
    supersedes: str | None


@dataclass(frozen=True, slots=True)
class DeliveredMessages(Stored):
    """Consecutive messages of a run that were treated alike in a request."""

    first: int
    last: int
    disposition: Literal["verbatim", "summarized", "left_out"]
    reason: str | None


@dataclass(frozen=True, slots=True)
class DeliveredChunk(Stored):
    """A chunk summary that stood in a request: its messages, identity and place in the log."""

    first: int
    last: int
    identity: str
    index: int


@dataclass(frozen=True, slots=True)
class DeliveredStub(Stored):
    """A tool result that stood in a request as a stub (T14)."""

    message: int
    part: int
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class WindowDelivered(Stored):
    """What one request of a run was really given (section 0, Delivery; H8)."""

    delivery_id: str
    window: WindowKey
    shape: str
    messages: tuple[DeliveredMessages, ...]
    chunks: tuple[DeliveredChunk, ...]
    pins: tuple[str, ...]
    stubs: tuple[DeliveredStub, ...]
    tokens: int
    limit: int
    bytes_sent: int
    bytes_reused: int
    request_digest: str


ChunkFact = (
    ChunkClaimed
    | ChunkAttemptStarted
    | ChunkClaimRenewed
    | ChunkAttemptFailed
    | ChunkCompleted
    | ChunkClaimReleased
)
WindowFact = ChunkFact | PinAccepted | WindowDelivered
