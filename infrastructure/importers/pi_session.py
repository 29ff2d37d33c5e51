"""Session files of the pi coding agent: JSON Lines, linear or with a tree of entries."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.infrastructure.importers.blocks import (
    Envelope,
    block_parts,
    has_client_call,
)
from compaction_ledger.infrastructure.importers.branch import chain
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    an_id_if_any,
    an_object,
    iso_time,
    refuse_unknown,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import read_lines, to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

_ROLES = frozenset({"assistant", "bashExecution", "toolResult", "user"})
_ENDINGS: dict[str, tuple[Ending, Outcome]] = {
    "aborted": ("ended", "cancelled"),
    "error": ("ended", "failed"),
    "length": ("ended", "partial"),
    "stop": ("ended", "completed"),
    "toolUse": ("open", "completed"),
}


class PiSessionImporter:
    """Reads pi sessions; an aborted reply is a failed message and makes its run cancelled."""

    name = "pi-session"
    description = "session files of the pi coding agent"

    def sniff(self, sample: Sample) -> bool:
        """Whether the first line is a session's header and messages are wrapped as pi does."""
        lines = sample.objects
        return (
            bool(lines)
            and lines[0].get("type") == "session"
            and {"id", "cwd"} <= set(lines[0])
            and all("uuid" not in line for line in lines)
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the file line by line; the session's id names the conversation."""
        collector, session = Collector(self.name, path), None
        entries: list[tuple[str, JsonObject]] = []
        for place, value in read_lines(path):
            line = an_object(value, place)
            kind = the_text(line, "type", place)
            if kind == "session" and session is None:
                session = an_id_if_any(line, "id", place)
                collector.left_out(place, "metadata", "the session's header")
            else:
                entries.append((place, line))
        parts: list[Part] = []
        branch = _branch(entries, collector.source)
        for place, line in entries:
            parts += _entry_parts(line, place, branch, collector)
        collector.add_parts(session, parts)
        return collector.result(conversation)


def _branch(entries: list[tuple[str, JsonObject]], source: str) -> frozenset[str] | None:
    """The ids on the way to the last entry; None where the entries have no ids."""
    parents: dict[str, str | None] = {}
    for place, line in entries:
        entry_id = an_id_if_any(line, "id", place)
        if entry_id is not None:
            parents[entry_id] = an_id_if_any(line, "parentId", place)
    if not parents:
        return None
    return frozenset(chain(parents, next(reversed(parents)), source))


def _entry_parts(
    line: JsonObject, place: str, branch: frozenset[str] | None, collector: Collector
) -> list[Part]:
    kind, entry_id = the_text(line, "type", place), an_id_if_any(line, "id", place)
    if kind != "message":
        collector.left_out(place, "control_event", f"line of type {kind!a}")
        return []
    if branch is not None and entry_id not in branch:
        collector.left_out(place, "other_branch", "not on the way to the last entry")
        return []
    collector.took()
    return _message_parts(line, place, entry_id, collector)


def _message_parts(
    line: JsonObject, place: str, entry_id: str | None, collector: Collector
) -> list[Part]:
    message = the_object(line, "message", place)
    role = the_text(message, "role", place)
    created_at = iso_time(line.get("timestamp"), f"{place} timestamp")
    content = message.get("content")
    if role == "user":
        return block_parts(content, Envelope(place, "user", entry_id, created_at), collector)
    if role == "assistant":
        stop = the_text(message, "stopReason", place)
        if stop not in _ENDINGS:
            raise refuse_unknown(stop, frozenset(_ENDINGS), "stopReason", place)
        ending, outcome = _ENDINGS[stop]
        record = Envelope(
            place,
            "assistant",
            entry_id,
            created_at,
            "open" if has_client_call(content) else ending,
            outcome,
        )
        return block_parts(content, record, collector)
    if role not in _ROLES:
        raise refuse_unknown(role, _ROLES, "role", place)
    return [Part(place, "tool", "tool", to_json(message, place), entry_id, created_at)]
