"""`erase`: forget a conversation for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption

if TYPE_CHECKING:
    from compaction_ledger.usecases.erasing import Step


def erase(
    ctx: typer.Context,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="The conversation to erase.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Complete what was begun, or a backup brought back.")
    ] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Also keep away an id that nothing is known of.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    scope: ScopeOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Erase a conversation: its key is destroyed and its rows are deleted.

    It cannot be undone. The request and the completion are recorded in the log, which
    still verifies. If it is interrupted, do it again, or use --resume. On PostgreSQL it
    needs the owner of the tables.

    \b
    Examples:
      compaction-ledger erase --conversation c-17 --yes
      compaction-ledger erase --resume
    """
    from compaction_ledger.cli.documents.erasing import EraseDocument
    from compaction_ledger.cli.views.erasing import show_erase

    call = Call.of(ctx, ledger, scope, json=json)
    if (conversation is None) is not resume:
        raise typer.BadParameter(
            "give either --conversation or --resume", ctx, param_hint="--conversation"
        )
    if conversation is not None and not yes:
        typer.confirm(
            f"Erase conversation {conversation!r} in scope {call.scope!r} for good?",
            abort=True,
            err=True,
        )

    def tell(step: Step) -> None:
        if not call.json:
            typer.echo(step, err=True)

    with call.open() as opened:
        if conversation is None:
            document = EraseDocument.of_resumed(opened.resume_erasures(on_step=tell))
        else:
            done = opened.erase(conversation, scope=call.scope, unknown=unknown, on_step=tell)
            document = EraseDocument.of(done)
    call.answer(document, show_erase)
