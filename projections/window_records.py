"""The rows of the windows of running agents.

The ids that a pin or a delivery is told from others by are together too long for an index (E4): their tables
have a digest of them as the key (:func:`key_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256
from compaction_ledger.domain.read_models import (
    ChunkStatus,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.window.events import PinProposer
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.projections.record import (
    Record,
    Words,
    model_of,
    prepared,
    prompt_of,
    words_of,
)

KEY_TAG = b"compaction-ledger/window-row/v1"


def key_of(window: WindowKey, name: str) -> str:
    """The digest that stands for what is called ``name`` in a window."""
    ids = {
        "conversation": window.conversation,
        "name": name,
        "run": window.run,
        "scope": window.scope,
    }
    return tagged_sha256(KEY_TAG, encode_ordered(ids))


@prepared
@dataclass(slots=True)
class WindowChunkRecord(Record):
    """One identity of a chunk."""

    table: ClassVar[str] = "window_chunks"
    key: ClassVar[int] = 1
    words: ClassVar[Words] = {"status": frozenset(get_args(ChunkStatus))}
    hashes: ClassVar[Sequence[str]] = ("identity", "source_hash", "replaced_by")

    identity: str
    scope: str
    conversation: str
    run: str
    first_message: int
    last_message: int
    source_hash: str
    provider: str
    model: str
    settings: str
    prompt: str
    prompt_version: int
    replaces: str
    status: str
    claim_id: str
    replaced_by: str | None = None
    attempts: int = 0
    holder: str | None = None
    expires_at: int | None = None
    retry_at: int | None = None
    failure: str | None = None
    idx: int | None = None
    recorded_at: int | None = None
    ungrounded: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    updated_index: int = 0
    updated_at: int = 0

    def taken(self) -> tuple[str, ...]:
        """The identities in whose place it stands. Raises :class:`DamagedReadModel`."""
        try:
            return words_of(self.replaces)
        except (ValueError, RecursionError) as error:
            raise self.damaged(self.values(), f"column replaces: {error}") from error

    def row(self) -> WindowChunkRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> WindowChunkRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        try:
            model, replaces = model_of(*values[7:10]), words_of(values[12])
        except (ValueError, TypeError, RecursionError) as error:
            raise cls.damaged(values, f"column settings or replaces: {error}") from error
        prompt = prompt_of(values[10], values[11])
        return _chunk_row(
            *values[1:6], values[0], values[6], model, prompt, replaces, values[13], *values[15:]
        )


@prepared
@dataclass(slots=True)
class WindowPinRecord(Record):
    """One pin."""

    table: ClassVar[str] = "window_pins"
    key: ClassVar[int] = 1
    words: ClassVar[Words] = {"proposer": frozenset(get_args(PinProposer))}
    hashes: ClassVar[Sequence[str]] = ("pin_key", "digest")

    pin_key: str
    scope: str
    conversation: str
    run: str
    pin_id: str
    message: int
    digest: str
    part: int
    quote_start: int
    quote_end: int
    quote: str
    exchange: int
    proposer: str
    supersedes: str | None
    superseded_by: str | None
    idx: int
    recorded_at: int

    def row(self) -> WindowPinRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> WindowPinRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        return WindowPinRow(*values[1:])


@prepared
@dataclass(slots=True)
class WindowDeliveryRecord(Record):
    """One recorded request of a run."""

    table: ClassVar[str] = "window_deliveries"
    key: ClassVar[int] = 1
    hashes: ClassVar[Sequence[str]] = ("delivery_key", "request_digest")

    delivery_key: str
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
    token_limit: int
    bytes_sent: int
    bytes_reused: int
    request_digest: str
    idx: int
    recorded_at: int

    def row(self) -> WindowDeliveryRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> WindowDeliveryRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        return WindowDeliveryRow(*values[1:])


_chunk_row: Callable[..., WindowChunkRow] = WindowChunkRow
