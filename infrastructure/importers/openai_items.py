"""Items of the OpenAI Responses shape, made into parts. Codex writes the same items into its rollouts."""

from __future__ import annotations

from dataclasses import replace

from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list_if_any,
    an_id_if_any,
    an_object,
    peek,
    refuse_unknown,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import JsonObject, ReasonCode
from compaction_ledger.infrastructure.importers.reading import to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

_ROLES = frozenset({"assistant", "developer", "system", "user"})
_TEXT_BLOCKS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "summary_text": "text",
    "reasoning_text": "text",
}
_LEFT_OUT: dict[str, ReasonCode] = {
    "input_audio": "media",
    "input_file": "attachment",
    "input_image": "media",
}
# What ends in neither ``_call`` nor ``_output`` and is a tool's all the same.
_TOOL_ITEMS = frozenset({"mcp_approval_request", "mcp_approval_response", "mcp_list_tools"})
_CONTROL_ITEMS = frozenset({"compaction", "compaction_trigger", "ghost_snapshot", "item_reference"})
_CLIENT_CALLS = frozenset(
    {"apply_patch_call", "computer_call", "custom_tool_call", "function_call", "local_shell_call"}
)


def kind_of(item: JsonObject) -> str | None:
    """The item's type; messages need not say theirs."""
    return peek(item, "type") or ("message" if "role" in item else None)


def is_tool_item(kind: str) -> bool:
    """Whether an item is a call or a result."""
    return kind.endswith(("_call", "_output")) or kind in _TOOL_ITEMS


def is_client_call(item: JsonObject) -> bool:
    """Whether the caller's side answers it, so that the turn goes on."""
    return kind_of(item) in _CLIENT_CALLS


def is_item(item: JsonObject) -> bool:
    """Whether an object has a type that only items of this shape have."""
    kind = peek(item, "type")
    return kind is not None and (is_tool_item(kind) or kind in ("reasoning", "compaction"))


def item_parts(item: JsonObject, place: str, collector: Collector) -> list[Part]:
    """The parts of one item, which is counted here. None, where the report names it instead."""
    kind = kind_of(item)
    if kind is None:
        kind = the_text(item, "type", place)
    if kind == "message":
        collector.took()
        found = [_message_part(item, place, collector)]
    elif kind == "reasoning":
        collector.took()
        thought = _text(item, "summary", place, collector) or _text(
            item, "content", place, collector
        )
        found = [Part(place, "trace", "assistant", thought or to_json(item, place))]
    elif is_tool_item(kind):
        collector.took()
        role = "tool" if kind.endswith("_output") else "assistant"
        found = [
            Part(place, "tool", "tool" if role == "tool" else "assistant", to_json(item, place))
        ]
    else:
        reason: ReasonCode = "control_event" if kind in _CONTROL_ITEMS else "unsupported_block"
        collector.left_out(place, reason, f"item of type {kind!a}")
        return []
    return [replace(part, id=an_id_if_any(item, "id", place)) for part in found]


def text_of(item: JsonObject, place: str, collector: Collector) -> str:
    """The text of a message; its blocks are joined without anything between."""
    content = item.get("content")
    return content if isinstance(content, str) else _text(item, "content", place, collector)


def _message_part(item: JsonObject, place: str, collector: Collector) -> Part:
    role = the_text(item, "role", place)
    if role not in _ROLES:
        raise refuse_unknown(role, _ROLES, "role", place)
    text = text_of(item, place, collector)
    if role == "user":
        return Part(place, "user", "user", text)
    if role != "assistant":
        return Part(place, "system", "system", text)
    ending, outcome = _ending(item)
    return Part(place, "text", "assistant", text, ending=ending, outcome=outcome)


def _ending(item: JsonObject) -> tuple[Ending, Outcome]:
    """What a message says about the turn: a remark on the way, the answer, or nothing."""
    if item.get("status") == "incomplete":
        return "ended", "partial"
    if item.get("phase") == "commentary":
        return "open", "completed"
    return ("ended" if item.get("phase") == "final_answer" else "unsaid"), "completed"


def _text(item: JsonObject, member: str, place: str, collector: Collector) -> str:
    texts: list[str] = []
    for number, value in enumerate(a_list_if_any(item, member, place)):
        here = f"{place} {member}[{number}]"
        block = an_object(value, here)
        kind = the_text(block, "type", here)
        if kind in _TEXT_BLOCKS:
            texts.append(the_text(block, _TEXT_BLOCKS[kind], here))
        else:
            reason = _LEFT_OUT.get(kind, "unsupported_block")
            collector.left_out_part(here, reason, f"block of type {kind!a}")
    return "".join(texts)
