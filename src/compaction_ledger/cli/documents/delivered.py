"""What `delivered` answers: what the requests of a run were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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
from compaction_ledger.domain.events import RequestDelivered
from compaction_ledger.usecases.given import (
    Delivered,
    Given,
    GivenMessages,
    GivenPin,
    GivenSummary,
    SummaryState,
    Told,
)


class GivenMessagesRecord(Document):
    """Consecutive pairs (or, in a run's window, messages) that were treated alike, both ends included."""

    first: Count
    last: Count
    disposition: Literal["verbatim", "summarized", "left_out"]
    reason: str | None
    """Why they were left out."""

    messages: list[str]
    """The ids of the messages, where they can be told."""

    told: Told
    """How they are known. `by_seal`: by the sealed log alone. `by_source`: the transcript still has exactly
    these messages, ids and texts. `changed`: it has others now. `not_recorded`: the event is of an older
    form."""

    @classmethod
    def of(cls, one: GivenMessages) -> GivenMessagesRecord:
        return cls(
            first=one.first,
            last=one.last,
            disposition=one.disposition,
            reason=one.reason,
            messages=list(one.messages),
            told=one.told,
        )


class GivenSummaryRecord(Document):
    """A summary that stood in the request, read from the log at ``index``."""

    first: Count
    last: Count
    identity: Hash
    index: Count
    """Its place in the log."""

    state: SummaryState
    """`sealed`: its text is there and its seal holds. `other_summary`: there stands something else.
    `erased`: its conversation was erased."""

    text: str | None
    recorded_at: Time | None
    model: Model | None
    prompt: str | None
    source_hash: Hash | None
    messages: list[str]
    """The ids of the messages that it was made of."""

    @classmethod
    def of(cls, one: GivenSummary) -> GivenSummaryRecord:
        return cls(
            first=one.first,
            last=one.last,
            identity=one.identity,
            index=one.index,
            state=one.state,
            text=one.text,
            recorded_at=moment_or_none(one.recorded_at),
            model=None if one.model is None else Model.of(one.model),
            prompt=None if one.prompt is None else str(one.prompt),
            source_hash=one.source_hash,
            messages=list(one.messages),
        )


class GivenPinRecord(Document):
    """A pin that stood in the request: the user's exact words, as the log has them."""

    pin: str
    message: str | None
    quote: str | None
    index: Count | None
    """Its place in the log."""

    @classmethod
    def of(cls, one: GivenPin) -> GivenPinRecord:
        return cls(pin=one.pin_id, message=one.message, quote=one.quote, index=one.index)


class NotUsed(Document):
    """A stored summary that did not stand in the request, and why."""

    identity: str
    reason: str


class StubRecord(Document):
    """A tool result that stood in the request as a stub."""

    message: str
    part: Count
    digest: str
    size: Count


class GivenRecord(Document):
    """One recorded request. ``first`` and ``last`` in it are pairs, or messages of a run's window."""

    kind: Literal["request", "window"]
    """`window`: of a running agent; its messages are counted in the run."""

    index: Count
    """Its place in the log: what to prove inclusion of."""

    recorded_at: Time
    stream: str
    delivery: str
    """Its id."""

    scope: str
    conversation: str
    shape: str
    mode: str | None
    """`full`, or the fallback that was taken; `null` for a window."""

    used: Count
    """Bytes of a request, tokens of a window's."""

    allowed: Count
    request_digest: Hash
    sound: bool
    """Whether every summary in it is still there as it was sealed."""

    messages: list[GivenMessagesRecord]
    summaries: list[GivenSummaryRecord]
    pins: list[GivenPinRecord]
    rejected: list[NotUsed]
    replaced: dict[str, Count]
    """How many lone surrogates were replaced, by message id."""

    stubs: list[StubRecord]

    @classmethod
    def of(cls, one: Given) -> GivenRecord:
        fact, entry = one.fact, one.entry
        of_request = fact if isinstance(fact, RequestDelivered) else None
        stubs = () if isinstance(fact, RequestDelivered) else fact.stubs
        return cls(
            kind=one.kind,
            index=entry.index,
            recorded_at=moment(entry.recorded_at),
            stream=entry.stream,
            delivery=fact.delivery_id,
            scope=one.place[0],
            conversation=one.place[1],
            shape=fact.shape,
            mode=of_request.mode if of_request else None,
            used=fact.bytes_used if isinstance(fact, RequestDelivered) else fact.tokens,
            allowed=fact.bytes_allowed if isinstance(fact, RequestDelivered) else fact.limit,
            request_digest=fact.request_digest,
            sound=one.sound,
            messages=list(map(GivenMessagesRecord.of, one.groups)),
            summaries=list(map(GivenSummaryRecord.of, one.summaries)),
            pins=list(map(GivenPinRecord.of, one.pins)),
            rejected=[
                NotUsed(identity=no.identity, reason=no.reason)
                for no in (of_request.rejected if of_request else ())
            ],
            replaced={
                replaced.message_id: replaced.count
                for replaced in (of_request.replaced if of_request else ())
            },
            stubs=[
                StubRecord(
                    message=f"m{stub.message}", part=stub.part, digest=stub.digest, size=stub.size
                )
                for stub in stubs
            ],
        )


class DeliveredDocument(Document):
    """`compaction-ledger delivered`. ``ok`` is whether nothing was found that the exit code tells of."""

    ok: bool
    run: str
    size: Count
    """How many events of the log were looked at."""

    requests: list[GivenRecord]
    """In the log's order."""

    damaged: list[Count]
    """Events that are not what was sealed, and may have been such requests."""

    erased: list[Count]
    """Recorded requests of erased conversations: of which runs they were is not known any more."""

    matches: list[Count] | None = Field(
        description="With `--request`: the indices of the requests that the file is; empty for none."
    )

    @classmethod
    def of(cls, found: Delivered, matches: Sequence[Given] | None) -> DeliveredDocument:
        sound = all(one.sound for one in found.requests) and not found.damaged
        known = bool(found.requests) if matches is None else bool(matches)
        return cls(
            ok=sound and known,
            run=found.run,
            size=found.size,
            requests=list(map(GivenRecord.of, found.requests)),
            damaged=list(found.damaged),
            erased=list(found.erased),
            matches=None if matches is None else [one.entry.index for one in matches],
        )
