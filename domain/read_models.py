"""The rows of the read models (P1): what the log says, in the shape that questions are asked in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.domain.window.events import PinProposer

ChunkStatus = Literal["claimed", "running", "failed", "released", "exhausted", "completed"]
SummaryStatus = Literal[
    "claimed", "running", "failed", "released", "exhausted", "completed", "imported"
]
RangeStatus = Literal["due", "running", "failed", "exhausted", "done"]
AttemptOutcome = Literal["running", "failed", "completed", "outdone"]

FINISHED: frozenset[str] = frozenset({"completed", "imported"})
OPEN: frozenset[str] = frozenset({"claimed", "running"})


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One identity of one range. The text is not here: it is kept in the log, at ``index``."""

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    identity: str
    source_hash: str
    model: ModelIdentity
    prompt: PromptVersion
    status: SummaryStatus
    validity: Verdict
    attempts: int
    holder: str | None
    expires_at: int | None
    retry_at: int | None
    failure: str | None
    index: int | None
    recorded_at: int | None
    origin: str | None
    input_tokens: int | None
    output_tokens: int | None

    @property
    def finished(self) -> bool:
        """Whether the identity has its completion, by a worker or by import."""
        return self.status in FINISHED


@dataclass(frozen=True, slots=True)
class RangeRow:
    """One range of a conversation, by its latest source in the log.

    ``running`` is what the log says. Behind ``expires_at`` the claim is past its lease and another worker
    may take over (A5); nothing is recorded of that until one does.
    """

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    status: RangeStatus
    source_hash: str
    identity: str
    expires_at: int | None
    retry_at: int | None
    updated_index: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt, for review. ``number`` is 1 or 2."""

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    attempt_id: str
    claim_id: str
    identity: str
    holder: str
    number: int
    outcome: AttemptOutcome
    failure: str | None
    also: tuple[str, ...]
    detail: str | None
    signals: tuple[str, ...]
    tool_calls: int
    output_digest: str | None
    input_tokens: int | None
    output_tokens: int | None
    started_index: int
    started_at: int
    ended_index: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One recorded delivery; the whole of it is in the log, at ``index``."""

    delivery_id: str
    scope: str
    conversation: str
    run: str | None
    shape: str
    bytes_used: int
    bytes_allowed: int
    request_digest: str
    index: int
    recorded_at: int


@dataclass(frozen=True, slots=True)
class WindowChunkRow:
    """One identity of a chunk of a run's window. The text is not here: it is kept in the log, at ``index``.

    ``replaces`` are the identities that it takes the place of once it is completed; ``replaced_by`` is that
    of the bigger one that took its place (T8). ``ungrounded`` counts what its summary says without its
    source (T13); ``None`` until there is one.
    """

    scope: str
    conversation: str
    run: str
    first: int
    last: int
    identity: str
    source_hash: str
    model: ModelIdentity
    prompt: PromptVersion
    replaces: tuple[str, ...]
    status: ChunkStatus
    replaced_by: str | None
    attempts: int
    holder: str | None
    expires_at: int | None
    retry_at: int | None
    failure: str | None
    index: int | None
    recorded_at: int | None
    ungrounded: int | None
    input_tokens: int | None
    output_tokens: int | None
    updated_index: int
    updated_at: int

    @property
    def stands(self) -> bool:
        """Whether it has a summary and no bigger chunk has taken its place (T8)."""
        return self.status == "completed" and self.replaced_by is None


@dataclass(frozen=True, slots=True)
class WindowPinRow:
    """One pin: the user's exact words, where they stand, and by which newer pin they were corrected (T9)."""

    scope: str
    conversation: str
    run: str
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
    superseded_by: str | None
    index: int
    recorded_at: int

    @property
    def current(self) -> bool:
        """Whether no newer pin corrects it."""
        return self.superseded_by is None


@dataclass(frozen=True, slots=True)
class WindowDeliveryRow:
    """One recorded request of a run, counted; the whole of it is in the log, at ``index``.

    ``verbatim``, ``summarized`` and ``left_out`` count messages.
    """

    delivery_id: str
    scope: str
    conversation: str
    run: str
    shape: str
    verbatim: int
    summarized: int
    left_out: int
    chunks: int
    pins: int
    stubs: int
    tokens: int
    limit: int
    bytes_sent: int
    bytes_reused: int
    request_digest: str
    index: int
    recorded_at: int


@dataclass(frozen=True, slots=True)
class RangeCensus:
    """How many ranges there are of each status, at one position of the rows.

    ``next_expiry`` is when the first of the running ones is past its lease, in microseconds since the epoch.
    """

    position: int
    counts: Mapping[RangeStatus, int]
    next_expiry: int | None


@dataclass(frozen=True, slots=True)
class GenerationProgress:
    """How many facts a generation of rows reflects; ``active`` is the one that serves."""

    number: int
    position: int
    active: bool
