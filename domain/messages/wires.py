"""What the wire shapes have in common: refusals that name the place, JSON texts, speakers, cache markers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.interface import Part, Wire

NO_TURN = False
"""``begins_turn`` of what begins none."""

_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def malformed(position: int, member: str, why: str) -> MalformedMessage:
    """The error of a message that is not of its shape: ``message 12 content[1].id: …`` (T1)."""
    return MalformedMessage(why, place=f"message {position} {member}".rstrip())


def no_such_role(message: object, position: int, member: str, allowed: Sequence[str]) -> Exception:
    """Why a message's role (or kind) could not be read."""
    if not isinstance(message, Mapping):
        hint = "; give it as a JSON object" if hasattr(message, "model_dump") else ""
        return malformed(position, "", f"is not a JSON object but {type(message).__name__}{hint}")
    fields = cast("Wire", message)
    if member not in fields:
        return malformed(position, "", f"has no {member}")
    return malformed(
        position, member, f"{fields[member]!r} is none of {', '.join(map(repr, allowed))}"
    )


def text_id(holder: Wire, member: str, position: int, place: str) -> str:
    """The id or name in a member: any text, the empty one too. Never null, never absent (T2)."""
    value = holder.get(member)
    if isinstance(value, str):
        return value
    where = f"{place}.{member}" if place else member
    raise malformed(
        position,
        where,
        "is missing" if value is None else f"is no text but {type(value).__name__}",
    )


def objects(value: object, position: int, member: str) -> list[Wire]:
    """A member that is a list of JSON objects."""
    if not isinstance(value, list):
        raise malformed(position, member, f"is no list but {type(value).__name__}")
    for index, item in enumerate(cast("list[object]", value)):
        if not isinstance(item, Mapping):
            raise malformed(
                position, f"{member}[{index}]", f"is not a JSON object but {type(item).__name__}"
            )
    return cast("list[Wire]", value)


def with_speakers(parts: list[Part], role: object, *, holds_results: bool) -> list[Part]:
    """The parts of a message that may bring results of tools, and words of the user beside them (T9)."""
    if not holds_results:
        return parts
    if role == "user":  # the message is the tool's: what is no result in it is the user's
        return [p if p.kind == "result" or p.call_id else p._replace(role="user") for p in parts]
    return [p._replace(role="tool") if p.kind == "result" else p for p in parts]


def not_a_result(part: int) -> InvalidInput:
    """The refusal of :meth:`MessageShape.with_results` for a part whose text cannot be replaced."""
    return InvalidInput("is no tool result whose text can be replaced", place=f"part {part}")


def compact(value: object) -> str:
    """``value`` as compact JSON, its objects in their own order of keys."""
    return _plain.encode(value)


def as_text(value: object) -> str:
    """Text as it is, nothing for null, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)


def members(value: object) -> Wire:
    """``value`` if it is a JSON object, else an empty one."""
    return cast("Wire", value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def kind_of(block: Wire) -> str | None:
    """The ``type`` of a block, if it is text: anything else is of a kind that nobody has heard of."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else None


def without_members(wire: Wire, names: frozenset[str], holders: Sequence[str]) -> Wire:
    """``wire`` without the members of these names, in itself and in the objects that ``holders`` hold.

    ``holders`` are the members that hold blocks, on every level (the content of a tool result is in the
    content of its message). The same object where nothing is to be left out; nothing is changed in place.
    """
    changed: dict[str, object] | None = None
    for holder in holders:
        value = wire.get(holder)
        if value is None or isinstance(value, str):
            continue
        inner = _value_without(value, names, holders)
        if inner is not value:
            changed = changed or {}
            changed[holder] = inner
    if changed is None:
        if names.isdisjoint(wire):
            return wire
        changed = {}
    return {key: changed.get(key, value) for key, value in wire.items() if key not in names}


def _value_without(value: object, names: frozenset[str], holders: Sequence[str]) -> object:
    if isinstance(value, Mapping):
        return without_members(cast("Wire", value), names, holders)
    if not isinstance(value, list):
        return value
    blocks = cast("list[object]", value)
    changed: list[object] | None = None
    for index, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            continue
        inner = without_members(cast("Wire", block), names, holders)
        if inner is not block:
            changed = changed or list(blocks)
            changed[index] = inner
    return blocks if changed is None else changed
