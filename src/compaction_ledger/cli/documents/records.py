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
    source_hash: Hash
    identity: Hash
    retry_at: Time | None
    updated_index: Count
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
            retry_at=moment_or_none(row.retry_at),
            updated_index=row.updated_index,
            updated_at=moment(row.updated_at),
        )


class RangesDocument(Document):
    """`compaction-ledger ranges`. The rows reflect ``position`` of ``size`` events (P5)."""

    position: Count
    size: Count
    ranges: list[RangeRecord]


class SummaryRecord(Document):
    """One identity of a range: what it is bound to, how it went, and its text if it was completed.

    ``current``: its source is the conversation as it is now. ``messages``: the twenty ids of it.
    """

    identity: Hash
    status: SummaryStatus
    validity: Verdict
    current: bool
    source_hash: Hash
    messages: list[str]
    model: Model
    prompt: str
    attempts: Count
    holder: str | None
    expires_at: Time | None
    retry_at: Time | None
    failure: str | None
    index: Count | None
    recorded_at: Time | None
    origin: str | None
    input_tokens: Count | None
    output_tokens: Count | None
    text: str | None

    @classmethod
    def of(
        cls, row: SummaryRow, messages: tuple[str, ...], present_hash: str | None, text: str | None
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
        )


class AttemptRecord(Document):
    """One call of a summarizing model, and how it ended (C4)."""

    identity: Hash
    number: Literal[1, 2]
    holder: str
    outcome: AttemptOutcome
    failure: str | None
    also: list[str]
    detail: str | None
    signals: list[str]
    tool_calls: Count
    output_digest: Hash | None
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
    summaries: list[SummaryRecord]
    attempts: list[AttemptRecord]


class EventRecord(Document):
    """One event of the log. ``fact`` has the members of its schema version, as stored."""

    index: Count
    recorded_at: Time
    event: str
    schema_version: Count
    stream: str
    version: Count
    scope: str | None
    conversation: str | None
    from_pair: Count | None
    to_pair: Count | None
    fact: dict[str, Any]


class LogDocument(Document):
    """`compaction-ledger log`. ``next`` is where to go on, ``null`` at the end."""

    size: Count
    next: Count | None = Field(description="The `--from` that follows this page.")
    events: list[EventRecord]
