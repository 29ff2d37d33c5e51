"""How `replay` looks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from compaction_ledger.cli.documents.replay import (
    ConversationOverview,
    ConversationReplay,
    PointRecord,
    RangeStanding,
    ReplayDocument,
    ServedRecord,
    SummaryStanding,
)
from compaction_ledger.cli.plain import plural, short_time
from compaction_ledger.cli.screen import facts, table
from compaction_ledger.cli.views.requests import show_manifest
from compaction_ledger.cli.views.windows import show_window_rows

VALIDITIES = {
    "valid": "valid",
    "unfinished": "not finished",
    "unknown_version": "excluded: its prompt version is unknown",
    "mixed_input": "excluded: its model was given the user's texts too",
    "not_projectable": "excluded: its prompt version is not to be used",
    "older_source": "excluded: the range had a newer source",
    "superseded": "excluded: another one came before it",
}


def show_replay(console: Console, document: ReplayDocument) -> None:
    """The point, and what stood there."""
    console.print(f"{point_text(document.point)}\n")
    if document.overview is not None:
        _show_overview(console, document.overview)
    for reference, count in (document.erased or {}).items():
        console.print(f"{plural(count, 'event')} of {reference}: erased since.")
    if document.conversation is not None:
        _show_conversation(console, document.conversation)


def point_text(point: PointRecord) -> str:
    """A point in one line."""
    if point.index < 0:
        found = f"before the first of {plural(point.size, 'event')}"
    else:
        found = f"after event {point.index} of {point.size}, recorded {point.recorded_at}"
    return f"At {point.time}: {found}." if point.time else f"{found[0].upper()}{found[1:]}."


def _show_overview(console: Console, overview: Sequence[ConversationOverview]) -> None:
    several = len({one.scope for one in overview}) > 1
    rows = [
        (
            f"{one.scope}: {one.conversation}" if several else one.conversation,
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in one.ranges.items()),
            one.claimable,
            f"{one.valid}/{one.valid + one.excluded}",
            one.chunks,
            one.pins,
            one.requests,
        )
        for one in overview
    ]
    columns = ("Conversation", "Ranges", "Claimable", "Valid", "Chunks", "Pins", "Requests")
    console.print(table(*columns, rows=rows, right=columns[2:]))
    console.print(f"\n{plural(len(overview), 'conversation')}.")


def _show_conversation(console: Console, then: ConversationReplay) -> None:
    known = f"{then.conversation} in {then.scope}, of {then.pairs_known} pairs at least"
    console.print(facts((("Conversation", known),)))
    _show_ranges(console, then.ranges)
    _show_summaries(console, then.summaries)
    if then.attempts:
        console.print()
        rows = [
            (
                f"{a.identity[:12]}",
                a.number,
                a.holder,
                a.outcome,
                a.failure or "",
                short_time(a.started_at),
            )
            for a in then.attempts
        ]
        columns = ("Attempt on", "Number", "Worker", "Outcome", "Failure", "Started")
        console.print(table(*columns, rows=rows, right=["Number"]))
    if then.deliveries:
        console.print()
        requests = [
            (
                d.index,
                short_time(d.recorded_at),
                d.run or "",
                d.shape,
                d.bytes_used,
                d.bytes_allowed,
            )
            for d in then.deliveries
        ]
        columns = ("Request at", "Recorded", "Run", "Shape", "Bytes", "Allowed")
        console.print(table(*columns, rows=requests, right=[columns[0], *columns[4:]]))
    if then.chunks or then.pins or then.window_deliveries:
        console.print()
        show_window_rows(console, then.chunks, then.pins, then.window_deliveries)
    console.print()
    _show_served(console, then.served)


def _show_ranges(console: Console, ranges: Sequence[RangeStanding]) -> None:
    if not ranges:
        console.print("\nThe log knew no range of it.")
        return
    console.print()
    rows = [
        (
            f"{one.from_pair}-{one.to_pair}",
            one.standing.replace("_", " "),
            "yes" if one.claimable else "",
            one.holder or "",
            short_time(one.expires_at or one.retry_at),
            one.updated_index,
        )
        for one in ranges
    ]
    columns = ("Range", "Standing", "Claimable", "Held by", "Until", "Index")
    console.print(table(*columns, rows=rows, right=["Index"]))


def _show_summaries(console: Console, summaries: Sequence[SummaryStanding]) -> None:
    if summaries:
        console.print()
        rows = [
            (
                f"{one.from_pair}-{one.to_pair}",
                VALIDITIES[one.validity],
                "" if one.index is None else one.index,
                one.prompt,
                one.identity[:12],
            )
            for one in summaries
        ]
        columns = ("Summary of", "Then", "Index", "Prompt", "Identity")
        console.print(table(*columns, rows=rows, right=["Index"]))


def _show_served(console: Console, served: ServedRecord | None) -> None:
    if served is None:
        console.print("What a request would have held cannot be said: there is no transcript.")
        return
    console.print(
        f"What a request would have held, made of {served.pairs_used} of the "
        f"{plural(served.pairs_now, 'pair')} as they are now:\n"
    )
    show_manifest(console, served.manifest)
    if served.delivery is not None:
        console.print(f"\nByte for byte the request recorded at index {served.delivery}.")
    for window in served.changed:
        console.print(
            f"\nPairs {window.from_pair}-{window.to_pair} were changed since: what a request held "
            "of them then is not known."
        )
