"""`plan`: which lines count and which ranges are due."""

from __future__ import annotations

from typing import Annotated

import typer

from compaction_ledger.cli.calling import (
    Call,
    ConversationArgument,
    JsonOption,
    LedgerOption,
    ScopeOption,
)
from compaction_ledger.cli.commands.models import (
    ApiKeyEnvOption,
    BaseUrlOption,
    MaxTokensOption,
    ModelChoice,
    ModelOption,
    TimeoutOption,
    UpgradeOption,
)


def plan(
    ctx: typer.Context,
    conversation: ConversationArgument,
    model: ModelOption = "extractive",
    base_url: BaseUrlOption = None,
    api_key_env: ApiKeyEnvOption = None,
    max_tokens: MaxTokensOption = None,
    timeout: TimeoutOption = None,
    upgrade: UpgradeOption = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name every line that does not count.")
    ] = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Show which lines count, which do not and why, and which ranges are due.

    \b
    Example:
      compaction-ledger plan fund-research
    """
    from compaction_ledger.cli.documents.transcripts import PlanDocument
    from compaction_ledger.cli.views.transcripts import show_plan

    call = Call.of(ctx, ledger, scope, json=json)
    choice = ModelChoice(model, base_url, api_key_env, max_tokens, timeout)
    with choice.open() as summarizer, call.open_to_read() as opened:
        found = opened.plan(conversation, scope=call.scope, summarizer=summarizer, upgrade=upgrade)
        document = PlanDocument.of(
            found, summarizer.model, opened.registry.current, opened.policy.numbers
        )
    call.answer(document, lambda console, made: show_plan(console, made, verbose=verbose))
