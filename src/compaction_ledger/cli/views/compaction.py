"""How `compact` and `import-summary` look."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger.cli.documents.compaction import (
    CompactDocument,
    ConversationCompacted,
    ImportSummaryDocument,
)
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.screen import facts, table

RESULTS = {
    "completed": "summarized",
    "failed": "failed, may be tried again",
    "exhausted": "failed, both attempts are used",
    "claimed_elsewhere": "another worker has it",
    "already_completed": "another worker has just done it",
    "source_changed": "the messages changed meanwhile",
    "refused": "came too late, the claim was taken over",
    "not_admitted": "not now, too many attempts at once",
    "outage": "not now, the provider is out",
    "stopped": "stopped before it began",
}
STATUSES = {
    "running": "another worker has it",
    "waiting": "waits for its second attempt",
    "exhausted": "both attempts are used",
}
VERDICTS = {
    "projectable": "may be used while its source is unchanged",
    "mixed_input": "kept for review, never used: its model was given the user's texts too",
    "not_projectable": "kept for review, never used",
    "unknown_version": "kept for review, never used: its prompt version is unknown",
}


def show_compact(console: Console, document: CompactDocument) -> None:
    """What became of each range."""
    for one in document.conversations:
        if one.ranges or one.left or one.error or len(document.conversations) == 1:
            _show_conversation(console, one)
    console.print(
        f"{plural(document.completed, 'summary', 'summaries')} made,"
        f" {plural(document.due, 'range was', 'ranges were')} due"
        f" ({document.model}, {document.prompt})."
    )
    if document.stopped:
        console.print(f"Stopped by {document.signal or 'request'}; what was under way is recorded.")


def show_import_summary(console: Console, document: ImportSummaryDocument) -> None:
    """Where the summary stands now."""
    place = "was there already" if document.already else f"index {document.index} of the log"
    console.print(
        facts(
            (
                ("Range", f"{document.conversation} {document.from_pair}-{document.to_pair}"),
                ("Recorded", place),
                ("Use", VERDICTS[document.verdict]),
                ("Source", document.source_hash),
                ("Identity", document.identity),
            )
        )
    )


def _show_conversation(console: Console, one: ConversationCompacted) -> None:
    console.print(f"{one.conversation} (scope {one.scope})")
    rows = [
        (
            f"{done.from_pair}-{done.to_pair}",
            RESULTS[done.result],
            ", ".join(done.failures),
            "" if done.index is None else done.index,
        )
        for done in one.ranges
    ]
    rows += [(f"{it.from_pair}-{it.to_pair}", STATUSES[it.status], "", "") for it in one.left]
    if rows:
        columns = ("Pairs", "Result", "Failures", "Log index")
        console.print(table(*columns, rows=rows, right=["Log index"]))
    not_done = one.due - len(one.ranges)
    if one.error is not None:
        message = " ".join(visible(one.error.message).split())
        console.print(f"error[{one.error.code}]: {message}")
    if not_done:
        console.print(f"{not_done} of {plural(one.due, 'range')} not done.")
    elif not rows and one.error is None:
        console.print("Nothing was due.")
    console.print()
