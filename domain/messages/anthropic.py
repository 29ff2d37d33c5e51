"""Anthropic Messages (T1)."""

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
from compaction_ledger.domain.messages.validity import anthropic
from compaction_ledger.domain.messages.wires import (
    NO_TURN,
    as_text,
    compact,
    items,
    kind_of,
    malformed,
    members,
    no_such_role,
    not_a_result,
    text_id,
    with_speakers,
    without_members,
)

_ROLES: dict[str, EntryRole] = {"user": "user", "assistant": "assistant", "system": "system"}
_MARKERS = frozenset({"cache_control"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_NEITHER = frozenset({"text", "thinking", "redacted_thinking", "image", "document"})
_KINDS: dict[object, tuple[PartKind, str | None]] = {
    "text": ("text", "text"),
    "thinking": ("thinking", "thinking"),
    "redacted_thinking": ("thinking", None),
    "image": ("media", None),
    "document": ("media", None),
}


class Anthropic:
    """Messages with ``role`` user, assistant or, in newer versions of the API, system.

    The parts of a message are the blocks of its content; a string is one part. A call that the provider
    runs itself (``server_tool_use``, ``mcp_tool_use``) and its ``*_tool_result`` stand in one message and
    open nothing; where the message ends before the result (``pause_turn``), the call is open until a later
    message brings it. The result of such a call is a part of kind ``other``: its form is the
    provider's, and its text cannot be replaced. Cache markers are the members ``cache_control``.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The shape's name."""
        return "anthropic"

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
            if isinstance(content, str):
                add(Entry(position, role, message, (), (), role == "user"))
            elif isinstance(content, list):
                calls, results = _scan(cast("list[object]", content), position)
                if results and role == "user":
                    add(Entry(position, "tool", message, calls, results, NO_TURN))
                else:
                    add(Entry(position, role, message, calls, results, role == "user"))
            else:
                raise malformed(
                    position, "content", f"is neither text nor a list but {type(content).__name__}"
                )
            position += 1
        return entries

    def parts(self, wire: Wire) -> list[Part]:
        """See :meth:`MessageShape.parts`."""
        content = wire.get("content")
        if isinstance(content, str):
            return [Part(0, "text", content)]
        parts = [_part(index, members(block)) for index, block in enumerate(items(content))]
        holds_results = any(_is_result(members(block).get("type")) for block in items(content))
        return with_speakers(parts, wire.get("role"), holds_results=holds_results)

    def settled(self, wire: Wire) -> Wire:
        """See :meth:`MessageShape.settled`."""
        return without_members(wire, _MARKERS, ("content", "source"))

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
            if not 0 <= part < len(blocks) or blocks[part].get("type") != "tool_result":
                raise not_a_result(part)
            inner = isinstance(blocks[part].get("content"), list)
            content = _replaced(blocks[part]["content"], text) if inner else text
            blocks[part] = {**blocks[part], "content": content}
        return {**wire, "content": blocks}

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """See :meth:`MessageShape.problems`."""
        return anthropic.problems(messages)


def _text_block(text: str) -> Wire:
    return {"type": "text", "text": text}


_NOTHING: tuple[Sequence[Call], Sequence[Answered]] = ((), ())


def _scan(content: Sequence[Any], position: int) -> tuple[Sequence[Call], Sequence[Answered]]:
    """The calls that the blocks leave open and the results they bring of calls before them."""
    found: list[tuple[int, Wire, str]] = []
    for part, block in enumerate(content):
        try:
            kind = block["type"]
        except (KeyError, TypeError):
            kind = None
        if not isinstance(kind, str):
            raise malformed(position, f"content[{part}]", "is no block with a type")
        if kind not in _NEITHER:
            found.append((part, block, kind))
    return _paired(found, position) if found else _NOTHING


def _paired(
    found: Sequence[tuple[int, Wire, str]], position: int
) -> tuple[Sequence[Call], Sequence[Answered]]:
    calls: list[Call] = []
    results: list[Answered] = []
    served: dict[str, Call] = {}
    for part, block, kind in found:
        if kind == "tool_use" or kind in _SERVER_CALLS:
            place = f"content[{part}]"
            call_id = text_id(block, "id", position, place)
            call = Call(call_id, text_id(block, "name", position, place), part)
            calls.append(call)
            if kind != "tool_use":
                served[call_id] = call
        elif _is_result(kind):
            call_id = text_id(block, "tool_use_id", position, f"content[{part}]")
            own = served.pop(call_id, None) if kind != "tool_result" else None
            if own is None:
                results.append(Answered(call_id, part))
            else:
                calls.remove(own)
    return calls or (), results or ()


def _is_result(kind: object) -> bool:
    return isinstance(kind, str) and (kind == "tool_result" or kind.endswith("_tool_result"))


def _part(part: int, block: Wire) -> Part:
    kind = kind_of(block)
    if kind == "tool_use" or kind in _SERVER_CALLS:
        return Part(part, "call", as_text(block.get("input")), block.get("name"), block.get("id"))
    if kind == "tool_result":
        return Part(part, "result", _joined(block.get("content")), None, block.get("tool_use_id"))
    if _is_result(kind):
        text = _server_text(block.get("content"))
        return Part(part, "other", text, None, block.get("tool_use_id"))
    named, member = _KINDS.get(kind, ("other", None))
    return Part(part, named, "" if member is None else as_text(block.get(member)))


def _replaced(content: object, text: str) -> list[Any]:
    """A result's blocks with one text in place of theirs: images and the like stay as they are."""
    others = [block for block in items(content) if members(block).get("type") != "text"]
    return [_text_block(text), *others]


def _joined(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = [members(block) for block in items(content)]
    return "\n".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")


def _server_text(content: object) -> str:
    """What a tool of the provider's said: text blocks as they are, an object as compact JSON."""
    if isinstance(content, Mapping):
        return compact(cast("Wire", content))
    return _joined(content)
