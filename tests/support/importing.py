"""What the importers' tests share: writing files, and asking the domain what counts."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compaction_ledger.domain.conversation import Conversation, Message, Run
from compaction_ledger.domain.eligibility import Eligibility, eligible
from compaction_ledger.infrastructure.importers import (
    ImportedConversation,
    ImportResult,
    importer_named,
)

SCOPE = "a scope"


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_document(path: Path, value: Any) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def read(importer: str, path: Path) -> ImportResult:
    """Read a file twice; both results must be equal, and every record accounted for."""
    result = importer_named(importer).read(path)
    assert result == importer_named(importer).read(path)
    report = result.report
    assert report.records == report.imported + report.left_out_records
    assert report.messages == sum(len(each.messages) for each in result.conversations)
    assert sum(report.left_out_by_reason.values()) == len(report.left_out)
    return result


def read_one(importer: str, path: Path) -> ImportedConversation:
    """The one conversation of a file."""
    (only,) = read(importer, path).conversations
    return only


def judge(imported: ImportedConversation) -> Eligibility:
    """What of an imported conversation is eligible (E1)."""
    name = imported.conversation
    messages = [
        Message(m.id, m.run, m.role, m.status, m.kind, m.text, name, SCOPE)
        for m in imported.messages
    ]
    runs = {run.id: Run(run.id, run.state, name, SCOPE) for run in imported.runs}
    return eligible(Conversation(SCOPE, name, messages, runs))


def pairs(imported: ImportedConversation) -> list[tuple[str, str]]:
    """The texts of the eligible pairs."""
    return [(pair.user.text, pair.assistant.text) for pair in judge(imported).pairs]


def states(imported: ImportedConversation) -> list[str]:
    """The runs' states in order."""
    return [run.state for run in imported.runs]


def lines(imported: ImportedConversation) -> list[tuple[str, str, str, str]]:
    """Role, kind, status and text of each message."""
    return [(m.role, m.kind, m.status, m.text) for m in imported.messages]
