"""How `checkpoint`, `prove` and `keys` look."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.signing import (
    CheckpointDocument,
    KeysDocument,
    ProveDocument,
)
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.screen import facts, table


def show_checkpoint(console: Console, document: CheckpointDocument) -> None:
    """What is signed."""
    rows = [
        ("Log", document.origin),
        ("Size", document.size),
        ("Root", document.root),
        ("Signed by", ", ".join(document.keys)),
        *(("Cosigned by", name) for name in document.cosigned),
        *(("Copied to", name) for name in document.copies),
        *([("Time stamp", "yes")] if document.timestamped else []),
    ]
    console.print(facts(rows))
    if not document.new:
        console.print("Nothing has happened since: this checkpoint was published before.")
    for failure in document.failures:
        console.print(f"\n{failure.name} ({failure.code}): {failure.message}")
        for side, note in zip(("This side", "The other side"), failure.sides, strict=False):
            console.print(f"\n{side}:\n")
            console.print(visible(note), soft_wrap=True)


def show_proofs(console: Console, document: ProveDocument) -> None:
    """What was written; a single proof that was not is shown as it is."""
    consistency = document.consistency
    if consistency is not None:
        if consistency.file is None:
            console.file.write(consistency.proof)
            return
        console.print(
            f"The {plural(document.size, 'event')} that were signed last begin with the first "
            f"{consistency.old_size}: {consistency.file}"
        )
        return
    if len(document.proofs) == 1 and document.proofs[0].file is None:
        console.file.write(document.proofs[0].proof)
        return
    rows = ((one.index, one.leaf[:16], one.file or "") for one in document.proofs)
    console.print(table("Index", "Leaf", "File", rows=rows, right=["Index"]))
    console.print(
        f"\n{plural(len(document.proofs), 'event')} proved to be among the "
        f"{plural(document.size, 'event')} that were signed last."
    )


def show_keys(console: Console, document: KeysDocument) -> None:
    """What wraps the data keys, and the signer's keys, each on a line that can be handed on."""
    if document.epochs:
        rows = (
            (one.epoch, one.data_keys, "wraps" if one.current else "") for one in document.epochs
        )
        console.print(table("Epoch", "Data keys", "Now", rows=rows, right=["Data keys"]))
        console.print(f"\nKey-encryption keys of the provider {document.provider}.")
    if document.rewrapped:
        console.print(f"{plural(document.rewrapped, 'data key')} wrapped anew.")
    if not document.signers:
        console.print("No key signs this ledger yet: the first checkpoint makes one.")
        return
    for one in document.signers:
        console.file.write(f"{'signs  ' if one.signs else 'retired'}  {one.key}\n")
