"""`work`: summarize what is due, whatever becomes due, until told to end."""

from __future__ import annotations

from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption
from compaction_ledger.cli.commands.models import (
    ApiKeyEnvOption,
    BaseUrlOption,
    MaxTokensOption,
    ModelChoice,
    ModelOption,
    TimeoutOption,
    UpgradeOption,
)


def work(
    ctx: typer.Context,
    processes: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="How many processes.")
    ] = 1,
    threads: Annotated[
        int,
        typer.Option(min=1, max=1_000, metavar="N", help="How many threads in each of them."),
    ] = 4,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is due any more.")
    ] = False,
    poll: Annotated[
        float,
        typer.Option(min=0.01, metavar="SECONDS", help="How long to wait before looking again."),
    ] = 5.0,
    discover: Annotated[
        float,
        typer.Option(min=0.01, metavar="SECONDS", help="How often to search for what changed."),
    ] = 30.0,
    drain: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="How long calls may go on after SIGTERM."),
    ] = 20.0,
    lease: Annotated[
        float | None,
        typer.Option(
            min=0.1, metavar="SECONDS", help="How long a claim holds: longer than any call."
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Attempts at once among all on one PostgreSQL database."
        ),
    ] = None,
    sign_every: Annotated[
        float | None,
        typer.Option(
            min=0.1, metavar="SECONDS", help="Sign the log, as `checkpoint` does, so often."
        ),
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, metavar="PORT", help="Answer /live, /ready and /status."),
    ] = None,
    health_host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="On which address to answer.")
    ] = "127.0.0.1",
    model: ModelOption = "extractive",
    base_url: BaseUrlOption = None,
    api_key_env: ApiKeyEnvOption = None,
    max_tokens: MaxTokensOption = None,
    timeout: TimeoutOption = None,
    upgrade: UpgradeOption = False,
    child: Annotated[int, typer.Option("--child", min=0, hidden=True)] = 0,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Summarize what is due, and what becomes due, until told to end.

    Any number of these may work on one ledger, on as many machines as reach it.
    Conversations are taken scope by scope in turn. On SIGTERM or SIGINT nothing new
    is begun, calls under way may end, and the exit code is 0; a second signal
    interrupts them. With --until-idle it is 1 when a range failed or a conversation
    met an error. With --json each line is one JSON document.

    \b
    Examples:
      compaction-ledger work --until-idle
      compaction-ledger work --processes 2 --health-port 8080
    """
    from compaction_ledger.cli.work.here import Here
    from compaction_ledger.cli.work.options import WorkOptions
    from compaction_ledger.cli.work.parent import Parent
    from compaction_ledger.serving import Pace

    call = Call.of(ctx, ledger, json=json)
    if call.given_scope is not None:
        raise typer.BadParameter("it works on all scopes", ctx, param_hint="--scope")
    options = WorkOptions(
        place=call.place,
        choice=ModelChoice(model, base_url, api_key_env, max_tokens, timeout),
        pace=Pace(threads, poll, discover, drain, until_idle=until_idle),
        upgrade=upgrade,
        processes=processes,
        lease=lease,
        at_once=at_once,
        sign_every=sign_every,
        health_host=health_host,
        health_port=health_port,
        json=call.json,
    )
    worker = Parent(options) if processes > 1 else Here(options, child)
    raise typer.Exit(worker.run())
