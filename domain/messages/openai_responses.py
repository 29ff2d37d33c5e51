"""OpenAI Responses items (T1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from compaction_ledger.domain.messages.validity import openai_responses
from compaction_ledger.domain.messages.wires import (
    NO_TURN,
    as_text,
    items,
    kind_of,
    malformed,
    members,
    no_such_role,
    not_a_result,
    text_id,
    without_members,
)

_ROLES: dict[str, EntryRole] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_MARKERS = frozenset({"prompt_cache_breakpoint"})
_INSTRUCTIONS = frozenset({"additional_tools", "configuration_update"})


class _CallItem(NamedTuple):
    """Where an item that makes a call has its id, its name (a member, else the tool's own) and its text.

    ``optional``: an item without an id was run by the provider and opens nothing.
    """

    id: str
    name: str | None
    tool: str
    text: str
    optional: bool = False


class _ResultItem(NamedTuple):
    """Where an item that answers a call has the call's id and its text; ``None``: text that is not ours."""

    ids: tuple[str, ...]
    text: str | None
    optional: bool = False


_CALLS: dict[object, _CallItem] = {
    "function_call": _CallItem("call_id", "name", "", "arguments"),
    "custom_tool_call": _CallItem("call_id", "name", "", "input"),
    "computer_call": _CallItem("call_id", None, "computer", "action"),
    "local_shell_call": _CallItem("call_id", None, "local_shell", "action"),
    "shell_call": _CallItem("call_id", None, "shell", "action"),
    "apply_patch_call": _CallItem("call_id", None, "apply_patch", "operation"),
    "mcp_approval_request": _CallItem("id", "name", "", "arguments"),
    "tool_search_call": _CallItem("call_id", None, "tool_search", "arguments", optional=True),
    "program": _CallItem("call_id", None, "program", "code"),
}
_RESULTS: dict[object, _ResultItem] = {
    "function_call_output": _ResultItem(("call_id",), "output"),
    "custom_tool_call_output": _ResultItem(("call_id",), "output"),
    "computer_call_output": _ResultItem(("call_id",), None),
    "local_shell_call_output": _ResultItem(("call_id", "id"), "output"),
    "shell_call_output": _ResultItem(("call_id",), "output"),
    "apply_patch_call_output": _ResultItem(("call_id",), "output"),
    "mcp_approval_response": _ResultItem(("approval_request_id",), None),
    "tool_search_output": _ResultItem(("call_id",), None, optional=True),
    "program_output": _ResultItem(("call_id",), None),
}
_ROLE_OF: dict[object, EntryRole] = {
    **dict.fromkeys(_CALLS, "assistant"),
    **dict.fromkeys(_RESULTS, "tool"),
}
# Tools of the provider's that bring their own result: the member that says most of them.
_SERVED = {
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "mcp_call": "output",
    "program_output": "result",
    "mcp_approval_response": "reason",
}
_BLOCKS: dict[object, tuple[PartKind, str | None]] = {
    "input_text": ("text", "text"),
    "output_text": ("text", "text"),
    "text": ("text", "text"),
    "refusal": ("text", "refusal"),
    "reasoning_text": ("thinking", "text"),
    "summary_text": ("thinking", "text"),
    "input_image": ("media", None),
    "input_file": ("media", None),
    "input_audio": ("media", None),
}


class OpenAIResponses:
    """Items: messages (``type`` may be absent), calls, their outputs, reasoning and whatever else comes.

    Each item is a message of its own; a reasoning item belongs to what follows it, and as no user's turn
    begins there, no cut separates them. The parts of a message item are the blocks of its content (a
    string is one part); every other item is one part. Calls of tools that the provider runs itself and
    that bring their own result open nothing and are of kind ``other``. Cache markers are the members
    ``prompt_cache_breakpoint`` of blocks.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The shape's name."""
        return "openai-responses"

    def read(self, messages: Sequence[Wire], first: int = 0) -> list[Entry]:
        """See :meth:`MessageShape.read`."""
        entries: list[Entry] = []
        add = entries.append
        position = first
        for message in messages:
            try:
                kind = message.get("type")
                if kind is None and "role" in message:
                    kind = "message"
                role = _ROLES[message["role"]] if kind == "message" else _ROLE_OF.get(kind)
            except (KeyError, TypeError, AttributeError):
                raise _no_item(message, position) from None
            if kind == "message":
                content = message.get("content")
                if not isinstance(content, (str, list)):
                    raise _no_content(content, position)
                add(Entry(position, role or "user", message, (), (), role == "user"))
            elif role == "tool":
                add(Entry(position, role, message, (), _results(message, position), NO_TURN))
            elif role == "assistant":
                add(Entry(position, role, message, _calls(message, position), (), NO_TURN))
            else:
                add(Entry(position, _role_of(message, position), message, (), (), NO_TURN))
            position += 1
        return entries

    def parts(self, wire: Wire) -> list[Part]:
        """See :meth:`MessageShape.parts`."""
        kind = _kind(wire)
        if kind == "message":
            content = wire.get("content")
            if isinstance(content, str):
                return [Part(0, "text", content)]
            return [_block(part, members(block)) for part, block in enumerate(items(content))]
        if kind in _CALLS:
            item = _CALLS[kind]
            name = item.tool if item.name is None else wire.get(item.name)
            return [Part(0, "call", as_text(wire.get(item.text)), name, wire.get(item.id))]
        if kind in _RESULTS:
            call_id = next((result.call_id for result in _results(wire, 0)), None)
            if _RESULTS[kind].text is not None:
                return [Part(0, "result", _output_text(wire.get("output")), None, call_id)]
            return [Part(0, "other", as_text(wire.get(_SERVED.get(str(kind), ""))), None, call_id)]
        return [_other(kind, wire)]

    def settled(self, wire: Wire) -> Wire:
        """See :meth:`MessageShape.settled`."""
        return without_members(wire, _MARKERS, ("content", "output"))

    def assemble(self, messages: Sequence[Wire], cut: int, lead: Sequence[Lead]) -> list[Wire]:
        """See :meth:`MessageShape.assemble`; a text becomes a message item of role ``assistant``."""
        return with_messages(messages, cut, self.head(messages), lead, _text_message)

    def head(self, messages: Sequence[Wire]) -> int:
        """See :meth:`MessageShape.head`."""
        count = 0
        while count < len(messages) and _is_instruction(messages[count]):
            count += 1
        return count

    def with_results(self, wire: Wire, texts: Mapping[int, str]) -> Wire:
        """See :meth:`MessageShape.with_results`; the output becomes a string, of a shell, and before media,
        a piece of one.
        """
        kind = _kind(wire)
        for part in texts:
            if part != 0 or kind not in _RESULTS or _RESULTS[kind].text is None:
                raise not_a_result(part)
        if not texts:
            return wire
        output = wire.get("output")
        if kind == "shell_call_output" and items(output):
            last = members(items(output)[-1])
            return {**wire, "output": [{**last, "stdout": texts[0], "stderr": ""}]}
        others = [block for block in items(output) if not _has_text(members(block))]
        if others:
            return {**wire, "output": [{"type": "input_text", "text": texts[0]}, *others]}
        return {**wire, "output": texts[0]}

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """See :meth:`MessageShape.problems`."""
        return openai_responses.problems(messages)


def _text_message(text: str) -> Wire:
    return {"type": "message", "role": "assistant", "content": text}


def _no_item(item: object, position: int) -> Exception:
    kind = members(item).get("type")
    if kind is None or kind == "message":
        return no_such_role(item, position, "role", tuple(_ROLES))
    return malformed(position, "type", f"is no text but {type(kind).__name__}")


def _no_content(content: object, position: int) -> Exception:
    return malformed(
        position, "content", f"is neither text nor a list but {type(content).__name__}"
    )


def _kind(item: Wire) -> object:
    kind = item.get("type")
    return "message" if kind is None and "role" in item else kind


def _is_instruction(item: Wire) -> bool:
    if _kind(item) == "message":
        return _ROLES.get(item["role"]) == "system"
    return item.get("type") in _INSTRUCTIONS


def _role_of(item: Wire, position: int) -> EntryRole:
    """Of an item that neither is a message nor belongs to a call; the model's unless it instructs it."""
    kind = item.get("type")
    if kind is None and "id" not in item:
        raise malformed(position, "", "has neither a type nor a role, and refers to no item")
    if kind is not None and not isinstance(kind, str):
        raise malformed(position, "type", f"is no text but {type(kind).__name__}")
    return "system" if kind in _INSTRUCTIONS else "assistant"


def _calls(item: Wire, position: int) -> Sequence[Call]:
    form = _CALLS[item["type"]]
    call_id = item.get(form.id)
    if type(call_id) is not str:
        if form.optional and call_id is None:
            return ()
        call_id = text_id(item, form.id, position, "")
    name = form.tool if form.name is None else text_id(item, form.name, position, "")
    return (Call(call_id, name, 0),)


def _results(item: Wire, position: int) -> Sequence[Answered]:
    form = _RESULTS[item["type"]]
    for member in form.ids:
        call_id = item.get(member)
        if type(call_id) is str:
            return (Answered(call_id, 0),)
    if form.optional and item.get(form.ids[0]) is None:
        return ()
    return (Answered(text_id(item, form.ids[0], position, ""), 0),)


def _block(part: int, block: Wire) -> Part:
    kind, member = _BLOCKS.get(kind_of(block), ("other", None))
    return Part(part, kind, "" if member is None else as_text(block.get(member)))


def _output_text(output: object) -> str:
    """A string as it is; of a list or a single block the texts, of a shell what it printed."""
    if isinstance(output, str):
        return output
    texts: list[str] = []
    for each in items(output) or [output]:
        block = members(each)
        texts += [as_text(block[name]) for name in ("text", "stdout", "stderr") if block.get(name)]
    return "\n".join(texts)


def _has_text(block: Wire) -> bool:
    return any(block.get(name) for name in ("text", "stdout", "stderr"))


def _other(kind: object, item: Wire) -> Part:
    if kind == "reasoning":
        told = [*items(item.get("summary")), *items(item.get("content"))]
        return Part(0, "thinking", "\n".join(as_text(members(each).get("text")) for each in told))
    if kind == "image_generation_call":
        return Part(0, "media", "")
    member = _SERVED.get(str(kind))
    return Part(0, "other", "" if member is None else as_text(item.get(member)), item.get("name"))
