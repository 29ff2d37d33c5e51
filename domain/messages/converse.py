"""Bedrock Converse messages (T1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from compaction_ledger.domain.messages.interface import (
    Answered,
    Call,
    Entry,
    EntryRole,
    Lead,
    Part,
    PartKind,
    Problem,
    Wire,
)
from compaction_ledger.domain.messages.leading import with_first_blocks
from compaction_ledger.domain.messages.validity import converse
from compaction_ledger.domain.messages.wires import (
    NO_TURN,
    as_text,
    compact,
    items,
    malformed,
    members,
    no_such_role,
    not_a_result,
    text_id,
    with_speakers,
)

_ROLES: dict[str, EntryRole] = {"user": "user", "assistant": "assistant", "system": "system"}
_MEDIA = ("image", "document", "video", "audio")


class Converse:
    """Messages with ``role`` user, assistant or system, whose blocks are named by their only key.

    The parts of a message are the blocks of its content. A call of a tool that the provider runs itself
    has its result in the same message and opens nothing. Cache markers are the blocks ``cachePoint``.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The shape's name."""
        return "converse"

    def read(self, messages: Sequence[Wire], first: int = 0) -> list[Entry]:
        """See :meth:`MessageShape.read`."""
        entries: list[Entry] = []
        add = entries.append
        position = first
        for message in messages:
            try:
                role = _ROLES[message["role"]]
                content = message.get("content")
            except (KeyError, TypeError, AttributeError):
                raise no_such_role(message, position, "role", tuple(_ROLES)) from None
            if not isinstance(content, list):
                raise malformed(position, "content", f"is no list but {type(content).__name__}")
            calls, results = _scan(cast("list[object]", content), position)
            if results and role == "user":
                add(Entry(position, "tool", message, calls, results, NO_TURN))
            else:
                add(Entry(position, role, message, calls, results, role == "user"))
            position += 1
        return entries

    def parts(self, wire: Wire) -> list[Part]:
        """See :meth:`MessageShape.parts`."""
        role, content = wire.get("role"), items(wire.get("content"))
        server = role == "assistant"
        parts = [_part(index, members(block), server=server) for index, block in enumerate(content)]
        holds_results = any("toolResult" in members(block) for block in content)
        return with_speakers(parts, role, holds_results=holds_results)

    def settled(self, wire: Wire) -> Wire:
        """See :meth:`MessageShape.settled`."""
        content = items(wire.get("content"))
        kept = [block for block in content if "cachePoint" not in members(block)]
        return wire if len(kept) == len(content) else {**wire, "content": kept}

    def assemble(self, messages: Sequence[Wire], cut: int, lead: Sequence[Lead]) -> list[Wire]:
        """See :meth:`MessageShape.assemble`; the texts become the first blocks of ``messages[cut]``."""
        return with_first_blocks(messages, cut, self.head(messages), lead, _text_block)

    def head(self, messages: Sequence[Wire]) -> int:
        """See :meth:`MessageShape.head`."""
        count = 0
        while count < len(messages) and messages[count]["role"] == "system":
            count += 1
        return count

    def with_results(self, wire: Wire, texts: Mapping[int, str]) -> Wire:
        """See :meth:`MessageShape.with_results`."""
        if not texts:
            return wire
        blocks = [members(block) for block in items(wire.get("content"))]
        for part, text in texts.items():
            inside = wire["role"] == "user" and 0 <= part < len(blocks)
            if not inside or "toolResult" not in blocks[part]:
                raise not_a_result(part)
            result = members(blocks[part]["toolResult"])
            others = [
                block
                for block in items(result.get("content"))
                if "text" not in members(block) and "json" not in members(block)
            ]
            blocks[part] = {
                **blocks[part],
                "toolResult": {**result, "content": [_text_block(text), *others]},
            }
        return {**wire, "content": blocks}

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """See :meth:`MessageShape.problems`."""
        return converse.problems(messages)


def _text_block(text: str) -> Wire:
    return {"text": text}


_NOTHING: tuple[Sequence[Call], Sequence[Answered]] = ((), ())


def _scan(content: Sequence[Any], position: int) -> tuple[Sequence[Call], Sequence[Answered]]:
    """The calls that the blocks leave open and the results they bring of calls before them."""
    found: list[tuple[int, Wire]] = []
    for part, block in enumerate(content):
        if not isinstance(block, Mapping):
            raise malformed(
                position, f"content[{part}]", f"is not a JSON object but {type(block).__name__}"
            )
        if "toolUse" in block or "toolResult" in block:
            found.append((part, cast("Wire", block)))
    return _paired(found, position) if found else _NOTHING


def _paired(
    found: Sequence[tuple[int, Wire]], position: int
) -> tuple[Sequence[Call], Sequence[Answered]]:
    calls: list[Call] = []
    results: list[Answered] = []
    for part, block in found:
        if "toolUse" in block:
            use, place = members(block["toolUse"]), f"content[{part}].toolUse"
            call_id = text_id(use, "toolUseId", position, place)
            calls.append(Call(call_id, text_id(use, "name", position, place), part))
            continue
        place = f"content[{part}].toolResult"
        call_id = text_id(members(block["toolResult"]), "toolUseId", position, place)
        own = next((call for call in calls if call.id == call_id), None)
        if own is None:
            results.append(Answered(call_id, part))
        else:
            calls.remove(own)
    return calls or (), results or ()


def _part(part: int, block: Wire, *, server: bool) -> Part:
    if "toolUse" in block:
        use = members(block["toolUse"])
        return Part(part, "call", as_text(use.get("input")), use.get("name"), use.get("toolUseId"))
    if "toolResult" in block:
        result = members(block["toolResult"])
        kind: PartKind = "other" if server else "result"
        return Part(part, kind, _joined(result.get("content")), None, result.get("toolUseId"))
    if any(name in block for name in _MEDIA):
        return Part(part, "media", "")
    if "reasoningContent" in block:
        said = members(members(block["reasoningContent"]).get("reasoningText"))
        return Part(part, "thinking", as_text(said.get("text")))
    text = _text(block)
    return Part(part, "other", "") if text is None else Part(part, "text", text)


def _text(block: Wire) -> str | None:
    """The text of a block that holds any: plain, to be guarded, or with citations."""
    if "text" in block:
        return as_text(block["text"])
    if "guardContent" in block:
        guarded = members(members(block["guardContent"]).get("text"))
        return as_text(guarded["text"]) if "text" in guarded else None
    if "citationsContent" in block:
        pieces = items(members(block["citationsContent"]).get("content"))
        return "".join(as_text(members(piece).get("text")) for piece in pieces)
    return None


def _joined(content: object) -> str:
    texts: list[str] = []
    for each in items(content):
        block = members(each)
        if "text" in block:
            texts.append(as_text(block["text"]))
        elif "json" in block:
            texts.append(compact(block["json"]))
    return "\n".join(texts)
