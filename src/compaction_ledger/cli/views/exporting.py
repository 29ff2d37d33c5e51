"""How `export` looks."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.exporting import ExportDocument
from compaction_ledger.cli.plain import plural
from compaction_ledger.cli.screen import facts


def show_export(console: Console, document: ExportDocument) -> None:
    """What was written, and what an auditor needs beside it."""
    rows: list[tuple[str, object]] = [
        ("File", document.output),
        ("SHA-256", document.sha256),
        ("Events", f"{document.events} of the {document.size} that were signed"),
        ("Older checkpoints", document.checkpoints),
        *(("Verifier key", key) for key in document.keys),
    ]
    if document.subject is not None:
        rows.insert(2, ("Subject", document.subject))
    console.print(facts(rows))
    if document.later:
        console.print(
            f"{plural(document.later, 'event')} came after the checkpoint and not into the bundle: "
            "for these, export with --sign."
        )
