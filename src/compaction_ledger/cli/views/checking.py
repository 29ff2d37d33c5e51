"""How `check` looks."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.documents.checking import CheckDocument, CheckedTranscript
from compaction_ledger.cli.plain import plural, visible


def show_check(console: Console, document: CheckDocument) -> None:
    """Each list of messages, and what is wrong with it."""
    for one in document.transcripts:
        _show(console, one)
    if len(document.transcripts) > 1:
        console.print(_total(document))


def _show(console: Console, one: CheckedTranscript) -> None:
    told = plural(len(one.problems), "problem") if one.problems else "valid"
    console.print(f"{visible(one.place)}: {one.shape}, {plural(one.messages, 'message')}: {told}")
    for each in one.problems:
        # Below each other, so that a narrow terminal need not fold columns.
        _indented(console, 2, f"{each.place}  {each.code}")
        _indented(console, 6, each.message)


def _indented(console: Console, by: int, text: str) -> None:
    console.print(Padding(Text(visible(text)), (0, 0, 0, by)))


def _total(document: CheckDocument) -> str:
    transcripts = plural(len(document.transcripts), "transcript")
    broken = [one for one in document.transcripts if one.problems]
    if not broken:
        return f"{transcripts}, all of them valid."
    found = plural(sum(len(one.problems) for one in broken), "problem")
    return f"{found} in {len(broken)} of {transcripts}."
