"""How `verify`, `rebuild` and `version` look."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.upkeep import (
    RebuildDocument,
    VerifyDocument,
    VersionDocument,
)
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.screen import facts, table


def show_verify(console: Console, document: VerifyDocument) -> None:
    """What was found."""
    events = plural(document.events, "event")
    if document.findings:
        show_findings(console, document)
        console.print(f"\n{plural(len(document.findings), 'finding')} in {events}.")
    elif document.seal_only:
        console.print(f"{events}: every seal holds.")
    else:
        console.print(f"{events}: every seal holds, and every row is what the log says.")
    if document.witnesses:
        names = ", ".join(visible(name) for name in document.witnesses)
        several = "" if len(document.witnesses) == 1 else "es"
        console.print(f"Asked the witness{several} {names}.", soft_wrap=True)
    if document.heads:
        heads = plural(document.heads, "signed head")
        signed = (
            f"the first {plural(document.signed, 'event')} are as they were signed"
            if document.signed
            else "of no event is it known that it is as it was signed"
        )
        console.print(f"Compared with {heads}: {signed}.", soft_wrap=True)
    if document.lag:
        console.print(
            f"The read models do not reflect the newest {plural(document.lag, 'event')} yet."
        )


def show_findings(console: Console, document: VerifyDocument) -> None:
    """A table of findings."""
    rows = (
        ("" if one.index is None else one.index, one.code, one.message) for one in document.findings
    )
    console.print(table("Index", "Finding", "What", rows=rows, right=["Index"]))
    for one in document.findings:
        for side, note in zip(("Signed", "The log now"), one.sides, strict=False):
            console.print(f"\n{side} ({one.code}):\n")
            console.print(visible(note), soft_wrap=True)


def show_rebuild(console: Console, document: RebuildDocument) -> None:
    """How much was rebuilt."""
    console.print(f"The read models are built anew from {plural(document.events, 'event')}.")


def show_version(console: Console, document: VersionDocument) -> None:
    """Versions and formats."""
    console.print(
        facts(
            (
                ("compaction-ledger", document.version),
                ("Python", document.python),
                ("SQLite", document.sqlite),
                ("File format", document.file_format),
                ("Envelope format", document.envelope_format),
                (
                    "Events",
                    ", ".join(f"{name}@{schema}" for name, schema in document.events.items()),
                ),
                ("Prompt", document.prompt),
            )
        )
    )
