"""Gathers what `show` and `log` answer."""

from __future__ import annotations

from pydantic import TypeAdapter

from compaction_ledger import composition
from compaction_ledger.cli.documents.common import moment
from compaction_ledger.cli.documents.records import (
    AttemptRecord,
    EventRecord,
    LogDocument,
    ShowDocument,
    SummaryRecord,
)
from compaction_ledger.domain.conversation import PAIRS_PER_RANGE
from compaction_ledger.domain.erasure import ErasedFact
from compaction_ledger.domain.errors import (
    InvalidInput,
    InvalidJob,
    InvalidSetting,
    UnknownConversation,
)
from compaction_ledger.domain.events import (
    RangeClaimed,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import RangeKey, Recorded, StreamKey
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.ledger import Ledger

_FACT: TypeAdapter[Fact] = TypeAdapter(Fact)


def range_document(ledger: Ledger, scope: str, conversation: str, from_pair: int) -> ShowDocument:
    """All that is known of one range. Raises :class:`InvalidInput` where nothing is."""
    if from_pair % PAIRS_PER_RANGE:
        raise InvalidSetting(
            f"a range begins on a multiple of {PAIRS_PER_RANGE}, not at {from_pair}",
            place="FROM_PAIR",
        )
    rows = [
        row for row in ledger.summaries(conversation, scope=scope) if row.from_pair == from_pair
    ]
    if not rows:
        raise InvalidInput(
            f"the log has nothing on range {from_pair}-{from_pair + PAIRS_PER_RANGE - 1}"
            f" of conversation {conversation!r} in scope {scope!r}"
        )
    present = _present_hash(ledger, scope, conversation, from_pair)
    sources = {
        entry.fact.identity: entry.fact.job.messages
        for entry in ledger.history(conversation, from_pair=from_pair, scope=scope)
        if isinstance(entry.fact, (RangeClaimed, SummaryImported))
    }
    attempts = ledger.attempts(conversation, scope=scope)
    return ShowDocument(
        scope=scope,
        conversation=conversation,
        from_pair=from_pair,
        to_pair=from_pair + PAIRS_PER_RANGE - 1,
        present_source_hash=present,
        summaries=[
            SummaryRecord.of(
                row,
                sources.get(row.identity, ()),
                present,
                ledger.summary_text(row),
                ledger.grounding(row),
            )
            for row in sorted(rows, key=lambda row: (row.index is None, row.index or 0))
        ],
        attempts=[AttemptRecord.of(row) for row in attempts if row.from_pair == from_pair],
    )


def _present_hash(ledger: Ledger, scope: str, conversation: str, from_pair: int) -> str | None:
    """The source hash of the range as it is now; ``None`` if it is not there any more."""
    row = next(r for r in ledger.summaries(conversation, scope=scope) if r.from_pair == from_pair)
    try:
        job = ledger.job_of_present_source(
            conversation, from_pair=from_pair, model=row.model, prompt=row.prompt, scope=scope
        )
    except (UnknownConversation, InvalidJob):
        return None
    return job.source_hash


def log_document(
    ledger: Ledger, first: int, limit: int, scope: str | None, conversation: str | None
) -> LogDocument:
    """At most ``limit`` events from index ``first``, of one conversation or scope or of all."""
    size = ledger.size()
    found: list[EventRecord] = []
    streams: dict[str, StreamKey | None] = {}
    following = first
    for entry in ledger.events(first, size):
        if len(found) == limit:
            break
        following = entry.index + 1
        if entry.stream not in streams:
            streams[entry.stream] = ledger.stream_of(entry)
        record = event_record(entry, streams[entry.stream])
        if scope in (None, record.scope) and conversation in (None, record.conversation):
            found.append(record)
    return LogDocument(size=size, next=following if following < size else None, events=found)


def event_record(entry: Recorded, key: StreamKey | None) -> EventRecord:
    """One event, with the range or window that it is about."""
    name, schema = composition.stored_name(entry.fact)
    delivered = entry.fact if isinstance(entry.fact, RequestDelivered) else None
    about = key or delivered
    of_range = key if isinstance(key, RangeKey) else None
    return EventRecord(
        index=entry.index,
        recorded_at=moment(entry.recorded_at),
        event=name,
        schema_version=schema,
        stream=entry.stream,
        version=entry.version,
        scope=about.scope if about else None,
        conversation=about.conversation if about else None,
        from_pair=of_range.from_pair if of_range else None,
        to_pair=of_range.from_pair + PAIRS_PER_RANGE - 1 if of_range else None,
        run=key.run if isinstance(key, WindowKey) else None,
        erased=isinstance(entry.fact, ErasedFact),
        fact=_FACT.dump_python(entry.fact, mode="json"),
    )
