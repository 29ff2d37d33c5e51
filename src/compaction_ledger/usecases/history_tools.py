"""The tools by which a model searches and rereads the transcript of its conversation (T14, T15).

What a model may say is in the schemas, and nothing else is taken from it: scope and conversation are those of
the :class:`HistorySearch` that the program made, and an argument of that name is refused as unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from compaction_ledger.domain.errors import DamagedLog, InvalidInput, LedgerError
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.messages.interface import EntryRole
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.history_answers import (
    found_value,
    json_text,
    reading_value,
    result_value,
)
from compaction_ledger.usecases.history_toolset import (
    READ_MESSAGE,
    READ_TOOL_RESULT,
    SEARCH,
    TOOLS,
    Schema,
    Tool,
    tool_definitions,
)

__all__ = ["answer", "call_tool", "tool_definitions"]

LONGEST_ARGUMENTS = 20_000
"""Characters of the arguments' JSON: nothing that is longer has a meaning."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 1_000_000
_SHOWN = 100

Arguments = Mapping[str, Any]


def call_tool(history: HistorySearch, name: str, arguments: str | Arguments) -> str:
    """Call a tool as a model asked for it; the answer for the model, as JSON.

    What is wrong with the call, or with the store, is an answer, too: ``{"error": {"code", "message"}}``.
    """
    return answer(history, name, arguments)[0]


def answer(history: HistorySearch, name: str, arguments: str | Arguments) -> tuple[str, bool]:
    """As :func:`call_tool`, and whether it is an error."""
    try:
        tool = _tool(name)
        found = _CALLS[tool.name](history, _checked(tool, arguments))
    except InvalidInput as error:
        return _error(error.code, str(error)), True
    except DamagedLog as error:
        return _error(error.code, "what is stored is not what was kept"), True
    except LedgerError as error:  # its words may name hosts and paths: they are not for a model
        return _error(error.code, "the history cannot be read at the moment"), True
    return json_text(found), False


# --- what the tools do ---


def _search(history: HistorySearch, arguments: Arguments) -> dict[str, Any]:
    given = dict(arguments)
    roles = given.pop("roles", None)
    query = HistoryQuery(
        given.pop("query"),
        None if roles is None else frozenset(cast("list[EntryRole]", roles)),
        given.pop("first_pair", None),
        given.pop("last_pair", None),
        _moment(given.pop("since", None), "since"),
        _moment(given.pop("until", None), "until"),
        **given,
    )
    return found_value(history.search(query))


def _read_message(history: HistorySearch, arguments: Arguments) -> dict[str, Any]:
    return reading_value(history.read_message(**arguments))


def _read_tool_result(history: HistorySearch, arguments: Arguments) -> dict[str, Any]:
    return result_value(history.read_tool_result(**arguments))


_CALLS: Mapping[str, Callable[[HistorySearch, Arguments], dict[str, Any]]] = {
    SEARCH.name: _search,
    READ_MESSAGE.name: _read_message,
    READ_TOOL_RESULT.name: _read_tool_result,
}


# --- what a model may say ---


def _tool(name: str) -> Tool:
    tool = TOOLS.get(name)
    if tool is None:
        raise InvalidInput(f"there is no tool {_short(name)}; there are {', '.join(TOOLS)}")
    return tool


def _checked(tool: Tool, arguments: str | Arguments) -> dict[str, Any]:
    """The arguments that are given, each of its type. ``null`` is as if it were left out."""
    given = _parsed(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(given, Mapping):
        raise InvalidInput("the arguments must be a JSON object")
    checked: dict[str, Any] = {}
    for name, value in cast("Mapping[object, object]", given).items():
        if type(name) is not str or name not in tool.properties:
            raise InvalidInput(
                f"unknown argument {_short(name)}; there are {', '.join(tool.properties)}"
            )
        if value is not None:
            checked[name] = _typed(value, tool.properties[name], name)
    for name in tool.required:
        if name not in checked:
            raise InvalidInput("is missing", place=name)
    return checked


def _parsed(arguments: str) -> object:
    if len(arguments) > LONGEST_ARGUMENTS:
        raise InvalidInput(f"the arguments have more than {LONGEST_ARGUMENTS} characters")
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the arguments are no JSON") from error


def _typed(value: object, schema: Schema, name: str) -> object:
    kind = schema["type"]
    if kind == "array":
        if not isinstance(value, (list, tuple)):
            raise InvalidInput("must be a list", place=name)
        items = cast("Sequence[object]", value)
        return [_typed(item, schema["items"], name) for item in items]
    if kind == "string" and type(value) is not str:
        raise InvalidInput("must be text", place=name)
    if kind == "integer" and type(value) is not int:
        raise InvalidInput("must be a whole number", place=name)
    if value not in schema.get("enum", (value,)):
        raise InvalidInput(f"must be among {', '.join(schema['enum'])}", place=name)
    return value


def _moment(text: str | None, name: str) -> int | None:
    """A time as microseconds since the epoch."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        raise InvalidInput("is no time in ISO 8601", place=name) from None
    return (since.days * 86_400 + since.seconds) * _MICROSECONDS + since.microseconds


def _error(code: str, message: str) -> str:
    return json_text({"error": {"code": code, "message": message}})


def _short(value: object) -> str:
    text = value if isinstance(value, str) else type(value).__name__
    return repr(text[:_SHOWN])
