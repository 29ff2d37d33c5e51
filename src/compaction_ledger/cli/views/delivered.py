"""How `delivered` looks."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.documents.delivered import (
    DeliveredDocument,
    GivenMessagesRecord,
    GivenRecord,
    GivenSummaryRecord,
)
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.screen import facts, table

TOLD = {
    "by_seal": "by the log alone",
    "by_source": "by the transcript, which still has exactly these",
    "changed": "NOT KNOWN: the transcript has others now",
    "not_recorded": "NOT KNOWN: recorded without their hash",
    "left_out": "",
}
STATES = {
    "sealed": "its seal holds",
    "damaged": "DAMAGED: it cannot be read, or its seal does not hold",
    "erased": "erased",
    "other_summary": "NOT THIS ONE: something else stands there",
}


def show_delivered(console: Console, document: DeliveredDocument, *, text: bool) -> None:
    """Each request, and what it held."""
    for one in document.requests:
        _show_request(console, one, text=text)
        console.print()
    if document.damaged:
        places = ", ".join(map(str, document.damaged[:20]))
        console.print(
            f"{plural(len(document.damaged), 'event')} not what was sealed, and maybe of this run: "
            f"index {places}. Run verify."
        )
    if document.erased:
        console.print(
            f"{plural(len(document.erased), 'recorded request')} of erased conversations, of "
            "whichever runs."
        )
    if document.matches is not None:
        found = ", ".join(map(str, document.matches))
        console.print(
            f"The file is the request at index {found}."
            if document.matches
            else "The file is none of these requests."
        )
    console.print(
        f"{plural(len(document.requests), 'request')} of run {visible(document.run)}, "
        f"in {plural(document.size, 'event')}."
    )


def _show_request(console: Console, one: GivenRecord, *, text: bool) -> None:
    unit = "bytes" if one.kind == "request" else "tokens"
    console.print(
        facts(
            (
                ("Request", f"{one.delivery}, of {one.conversation} in {one.scope}"),
                ("Log", f"index {one.index}, recorded {one.recorded_at}"),
                ("Shape", one.shape if one.mode is None else f"{one.shape}, {one.mode}"),
                ("Size", f"{one.used:,} of {one.allowed:,} {unit} allowed"),
                ("Digest", one.request_digest),
            )
        )
    )
    console.print()
    columns = ("Pairs" if one.kind == "request" else "Messages", "Given", "Ids", "Known")
    console.print(table(*columns, rows=map(_messages, one.messages)))
    if one.summaries:
        console.print()
        console.print(
            table(
                *("Summary of", "Index", "In the log", "Made by", "Identity"),
                rows=map(_summary, one.summaries),
                right=["Index"],
            )
        )
    if text:
        _show_texts(console, one)
    if one.pins:
        console.print()
        pins = ((p.pin, p.message or "", p.quote or "NOT KNOWN") for p in one.pins)
        console.print(table("Pin", "Message", "The user's words", rows=pins))
    if one.rejected:
        console.print()
        rejected = ((no.reason, no.identity[:16]) for no in one.rejected)
        console.print(table("Not used", "Identity", rows=rejected))


def _messages(group: GivenMessagesRecord) -> tuple[str, str, str, str]:
    what = group.disposition.replace("_", " ")
    ids = group.messages
    shown = ", ".join(ids) if len(ids) <= 2 else f"{ids[0]} to {ids[-1]} ({len(ids)})"
    reason = f"{what} ({group.reason})" if group.reason else what
    return f"{group.first}-{group.last}", reason, shown, TOLD[group.told]


def _summary(one: GivenSummaryRecord) -> tuple[object, ...]:
    made = "" if one.model is None else f"{one.model}, {one.prompt}"
    return f"{one.first}-{one.last}", one.index, STATES[one.state], made, one.identity[:16]


def _show_texts(console: Console, one: GivenRecord) -> None:
    for summary in one.summaries:
        if summary.text is not None:
            console.print()
            console.print(Text(f"{summary.first}-{summary.last}", style="bold"))
            console.print(Padding(Text(visible(summary.text)), (0, 0, 0, 2)))
