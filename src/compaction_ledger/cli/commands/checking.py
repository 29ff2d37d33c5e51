"""`check`: whether a provider would take the messages of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption
from compaction_ledger.cli.failing import FINDING


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Messages of a provider, as JSON.")],
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            metavar="NAME",
            help="openai-chat, openai-responses, anthropic, converse or pydantic-ai. Else the"
            " file must show it.",
        ),
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished",
            help="The conversation goes on: it may end in calls without a result, or with an"
            " answer.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Tell what a provider would refuse of the messages in a file.

    No ledger is needed.

    The exit code is 1 when something is found.

    \b
    Examples:
      compaction-ledger check session.json
      compaction-ledger check calls.jsonl --shape anthropic --json
    """
    from compaction_ledger import composition
    from compaction_ledger.cli.documents.checking import CheckDocument, CheckedTranscript
    from compaction_ledger.cli.views.checking import show_check

    call = Call.of(ctx, None, json=json)
    found = composition.wire_transcripts(file, shape)
    checked = [
        CheckedTranscript.of(one.shape, one.place, one.messages, unfinished=unfinished)
        for one in found
    ]
    document = CheckDocument(ok=not any(one.problems for one in checked), transcripts=checked)
    call.answer(document, show_check)
    if not document.ok:
        raise typer.Exit(FINDING)
