"""How `window search` looks."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.documents.history import HitRecord, WindowSearchDocument
from compaction_ledger.cli.plain import plural, visible


def show_hits(console: Console, document: WindowSearchDocument) -> None:
    """Each hit with its place and quote."""
    for hit in document.hits:
        console.print(_place(hit))
        console.print(Padding(Text(visible(hit.quote)), (0, 0, 1, 2)))
    console.print(f"{plural(len(document.hits), 'hit')}.")
    if document.next_offset is not None:
        console.print(f"There are more: --offset {document.next_offset}.")
    if document.unreadable:
        console.print(f"{plural(document.unreadable, 'place')} cannot be read any more.")
    if document.cut_short:
        console.print("The search was given up: too many places have the words in another way.")


def _place(hit: HitRecord) -> Text:
    run = f" of run {hit.run}" if hit.run is not None else ""
    pair = f", pair {hit.pair}" if hit.pair >= 0 else ""
    at = f", {hit.at}" if hit.at is not None else ""
    where = f"{hit.message}{run} ({hit.role}{pair}{at}), characters {hit.start}-{hit.end}"
    return Text(visible(where), style="bold")
