"""`compact`: summarize what is due."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption
from compaction_ledger.cli.commands.models import (
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
    from compaction_ledger.cli.commands.gathering import Gathered
    from compaction_ledger.domain.ports import Summarizer
    from compaction_ledger.ledger import Ledger
    from compaction_ledger.worker import SignalStop


def compact(
    ctx: typer.Context,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="The conversation's id.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every conversation, of all scopes unless one is named.")
    ] = False,
    model: ModelOption = "extractive",
    base_url: BaseUrlOption = None,
    api_key_env: ApiKeyEnvOption = None,
    max_tokens: MaxTokensOption = None,
    timeout: TimeoutOption = None,
    upgrade: UpgradeOption = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Summarize every range that is due.

    SIGINT or SIGTERM stops it at once: the attempt is recorded as cancelled and
    the claim is given back; the exit code is then 130 or 143. It is 1 when a range
    is left that failed or has used its two attempts, and when --all met an error
    in one conversation and went on with the others.

    \b
    Examples:
      compaction-ledger compact fund-research
      compaction-ledger compact --all --model openai:gpt-5-mini
    """
    from compaction_ledger.cli.commands.gathering import Gathered
    from compaction_ledger.cli.documents.compaction import CompactDocument
    from compaction_ledger.cli.views.compaction import show_compact
    from compaction_ledger.worker import SignalStop

    if everything == (conversation is not None):
        raise typer.BadParameter(
            "give either a CONVERSATION or --all", ctx, param_hint="CONVERSATION"
        )
    call = Call.of(ctx, ledger, scope, json=json)
    choice = ModelChoice(model, base_url, api_key_env, max_tokens, timeout)
    gathered = Gathered()
    with (
        choice.open() as summarizer,
        call.open(call_seconds=timeout or 0.0) as opened,
    ):
        stop = SignalStop(on_request=getattr(summarizer, "cancel", None))
        with stop.on_signals():
            _compact(opened, call, conversation, summarizer, gathered, stop, upgrade=upgrade)
            document = CompactDocument.of(
                summarizer.model,
                opened.registry.current,
                gathered.conversations(),
                stopped=stop.requested,
                signal=_signal_name(stop),
            )
    call.answer(document, show_compact)
    if stop.signal_number is not None:
        raise typer.Exit(128 + stop.signal_number)
    if document.is_finding:
        raise typer.Exit(FINDING)


def _compact(
    ledger: Ledger,
    call: Call,
    conversation: str | None,
    summarizer: Summarizer,
    gathered: Gathered,
    stop: SignalStop,
    *,
    upgrade: bool,
) -> None:
    """Compact one conversation or all. What happened until a stop is in ``gathered``."""
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.usecases.stopping import Stopped

    with progress("Summarizing") as report:
        gathered.report = report
        if conversation is None:
            run = ledger.compact_all(
                scope=call.given_scope,
                summarizer=summarizer,
                upgrade=upgrade,
                stop=stop,
                on_conversation=gathered.begin,
            )
            for done in run.reports:
                gathered.finish(done)
            for failure in run.failures:
                gathered.failed(failure)
            return
        try:
            gathered.finish(
                ledger.compact(
                    conversation,
                    scope=call.scope,
                    summarizer=summarizer,
                    upgrade=upgrade,
                    stop=stop,
                    on_range=gathered.begin(call.scope, conversation),
                )
            )
        except Stopped:  # it was recorded, and the document says so
            return


def _signal_name(stop: SignalStop) -> str | None:
    return None if stop.signal_number is None else signal.Signals(stop.signal_number).name
