"""Which wire shape a list of messages has (T1): by what only one shape has, else by what reads it at all.

Never a guess: where nothing marks the shape and several read the messages, that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from compaction_ledger.domain.errors import MalformedMessage, MalformedRecord
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue

CHAT, RESPONSES, ANTHROPIC = "openai-chat", "openai-responses", "anthropic"
CONVERSE, PYDANTIC_AI = "converse", "pydantic-ai"

_BLOCK_TYPES = {
    **dict.fromkeys(("image_url", "input_audio"), CHAT),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), RESPONSES),
    **dict.fromkeys(
        (
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            "mcp_tool_use",
            "mcp_tool_result",
        ),
        ANTHROPIC,
    ),
}
_CONVERSE_BLOCKS = frozenset(
    {
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "cachePoint",
        "reasoningContent",
        "guardContent",
        "citationsContent",
    }
)
_ITEM_TYPES = frozenset(
    {
        "reasoning",
        "compaction",
        "item_reference",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
    }
)
_CONVERSE_BODY = frozenset({"inferenceConfig", "toolConfig", "additionalModelRequestFields"})
_ADDRESSES = (
    ("/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
    ("/v1/messages", ANTHROPIC),
    ("/converse", CONVERSE),
    ("/converse-stream", CONVERSE),
)


def shape_of(messages: Sequence[JsonObject], around: Sequence[JsonObject], place: str) -> str:
    """The name of the shape. ``around``: the objects that hold the list (a request's body, an exchange).

    Raises :class:`MalformedRecord` with ``place`` where none fits, or more than one.
    """
    found = {shape for message in messages for shape in _marks(message)}
    found |= {shape for each in around for shape in _told(each)}
    if not found:
        found = {name for name in SHAPES if _fault(name, messages) is None}
    if len(found) == 1:
        return found.pop()
    if found:
        names = ", ".join(name for name in SHAPES if name in found)
        raise MalformedRecord(
            f"the messages can be of more than one shape ({names}): name the one that is meant",
            place=place,
        )
    faults = "; ".join(f"{name}: {_fault(name, messages)}" for name in SHAPES)
    raise MalformedRecord(f"the messages are of no known shape ({faults})", place=place)


def is_message(value: JsonValue) -> bool:
    """Whether it looks like a message of any shape, and not like something that holds messages."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str):
        return True
    if value.get("kind") in ("request", "response"):
        return isinstance(value.get("parts"), list)
    return _is_item(value)


def _is_item(value: JsonObject) -> bool:
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    return kind in _ITEM_TYPES or kind.endswith(("_call", "_call_output"))


def _fault(name: str, messages: Sequence[JsonObject]) -> str | None:
    try:
        SHAPES[name].read(messages)
    except MalformedMessage as error:
        return str(error)
    return None


def _marks(message: JsonObject) -> Iterator[str]:
    """The shapes that alone have what this message has."""
    if "kind" in message and isinstance(message.get("parts"), list):
        yield PYDANTIC_AI
    if "role" not in message:
        if _is_item(message):
            yield RESPONSES
        return
    if message["role"] in ("tool", "function") or _holds(message, "tool_calls", "function_call"):
        yield CHAT
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _block_marks(block)


def _holds(value: JsonObject, *members: str) -> bool:
    return any(value.get(member) is not None for member in members)


def _block_marks(block: JsonObject) -> Iterator[str]:
    kind = block.get("type")
    if kind is None:
        if not _CONVERSE_BLOCKS.isdisjoint(block):
            yield CONVERSE
    elif isinstance(kind, str):
        if kind in _BLOCK_TYPES:
            yield _BLOCK_TYPES[kind]
        elif kind.endswith("_tool_result") or (kind in ("image", "document") and "source" in block):
            yield ANTHROPIC


def _told(body: JsonObject) -> Iterator[str]:
    """The shapes that what stands around the messages is made for."""
    uri = body.get("uri")
    if isinstance(uri, str):
        path = urlsplit(uri).path.rstrip("/")
        yield from (shape for end, shape in _ADDRESSES if path.endswith(end))
    if not _CONVERSE_BODY.isdisjoint(body):
        yield CONVERSE
    if isinstance(body.get("input"), (list, str)):
        yield RESPONSES
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield from _tool_marks(tool)
    response = body.get("response")
    if isinstance(response, dict):
        yield from _answered(response)


def _tool_marks(tool: JsonObject) -> Iterator[str]:
    if "input_schema" in tool:
        yield ANTHROPIC
    elif isinstance(tool.get("function"), dict):
        yield CHAT
    elif tool.get("type") == "function" and "parameters" in tool:
        yield RESPONSES


def _answered(response: JsonObject) -> Iterator[str]:
    if response.get("object") == "chat.completion":
        yield CHAT
    elif response.get("object") == "response":
        yield RESPONSES
    elif response.get("type") == "message" and "stop_reason" in response:
        yield ANTHROPIC
    elif "stopReason" in response:
        yield CONVERSE
