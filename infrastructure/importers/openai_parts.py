"""Messages of the OpenAI Chat Completions shape, made into parts."""

from __future__ import annotations

from dataclasses import replace

from compaction_ledger.domain.conversation import MessageStatus
from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.blocks import TOOL_BLOCKS
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list_if_any,
    a_text_if_any,
    an_id_if_any,
    an_object,
    refuse_unknown,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue, ReasonCode
from compaction_ledger.infrastructure.importers.reading import to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

OPENAI_ROLES = frozenset({"assistant", "developer", "function", "system", "tool", "user"})
_TEXT_BLOCKS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_LEFT_OUT: dict[str, ReasonCode] = {
    "file": "attachment",
    "image_url": "media",
    "input_audio": "media",
    "input_file": "attachment",
    "input_image": "media",
    "video_url": "media",
}


def message_parts(
    message: JsonObject, place: str, collector: Collector, *, finish: JsonValue = None
) -> list[Part]:
    """The parts of one message, at least one. ``finish`` is the finish reason, if there is one."""
    role = the_text(message, "role", place)
    if role not in OPENAI_ROLES:
        raise refuse_unknown(role, OPENAI_ROLES, "role", place)
    if role in ("tool", "function"):
        found = [Part(place, "tool", "tool", to_json(message, place))]
    elif role == "assistant":
        found = _assistant_parts(message, place, collector, finish)
    elif role == "user":
        found = [Part(place, "user", "user", _text(message, place, collector))]
    else:
        found = [Part(place, "system", "system", _text(message, place, collector))]
    return _with_ids(found, an_id_if_any(message, "id", place))


def _assistant_parts(
    message: JsonObject, place: str, collector: Collector, finish: JsonValue
) -> list[Part]:
    found: list[Part] = []
    thought = a_text_if_any(message, "reasoning_content", place) or a_text_if_any(
        message, "reasoning", place
    )
    if thought:
        found.append(Part(f"{place} reasoning", "trace", "assistant", thought))
    calls = a_list_if_any(message, "tool_calls", place)
    if message.get("function_call") is not None:
        calls.append(message["function_call"])
    text = _text(message, place, collector) or (a_text_if_any(message, "refusal", place) or "")
    if message.get("audio") is not None:
        collector.left_out_part(f"{place} audio", "media", "the spoken answer")
    if text or not calls:
        ending, outcome = _ending(finish, has_calls=bool(calls))
        status: MessageStatus = "failed" if outcome == "failed" else "completed"
        found.append(
            Part(place, "text", "assistant", text, status=status, ending=ending, outcome=outcome)
        )
    for number, call in enumerate(calls):
        at = f"{place} tool_calls[{number}]"
        found.append(Part(at, "tool", "assistant", to_json(call, at)))
    return found


def _ending(finish: JsonValue, *, has_calls: bool) -> tuple[Ending, Outcome]:
    if has_calls:
        return "open", "completed"
    if finish == "length":
        return "ended", "partial"
    if finish == "content_filter":
        return "ended", "failed"
    return ("ended" if finish == "stop" else "unsaid"), "completed"


def _text(message: JsonObject, place: str, collector: Collector) -> str:
    """The text of a message; text blocks are joined without anything between."""
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "".join(
        _block_text(an_object(block, f"{place} content[{n}]"), f"{place} content[{n}]", collector)
        for n, block in enumerate(blocks)
    )


def _block_text(block: JsonObject, place: str, collector: Collector) -> str:
    kind = the_text(block, "type", place)
    if kind in _TEXT_BLOCKS:
        return the_text(block, _TEXT_BLOCKS[kind], place)
    if kind in TOOL_BLOCKS:
        raise MalformedRecord(
            f"a {kind} block belongs to Anthropic Messages, not to OpenAI Chat", place=place
        )
    reason = _LEFT_OUT.get(kind, "unsupported_block")
    collector.left_out_part(place, reason, f"block of type {kind!a}")
    return ""


def _with_ids(parts: list[Part], record_id: str | None) -> list[Part]:
    """The text has the message's id, every other part ``<id>/<n>``."""
    if record_id is None:
        return parts
    texts = [at for at, part in enumerate(parts) if part.kind in ("text", "user", "system")]
    first = texts[0] if texts else 0
    return [
        replace(part, id=record_id if at == first else f"{record_id}/{at + 1}")
        for at, part in enumerate(parts)
    ]
