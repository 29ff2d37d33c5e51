"""What `replay` answers: a conversation, or the whole ledger, at a point of the log."""

from __future__ import annotations

from pydantic import Field

from compaction_ledger.cli.documents.common import (
    Count,
    Document,
    Hash,
    Model,
    Time,
    moment,
    moment_or_none,
)
from compaction_ledger.cli.documents.records import AttemptRecord
from compaction_ledger.cli.documents.requests import ManifestDocument
from compaction_ledger.cli.documents.windows import ChunkRecord, PinRecord, WindowDeliveryRecord
from compaction_ledger.domain.moments import Point
from compaction_ledger.domain.read_models import DeliveryRow, SummaryStatus
from compaction_ledger.domain.replay import RangeThen, Standing, SummaryThen, Validity
from compaction_ledger.usecases.replaying import (
    ConversationCounts,
    ConversationThen,
    LedgerThen,
)
from compaction_ledger.usecases.serving_then import ServedThen


class PointRecord(Document):
    """A point of the log: the last event that counts, and all before it."""

    index: int = Field(ge=-1, description="The last event that counts; -1: before the first.")
    recorded_at: Time | None
    """When that event was recorded."""

    time: Time | None
    """The time that was asked for, if it was a time."""

    size: Count
    """How many events the log holds now."""

    @classmethod
    def of(cls, point: Point, size: int) -> PointRecord:
        return cls(
            index=point.index,
            recorded_at=moment_or_none(point.recorded_at),
            time=moment_or_none(point.time),
            size=size,
        )


class RangeStanding(Document):
    """One range as it stood, by the latest source that the log knew."""

    from_pair: Count
    to_pair: Count
    standing: Standing
    """`lease_over`: claimed, and the lease had run out. `waiting`: failed, and to be tried later."""

    claimable: bool
    """Whether a claim of its source would have been granted then."""

    holder: str | None
    """The worker with the open claim, be its lease over or not."""

    expires_at: Time | None
    """While it was running: when the lease would be over."""

    retry_at: Time | None
    """When a second attempt might follow."""

    source_hash: Hash
    """Of that source."""

    identity: Hash
    """Of the job that decided the standing."""

    updated_index: Count
    """The event that last changed it until then."""

    updated_at: Time

    @classmethod
    def of(cls, one: RangeThen) -> RangeStanding:
        row = one.row
        return cls(
            from_pair=row.from_pair,
            to_pair=row.to_pair,
            standing=one.standing,
            claimable=one.claimable,
            holder=one.holder,
            expires_at=moment_or_none(row.expires_at),
            retry_at=moment_or_none(row.retry_at),
            source_hash=row.source_hash,
            identity=row.identity,
            updated_index=row.updated_index,
            updated_at=moment(row.updated_at),
        )


class SummaryStanding(Document):
    """One identity as it stood, and whether its summary could be projected."""

    from_pair: Count
    to_pair: Count
    identity: Hash
    status: SummaryStatus
    validity: Validity
    """`valid`, or why it was not. Versions are judged by the registry of this software."""

    by: Hash | None
    """`superseded`: by which summary. `older_source`: the job of the newer source."""

    source_hash: Hash
    model: Model
    prompt: str
    index: Count | None
    """Its completion's place in the log."""

    recorded_at: Time | None
    origin: str | None
    """Where an imported one came from."""

    @classmethod
    def of(cls, one: SummaryThen) -> SummaryStanding:
        row = one.row
        return cls(
            from_pair=row.from_pair,
            to_pair=row.to_pair,
            identity=row.identity,
            status=row.status,
            validity=one.validity,
            by=one.by,
            source_hash=row.source_hash,
            model=Model.of(row.model),
            prompt=str(row.prompt),
            index=row.index,
            recorded_at=moment_or_none(row.recorded_at),
            origin=row.origin,
        )


class DeliveryRecord(Document):
    """A request for the conversation that was recorded as given."""

    delivery: str
    """Its id."""

    run: str | None
    shape: str
    bytes_used: Count
    bytes_allowed: Count
    request_digest: Hash
    index: Count
    recorded_at: Time

    @classmethod
    def of(cls, row: DeliveryRow) -> DeliveryRecord:
        return cls(
            delivery=row.delivery_id,
            run=row.run,
            shape=row.shape,
            bytes_used=row.bytes_used,
            bytes_allowed=row.bytes_allowed,
            request_digest=row.request_digest,
            index=row.index,
            recorded_at=moment(row.recorded_at),
        )


