"""How `window show` looks."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.windows import ChunkRecord, PinRecord, WindowShowDocument
from compaction_ledger.cli.plain import plural
from compaction_ledger.cli.screen import table


def show_windows(console: Console, document: WindowShowDocument) -> None:
    """Chunks, pins and requests, each in a table."""
    if document.chunks:
        rows = [
            (
                c.run,
                f"{c.first}-{c.last}",
                _status(c),
                _made(c),
                c.ungrounded or "",
                c.identity[:12],
            )
            for c in document.chunks
        ]
        columns = ("run", "messages", "status", "recorded", "not in source", "identity")
        console.print(table(*columns, rows=chunks, right=["not in source"]))
        console.print()
    if document.pins:
        pins = [(p.run, p.message, p.quote, _pinned(p), p.pin) for p in document.pins]
        console.print(table("run", "message", "the user's words", "", "pin", rows=pins))
        console.print()
    if document.deliveries:
        rows = [
            (d.run, d.tokens, d.limit, d.verbatim, d.summarized, d.left_out, d.recorded_at)
            for d in document.deliveries
        ]
        columns = ("run", "tokens", "limit", "verbatim", "summarized", "left out", "recorded")
        console.print(table(*columns, rows=rows, right=columns[1:6]))
        console.print()
    console.print(
        f"{plural(len(document.chunks), 'chunk')}, {plural(len(document.pins), 'pin')}, "
        f"{plural(len(document.deliveries), 'request')}."
    )


def _status(chunk: ChunkRecord) -> str:
    if chunk.replaced_by is not None:
        return f"replaced by {chunk.replaced_by[:12]}"
    return f"{chunk.status}: {chunk.failure}" if chunk.failure else chunk.status


def _made(chunk: ChunkRecord) -> str:
    return f"index {chunk.index}, {chunk.recorded_at}" if chunk.index is not None else ""


def _pinned(pin: PinRecord) -> str:
    return "current" if pin.current else f"replaced by {pin.superseded_by}"
