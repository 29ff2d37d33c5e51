"""`window search` and `window mcp`: the complete transcript of a conversation, for people and for models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption

if TYPE_CHECKING:
    from compaction_ledger.domain.messages.interface import EntryRole

ConversationOption = Annotated[
    str, typer.Option("--conversation", metavar="ID", help="The conversation's id.")
]
RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="ID", help="The run that asks: its ids need no run."),
]


def search(
    ctx: typer.Context,
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help='Words; in double quotes, exactly as "they stand".'),
    ],
    conversation: ConversationOption,
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Only what these said; may be given several times."),
    ] = None,
    first_pair: Annotated[
        int | None, typer.Option(metavar="N", help="Only from this exchange or pair on.")
    ] = None,
    last_pair: Annotated[
        int | None, typer.Option(metavar="N", help="Only up to this exchange or pair.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many hits at most, up to 50.")] = 10,
    offset: Annotated[int, typer.Option(metavar="N", help="How many hits to pass over.")] = 0,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Search the complete transcript of a conversation.

    Messages of its runs and its own lines are searched, in any language, and
    quoted exactly.

    \b
    Example:
      compaction-ledger window search "4,000 EUR" --conversation fund-research
    """
    from typing import cast

    from compaction_ledger.cli.documents.history import WindowSearchDocument
    from compaction_ledger.cli.views.history import show_hits
    from compaction_ledger.domain.history import HistoryQuery

    call = Call.of(ctx, ledger, scope, json=json)
    roles = frozenset(cast("list[EntryRole]", role)) if role else None
    asked = HistoryQuery(
        query, roles=roles, first=first_pair, last=last_pair, limit=limit, offset=offset
    )
    with call.open() as opened:
        history = opened.history_search(conversation, scope=call.scope)
        history.check_known()
        found = history.search(asked)
    document = WindowSearchDocument.of(call.scope, conversation, query, found)
    call.answer(document, show_hits)


def mcp(
    ctx: typer.Context,
    conversation: ConversationOption,
    run: RunOption = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
) -> None:
    """Serve the history of one conversation to a model, by MCP over stdin and stdout.

    The tools search and reread this conversation and no other, whatever the
    model asks for. It ends when the client closes stdin.

    \b
    Example:
      compaction-ledger window mcp --conversation fund-research
    """
    from compaction_ledger.domain.errors import InvalidSetting

    try:
        from compaction_ledger.mcp_server import serve
    except ImportError as error:
        raise InvalidSetting(
            f"this needs: pip install 'compaction-ledger[mcp]' ({error})", place="window mcp"
        ) from error
    call = Call.of(ctx, ledger, scope)
    with call.open() as opened:
        serve(opened, conversation, call.scope, run=run)
