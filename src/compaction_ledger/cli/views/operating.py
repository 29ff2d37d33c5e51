"""How `status` and `migrate` look."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compaction_ledger.cli.documents.operating import MigrateDocument, StatusDocument
from compaction_ledger.cli.plain import duration, plural, size, visible
from compaction_ledger.cli.screen import facts
from compaction_ledger.domain.errors import StoreError

STORES = {"memory": "Python", "sqlite": "SQLite", "postgresql": "PostgreSQL"}


def show_migrate(console: Console, document: MigrateDocument) -> None:
    """What was applied, what is to be applied, or the script as it goes into psql."""
    if document.roles is not None:
        console.print(document.roles.rstrip("\n"), soft_wrap=True)
        return
    for verb, names in (("applied", document.applied), ("to be applied", document.pending or [])):
        if names:
            console.print(f"{plural(len(names), 'migration')} {verb}: {', '.join(names)}.")
    if not document.applied and not document.pending:
        console.print("The tables are up to date.")


def show_status(console: Console, document: StatusDocument) -> None:
    """How the ledger is."""
    console.print(status_table(document))


def status_table(document: StatusDocument) -> Table:
    """Every part in a line."""
    store = document.store
    format_name = "migration" if store.kind == "postgresql" else "format"
    rows = [
        ("Ledger", store.name),
        ("Store", f"{STORES[store.kind]} {store.version}, {format_name} {store.schema_version}"),
        ("Size", "" if store.bytes is None else size(store.bytes)),
        ("At", document.at),
        ("Events", f"{document.events:,}"),
        ("Read models", _lag(document)),
        ("Rebuild", _rebuild(document)),
        ("Ranges", _ranges(document)),
        ("Open claims", _claims(document)),
        ("Work list", _backlog(document)),
        ("Slots", _slots(document)),
    ]
    return facts(row for row in rows if row[1])


def status_error(error: StoreError) -> Text:
    """Why the status cannot be told at present."""
    return Text(visible(f"error[{error.code}]: {error}"))


def _lag(document: StatusDocument) -> str:
    if not document.lag:
        return "up to date"
    return f"{plural(document.lag, 'event')} behind, for {duration(document.lag_seconds)}"


def _rebuild(document: StatusDocument) -> str:
    if document.rebuild is None:
        return ""
    done, number = document.rebuild.position, document.rebuild.generation
    return f"begun, {done:,} of {plural(document.events, 'event')} (generation {number})"


def _ranges(document: StatusDocument) -> str:
    counts = (f"{count:,} {name}" for name, count in document.ranges.items() if count)
    return ", ".join(counts) or "none"


def _claims(document: StatusDocument) -> str:
    if not document.open_claims:
        return "none"
    return f"{document.open_claims:,}; the first lease is over at {document.next_expiry}"


def _backlog(document: StatusDocument) -> str:
    backlog = document.backlog
    counts = f"{backlog.due:,} due, {backlog.leased:,} with a worker, {backlog.waiting:,} waiting"
    if backlog.failing:
        counts += f" ({backlog.failing:,} after an error)"
    if backlog.oldest_due_seconds is None:
        return counts
    return f"{counts}; due for {duration(backlog.oldest_due_seconds)}"


def _slots(document: StatusDocument) -> str:
    slots = document.slots
    if slots is None:
        return ""
    limit = "" if slots.limit is None else f" of {slots.limit:,}"
    return f"{slots.taken:,}{limit} taken, {plural(slots.waiting, 'process', 'processes')} waiting"
