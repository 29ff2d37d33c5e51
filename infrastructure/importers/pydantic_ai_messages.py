"""Message histories of Pydantic AI, as ``ModelMessagesTypeAdapter`` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compaction_ledger.domain.conversation import MessageStatus
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    a_text,
    a_text_if_any,
    an_object,
    iso_time,
    peek,
    refuse_unknown,
    the_list,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    Sample,
)
from compaction_ledger.infrastructure.importers.reading import label, read_document, to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

_KINDS = frozenset({"request", "response"})
_CALLS = frozenset({"builtin-tool-call", "tool-call"})
_RESULTS = frozenset({"builtin-tool-return", "tool-return"})
_ENDINGS: dict[str, tuple[Ending, Outcome]] = {
    "content_filter": ("ended", "failed"),
    "error": ("ended", "failed"),
    "length": ("ended", "partial"),
    "stop": ("ended", "completed"),
}


class PydanticAIMessagesImporter:
    """Reads a list of requests and responses; the parts carry the roles."""

    name = "pydantic-ai"
    description = "message histories of Pydantic AI"

    def sniff(self, sample: Sample) -> bool:
        """Whether every item of the document is a request or a response with parts."""
        items = sample.items
        return bool(items) and all(
            peek(each, "kind") in _KINDS and isinstance(each.get("parts"), list) for each in items
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the history; a ``conversation_id`` in its first message names it."""
        collector, name = Collector(self.name, path), label(path)
        values = a_list(read_document(path), name)
        parts: list[Part] = []
        instructions: str | None = None
        own: str | None = None
        for number, value in enumerate(values):
            place = f"{name}[{number}]"
            message = an_object(value, place)
            if number == 0:
                own = a_text_if_any(message, "conversation_id", place)
            told = a_text_if_any(message, "instructions", place)
            if told is not None and told != instructions:
                instructions = told
                parts.append(Part(f"{place} instructions", "system", "system", told))
            parts += _message_parts(message, place, collector)
        collector.add_parts(own, parts)
        return collector.result(conversation)


def _message_parts(message: JsonObject, place: str, collector: Collector) -> list[Part]:
    kind = the_text(message, "kind", place)
    if kind not in _KINDS:
        raise refuse_unknown(kind, _KINDS, "kind", place)
    at = iso_time(message.get("timestamp"), f"{place} timestamp")
    found: list[Part] = []
    for number, value in enumerate(the_list(message, "parts", place)):
        here = f"{place} parts[{number}]"
        for part in _part(an_object(value, here), here, collector):
            if found and (part.kind, found[-1].kind) in (("text", "text"), ("user", "user")):
                found[-1] = replace(found[-1], text=found[-1].text + part.text)
            else:
                found.append(replace(part, created_at=at))
    if kind == "response":
        found = _closed(found, message, place)
    if found:
        collector.took()
    else:
        collector.left_out(place, "no_message", "none of its parts is a message")
    return found


def _closed(parts: list[Part], message: JsonObject, place: str) -> list[Part]:
    """The parts of a response, and what it says about the turn; without any part, an empty text."""
    if not parts:
        parts = [Part(place, "text", "assistant", "")]
    finish = peek(message, "finish_reason")
    ending, outcome = _ENDINGS.get(finish or "", ("unsaid", "completed"))
    if message.get("state") == "interrupted":
        ending, outcome = "ended", "cancelled"
    elif ending == "unsaid" and any(part.kind == "tool" for part in parts):
        ending = "open"
    status: MessageStatus = "failed" if outcome in ("failed", "cancelled") else "completed"
    last = max((at for at, part in enumerate(parts) if part.kind == "text"), default=-1)
    found: list[Part] = []
    for at, part in enumerate(parts):
        if at == last:
            found.append(replace(part, ending=ending, outcome=outcome, status=status))
        else:
            found.append(replace(part, ending="open") if part.kind == "text" else part)
    return found


def _part(part: JsonObject, place: str, collector: Collector) -> Iterator[Part]:
    kind = the_text(part, "part_kind", place)
    if kind == "system-prompt":
        yield Part(place, "system", "system", the_text(part, "content", place))
    elif kind == "user-prompt":
        yield Part(place, "user", "user", _prompt(part.get("content"), place, collector))
    elif kind == "text":
        yield Part(place, "text", "assistant", the_text(part, "content", place))
    elif kind == "thinking":
        thought = the_text(part, "content", place)
        yield Part(place, "trace", "assistant", thought or to_json(part, place))
    elif kind in _CALLS or kind == "builtin-tool-return":
        yield Part(place, "tool", "assistant", to_json(part, place))
    elif kind in _RESULTS or (kind == "retry-prompt" and part.get("tool_name") is not None):
        yield Part(place, "tool", "tool", to_json(part, place))
    elif kind in ("retry-prompt", "retry-feedback"):  # the framework's words, in the user's name
        yield Part(place, "trace", "user", to_json(part, place))
    elif kind == "file":
        collector.left_out_part(place, "media", "a file that the model made")
    else:
        collector.left_out_part(place, "unsupported_block", f"part of kind {kind!a}")


def _prompt(content: JsonValue, place: str, collector: Collector) -> str:
    """A prompt's text. Texts of a list are joined without anything between."""
    if not isinstance(content, list):
        return a_text(content, f"{place} content")
    texts: list[str] = []
    for number, value in enumerate(content):
        here = f"{place} content[{number}]"
        if isinstance(value, str):
            texts.append(value)
            continue
        block = an_object(value, here)
        kind = peek(block, "kind")
        if kind == "text" and isinstance(block.get("content"), str):
            texts.append(the_text(block, "content", here))
        elif kind == "cache-point":
            collector.left_out_part(here, "control_event", "a mark for the cache")
        else:
            collector.left_out_part(here, "media", f"content of kind {kind!a}")
    return "".join(texts)
