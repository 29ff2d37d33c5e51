"""Sessions of Google's Agent Development Kit: ``events`` of contents with parts.

Members are read as Python writes them (``function_call``) and as JSON does (``functionCall``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compaction_ledger.domain.conversation import MessageStatus
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list_if_any,
    an_id_if_any,
    an_object,
    epoch_time,
    the_list,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    ReasonCode,
    Sample,
)
from compaction_ledger.infrastructure.importers.reading import label, read_document, to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

_TOOLS = (
    *("function_call", "functionCall", "executable_code", "executableCode"),
    *("function_response", "functionResponse", "code_execution_result", "codeExecutionResult"),
)
_RESULTS = frozenset({"function_response", "functionResponse"})
_CALLS = frozenset({"function_call", "functionCall"})
_LEFT_OUT: dict[str, ReasonCode] = {
    "file_data": "attachment",
    "fileData": "attachment",
    "inline_data": "media",
    "inlineData": "media",
}
_ENDINGS: dict[str, tuple[Ending, Outcome]] = {
    "MAX_TOKENS": ("ended", "partial"),
    "SAFETY": ("ended", "failed"),
    "STOP": (
        "unsaid",
        "completed",
    ),  # each agent's model stops; the turn may go on with another one
}


class GoogleADKImporter:
    """Reads a session; what an agent says and does in the user's role is none of the user's."""

    name = "google-adk"
    description = "sessions of Google's Agent Development Kit"

    def sniff(self, sample: Sample) -> bool:
        """Whether the document is a session whose events have an author and contents."""
        if len(sample.records) != 1 or not sample.objects:
            return False
        events = sample.objects[0].get("events")
        return isinstance(events, list) and any(_is_event(event) for event in events)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the session, whose id names the conversation."""
        collector, name = Collector(self.name, path), label(path)
        session = an_object(read_document(path), name)
        for member in ("past_events", "pending_events"):
            if session.get(member):
                collector.left_out(f"{name} {member}", "metadata", "beside the session's events")
        parts: list[Part] = []
        for number, value in enumerate(the_list(session, "events", name)):
            place = f"{name} events[{number}]"
            parts += _event_parts(an_object(value, place), place, collector)
        collector.add_parts(an_id_if_any(session, "id", name), parts)
        return collector.result(conversation)


def _is_event(value: JsonValue) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("author"), str):
        return False
    content = value.get("content")
    return isinstance(content, dict) and isinstance(content.get("parts"), list)


def _event_parts(event: JsonObject, place: str, collector: Collector) -> list[Part]:
    author = the_text(event, "author", place)
    if event.get("partial") is True:
        collector.left_out(place, "duplicate", "a piece of a later event's text")
        return []
    if event.get("content") is None:
        collector.left_out(place, "control_event", "an event without content")
        return []
    at = epoch_time(event.get("timestamp"), f"{place} timestamp")
    content = the_object(event, "content", place)
    found: list[Part] = []
    for number, value in enumerate(a_list_if_any(content, "parts", f"{place} content")):
        here = f"{place} parts[{number}]"
        for part in _part(an_object(value, here), here, author == "user", collector):
            if found and found[-1].kind == part.kind and part.kind in ("text", "user"):
                found[-1] = replace(found[-1], text=found[-1].text + part.text)
            else:
                found.append(replace(part, created_at=at))
    if not found:
        collector.left_out(place, "no_message", "none of its parts is a message")
        return []
    collector.took()
    return _named(_closed(found, event), an_id_if_any(event, "id", place))


def _part(part: JsonObject, place: str, by_user: bool, collector: Collector) -> Iterator[Part]:  # noqa: FBT001
    tools = [member for member in _TOOLS if part.get(member) is not None]
    if tools:
        role = "tool" if tools[0] in _RESULTS else "assistant"
        text = to_json(part, place)
        yield Part(place, "tool", "tool" if role == "tool" else "assistant", text)
    elif part.get("text") is not None:
        text = the_text(part, "text", place)
        if part.get("thought") is True:
            yield Part(place, "trace", "assistant", text)
        elif by_user:
            yield Part(place, "user", "user", text)
        else:
            yield Part(place, "text", "assistant", text)
    else:
        kind = next((member for member in part if part[member] is not None), "")
        reason = _LEFT_OUT.get(kind, "unsupported_block")
        collector.left_out_part(place, reason, f"part {kind!a}")


def _closed(parts: list[Part], event: JsonObject) -> list[Part]:
    """What an event says about the turn: it goes on with a call, was cut off, or failed."""
    reason = event.get("finish_reason") or event.get("finishReason")
    ending, outcome = _ENDINGS.get(str(reason), ("unsaid", "completed"))
    if event.get("error_code") or event.get("errorCode"):
        ending, outcome = "ended", "failed"
    elif event.get("interrupted") is True:
        ending, outcome = "ended", "cancelled"
    elif any(part.kind == "tool" for part in parts):
        ending = "open"
    status: MessageStatus = "failed" if outcome in ("failed", "cancelled") else "completed"
    return [
        replace(part, ending=ending, outcome=outcome, status=status)
        if part.kind == "text"
        else part
        for part in parts
    ]


def _named(parts: list[Part], own: str | None) -> list[Part]:
    if own is None:
        return parts
    texts = [at for at, part in enumerate(parts) if part.kind in ("text", "user")]
    first = texts[0] if texts else 0
    return [
        replace(part, id=own if at == first else f"{own}/{at + 1}") for at, part in enumerate(parts)
    ]
