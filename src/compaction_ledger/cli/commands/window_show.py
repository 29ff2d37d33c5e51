"""`window show`: what is recorded of the windows of a conversation's runs."""

from __future__ import annotations

from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption


def window_show(
    ctx: typer.Context,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="Its id.")],
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Only the window of this run.")
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """The chunks, pins and recorded requests of a conversation's runs.

    \b
    Example:
      compaction-ledger window show incident --run night-shift
    """
    from compaction_ledger.cli.documents.windows import WindowShowDocument
    from compaction_ledger.cli.views.windows import show_windows

    call = Call.of(ctx, ledger, scope, json=json)
    with call.open() as opened:
        opened.history_search(conversation, scope=call.scope).check_known()
        place = (call.scope, conversation)
        document = WindowShowDocument.of(
            place,
            opened.window_chunks(conversation, run=run, scope=call.scope),
            opened.window_pins(conversation, run=run, scope=call.scope),
            opened.window_deliveries(conversation, run=run, scope=call.scope),
        )
    call.answer(document, show_windows)
