"""How `backfill` looks when it has ended."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.backfill import ArchiveRecord, BackfillDocument
from compaction_ledger.cli.plain import duration, plural, visible
from compaction_ledger.cli.screen import facts
from compaction_ledger.cli.views.compaction import RESULTS

OUTCOMES = {
    "new": "new",
    "updated": "updated",
    "unchanged": "known before",
    "ahead": "further in the ledger",
    "refused": "refused",
}


def show_backfill(console: Console, document: BackfillDocument) -> None:
    """What became of the archive and of the ranges, and what it took; then what went wrong."""
    rows = [
        ("Conversations", _counts(document.archive.conversations, OUTCOMES)),
        ("Pairs", _pairs(document.archive)),
        ("Ranges", _ranges(document)),
        ("Events", f"{document.events:,}"),
        ("Time", duration(document.seconds)),
        ("Peak memory", _memory(document.peak_memory)),
    ]
    console.print(facts(row for row in rows if row[1]))
    for failure in document.failures:
        message = " ".join(visible(failure.message).split())
        console.print(
            f"{failure.conversation} (scope {failure.scope}): error[{failure.code}]: {message}"
        )
    for refused in document.refused:
        name = "" if refused.conversation is None else f" {refused.conversation}"
        message = " ".join(visible(refused.message).split())
        console.print(f"not imported:{name} at {refused.place}: error[{refused.code}]: {message}")
    if document.stopped:
        console.print(f"Stopped by {document.signal or 'request'}; run it again to go on.")


def _pairs(archive: ArchiveRecord) -> str:
    rate = archive.pairs / archive.seconds if archive.seconds else 0
    return f"{archive.pairs:,} in {duration(archive.seconds)} ({rate:,.0f} pairs/s)"


def _ranges(document: BackfillDocument) -> str:
    archive, summarized = document.archive, document.summarized
    told = f"{plural(archive.targets, 'target')}, {archive.done_before:,} done before"
    if summarized is None or not (summarized.done or summarized.ranges):
        return told
    rate = summarized.done / summarized.seconds if summarized.seconds else 0
    speed = f"{summarized.done:,} done in {duration(summarized.seconds)} ({rate:,.1f} ranges/s)"
    others = {name: count for name, count in summarized.ranges.items() if name != "completed"}
    return "; ".join(filter(None, (told, speed, _counts(others, RESULTS))))


def _counts(counts: dict[str, int], words: dict[str, str]) -> str:
    return ", ".join(
        f"{count:,} {words.get(name, name)}" for name, count in counts.items() if count
    )


def _memory(size: int | None) -> str:
    return "" if size is None else f"{size / 1024 / 1024:,.0f} MiB"
