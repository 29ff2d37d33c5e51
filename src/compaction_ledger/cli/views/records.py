"""How `ranges`, `show` and `log` look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.documents.common import Time, moment
from compaction_ledger.cli.documents.records import (
    AttemptRecord,
    EventRecord,
    LogDocument,
    RangeRecord,
    RangesDocument,
    ShowDocument,
    SummaryRecord,
    UngroundedRecord,
)
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.screen import facts, table


def show_ranges(console: Console, document: RangesDocument, now: Time | None) -> None:
    """One line per range. ``now`` is left out where the past is shown."""
    if document.ranges:
        rows = (
            (
                row.scope,
                row.conversation,
                f"{row.from_pair}-{row.to_pair}",
                _range_status(row, now),
                row.updated_index,
            )
            for row in document.ranges
        )
        columns = ("Scope", "Conversation", "Pairs", "Status", "Log index")
        console.print(table(*columns, rows=rows, right=["Log index"]))
        console.print()
    console.print(
        f"{plural(len(document.ranges), 'range')}, after"
        f" {document.position:,} of {plural(document.size, 'event')}."
    )


def show_range(console: Console, document: ShowDocument, *, text: bool) -> None:
    """Every summary of a range and every attempt."""
    console.print(
        f"{document.conversation} (scope {document.scope}),"
        f" pairs {document.from_pair}-{document.to_pair}"
    )
    console.print(
        f"Source now: {document.present_source_hash or 'the range is not there any more'}"
    )
    for summary in document.summaries:
        console.print()
        show_summary(console, summary, text=text)
    if document.attempts:
        console.print("\nAttempts")
        rows = (
            (one.number, one.started_at, _outcome(one), one.holder) for one in document.attempts
        )
        console.print(table("No.", "Started", "Outcome", "Worker", rows=rows, right=["No."]))


def show_summary(console: Console, summary: SummaryRecord, *, text: bool) -> None:
    """One identity with its binding."""
    rows: list[tuple[str, object]] = [
        ("Summary", summary.identity),
        ("Status", _status(summary)),
        ("Made by", f"{summary.model} {_settings(summary)}".rstrip()),
        ("Prompt", f"{summary.prompt} ({summary.validity})"),
        ("Source", summary.source_hash),
        (
            "",
            "the conversation as it is now"
            if summary.current
            else "NOT the conversation as it is now",
        ),
        ("Messages", " ".join(summary.messages)),
    ]
    if summary.index is not None:
        rows.append(("Recorded", f"index {summary.index}, {summary.recorded_at}"))
    if summary.origin is not None:
        rows.append(("Origin", summary.origin))
    if summary.ungrounded:
        rows.append(("Not in source", _listed(summary.ungrounded)))
    console.print(facts(rows))
    if text and summary.text is not None:
        console.print()
        console.print(Padding(Text(visible(summary.text)), (0, 0, 0, 2)))
    elif summary.index is not None and summary.text is None:
        console.print("Its text in the log is damaged: run verify.")


def _listed(ungrounded: list[UngroundedRecord]) -> str:
    """What a summary says without its source, each with its kind (T13)."""
    return ", ".join(f"{item.text} ({item.kind})" for item in ungrounded)


def show_log(console: Console, document: LogDocument) -> None:
    """One line per event."""
    rows = ((it.index, it.recorded_at[:19] + "Z", it.event, _about(it)) for it in document.events)
    console.print(table("Index", "Recorded", "Event", "What", rows=rows, right=["Index"]))
    end = f"go on with --from {document.next}" if document.next is not None else "this is the end"
    console.print(f"\n{plural(len(document.events), 'event')} of {document.size:,}; {end}.")


def show_events(console: Console, events: list[EventRecord]) -> None:
    """Events without their times."""
    rows = ((it.index, it.event, _where(it), _what(it)) for it in events)
    console.print(table("Index", "Event", "Range", "What", rows=rows, right=["Index"]))


def _range_status(row: RangeRecord, now: Time | None) -> str:
    """The log still says running where a worker has died: nothing is recorded until another comes (A5)."""
    over = now is not None and row.expires_at is not None and row.expires_at <= now
    return f"{row.status} (lease over)" if over else row.status


def _status(summary: SummaryRecord) -> str:
    parts = [summary.status, plural(summary.attempts, "attempt")]
    if summary.failure is not None:
        parts.append(summary.failure)
    if summary.holder is not None:
        parts.append(f"held by {summary.holder} until {summary.expires_at}")
    if summary.retry_at is not None:
        parts.append(f"not before {summary.retry_at}")
    return ", ".join(parts)


def _settings(summary: SummaryRecord) -> str:
    return " ".join(f"{name}={value}" for name, value in summary.model.settings.items())


def _outcome(attempt: AttemptRecord) -> str:
    if attempt.failure is None:
        return attempt.outcome
    more = [*attempt.also, *([attempt.detail] if attempt.detail else [])]
    return f"{attempt.outcome}: {attempt.failure}" + (f" ({', '.join(more)})" if more else "")


def _about(event: EventRecord) -> str:
    if event.erased or event.event in _OF_ERASURE:
        return _what(event)
    return f"{_where(event)}: {_what(event)}"


def _where(event: EventRecord) -> str:
    where = event.conversation or "?"
    if event.run is not None:
        return f"{where} run {event.run}"
    return where if event.from_pair is None else f"{where} {event.from_pair}-{event.to_pair}"


def _what(event: EventRecord) -> str:
    if event.erased:
        return f"erased ({event.fact['subject']})"
    tell = _TELL.get(event.event)
    return tell(event.fact) if tell else ""


_OF_ERASURE = ("ErasureRequested", "ErasureCompleted")
_TELL: dict[str, Callable[[dict[str, Any]], str]] = {
    "RangeClaimed": lambda fact: f"by {fact['holder']}",
    "AttemptStarted": lambda fact: f"attempt {fact['number']}",
    "ClaimRenewed": lambda fact: f"until {moment(fact['expires_at'])[:19]}Z",
    "AttemptFailed": lambda fact: ", ".join([fact["failure"], *fact["also"]]),
    "RangeCompleted": lambda fact: f"{len(fact['text']):,} characters",
    "ClaimReleased": lambda fact: str(fact["reason"]),
    "SummaryImported": lambda fact: f"from {fact['origin']}",
    "RequestDelivered": lambda fact: f"{fact['bytes_used']:,} of {fact['bytes_allowed']:,} bytes",
    "ChunkClaimed": lambda fact: (
        f"messages {fact['job']['first']}-{fact['job']['last']}, by {fact['holder']}"
    ),
    "ChunkAttemptStarted": lambda fact: f"attempt {fact['number']}",
    "ChunkClaimRenewed": lambda fact: f"until {moment(fact['expires_at'])[:19]}Z",
    "ChunkAttemptFailed": lambda fact: ", ".join([fact["failure"], *fact["also"]]),
    "ChunkCompleted": lambda fact: f"{len(fact['text']):,} characters",
    "ChunkClaimReleased": lambda fact: str(fact["reason"]),
    "PinAccepted": lambda fact: f"{fact['pin_id']}, in message {fact['message']}",
    "ErasureRequested": lambda fact: str(fact["subject"]),
    "ErasureCompleted": lambda fact: str(fact["subject"]),
    "WindowDelivered": lambda fact: f"{fact['tokens']:,} of {fact['limit']:,} tokens",
}
