"""`export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption


def export(
    ctx: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to be made.")
    ],
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", metavar="ID", help="One conversation, by its id."),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject", metavar="REF", help="One conversation, by its reference: an erased one."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole log.")] = False,
    with_envelopes: Annotated[
        bool,
        typer.Option(
            "--with-envelopes",
            help="With the envelopes of all other events: they show that nothing is left out.",
        ),
    ] = False,
    sealed: Annotated[
        bool, typer.Option("--sealed", help="What is encrypted stays so: no openings.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="As of this one. Else the newest."),
    ] = None,
    sign: Annotated[bool, typer.Option("--sign", help="Sign the log first.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Write an audit bundle: one file that proves itself, offline.

    It is checked with compaction-ledger-verify-bundle, and the verifier key.
    What it holds can be read by whoever has it, unless --sealed.

    \b
    Examples:
      compaction-ledger export --conversation chat --output chat.zip
      compaction-ledger export --all --sign --output everything.zip
    """
    from compaction_ledger.cli.documents.exporting import ExportDocument
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.cli.views.exporting import show_export
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, scope, json=json)
    if [conversation is not None, subject is not None, everything].count(True) != 1:
        raise typer.BadParameter("one of --conversation, --subject and --all is needed", ctx=ctx)
    if with_envelopes and everything:
        raise typer.BadParameter("--all holds all envelopes: leave --with-envelopes out", ctx=ctx)
    opened = call.open() if sign else Ledger.open(call.place, create=False, read_only=True)
    with opened, progress("Exporting") as report:
        bundle = opened.export(
            output,
            conversation=conversation,
            scope=call.scope,
            subject=subject,
            envelopes=with_envelopes,
            openings=not sealed,
            checkpoint=checkpoint,
            sign=sign,
            replace=force,
            progress=report,
        )
    call.answer(ExportDocument.of(bundle), show_export)
