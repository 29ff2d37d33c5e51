"""How `erase` looks."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.erasing import EraseDocument
from compaction_ledger.cli.plain import plural


def show_erase(console: Console, document: EraseDocument) -> None:
    """What was erased, and where that is recorded."""
    if document.leftovers:
        console.print(
            f"{plural(document.leftovers, 'conversation')} had been erased and had lines again: "
            "they are deleted."
        )
    elif not document.erased:
        console.print("There is nothing to complete: every erasure that was begun is done.")
    for one in document.erased:
        console.print(
            f"Erased {one.reference}: requested at index {one.requested_index}, completed at "
            f"{one.completed_index}; deleted from {', '.join(one.purged)}."
        )
        if one.blanked:
            console.print(
                f"{plural(one.blanked, 'payload')} had been stored without encryption, and "
                "were removed: backups of the log still hold them."
            )
