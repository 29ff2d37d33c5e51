"""`ranges`, `show` and `log`: what the ledger holds, now and at any time before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import (
    Call,
    ConversationArgument,
    JsonOption,
    LedgerOption,
    ScopeOption,
)

if TYPE_CHECKING:
    from compaction_ledger.domain.ports import ReadModels
    from compaction_ledger.ledger import Ledger


def ranges(
    ctx: typer.Context,
    conversation: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONVERSATION]", help="Else all, of all scopes unless one is named."
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INDEX|TIME",
            help="As it was after this event, or at this time (ISO 8601 with an offset).",
        ),
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """List the ranges that the log knows, with their status.

    \b
    Examples:
      compaction-ledger ranges
      compaction-ledger ranges fund-research --at 2026-03-01T12:00:00Z
    """
    from compaction_ledger.cli.documents.common import moment
    from compaction_ledger.cli.documents.records import (
        RangeRecord,
        RangesDocument,
    )
    from compaction_ledger.cli.views.records import show_ranges
    from compaction_ledger.composition import system_clock

    call = Call.of(ctx, ledger, scope, json=json)
    with call.open_to_read() as opened:
        if at is None:
            position = opened.position()
            rows = opened.ranges(conversation, scope=_scope(call, conversation))
        else:
            past = _past(opened, at)
            position = past.position()
            rows = past.ranges(_scope(call, conversation), conversation)
        document = RangesDocument(
            position=position, size=opened.size(), ranges=[RangeRecord.of(row) for row in rows]
        )
    now = moment(system_clock()) if at is None else None
    call.answer(document, lambda console, it: show_ranges(console, it, now))


def show(
    ctx: typer.Context,
    conversation: ConversationArgument,
    from_pair: Annotated[
        int, typer.Argument(min=0, metavar="FROM_PAIR", help="The first pair of the range.")
    ],
    text: Annotated[
        bool, typer.Option("--text", help="Show the text of the summaries as well.")
    ] = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Show every summary of a range, what each is bound to, and the attempts.

    \b
    Example:
      compaction-ledger show fund-research 0 --text
    """
    from compaction_ledger.cli.commands.range_records import range_document
    from compaction_ledger.cli.views.records import show_range

    call = Call.of(ctx, ledger, scope, json=json)
    with call.open_to_read() as opened:
        document = range_document(opened, call.scope, conversation, from_pair)
    call.answer(document, lambda console, it: show_range(console, it, text=text))


def log(
    ctx: typer.Context,
    first: Annotated[
        int, typer.Option("--from", min=0, metavar="N", help="The index to begin at.")
    ] = 0,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many events at most.")] = 50,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Only the events of this conversation.")
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """List the events of the log, in order.

    \b
    Example:
      compaction-ledger log --from 100 --limit 20
    """
    from compaction_ledger.cli.commands.range_records import log_document
    from compaction_ledger.cli.views.records import show_log

    call = Call.of(ctx, ledger, scope, json=json)
    with call.open_to_read() as opened:
        document = log_document(opened, first, limit, _scope(call, conversation), conversation)
    call.answer(document, show_log)


def _scope(call: Call, conversation: str | None) -> str | None:
    """One conversation is looked for in one scope; without one, all scopes unless one is named."""
    return call.given_scope if conversation is None else call.scope


def _past(ledger: Ledger, at: str) -> ReadModels:
    """The read models after an index or at a time (P5). Raises :class:`InvalidSetting`."""
    from datetime import datetime

    from compaction_ledger.cli.documents.common import EPOCH
    from compaction_ledger.domain.errors import InvalidSetting

    if at.isascii() and at.isdigit():
        return ledger.at(index=int(at))
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise InvalidSetting(
            f"{at!r} is neither an index nor an ISO 8601 time", place="--at"
        ) from None
    if moment.tzinfo is None:
        raise InvalidSetting(f"{at!r} has no offset from UTC, such as Z", place="--at")
    since = moment - EPOCH
    return ledger.at(
        time=since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    )
