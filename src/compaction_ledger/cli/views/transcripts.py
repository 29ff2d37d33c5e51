"""How `import` and `plan` look."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from compaction_ledger.cli.documents.transcripts import (
    ImportDocument,
    PlanDocument,
    PlannedTarget,
)
from compaction_ledger.cli.plain import plural
from compaction_ledger.cli.screen import facts, table

LEFT_OUT = {
    "other_scope": "belongs to another scope",
    "other_conversation": "belongs to another conversation",
    "tool": "call or result of a tool",
    "trace": "inner trace of the program",
    "effect": "effect that is not settled",
    "wrong_role": "neither user nor assistant",
    "run_missing": "its run is unknown",
    "run_elsewhere": "its run belongs elsewhere",
    "run_not_settled": "its run did not end well",
    "streaming": "answer that broke off",
    "failed": "answer that failed",
    "ambiguous_run": "not one question and one answer",
    "no_user_message": "no user message in its run",
    "no_answer": "no answer in its run",
    "empty_text": "it or its other side is empty",
}


def show_import(console: Console, document: ImportDocument, *, verbose: bool) -> None:
    """What was read, what became of it, and what was left out."""
    console.print(
        facts(
            (
                ("File", f"{document.source} ({document.format})"),
                ("Read", plural(document.records, "record")),
                ("Imported", plural(document.imported, "record")),
                ("Left out", _reasons(document.left_out_by_reason) or "nothing"),
            )
        )
    )
    console.print()
    rows = (
        (
            one.conversation,
            one.messages,
            *((one.appended, one.revised, one.unchanged) if document.update else ()),
            one.runs,
            one.pairs,
            _reasons(one.lines_left_out) or "none",
        )
        for one in document.conversations
    )
    update = ("New", "Revised", "Same") if document.update else ()
    numbers = ("Messages", *update, "Runs", "Pairs")
    console.print(table("Conversation", *numbers, "Lines in no pair", rows=rows, right=numbers))
    if verbose and document.left_out:
        console.print()
        console.print(
            table(
                "Place",
                "Reason",
                "What",
                rows=(
                    (one.place, f"{one.reason}{' (a part)' if one.part else ''}", one.detail)
                    for one in document.left_out
                ),
            )
        )
    elif document.left_out:
        console.print("\n-v names each record that was left out.")


def show_plan(console: Console, document: PlanDocument, *, verbose: bool) -> None:
    """Which lines count, and what is due."""
    policy = document.policy
    told = (
        f"from {policy.minimum_pairs} pairs on, in ranges of {policy.range_pairs};"
        f" the newest {policy.keep_newest} stay as they are"
    )
    console.print(
        facts(
            (
                ("Conversation", f"{document.conversation} (scope {document.scope})"),
                ("Pairs", f"{len(document.pairs)} count"),
                ("Other lines", _reasons(document.left_out_by_reason) or "none"),
                ("Summarizer", f"{document.model}, {document.prompt}"),
                ("Policy", told),
            )
        )
    )
    if verbose and document.left_out:
        console.print()
        show_left_out(console, document)
    console.print()
    show_targets(console, document.ranges)
    if document.left_out and not verbose:
        console.print("\n-v names each line that does not count.")


def show_left_out(console: Console, document: PlanDocument) -> None:
    """The lines that do not count, one by one."""
    rows = (
        (line.position, line.reason, LEFT_OUT.get(line.reason, ""), line.message)
        for line in document.left_out
    )
    console.print(table("Line", "Reason", "That is", "Message", rows=rows, right=["Line"]))


def show_targets(console: Console, targets: list[PlannedTarget]) -> None:
    """The ranges that the policy names."""
    if not targets:
        console.print("No range is a target yet.")
        return
    rows = ((f"{one.from_pair}-{one.to_pair}", _status(one), one.source_hash) for one in targets)
    console.print(table("Pairs", "Status", "Source hash", rows=rows))


def _status(target: PlannedTarget) -> str:
    status = (
        target.status if target.retry_at is None else f"{target.status} until {target.retry_at}"
    )
    return (
        f"{status}, {plural(target.stale, 'older summary', 'older summaries')}"
        if target.stale
        else status
    )


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())
