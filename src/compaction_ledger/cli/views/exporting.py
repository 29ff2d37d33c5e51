"""How `export` looks."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.exporting import ExportDocument
from compaction_ledger.cli.plain import plural


def show_export(console: Console, document: ExportDocument) -> None:
    """What was written, and what an auditor needs beside it: on lines of their own, to be copied."""
    what = "the log" if document.subject is None else f"conversation {document.subject}"
    events = f"{plural(document.events, 'event')} of {what}"
    for line in (
        f"{events}, as of a checkpoint of {document.size}: {document.output}",
        f"SHA-256: {document.sha256}",
        *(f"Verifier key: {key}" for key in document.keys),
    ):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if document.later:
        console.print(
            f"{plural(document.later, 'event')} came after the checkpoint and not into the bundle: "
            "for these, export with --sign."
        )
