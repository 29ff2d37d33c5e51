"""The tools by which a model rereads its history (T14, T15), as providers and Pydantic AI take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.history import FARTHEST_OFFSET, MOST_HITS, ROLES
from compaction_ledger.usecases.history import DEFAULT_CHARACTERS, MOST_CHARACTERS

Schema = dict[str, Any]


class Tool(NamedTuple):
    """One tool: what the model is told of it, and what it may be called with."""

    name: str
    description: str
    properties: Mapping[str, Schema]
    required: Sequence[str]

    def schema(self, *, strict: bool = False) -> Schema:
        """The JSON schema of its arguments. ``strict`` as OpenAI has it: all required, some may be null."""
        properties = {
            name: _nullable(schema) if strict and name not in self.required else dict(schema)
            for name, schema in self.properties.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties) if strict else list(self.required),
            "additionalProperties": False,
        }


def _number(description: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_START = _number("The character to begin at. 0 if left out.", 0, 1 << 53)
_LENGTH = _number(f"How many characters. {DEFAULT_CHARACTERS} if left out.", 1, MOST_CHARACTERS)
_TIME = "a time in ISO 8601, such as 2026-11-30T12:00:00Z; UTC where it names no offset"
_ROLE_NAMES: Schema = {"type": "string", "enum": sorted(ROLES)}

SEARCH = Tool(
    "search_conversation_history",
    "Search the complete transcript of this conversation, also what is no longer in your context. Returns "
    "exact quotes with the id of their message, the newest first. Search for words, numbers or ids as they "
    "were written; several words are looked for in any order, words in double quotes exactly as they "
    "stand. It finds what was written, not what was meant: try other words if there is nothing.",
    {
        "query": _text("The words to look for, in any language."),
        "roles": {
            "type": "array",
            "items": _ROLE_NAMES,
            "description": "Only what these said. Everybody if left out.",
        },
        "first_pair": _number("Only from this exchange on; they count from 0.", -1, 1 << 53),
        "last_pair": _number("Only up to this exchange.", -1, 1 << 53),
        "since": _text(f"Only from this moment on: {_TIME}."),
        "until": _text(f"Only before this moment: {_TIME}."),
        "limit": _number("How many hits at most. 10 if left out.", 1, MOST_HITS),
        "offset": _number("How many hits to pass over: next_offset.", 0, FARTHEST_OFFSET),
    },
    ("query",),
)
READ_MESSAGE = Tool(
    "read_message",
    "Read a message of this conversation again, exactly as it was, for instance one that a search found.",
    {
        "message_id": _text("The id of the message."),
        "run": _text("The run it is of, if the search named one."),
        "start": _START,
        "length": _LENGTH,
    },
    ("message_id",),
)
READ_TOOL_RESULT = Tool(
    "read_tool_result",
    "Read a tool result that was kept apart, exactly as it was. Its handle stands where it was.",
    {
        "handle": _text("The handle: tr_ and 64 hexadecimal digits."),
        "start": _START,
        "length": _LENGTH,
    },
    ("handle",),
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (SEARCH, READ_MESSAGE, READ_TOOL_RESULT)}


def tool_definitions(shape: str) -> list[dict[str, Any]]:
    """The tools as a provider takes them, by the name of its message shape.

    ``openai-chat`` and ``openai-responses``: for ``tools``; ``anthropic``: for ``tools``; ``converse``: for
    ``toolConfig["tools"]``; ``pydantic-ai``: the arguments of its ``ToolDefinition``, ``name``,
    ``description`` and ``parameters_json_schema``. Raises :class:`InvalidSetting` for any other.
    """
    define = _DEFINITIONS.get(shape)
    if define is None:
        raise InvalidSetting(
            f"{shape!r} has no tool definitions; there are {', '.join(_DEFINITIONS)}", place="shape"
        )
    return [define(tool) for tool in TOOLS.values()]


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _openai_chat(tool: Tool) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool)}


def _openai_responses(tool: Tool) -> dict[str, Any]:
    return {"type": "function", **_function(tool)}


def _function(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "strict": True,
        "parameters": tool.schema(strict=True),
    }


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema()}


def _converse(tool: Tool) -> dict[str, Any]:
    schema = {"json": tool.schema()}
    return {
        "toolSpec": {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": schema,
        }
    }


def _pydantic_ai(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters_json_schema": tool.schema(),
    }


_DEFINITIONS: Mapping[str, Callable[[Tool], dict[str, Any]]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "converse": _converse,
    "pydantic-ai": _pydantic_ai,
}
