"""Rollout files of Codex: JSON Lines ``{timestamp, type, payload}`` around items of the Responses shape.

What was said stands twice: as ``response_item``, which is read, and as ``event_msg`` for the screen. The
items that carry the user's role and that no ``user_message`` event repeats were written by the program.
Their ids are not used: forks and compactions repeat them, and some files have none.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    an_id_if_any,
    an_object,
    iso_time,
    peek,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    ReasonCode,
    Sample,
)
from compaction_ledger.infrastructure.importers.openai_items import item_parts
from compaction_ledger.infrastructure.importers.reading import read_lines, to_json
from compaction_ledger.infrastructure.importers.turns import Part

_ENVELOPE = frozenset({"timestamp", "type", "payload"})
_COPIES = frozenset({"agent_message", "agent_reasoning", "user_message"})
_METADATA = frozenset({"session_meta", "turn_context", "world_state"})


class CodexRolloutImporter:
    """Reads rollouts; a turn that was aborted makes its run cancelled."""

    name = "codex-rollout"
    description = "rollout files of the Codex command line"

    def sniff(self, sample: Sample) -> bool:
        """Whether every line has the envelope, and the first one is a session's header."""
        lines = sample.objects
        return (
            bool(lines)
            and len(lines) == len(sample.records)
            and all(set(line) >= _ENVELOPE for line in lines)
            and lines[0].get("type") == "session_meta"
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the file line by line; the session's id names the conversation."""
        collector, session = Collector(self.name, path), None
        lines: list[tuple[str, JsonObject]] = []
        for place, value in read_lines(path):
            line = an_object(value, place)
            if session is None and line.get("type") == "session_meta":
                session = an_id_if_any(the_object(line, "payload", place), "id", place)
            lines.append((place, line))
        typed = _typed(lines)
        parts = [part for place, line in lines for part in _parts(line, place, typed, collector)]
        collector.add_parts(session, _without_answers(parts))
        return collector.result(conversation)


def _typed(lines: list[tuple[str, JsonObject]]) -> frozenset[str] | None:
    """What the user typed, by the events for the screen; None where there are no such events."""
    found = {
        text
        for _, line in lines
        if line.get("type") == "event_msg" and isinstance(payload := line.get("payload"), dict)
        if payload.get("type") == "user_message" and (text := peek(payload, "message")) is not None
    }
    return frozenset(found) if found else None


def _parts(
    line: JsonObject, place: str, typed: frozenset[str] | None, collector: Collector
) -> list[Part]:
    kind, payload = the_text(line, "type", place), the_object(line, "payload", place)
    created_at = iso_time(line.get("timestamp"), f"{place} timestamp")
    if kind == "response_item":
        return [
            _written(replace(part, id=None, created_at=created_at), typed)
            for part in item_parts(payload, place, collector)
        ]
    event = peek(payload, "type")
    if kind == "event_msg" and event == "turn_aborted":
        collector.took()
        text = to_json(payload, place)
        return [Part(place, "trace", "assistant", text, None, created_at, outcome="cancelled")]
    reason: ReasonCode = "control_event"
    if kind in _METADATA:
        reason = "metadata"
    elif kind == "event_msg" and event in _COPIES:
        reason = "duplicate"
    what = f"line of type {kind!a}" if kind != "event_msg" else f"event of type {event!a}"
    collector.left_out(place, reason, what)
    return []


def _without_answers(parts: list[Part]) -> list[Part]:
    """The parts, where no text of a turn that was aborted ended it."""
    aborted, found = False, list(parts)
    for at in range(len(found) - 1, -1, -1):
        part = found[at]
        if part.kind == "user":
            aborted = False
        elif part.outcome == "cancelled":
            aborted = True
        elif aborted and part.kind == "text":
            found[at] = replace(part, ending="open")
    return found


def _written(part: Part, typed: frozenset[str] | None) -> Part:
    """A user's part, unless the program wrote it in the user's name."""
    if part.kind == "user" and typed is not None and part.text not in typed:
        return replace(part, kind="trace")
    return part
