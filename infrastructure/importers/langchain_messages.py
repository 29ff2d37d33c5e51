"""Messages of LangChain: as ``dumpd`` writes them, and as ``messages_to_dict`` does.

A call stands in an ``AIMessage`` twice, in ``tool_calls`` and as a content block: the first is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from compaction_ledger.domain.conversation import MessageStatus, Role
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    a_list_if_any,
    a_text,
    an_id_if_any,
    an_object,
    peek,
    refuse_unknown,
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
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part, PartKind

_CLASSES = {
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "FunctionMessage": "tool",
    "HumanMessage": "human",
    "HumanMessageChunk": "human",
    "SystemMessage": "system",
    "ToolMessage": "tool",
}
_TYPES = frozenset({"ai", "function", "human", "system", "tool"})
_ENDINGS: dict[str, tuple[Ending, Outcome]] = {
    "content_filter": ("ended", "failed"),
    "end_turn": ("ended", "completed"),
    "length": ("ended", "partial"),
    "max_tokens": ("ended", "partial"),
    "refusal": ("ended", "failed"),
    "stop": ("ended", "completed"),
    "stop_sequence": ("ended", "completed"),
}
_CALL_BLOCKS = frozenset({"function_call", "tool_call", "tool_use"})
_THOUGHTS = {"reasoning": "reasoning", "redacted_thinking": "data", "thinking": "thinking"}
_LEFT_OUT: dict[str, ReasonCode] = {
    "audio": "media",
    "document": "attachment",
    "file": "attachment",
    "image": "media",
    "image_url": "media",
    "input_audio": "media",
    "video": "media",
}


@dataclass(frozen=True, slots=True)
class _Message:
    """One message: ``ai``, ``human``, ``system`` or ``tool``, and its members."""

    place: str
    kind: str
    fields: JsonObject


class LangChainMessagesImporter:
    """Reads a list of serialized messages."""

    name = "langchain"
    description = "serialized messages of LangChain (dumpd or messages_to_dict)"

    def sniff(self, sample: Sample) -> bool:
        """Whether every item of the document is a message in one of the two forms."""
        items = sample.items
        return bool(items) and all(_is_message(item) for item in items)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the list; it is one conversation."""
        collector, name = Collector(self.name, path), label(path)
        parts: list[Part] = []
        for number, value in enumerate(a_list(read_document(path), name)):
            place = f"{name}[{number}]"
            parts += _parts(_message(an_object(value, place), place), collector)
            collector.took()
        collector.add_parts(None, parts)
        return collector.result(conversation)


def _is_message(item: JsonObject) -> bool:
    if item.get("lc") == 1 and item.get("type") == "constructor":
        names = item.get("id")
        return isinstance(names, list) and bool(names) and str(names[-1]) in _CLASSES
    return peek(item, "type") in _TYPES and isinstance(item.get("data"), dict)


def _message(item: JsonObject, place: str) -> _Message:
    if "lc" not in item:
        kind = the_text(item, "type", place)
        if kind not in _TYPES:
            raise refuse_unknown(kind, _TYPES, "type", place)
        fields = the_object(item, "data", place)
        return _Message(place, "tool" if kind == "function" else kind, fields)
    names = the_list(item, "id", place)
    name = a_text(names[-1] if names else None, f"{place} id")
    if name not in _CLASSES:
        raise refuse_unknown(name, frozenset(_CLASSES), "class", place)
    return _Message(place, _CLASSES[name], the_object(item, "kwargs", place))


def _parts(message: _Message, collector: Collector) -> list[Part]:
    own = an_id_if_any(message.fields, "id", message.place)
    if message.kind == "tool":
        return [Part(message.place, "tool", "tool", to_json(message.fields, message.place), own)]
    if message.kind == "ai":
        found = _answer_parts(message, collector)
    else:
        kind, role = _side(message.kind)
        text = "".join(part.text for part in _content(message, frozenset(), collector))
        found = [Part(message.place, kind, role, text)]
    if own is None:
        return found
    texts = [at for at, part in enumerate(found) if part.kind in ("text", "user", "system")]
    first = texts[0] if texts else 0
    return [
        replace(part, id=own if at == first else f"{own}/{at + 1}") for at, part in enumerate(found)
    ]


def _side(kind: str) -> tuple[PartKind, Role]:
    return ("user", "user") if kind == "human" else ("system", "system")


def _answer_parts(message: _Message, collector: Collector) -> list[Part]:
    fields, place = message.fields, message.place
    calls: list[Part] = []
    for member in ("tool_calls", "invalid_tool_calls"):
        for number, value in enumerate(a_list_if_any(fields, member, place)):
            at = f"{place} {member}[{number}]"
            calls.append(Part(at, "tool", "assistant", to_json(an_object(value, at), at)))
    listed = frozenset(
        str(call.get("id"))
        for call in a_list_if_any(fields, "tool_calls", place)
        if isinstance(call, dict)
    )
    content = _content(message, listed, collector)
    texts = [part.text for part in content if part.kind == "text"]
    others = [part for part in content if part.kind == "tool"]
    found = [part for part in content if part.kind == "trace"]
    if texts or not (calls or others):
        ending, outcome = _ending(fields, has_calls=bool(calls or others))
        status: MessageStatus = "failed" if outcome == "failed" else "completed"
        text = "".join(texts)
        found.append(
            Part(place, "text", "assistant", text, status=status, ending=ending, outcome=outcome)
        )
    return [*found, *others, *calls]


def _ending(fields: JsonObject, *, has_calls: bool) -> tuple[Ending, Outcome]:
    if has_calls:
        return "open", "completed"
    told = fields.get("response_metadata")
    if not isinstance(told, dict):
        return "unsaid", "completed"
    reason = peek(told, "stop_reason") or peek(told, "finish_reason") or peek(told, "stopReason")
    return _ENDINGS.get(reason or "", ("unsaid", "completed"))


def _content(message: _Message, listed: frozenset[str], collector: Collector) -> list[Part]:
    content = message.fields.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [Part(message.place, "text", "assistant", content)]
    found: list[Part] = []
    for number, value in enumerate(a_list(content, f"{message.place} content")):
        at = f"{message.place} content[{number}]"
        if isinstance(value, str):
            found.append(Part(at, "text", "assistant", value))
        else:
            found += _block(an_object(value, at), at, listed, collector)
    return found


def _block(
    block: JsonObject, place: str, listed: frozenset[str], collector: Collector
) -> Iterator[Part]:
    kind = the_text(block, "type", place)
    if kind == "text":
        yield Part(place, "text", "assistant", the_text(block, "text", place))
    elif kind in _CALL_BLOCKS and _names_of(block) & listed:
        collector.left_out_part(place, "duplicate", "the call stands in tool_calls, too")
    elif kind in _CALL_BLOCKS or kind.endswith(("_tool_use", "_tool_result", "_call")):
        yield Part(place, "tool", "assistant", to_json(block, place))
    elif kind in _THOUGHTS:
        yield Part(place, "trace", "assistant", _thought(block, kind, place))
    else:
        reason = _LEFT_OUT.get(kind, "unsupported_block")
        collector.left_out_part(place, reason, f"block of type {kind!a}")


def _names_of(block: JsonObject) -> frozenset[str]:
    """The ids by which a block's call can be listed."""
    values: list[JsonValue] = [block.get("id"), block.get("call_id")]
    return frozenset(value for value in values if isinstance(value, str))


def _thought(block: JsonObject, kind: str, place: str) -> str:
    text = block.get(_THOUGHTS[kind]) if kind != "redacted_thinking" else None
    return text if isinstance(text, str) else to_json(block, place)
