"""`backfill`: an archive of many conversations, taken over and summarized."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption
from compaction_ledger.cli.commands.models import (
    EXTRACTIVE,
    ApiKeyEnvOption,
    BaseUrlOption,
    MaxTokensOption,
    ModelChoice,
    ModelOption,
    TimeoutOption,
    UpgradeOption,
)
from compaction_ledger.cli.failing import FINDING

if TYPE_CHECKING:
    from compaction_ledger.ledger import Ledger
    from compaction_ledger.serving import Pace

RANGES_AT_A_TIME = 50
"""Of one conversation, where nothing is waited for: to plan a long one anew takes longer than a summary."""


class ScopeSource(StrEnum):
    """Where the scope of a conversation comes from."""

    option = "option"
    folder = "folder"
    file = "file"


def backfill(
    ctx: typer.Context,
    archive: Annotated[list[Path], typer.Argument(metavar="ARCHIVE", help="Folders, and files.")],
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="As for import. native files may hold many conversations.",
        ),
    ] = "auto",
    scope_from: Annotated[
        ScopeSource,
        typer.Option(
            help="Whose they are: of --scope, or of whom the folder below ARCHIVE, or the file, "
            "is named after.",
            metavar="option|folder|file",
        ),
    ] = ScopeSource.option,
    import_only: Annotated[
        bool, typer.Option("--import-only", help="Leave the summaries to other workers.")
    ] = False,
    threads: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="How many ranges at once.")
    ] = 4,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Attempts at once among all on one PostgreSQL database."
        ),
    ] = None,
    model: ModelOption = EXTRACTIVE,
    base_url: BaseUrlOption = None,
    api_key_env: ApiKeyEnvOption = None,
    max_tokens: MaxTokensOption = None,
    timeout: TimeoutOption = None,
    upgrade: UpgradeOption = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Take over an archive of any size and summarize everything due.

    Ended anywhere, even by kill -9, and run again, it goes on: nothing is done
    twice, and nothing is lost. Several may run at once, and work beside them. What
    is malformed is left out, told at the end, and makes the exit code 1.

    \b
    Examples:
      compaction-ledger backfill export/ --scope-from folder
      compaction-ledger backfill acme.ndjson --scope acme --import-only
    """
    from compaction_ledger import composition
    from compaction_ledger.cli.backfill.running import ArchivePlace, Backfill
    from compaction_ledger.cli.backfill.telling import Teller
    from compaction_ledger.cli.views.backfill import show_backfill

    call = Call.of(ctx, ledger, scope, json=json)
    if scope_from is not ScopeSource.option and call.given_scope is not None:
        raise typer.BadParameter("is for --scope-from option", ctx, param_hint="--scope")
    name = None if format_name == "auto" else format_name
    place = ArchivePlace(tuple(archive), name, scope_from.value, call.scope)
    # Before there is a ledger.
    composition.archive(place.places, place.format, place.scope_from, place.scope)
    choice = ModelChoice(model, base_url, api_key_env, max_tokens, timeout)
    with choice.open() as summarizer, _open(call, threads, at_once, timeout) as opened:
        run = Backfill(
            ledger=opened,
            archive=place,
            teller=Teller(),
            pace=_pace(model, threads),
            summarizer=summarizer,
            upgrade=upgrade,
            import_only=import_only,
        )
        document = run.run()
    call.answer(document, show_backfill)
    if run.signal_number is not None:
        raise typer.Exit(128 + run.signal_number)
    if document.is_finding:
        raise typer.Exit(FINDING)


def _open(call: Call, threads: int, at_once: int | None, timeout: float | None) -> Ledger:
    """The ledger, made where there is none, with as many attempts at once as there are threads."""
    from compaction_ledger.ledger import Ledger
    from compaction_ledger.settings import Settings

    usual = Settings()
    settings = Settings(
        lease_seconds=max(usual.lease_seconds, 2 * (timeout or 0.0)),
        attempts_at_once=threads,
        shared_attempts_at_once=at_once,
        database_connections=max(usual.database_connections, threads + 6),
    )
    return Ledger.open(call.place, settings=settings)


def _pace(model: str, threads: int) -> Pace:
    from compaction_ledger.serving import Pace

    usual = Pace()
    ranges = RANGES_AT_A_TIME if model == EXTRACTIVE else usual.ranges
    return Pace(threads=threads, poll=1.0, ranges=ranges)
