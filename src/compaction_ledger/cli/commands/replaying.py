"""`replay` and `diff`: what was known at a point of the log, and what changed between two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption
from compaction_ledger.cli.commands.assembling import FallbackChoice, ShapeChoice

if TYPE_CHECKING:
    from compaction_ledger.usecases.replaying import ConversationThen

POINT = "INDEX|TIME"
SomeConversation = Annotated[
    str | None,
    typer.Argument(metavar="[CONVERSATION]", help="Else all, of all scopes unless one is named."),
]


def replay(
    ctx: typer.Context,
    at: Annotated[
        str,
        typer.Option(
            metavar=POINT,
            help="After this event (-1: before the first), or at this time: ISO 8601 with an "
            "offset, or @ and microseconds.",
        ),
    ],
    conversation: SomeConversation = None,
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Bytes of the request; else as recorded last until then."),
    ] = None,
    shape: Annotated[
        ShapeChoice | None, typer.Option(help="Its shape; else as recorded last until then.")
    ] = None,
    fallback: Annotated[
        FallbackChoice, typer.Option(help="What is sent when not everything fits.")
    ] = "newest_originals",
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Of the first N pairs, as many as there were."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the request's bytes there.")
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """What was known, claimable and summarized at a point of the log.

    Of a conversation also what a request would have held: of the summaries
    known then, and of the messages as they are now, since transcripts keep no
    times. Ranges that were changed since are named. Nothing is written.

    \b
    Examples:
      compaction-ledger replay --at 41
      compaction-ledger replay --at 2026-03-01T12:00:00Z fund-research
    """
    from compaction_ledger.cli.documents.replay import ReplayDocument
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.cli.views.replay import show_replay
    from compaction_ledger.domain.moments import parse_moment
    from compaction_ledger.ledger import Ledger
    from compaction_ledger.usecases.serving_then import ServingOptions

    if conversation is None and any(given is not None for given in (budget, shape, pairs, out)):
        raise typer.BadParameter("a request is made of one conversation: name it", ctx)
    call = Call.of(ctx, ledger, scope, json=json)
    moment = parse_moment(at, "--at")
    with (
        Ledger.open(call.place, create=False, read_only=True) as opened,
        progress("Replaying") as report,
    ):
        if conversation is None:
            overview = opened.replay_all(moment, scope=call.given_scope, progress=report)
            document = ReplayDocument.of(overview)
        else:
            serving = ServingOptions(budget, shape, fallback, pairs)
            then = opened.replay(
                conversation, moment, scope=call.scope, serving=serving, progress=report
            )
            _write(out, then)
            document = ReplayDocument.of(then)
    call.answer(document, show_replay)


def _write(out: Path | None, then: ConversationThen) -> None:
    """The bytes of the request, if they were asked for. Raises :class:`InvalidSetting`."""
    from compaction_ledger.domain.errors import InvalidSetting

    if out is None:
        return
    if then.served is None:
        raise InvalidSetting("the transcripts do not know the conversation", place="--out")
    out.write_bytes(then.served.assembly.body)


def diff(
    ctx: typer.Context,
    start: Annotated[
        str, typer.Option("--from", metavar=POINT, help="The first point, as for replay --at.")
    ],
    end: Annotated[str, typer.Option("--to", metavar=POINT, help="The second point.")],
    conversation: SomeConversation = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """What changed between two points of the log.

    Ranges, summaries and attempts, pins, chunks and recorded requests, each
    with the event that changed it last. Nothing is written.

    \b
    Example:
      compaction-ledger diff --from 41 --to 57 fund-research
    """
    from compaction_ledger.cli.documents.diff import DiffDocument
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.cli.views.diff import show_diff
    from compaction_ledger.domain.moments import parse_moment
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, scope, json=json)
    points = parse_moment(start, "--from"), parse_moment(end, "--to")
    with (
        Ledger.open(call.place, create=False, read_only=True) as opened,
        progress("Comparing") as report,
    ):
        one_scope = call.given_scope if conversation is None else call.scope
        found = opened.diff(*points, conversation, scope=one_scope, progress=report)
    call.answer(DiffDocument.of(found), show_diff)
