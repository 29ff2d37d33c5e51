"""How `window show` looks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from compaction_ledger.cli.documents.windows import (
    ChunkRecord,
    PinRecord,
    WindowDeliveryRecord,
    WindowShowDocument,
)
from compaction_ledger.cli.plain import plural
from compaction_ledger.cli.screen import table


def show_windows(console: Console, document: WindowShowDocument) -> None:
    """Chunks, pins and requests, each in a table."""
    show_window_rows(console, document.chunks, document.pins, document.deliveries)


def show_window_rows(
    console: Console,
    chunks: Sequence[ChunkRecord],
    pins: Sequence[PinRecord],
    requests: Sequence[WindowDeliveryRecord],
) -> None:
    """What there is of windows, each kind in a table, and how many there are."""
    for shown in (_chunks(chunks), _pins(pins), _requests(requests)):
        if shown.row_count:
            console.print(shown)
            console.print()
    console.print(
        f"{plural(len(chunks), 'chunk')}, {plural(len(pins), 'pin')}, "
        f"{plural(len(requests), 'request')}."
    )


def _chunks(chunks: Sequence[ChunkRecord]) -> Table:
    columns = ("run", "messages", "status", "recorded", "not in source", "identity")
    rows = [
        (c.run, f"{c.first}-{c.last}", _status(c), _made(c), c.ungrounded or "", c.identity[:12])
        for c in chunks
    ]
    return table(*columns, rows=rows, right=["not in source"])


def _pins(pins: Sequence[PinRecord]) -> Table:
    rows = [(p.run, p.message, p.quote, _pinned(p), p.pin) for p in pins]
    return table("run", "message", "the user's words", "", "pin", rows=rows)


def _requests(requests: Sequence[WindowDeliveryRecord]) -> Table:
    columns = ("run", "tokens", "limit", "verbatim", "summarized", "left out", "recorded")
    rows = [
        (r.run, r.tokens, r.limit, r.verbatim, r.summarized, r.left_out, r.recorded_at)
        for r in requests
    ]
    return table(*columns, rows=rows, right=columns[1:6])


def _status(chunk: ChunkRecord) -> str:
    if chunk.replaced_by is not None:
        return f"replaced by {chunk.replaced_by[:12]}"
    return f"{chunk.status}: {chunk.failure}" if chunk.failure else chunk.status


def _made(chunk: ChunkRecord) -> str:
    return f"index {chunk.index}, {chunk.recorded_at}" if chunk.index is not None else ""


def _pinned(pin: PinRecord) -> str:
    return "current" if pin.current else f"replaced by {pin.superseded_by}"
