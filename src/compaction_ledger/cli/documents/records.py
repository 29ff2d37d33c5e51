"""What `ranges`, `show` and `log` answer."""

from __future__ import annotations

from typing import Any, Literal

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
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.grounding_items import GroundedKind
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.domain.read_models import (
    AttemptOutcome,
    AttemptRow,
    RangeRow,
    RangeStatus,
    SummaryRow,
    SummaryStatus,
)


class RangeRecord(Document):
    """One range that the log knows, by its latest source there."""

    scope: str
    conversation: str
    from_pair: Count
    to_pair: Count
    status: RangeStatus
    """By the latest source that the log knows."""

    source_hash: Hash
    """Of that source."""

    identity: Hash
    """Of the job that decided the status."""

    expires_at: Time | None
    """While it is running: when the claim's lease is over, and another worker may take over (A5)."""

    retry_at: Time | None
    """When a second attempt may follow (D3)."""

    updated_index: Count
    """The event that last changed the row."""

    updated_at: Time

    @classmethod
    def of(cls, row: RangeRow) -> RangeRecord:
        return cls(
            scope=row.scope,
            conversation=row.conversation,
            from_pair=row.from_pair,
            to_pair=row.to_pair,
            status=row.status,
            source_hash=row.source_hash,
            identity=row.identity,
            expires_at=moment_or_none(row.expires_at),
            retry_at=moment_or_none(row.retry_at),
            updated_index=row.updated_index,
            updated_at=moment(row.updated_at),
        )


class RangesDocument(Document):
    """`compaction-ledger ranges`. The rows reflect ``position`` of ``size`` events (P5)."""

    position: Count
    """How many events the rows reflect."""

    size: Count
    """How many events the log holds."""

    ranges: list[RangeRecord]


class UngroundedRecord(Document):
    """Something that a summary says and its source does not, word for word (T13)."""

    kind: GroundedKind
    text: str


class SummaryRecord(Document):
    """One identity of a range: what it is bound to, how it went, and its text if it was completed.

    ``current``: its source is the conversation as it is now. ``messages``: the twenty ids of it.
    """

    identity: Hash
    status: SummaryStatus
    validity: Verdict
    """What the registry says of its prompt version (V1)."""

    current: bool
    """Whether its source is the conversation as it is now (B3)."""

    source_hash: Hash
    """What it is bound to (B1)."""

    messages: list[str]
    """The twenty ids of its source: user, assistant, user, …"""

    model: Model
    prompt: str
    attempts: Count
    """How many attempts were started."""

    holder: str | None
    """The worker that holds the open claim."""

    expires_at: Time | None
    """When that claim ends."""

    retry_at: Time | None
    """When a second attempt may follow (D3)."""

    failure: str | None
    """The code of the last failed attempt (C4)."""

    index: Count | None
    """Where its completion stands in the log."""

    recorded_at: Time | None
    """When it was completed."""

    origin: str | None
    """Where an imported one came from."""

    input_tokens: Count | None
    output_tokens: Count | None
    text: str | None
    """`null` where it is not completed, or its text in the log cannot be read."""

    ungrounded: list[UngroundedRecord] | None
    """What it says and its source does not (T13); `null` where that cannot be told any more."""

    @classmethod
    def of(
        cls,
        row: SummaryRow,
        messages: tuple[str, ...],
        present_hash: str | None,
        text: str | None,
        ungrounded: tuple[Ungrounded, ...] | None,
    ) -> SummaryRecord:
        return cls(
            identity=row.identity,
            status=row.status,
            validity=row.validity,
            current=row.source_hash == present_hash,
            source_hash=row.source_hash,
            messages=list(messages),
            model=Model.of(row.model),
            prompt=str(row.prompt),
            attempts=row.attempts,
            holder=row.holder,
            expires_at=moment_or_none(row.expires_at),
            retry_at=moment_or_none(row.retry_at),
            failure=row.failure,
            index=row.index,
            recorded_at=moment_or_none(row.recorded_at),
            origin=row.origin,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            text=text,
            ungrounded=None
            if ungrounded is None
            else [UngroundedRecord(kind=item.kind, text=item.text) for item in ungrounded],
        )


class AttemptRecord(Document):
    """One call of a summarizing model, and how it ended (C4)."""

    identity: Hash
    number: Literal[1, 2]
    holder: str
    """The worker."""

    outcome: AttemptOutcome
    failure: str | None
    """The code of C4 that decided."""

    also: list[str]
    """Further codes that applied."""

    detail: str | None
    """A technical word, such as an HTTP status."""

    signals: list[str]
    """The finish signals."""

    tool_calls: Count
    output_digest: Hash | None
    """Of the refused text."""

    input_tokens: Count | None
    output_tokens: Count | None
    started_index: Count
    started_at: Time
    ended_index: Count | None
    ended_at: Time | None

    @classmethod
    def of(cls, row: AttemptRow) -> AttemptRecord:
        return cls(
            identity=row.identity,
            number=1 if row.number == 1 else 2,
            holder=row.holder,
            outcome=row.outcome,
            failure=row.failure,
            also=list(row.also),
            detail=row.detail,
            signals=list(row.signals),
            tool_calls=row.tool_calls,
            output_digest=row.output_digest,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            started_index=row.started_index,
            started_at=moment(row.started_at),
            ended_index=row.ended_index,
            ended_at=moment_or_none(row.ended_at),
        )


class ShowDocument(Document):
    """`compaction-ledger show`. ``present_source_hash`` is ``null`` if the range is gone."""

    scope: str
    conversation: str
    from_pair: Count
    to_pair: Count
    present_source_hash: Hash | None
    """Of the range as it is now; `null` if it is not there any more."""

    summaries: list[SummaryRecord]
    """Every identity, finished ones first, in the order of the log."""

    attempts: list[AttemptRecord]
    """Every attempt, in the order of the log."""


class EventRecord(Document):
    """One event of the log. ``fact`` has the members of its schema version, as stored."""

    index: Count
    """Its place in the log, from 0, dense."""

    recorded_at: Time
    event: str
    """The stored name."""

    schema_version: Count
    stream: str
    """The id of its stream."""

    version: Count
    """Its place in the stream, from 1."""

    scope: str | None
    conversation: str | None
    from_pair: Count | None
    """Of the range that it is about; `null` for a delivery and for an event of a window."""

    to_pair: Count | None
    run: str | None
    """The run whose window it is about; `null` for an event of a range or a delivery of a conversation."""

    erased: bool
    """Whether its conversation was erased: then `fact` holds what its envelope still tells."""

    fact: dict[str, Any]
    """As stored; its members depend on name and schema version."""


class LogDocument(Document):
    """`compaction-ledger log`. ``next`` is where to go on, ``null`` at the end."""

    size: Count
    """How many events the log holds."""

    next: Count | None = Field(description="The `--from` that follows this page.")
    events: list[EventRecord]
