"""`import` and `import-summary`: what comes in from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption


def import_file(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript.")],
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="auto, native, openai-chat, openai-responses, anthropic-messages, bedrock-converse,"
            " pydantic-ai, langchain, google-adk, chatgpt-export, claude-ai-export, claude-code,"
            " codex-rollout, pi-session, swe-agent, taubench, pairs, goodai, memorybank.",
        ),
    ] = "auto",
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Another id for the one conversation of the file."),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="The file has grown: append what is new, revise texts and statuses that changed.",
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name every record that was left out.")
    ] = False,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Take conversations over from a file; makes the ledger where there is none.

    Nothing is stored of a file that is refused, and no ledger is made for it.

    \b
    Examples:
      compaction-ledger import conversations.json --format chatgpt-export
      compaction-ledger import session.jsonl --update
    """
    from compaction_ledger import composition
    from compaction_ledger.cli.documents.transcripts import ImportDocument
    from compaction_ledger.cli.views.transcripts import show_import
    from compaction_ledger.usecases.transcribing import check_file, transcribe

    call = Call.of(ctx, ledger, scope, json=json)
    named = None if format_name == "auto" else format_name
    found = composition.read_file(file, named, conversation)
    check_file(call.scope, found)
    with call.open(create=True) as opened:
        done = transcribe(opened.transcripts, call.scope, found, update=update)
    call.answer(
        ImportDocument.of(done),
        lambda console, document: show_import(console, document, verbose=verbose),
    )


def import_summary(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="One summary and its binding.")],
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Bring in a summary that was made elsewhere, bound to exactly its messages.

    The file holds one JSON object: conversation, from_pair, messages (20 ids) and
    source_hash (or "bind": "current"), model {provider, name, settings}, prompt
    (name@version), text, origin; and scope, if it is not the command's.

    \b
    Example:
      compaction-ledger import-summary old-summary.json
    """
    from compaction_ledger.cli.documents.compaction import ImportSummaryDocument
    from compaction_ledger.cli.documents.summary_file import read_summary_file
    from compaction_ledger.cli.views.compaction import show_import_summary
    from compaction_ledger.domain.identity import Job, PromptVersion

    call = Call.of(ctx, ledger, scope, json=json)
    given = read_summary_file(file)
    owner = call.scope if given.scope is None else given.scope
    model, prompt = given.model.identity, PromptVersion.parse(given.prompt)
    with call.open() as opened:
        if given.messages is None or given.source_hash is None:
            job = opened.job_of_present_source(
                given.conversation,
                from_pair=given.from_pair,
                model=model,
                prompt=prompt,
                scope=owner,
            )
        else:
            job = Job(
                scope=owner,
                conversation=given.conversation,
                from_pair=given.from_pair,
                to_pair=given.from_pair + 9,
                messages=tuple(given.messages),
                source_hash=given.source_hash,
                model=model,
                prompt=prompt,
            )
        found = opened.import_summary(job, given.text, origin=given.origin)
    document = ImportSummaryDocument.of(
        found, owner, job.conversation, job.from_pair, job.source_hash
    )
    call.answer(document, show_import_summary)
