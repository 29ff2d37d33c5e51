"""How `witness serve` and `witness show` look."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.witness import WitnessServeDocument, WitnessShowDocument
from compaction_ledger.cli.plain import plural
from compaction_ledger.cli.screen import table


def show_serving(console: Console, document: WitnessServeDocument) -> None:
    """Where the witness listens, and its key on a line of its own, to be copied."""
    console.print(
        f"The witness {document.name} listens on {document.url} for {plural(len(document.logs), 'log')}.",
        soft_wrap=True,
    )
    console.print(f"KEY {document.key}", soft_wrap=True)
    console.file.flush()


def show_witness(console: Console, document: WitnessShowDocument) -> None:
    """Its key, and what it cosigned last."""
    console.print(f"KEY {document.key}", soft_wrap=True)
    if not document.logs:
        console.print("It has cosigned nothing yet.")
        return
    rows = ((one.origin, one.size, one.root[:16], one.cosigned_at) for one in document.logs)
    console.print(table("Log", "Size", "Root", "Cosigned", rows=rows, right=["Size"]))
