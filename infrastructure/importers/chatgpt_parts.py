"""One node of a ChatGPT tree, made into a part."""

from __future__ import annotations

from compaction_ledger.domain.conversation import MessageStatus, Role
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_text_if_any,
    an_id_if_any,
    epoch_time,
    refuse_unknown,
    the_list,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue
from compaction_ledger.infrastructure.importers.reading import to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part, PartKind

_ROLES: dict[str, Role] = {
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "user": "user",
}
_TEXT_TYPES = ("text", "multimodal_text")


def message_part(node: JsonObject, place: str, collector: Collector) -> list[Part]:
    """The part of one node; none, and a line in the report, for a node without a message."""
    if node.get("message") is None:
        collector.left_out(place, "no_message", "a node that only holds the tree together")
        return []
    message = the_object(node, "message", place)
    name = the_text(the_object(message, "author", place), "role", f"{place} author")
    if name not in _ROLES:
        raise refuse_unknown(name, frozenset(_ROLES), "role", place)
    role = _ROLES[name]
    content = the_object(message, "content", place)
    kind = _kind(message, content, role, place)
    status, ending, outcome = _ending(message)
    collector.took()
    return [
        Part(
            place,
            kind,
            role,
            _text(content, kind, place, collector),
            id=an_id_if_any(message, "id", place),
            created_at=epoch_time(message.get("create_time"), f"{place} create_time"),
            status=status,
            ending=ending,
            outcome=outcome,
        )
    ]


def _kind(message: JsonObject, content: JsonObject, role: Role, place: str) -> PartKind:
    """Hidden messages and thoughts are traces; what goes to or comes from a tool is ``tool``."""
    if role == "tool":
        return "tool"
    if role == "system":
        return "system"
    recipient = a_text_if_any(message, "recipient", place)
    if role == "assistant" and recipient not in (None, "all"):
        return "tool"
    if _is_hidden(message) or content.get("content_type") not in _TEXT_TYPES:
        return "trace"
    return "user" if role == "user" else "text"


def _is_hidden(message: JsonObject) -> bool:
    return _metadata(message).get("is_visually_hidden_from_conversation") is True


def _metadata(message: JsonObject) -> JsonObject:
    found = message.get("metadata")
    return found if isinstance(found, dict) else {}


def _ending(message: JsonObject) -> tuple[MessageStatus, Ending, Outcome]:
    """What the node says about how it ended; an answer that was cut off at a limit is partial."""
    details = _metadata(message).get("finish_details")
    finish = details.get("type") if isinstance(details, dict) else None
    status = message.get("status")
    if status == "in_progress":
        return "streaming", "unsaid", "completed"
    if finish == "interrupted":
        return "failed", "ended", "cancelled"
    if status not in (None, "finished_successfully", "finished_partial_completion"):
        return "failed", "ended", "failed"
    if finish == "max_tokens" or status == "finished_partial_completion":
        return "completed", "ended", "partial"
    end_turn = message.get("end_turn")
    if end_turn is None:
        return "completed", "unsaid", "completed"
    return "completed", "ended" if end_turn is True else "open", "completed"


def _text(content: JsonObject, kind: PartKind, place: str, collector: Collector) -> str:
    """The joined text parts of a text; for everything else the JSON text of its content."""
    here = f"{place} content"
    if content.get("content_type") not in _TEXT_TYPES or kind == "tool":
        return to_json(content, here)
    parts = the_list(content, "parts", here)
    return "".join(_piece(part, f"{here} parts[{n}]", collector) for n, part in enumerate(parts))


def _piece(part: JsonValue, place: str, collector: Collector) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("content_type") if isinstance(part, dict) else None
    if isinstance(part, dict) and kind == "audio_transcription":
        return the_text(part, "text", place)
    collector.left_out_part(place, "media", f"a part of type {kind!a}")
    return ""
