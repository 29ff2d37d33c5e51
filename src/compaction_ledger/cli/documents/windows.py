"""What `window show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from compaction_ledger.cli.documents.common import (
    Count,
    Document,
    Hash,
    Model,
    Time,
    moment,
    moment_or_none,
)
from compaction_ledger.domain.read_models import WindowChunkRow, WindowDeliveryRow, WindowPinRow


class ChunkRecord(Document):
    """One identity of a chunk: its messages, what became of it, and its place in the log."""

    run: str
    first: str
    """The id of its first message."""

    last: str
    """The id of its last message."""

    identity: Hash
    status: str
    stands: bool
    """Whether its summary may stand in requests: it is completed, and no bigger chunk has taken its place."""

    replaced_by: Hash | None
    attempts: Count
    failure: str | None
    """The code of the last failed attempt, if none was completed."""

    holder: str | None
    expires_at: Time | None
    model: Model
    prompt: str
    source_hash: Hash
    index: Count | None
    """Its completion's place in the log."""

    recorded_at: Time | None
    ungrounded: Count | None
    """How many things its summary says that its source does not."""

    input_tokens: Count | None
    output_tokens: Count | None

    @classmethod
    def of(cls, row: WindowChunkRow) -> ChunkRecord:
        return cls(
            run=row.run,
            first=f"m{row.first}",
            last=f"m{row.last}",
            identity=row.identity,
            status=row.status,
            stands=row.stands,
            replaced_by=row.replaced_by,
            attempts=row.attempts,
            failure=row.failure,
            holder=row.holder,
            expires_at=moment_or_none(row.expires_at),
            model=Model.of(row.model),
            prompt=str(row.prompt),
            source_hash=row.source_hash,
            index=row.index,
            recorded_at=moment_or_none(row.recorded_at),
            ungrounded=row.ungrounded,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
        )


class PinRecord(Document):
    """The user's exact words, where they stand, and whether a newer pin corrects them."""

    run: str
    pin: str
    """The pin's id."""

    message: str
    part: Count
    start: Count
    end: Count
    quote: str
    proposer: Literal["caller", "rule", "model"]
    current: bool
    supersedes: str | None
    superseded_by: str | None
    index: Count
    recorded_at: Time

    @classmethod
    def of(cls, row: WindowPinRow) -> PinRecord:
        return cls(
            run=row.run,
            pin=row.pin_id,
            message=f"m{row.message}",
            part=row.part,
            start=row.start,
            end=row.end,
            quote=row.quote,
            proposer=row.proposer,
            current=row.current,
            supersedes=row.supersedes,
            superseded_by=row.superseded_by,
            index=row.index,
            recorded_at=moment(row.recorded_at),
        )


class WindowDeliveryRecord(Document):
    """A request of a run that was recorded as sent."""

    run: str
    delivery: str
    """Its id."""

    shape: str
    tokens: Count
    limit: Count
    verbatim: Count
    """How many messages stood in it as they are."""

    summarized: Count
    left_out: Count
    request_digest: Hash
    index: Count
    recorded_at: Time

    @classmethod
    def of(cls, row: WindowDeliveryRow) -> WindowDeliveryRecord:
        return cls(
            run=row.run,
            delivery=row.delivery_id,
            shape=row.shape,
            tokens=row.tokens,
            limit=row.limit,
            verbatim=row.verbatim,
            summarized=row.summarized,
            left_out=row.left_out,
            request_digest=row.request_digest,
            index=row.index,
            recorded_at=moment(row.recorded_at),
        )


class WindowShowDocument(Document):
    """The windows of a conversation's runs: chunks, pins and recorded requests."""

    scope: str
    conversation: str
    chunks: list[ChunkRecord]
    pins: list[PinRecord]
    deliveries: list[WindowDeliveryRecord]

    @classmethod
    def of(
        cls,
        place: tuple[str, str],
        chunks: Sequence[WindowChunkRow],
        pins: Sequence[WindowPinRow],
        deliveries: Sequence[WindowDeliveryRow],
    ) -> WindowShowDocument:
        return cls(
            scope=place[0],
            conversation=place[1],
            chunks=list(map(ChunkRecord.of, chunks)),
            pins=list(map(PinRecord.of, pins)),
            deliveries=list(map(WindowDeliveryRecord.of, deliveries)),
        )
