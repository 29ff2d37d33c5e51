"""OpenAI Chat Completions messages (T1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from compaction_ledger.domain.messages.leading import with_messages
from compaction_ledger.domain.messages.validity import openai_chat
from compaction_ledger.domain.messages.wires import (
    NO_TURN,
    as_text,
    items,
    kind_of,
    malformed,
    members,
    no_such_role,
    not_a_result,
    objects,
    text_id,
    without_members,
)

_ROLES: dict[str, EntryRole] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "system",
    "developer": "system",
    "function": "tool",
}
_MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_KINDS: dict[object, tuple[PartKind, str | None]] = {
    "text": ("text", "text"),
    "refusal": ("text", "refusal"),
    "thinking": ("thinking", "thinking"),
    "image_url": ("media", None),
    "input_audio": ("media", None),
    "video_url": ("media", None),
    "file": ("media", None),
}
_MEMBERS: tuple[tuple[str, PartKind], ...] = (
    ("refusal", "text"),
    ("reasoning_content", "thinking"),
    ("audio", "media"),
)


class OpenAIChat:
    """Messages with ``role`` system, developer, user, assistant, tool or function.

    The parts of a message are, in this order: its content (a string is one part, of a list each block),
    its ``tool_calls``, its ``function_call``, then ``refusal``, ``reasoning_content`` and ``audio``. The
    whole content of a tool's message is one part, its result. A ``function_call`` and the message of role
    ``function`` that answers it have no ids: they are matched by the function's name. ``tool_call_ids``
    (a list) is read where ``tool_call_id`` is absent. Cache markers are the members ``cache_control`` and
    ``prompt_cache_breakpoint`` of messages and blocks.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The shape's name."""
        return "openai-chat"

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
            if content is not None and not isinstance(content, (str, list)):
                raise malformed(
                    position, "content", f"is neither text nor a list but {type(content).__name__}"
                )
            if role == "assistant":
                add(Entry(position, role, message, _calls(message, position), (), NO_TURN))
            elif role == "tool":
                add(Entry(position, role, message, (), _results(message, position), NO_TURN))
            else:
                add(Entry(position, role, message, (), (), role == "user"))
            position += 1
        return entries

    def parts(self, wire: Wire) -> list[Part]:
        """See :meth:`MessageShape.parts`."""
        content = wire.get("content")
        if _ROLES[wire["role"]] == "tool":
            call_id = _results(wire, 0)[0].call_id
            return [Part(0, "result", _joined(content), wire.get("name"), call_id)]
        if isinstance(content, str):
            parts = [Part(0, "text", content)]
        else:
            parts = [_block(part, members(block)) for part, block in enumerate(items(content))]
        texts = _arguments(wire)
        for (call_id, name, part), text in zip(_calls(wire, 0), texts, strict=True):
            parts.append(Part(part, "call", text, name, call_id))
        parts += _others(wire, len(parts))
        return parts

    def settled(self, wire: Wire) -> Wire:
        """See :meth:`MessageShape.settled`."""
        return without_members(wire, _MARKERS, ("content",))

    def assemble(self, messages: Sequence[Wire], cut: int, lead: Sequence[Lead]) -> list[Wire]:
        """See :meth:`MessageShape.assemble`; a text becomes a message of role ``assistant``."""
        return with_messages(messages, cut, self.head(messages), lead, _text_message)

    def head(self, messages: Sequence[Wire]) -> int:
        """See :meth:`MessageShape.head`."""
        count = 0
        while count < len(messages) and _ROLES.get(messages[count]["role"]) == "system":
            count += 1
        return count

    def with_results(self, wire: Wire, texts: Mapping[int, str]) -> Wire:
        """See :meth:`MessageShape.with_results`."""
        for part in texts:
            if part != 0 or _ROLES[wire["role"]] != "tool":
                raise not_a_result(part)
        if not texts:
            return wire
        content = wire.get("content")
        if not isinstance(content, list):
            return {**wire, "content": texts[0]}
        others = [each for each in items(wire["content"]) if members(each).get("type") != "text"]
        return {**wire, "content": [{"type": "text", "text": texts[0]}, *others]}

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """See :meth:`MessageShape.problems`."""
        return openai_chat.problems(messages)


def _text_message(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def _calls(message: Wire, position: int) -> Sequence[Call]:
    made = message.get("tool_calls")
    legacy = message.get("function_call")
    if made is None and legacy is None:
        return ()
    content = message.get("content")
    before = 1 if isinstance(content, str) else len(items(content))
    calls: list[Call] = []
    for index, call in enumerate(() if made is None else objects(made, position, "tool_calls")):
        place = f"tool_calls[{index}]"
        call_id = call.get("id")
        if type(call_id) is not str:
            call_id = text_id(call, "id", position, place)
        calls.append(Call(call_id, _name(call, position, place), before + index))
    if legacy is not None:
        name = text_id(members(legacy), "name", position, "function_call")
        calls.append(Call(name, name, before + len(calls)))
    return calls


def _name(call: Wire, position: int, place: str) -> str:
    kind = call.get("type", "function")
    if kind not in ("function", "custom", None):
        return str(kind)  # a type of call that is unknown here; it may have no name
    member = "custom" if kind == "custom" else "function"
    return text_id(members(call.get(member)), "name", position, f"{place}.{member}")


def _arguments(message: Wire) -> list[str]:
    """The arguments of each call, in the order of :func:`_calls`."""
    texts: list[str] = []
    for call in items(message.get("tool_calls")):
        function, custom = members(call.get("function")), members(call.get("custom"))
        texts.append(as_text(custom.get("input") if custom else function.get("arguments")))
    if message.get("function_call") is not None:
        texts.append(as_text(members(message["function_call"]).get("arguments")))
    return texts


def _results(message: Wire, position: int) -> Sequence[Answered]:
    if message["role"] == "function":
        return (Answered(text_id(message, "name", position, ""), 0),)
    call_id = message.get("tool_call_id")
    if type(call_id) is str:
        return (Answered(call_id, 0),)
    several = items(message.get("tool_call_ids"))
    if call_id is not None or not several:
        return (Answered(text_id(message, "tool_call_id", position, ""), 0),)
    return [Answered(_text_at(several, index, position), 0) for index in range(len(several))]


def _text_at(ids: Sequence[object], index: int, position: int) -> str:
    value = ids[index]
    if isinstance(value, str):
        return value
    raise malformed(position, f"tool_call_ids[{index}]", f"is no text but {type(value).__name__}")


def _joined(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = [members(block) for block in items(content)]
    return "\n".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")


def _block(part: int, block: Wire) -> Part:
    kind, member = _KINDS.get(kind_of(block), ("other", None))
    return Part(part, kind, "" if member is None else as_text(block.get(member)))


def _others(wire: Wire, part: int) -> list[Part]:
    found: list[Part] = []
    for member, kind in _MEMBERS:
        value = wire.get(member)
        if value is not None:
            text = value if isinstance(value, str) else ""
            found.append(Part(part + len(found), kind, text))
    return found
