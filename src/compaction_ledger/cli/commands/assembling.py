"""`assemble`: the next request under a budget, and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from compaction_ledger.cli.calling import (
    Call,
    ConversationArgument,
    JsonOption,
    LedgerOption,
    ScopeOption,
)

if TYPE_CHECKING:
    from compaction_ledger.domain.assembly import Assembly

ShapeChoice = Literal["openai-chat", "anthropic", "converse", "pydantic-ai"]
FallbackChoice = Literal["newest_originals", "newest_mixed"]


def assemble(
    ctx: typer.Context,
    conversation: ConversationArgument,
    budget: Annotated[int, typer.Option(metavar="N", help="The most bytes it may have.")],
    shape: Annotated[ShapeChoice, typer.Option(help="How the messages look.")] = "openai-chat",
    fallback: Annotated[
        FallbackChoice, typer.Option(help="What is sent when not everything fits.")
    ] = "newest_originals",
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A system prompt, sent whole.")
    ] = None,
    next_user: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The next user message, sent whole.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the request's bytes there.")
    ] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Print the request's bytes and nothing else.")
    ] = False,
    messages: Annotated[
        bool, typer.Option("--messages", help="Show every message in full as well.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Record in the log that this was sent.")
    ] = False,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="With --record: the run it was sent for.")
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Assemble the next request within a budget, and say what the model will see.

    Where everything with its summaries does not fit, the newest original pairs
    that fit are sent, and the manifest names what is left out.

    \b
    Examples:
      compaction-ledger assemble fund-research --budget 40000
      compaction-ledger assemble fund-research --budget 40000 --body > body.json
    """
    from compaction_ledger.cli.documents.requests import (
        AssembleDocument,
        DeliveryRecorded,
    )
    from compaction_ledger.cli.views.requests import show_assemble

    if run is not None and not record:
        raise typer.BadParameter("goes with --record", ctx, param_hint="--run")
    call = Call.of(ctx, ledger, scope, json=json)
    if body and call.json:
        raise typer.BadParameter("give either --body or --json", ctx, param_hint="--body")
    with call.open() if record else call.open_to_read() as opened:
        made = opened.assemble(
            conversation,
            budget=budget,
            scope=call.scope,
            shape=shape,
            fallback=fallback,
            system=system,
            next_user=next_user,
        )
        if out is not None:
            out.write_bytes(made.body)
        delivery = (
            DeliveryRecorded(index=opened.record_delivery(made, run=run), run=run)
            if record
            else None
        )
    if body:
        _print_body(made)
        return
    document = AssembleDocument.of(made, file=None if out is None else str(out), delivery=delivery)
    call.answer(document, lambda console, it: show_assemble(console, it, messages=messages))


def _print_body(made: Assembly) -> None:
    """Exactly the bytes that were counted; on a terminal a line break behind them."""
    stream = typer.get_binary_stream("stdout")
    stream.write(made.body)
    if stream.isatty():
        stream.write(b"\n")
    stream.flush()
