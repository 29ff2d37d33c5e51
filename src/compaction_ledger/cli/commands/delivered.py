"""`delivered`: what the requests of a run were given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption
from compaction_ledger.cli.failing import FINDING


def delivered(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only its requests of this conversation."),
    ] = None,
    request: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Say which of the requests this file is."),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Show the text of the summaries as well.")
    ] = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """What the recorded requests of a run were given, from the sealed log.

    Every event is checked against its seal. The exit code is 1 where no such
    request is recorded, the file is none of them, or something is not what
    was sealed. Nothing is written.

    \b
    Examples:
      compaction-ledger delivered run-065
      compaction-ledger delivered run-065 --request body.json
    """
    from compaction_ledger.cli.documents.delivered import DeliveredDocument
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.cli.views.delivered import show_delivered
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, scope, json=json)
    given = None if request is None else request.read_bytes()
    with (
        Ledger.open(call.place, create=False, read_only=True) as opened,
        progress("Reading the log") as report,
    ):
        found = opened.delivered(
            run, scope=call.given_scope, conversation=conversation, progress=report
        )
        matches = None if given is None else opened.delivery_of(found, given)
    document = DeliveredDocument.of(found, matches)
    call.answer(document, lambda console, it: show_delivered(console, it, text=text))
    if not document.ok:
        raise typer.Exit(FINDING)
