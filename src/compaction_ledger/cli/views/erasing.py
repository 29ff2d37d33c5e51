"""How `erase` looks."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.erasing import EraseDocument
from compaction_ledger.cli.plain import plural


def show_erase(console: Console, document: EraseDocument) -> None:
    """What was erased, and where that is recorded."""
    if document.destroyed_again:
        keys = plural(len(document.destroyed_again), "key")
        console.print(f"Of what was erased {keys} had come back: destroyed once more.")
    if document.forgotten_again:
        conversations = plural(document.forgotten_again, "erased conversation")
        console.print(
            f"{conversations} had come back, with lines or on the work list: deleted once more."
        )
    if not (document.erased or document.destroyed_again or document.forgotten_again):
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
