"""Content blocks as Anthropic Messages, Claude Code and Claude.ai write them, made into parts.

Text blocks that follow each other are one text, joined without anything between. The parts of a
record with an id share it: its first text has the id itself, every other part ``<id>/<n>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction_ledger.domain.conversation import Role
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import an_object, peek, the_text
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue, ReasonCode
from compaction_ledger.infrastructure.importers.reading import to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part, PartKind

CLIENT_CALLS = frozenset({"tool_use", "toolCall"})
TOOL_BLOCKS = CLIENT_CALLS | {
    "server_tool_use",
    "mcp_tool_use",
    "mcp_tool_result",
    "tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
}
_THOUGHT_BLOCKS = frozenset({"thinking", "redacted_thinking"})
_LEFT_OUT: dict[str, ReasonCode] = {
    "audio": "media",
    "document": "attachment",
    "file": "attachment",
    "image": "media",
    "video": "media",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a record says about all of its blocks."""

    place: str
    role: Literal["user", "assistant"]
    id: str | None = None
    created_at: int | None = None
    ending: Ending = "unsaid"
    outcome: Outcome = "completed"


def block_parts(content: JsonValue, record: Envelope, collector: Collector) -> list[Part]:
    """The parts of one record: at least one, of empty text where the record has no content."""
    if isinstance(content, str):
        found = [_part(record, record.place, _text_kind(record), content)]
    elif isinstance(content, list):
        found = _parts(content, record, collector)
    elif content is None:
        found = []
    else:
        found = _parts([content], record, collector)
    if not found:
        found = [_part(record, record.place, _text_kind(record), "")]
    return _with_ids(_last_text_ends(found), record.id)


def ending_of(stop_reason: JsonValue) -> tuple[Ending, Outcome]:
    """What a stop reason of the Anthropic API says about the turn."""
    if stop_reason in ("end_turn", "stop_sequence"):
        return "ended", "completed"
    if stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return "ended", "partial"
    if stop_reason == "refusal":
        return "ended", "failed"
    return ("open" if stop_reason in ("tool_use", "pause_turn") else "unsaid"), "completed"


def has_client_call(content: JsonValue) -> bool:
    """Whether a record calls a tool whose result comes in a later record."""
    return any(_type_of(block) in CLIENT_CALLS for block in _blocks(content))


def is_tool_result_only(content: JsonValue) -> bool:
    """Whether a record holds tool results and nothing else."""
    blocks = _blocks(content)
    return bool(blocks) and all(_type_of(block) == "tool_result" for block in blocks)


def _blocks(content: JsonValue) -> Sequence[JsonValue]:
    return content if isinstance(content, list) else []


def _type_of(block: JsonValue) -> str | None:
    return peek(block, "type") if isinstance(block, dict) else None


def _parts(content: list[JsonValue], record: Envelope, collector: Collector) -> list[Part]:
    found: list[Part] = []
    for number, value in enumerate(content):
        place = f"{record.place} content[{number}]"
        for part in _block(an_object(value, place), place, record, collector):
            if part.kind in ("text", "user") and found and _joins(found, part):
                at = _last_text(found)
                found[at] = replace(found[at], text=found[at].text + part.text)
            else:
                found.append(part)
    return found


def _joins(found: Sequence[Part], part: Part) -> bool:
    """A person's texts are one message; an assistant's are one where nothing stands between."""
    if part.kind == "user":
        return any(each.kind == "user" for each in found)
    return found[-1].kind == "text"


def _last_text(found: Sequence[Part]) -> int:
    return max(at for at, part in enumerate(found) if part.kind in ("text", "user"))


def _block(block: JsonObject, place: str, record: Envelope, collector: Collector) -> Iterator[Part]:
    kind = the_text(block, "type", place)
    if kind == "text":
        yield _part(record, place, _text_kind(record), the_text(block, "text", place))
    elif kind in TOOL_BLOCKS:
        yield _part(record, place, "tool", to_json(block, place))
    elif kind in _THOUGHT_BLOCKS:
        thought = block.get("thinking")
        text = thought if isinstance(thought, str) else to_json(block, place)
        yield _part(record, place, "trace", text)
    elif kind in _LEFT_OUT:
        collector.left_out_part(place, _LEFT_OUT[kind], f"block of type {kind}")
    else:
        collector.left_out_part(place, "unsupported_block", f"block of type {kind!a}")


def _text_kind(record: Envelope) -> PartKind:
    return "user" if record.role == "user" else "text"


def _part(record: Envelope, place: str, kind: PartKind, text: str) -> Part:
    failed = kind == "text" and record.outcome in ("failed", "cancelled")
    is_result = kind == "tool" and record.role == "user"
    role: Role = "tool" if is_result else record.role
    return Part(
        place=place,
        kind=kind,
        role=role,
        text=text,
        created_at=record.created_at,
        status="failed" if failed else "completed",
        ending=record.ending,
        outcome=record.outcome,
    )


def _last_text_ends(parts: Sequence[Part]) -> list[Part]:
    """What the record says about the turn's end concerns its last text; earlier ones are open."""
    texts = [at for at, part in enumerate(parts) if part.kind == "text"]
    return [
        replace(part, ending="open") if at in texts[:-1] else part for at, part in enumerate(parts)
    ]


def _with_ids(parts: Sequence[Part], record_id: str | None) -> list[Part]:
    """Give the parts of a record with an id theirs."""
    if record_id is None:
        return list(parts)
    texts = [at for at, part in enumerate(parts) if part.kind in ("text", "user")]
    first = texts[0] if texts else 0
    return [
        replace(part, id=record_id if at == first else f"{record_id}/{at + 1}")
        for at, part in enumerate(parts)
    ]
