"""How `diff` looks."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from compaction_ledger.cli.documents.diff import DiffDocument, RowChanged, ValidityChanged
from compaction_ledger.cli.plain import plural, short_time
from compaction_ledger.cli.screen import table
from compaction_ledger.cli.views.replay import VALIDITIES, point_text
from compaction_ledger.domain.identifiers import is_hash

_QUIET = frozenset({"updated_index", "updated_at", "scope", "conversation"})


def show_diff(console: Console, document: DiffDocument) -> None:
    """Both points, the summaries that became valid or ceased to be, and every row that changed."""
    console.print(f"From  {point_text(document.start)}", soft_wrap=True)
    console.print(f"To    {point_text(document.end)}", soft_wrap=True)
    if document.validity:
        console.print()
        rows = [
            (
                one.index,
                short_time(one.recorded_at),
                _where(one),
                VALIDITIES[one.after],
                one.identity[:12],
            )
            for one in document.validity
        ]
        columns = ("Index", "Recorded", "Summary of", "Now", "Identity")
        console.print(table(*columns, rows=rows, right=["Index"]))
    if document.changes:
        console.print()
        changes = [
            (one.index, short_time(one.recorded_at), _kind(one), _name(one), _what(one))
            for one in document.changes
        ]
        columns = ("Index", "Recorded", "Row", "Of", "What is new")
        console.print(table(*columns, rows=changes, right=["Index"]))
    if document.erased:
        console.print(f"\n{plural(document.erased, 'event')} between them erased.")
    console.print(f"\n{plural(len(document.changes), 'row')} changed.")


def _where(one: ValidityChanged) -> str:
    return f"{one.conversation} {one.from_pair}-{one.to_pair}"


def _kind(one: RowChanged) -> str:
    return one.kind.replace("_", " ") + ("" if one.before else " (new)")


def _name(one: RowChanged) -> str:
    row = one.after
    if "from_pair" in row:
        return f"{one.conversation} {row['from_pair']}-{row['to_pair']}"
    run = f" run {row['run']}" if row.get("run") else ""
    if one.kind == "chunk":
        return f"{one.conversation}{run} m{row['first']}-m{row['last']}"
    return f"{one.conversation}{run}"


def _what(one: RowChanged) -> str:
    row = one.after
    if one.before is None:
        for member in ("status", "outcome", "quote", "request_digest"):
            if member in row:
                return _short(row, member)
    told = [
        f"{name}: {_short(one.before, name)} -> {_short(row, name)}"
        for name in one.changed
        if name not in _QUIET
    ]
    return "; ".join(told)


def _short(row: dict[str, Any] | None, name: str) -> str:
    value = None if row is None else row[name]
    if value is None:
        return "-"
    text = str(value)
    return text[:12] if is_hash(text) else text[:60]
