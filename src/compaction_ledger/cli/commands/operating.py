"""`status` and `migrate`: what an operator of a ledger asks and does."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption

if TYPE_CHECKING:
    from rich.console import RenderableType

    from compaction_ledger.cli.documents.operating import StatusDocument


def status(
    ctx: typer.Context,
    watch: Annotated[
        float | None,
        typer.Option(
            min=0.1, metavar="SECONDS", help="Show it again and again, until interrupted."
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show how the ledger is: events, lag, ranges, claims, work and size.

    It only reads, as a role that may only read, and brings nothing up to date.

    \b
    Examples:
      compaction-ledger status
      compaction-ledger status --watch 2 --ledger postgresql://auditor@db/app
    """
    from compaction_ledger.cli.views.operating import show_status

    call = Call.of(ctx, ledger, json=json)
    document = _status(call)
    if watch is None:
        call.answer(document, show_status)
    elif call.json:
        raise typer.BadParameter("--json prints one document", ctx, param_hint="--watch")
    else:
        with suppress(KeyboardInterrupt):
            _watch(call, document, watch)


def _status(call: Call) -> StatusDocument:
    from compaction_ledger.cli.documents.operating import StatusDocument
    from compaction_ledger.ledger import Ledger

    with Ledger.open(call.place, create=False, read_only=True) as opened:
        return StatusDocument.of(opened.status())


def _watch(call: Call, document: StatusDocument, every: float) -> None:
    """Show the status for ever; on a terminal in one place. A store that is away comes back."""
    from rich.live import Live

    from compaction_ledger.cli.screen import out
    from compaction_ledger.cli.views.operating import status_error, status_table
    from compaction_ledger.domain.errors import StoreError

    console = out()
    shown: RenderableType = status_table(document)
    with (
        Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live
    ):
        while True:
            if live is None:
                console.print(shown)
                console.print()
            else:
                live.update(shown, refresh=True)
            time.sleep(every)
            try:
                shown = status_table(_status(call))
            except StoreError as error:
                shown = status_error(error)


def migrate(
    ctx: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, list what would be applied.")
    ] = False,
    roles: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="WRITER READER",
            help="Change nothing, print the SQL that lets these two roles work.",
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Make or update the tables of a ledger on PostgreSQL.

    Run it as the role that is to own them. All that is missing is applied, or
    nothing. A file needs no migration.

    \b
    Examples:
      compaction-ledger migrate --ledger postgresql://owner@db/app
      compaction-ledger migrate --roles app_worker app_auditor | psql -d app
    """
    from compaction_ledger import composition
    from compaction_ledger.cli.documents.operating import MigrateDocument
    from compaction_ledger.cli.views.operating import show_migrate
    from compaction_ledger.settings import Settings

    if dry_run and roles is not None:
        raise typer.BadParameter("give either --dry-run or --roles", ctx, param_hint="--roles")
    call = Call.of(ctx, ledger, json=json)
    if roles is not None:
        script = composition.role_statements(call.place, *roles)
        document = MigrateDocument(applied=[], pending=None, roles=script)
    elif dry_run:
        pending = composition.migrate(call.place, Settings(), dry_run=True)
        document = MigrateDocument(applied=[], pending=pending, roles=None)
    else:
        applied = composition.migrate(call.place, Settings())
        document = MigrateDocument(applied=applied, pending=[], roles=None)
    call.answer(document, show_migrate)