class ChangedRange(Document):
    """A range whose latest source then is not what stands there now."""

    from_pair: Count
    to_pair: Count


class ServedRecord(Document):
    """What a request would have held: of the summaries known then, and the messages as they are now."""

    manifest: ManifestDocument
    """What the request holds."""

    pairs_now: Count
    """How many pairs the conversation has now."""

    pairs_used: Count
    """How many of them the request was made of; `--pairs` takes fewer."""

    changed: list[ChangedRange]
    """Ranges that were changed since: what a request held of them then is not known."""

    delivery: Count | None
    """The index of the newest request recorded until then that this is, byte for byte."""

    @classmethod
    def of(cls, served: ServedThen) -> ServedRecord:
        return cls(
            manifest=ManifestDocument.of(served.assembly.manifest),
            pairs_now=served.pairs_now,
            pairs_used=served.pairs_used,
            changed=[
                ChangedRange(from_pair=window.from_pair, to_pair=window.to_pair)
                for window in served.changed
            ],
            delivery=served.delivery,
        )


class ConversationReplay(Document):
    """All that the log says of one conversation up to the point."""

    scope: str
    conversation: str
    pairs_known: Count
    """How many pairs it had at least, as the log shows."""

    ranges: list[RangeStanding]
    summaries: list[SummaryStanding]
    attempts: list[AttemptRecord]
    deliveries: list[DeliveryRecord]
    """Requests recorded until then."""

    chunks: list[ChunkRecord]
    """Those of the windows of its runs."""

    pins: list[PinRecord]
    window_deliveries: list[WindowDeliveryRecord]
    served: ServedRecord | None
    """`null` where the transcripts do not know the conversation."""

    @classmethod
    def of(cls, then: ConversationThen) -> ConversationReplay:
        return cls(
            scope=then.scope,
            conversation=then.conversation,
            pairs_known=then.pairs_known,
            ranges=list(map(RangeStanding.of, then.ranges)),
            summaries=list(map(SummaryStanding.of, then.summaries)),
            attempts=list(map(AttemptRecord.of, then.attempts)),
            deliveries=list(map(DeliveryRecord.of, then.deliveries)),
            chunks=list(map(ChunkRecord.of, then.chunks)),
            pins=list(map(PinRecord.of, then.pins)),
            window_deliveries=list(map(WindowDeliveryRecord.of, then.window_deliveries)),
            served=None if then.served is None else ServedRecord.of(then.served),
        )


class ConversationOverview(Document):
    """One conversation, counted."""

    scope: str
    conversation: str
    ranges: dict[Standing, Count]
    """How many there were of each standing."""

    claimable: Count
    """How many of them could be claimed."""

    valid: Count
    """How many summaries could be projected."""

    excluded: Count
    """How many finished ones could not."""

    chunks: Count
    """How many chunks of windows stood."""

    pins: Count
    """How many pins were current."""

    requests: Count
    """How many requests were recorded, those of runs included."""

    @classmethod
    def of(cls, counts: ConversationCounts) -> ConversationOverview:
        return cls(
            scope=counts.scope,
            conversation=counts.conversation,
            ranges={name: count for name, count in sorted(counts.ranges.items()) if count},
            claimable=counts.claimable,
            valid=counts.valid,
            excluded=counts.excluded,
            chunks=counts.chunks,
            pins=counts.pins,
            requests=counts.requests,
        )


class ReplayDocument(Document):
    """`compaction-ledger replay`. Either ``conversation`` or ``overview`` is there."""

    point: PointRecord
    conversation: ConversationReplay | None
    """Of the conversation that was named."""

    overview: list[ConversationOverview] | None
    """Of all conversations, where none was named."""

    erased: dict[str, Count] | None
    """With `overview`: how many events were erased since, by what stands for their conversation."""

    @classmethod
    def of(cls, then: ConversationThen | LedgerThen) -> ReplayDocument:
        point = PointRecord.of(then.point, then.size)
        if isinstance(then, ConversationThen):
            return cls(
                point=point, conversation=ConversationReplay.of(then), overview=None, erased=None
            )
        overview = list(map(ConversationOverview.of, then.conversations))
        return cls(point=point, conversation=None, overview=overview, erased=dict(then.erased))
