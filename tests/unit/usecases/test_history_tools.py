"""The tools as providers take them, and the calls of models (T14, T15)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backends import START, MemoryBackend
from history_cases import RUN, SECOND, assistant, handle, history, keep, user
from jsonschema import Draft202012Validator
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool, ToolDefinition

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedOriginal, InvalidSetting, StoreUnavailable
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.usecases.history_tools import call_tool, tool_definitions
from compaction_ledger.usecases.history_toolset import TOOLS

NAMES = ["search_conversation_history", "read_message", "read_tool_result"]
CALLS: dict[str, list[dict[str, Any]]] = {
    "search_conversation_history": [
        {"query": "budget"},
        {"query": "budget", "roles": ["user", "tool"], "first_pair": 0, "last_pair": 3},
        {"query": "budget", "since": "2025-06-15", "until": "2030-01-01T00:00:00+02:00"},
        {"query": "budget", "limit": 1, "offset": 1},
    ],
    "read_message": [
        {"message_id": "m0"},
        {"message_id": "m0", "run": RUN, "start": 1, "length": 2},
    ],
    "read_tool_result": [{"handle": handle(b"kept")}],
}


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = MemoryBackend(tmp_path).open()
    keep(made, [user("our budget"), assistant("a budget of 4,000 EUR \ud800")])
    made.originals.keep_result("acme", "fund-research", b"kept")
    return made


def ask(parts: Parts, name: str, arguments: Any) -> Any:
    return json.loads(call_tool(history(parts), name, arguments))


def refused(parts: Parts, name: str, arguments: Any) -> str:
    value = ask(parts, name, arguments)
    assert set(value) == {"error"}
    return str(value["error"]["message"])


# --- definitions ---


def schemas(shape: str) -> dict[str, dict[str, Any]]:
    """Name and schema of each tool, from where the provider has them."""
    found: dict[str, dict[str, Any]] = {}
    for tool in tool_definitions(shape):
        if shape == "converse":
            spec = tool["toolSpec"]
            found[spec["name"]] = spec["inputSchema"]["json"]
        elif shape in ("anthropic", "pydantic-ai"):
            member = "input_schema" if shape == "anthropic" else "parameters_json_schema"
            found[tool["name"]] = tool[member]
        else:
            function = tool["function"] if shape == "openai-chat" else tool
            assert (tool["type"], function["strict"]) == ("function", True)
            found[function["name"]] = function["parameters"]
    return found


@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_schemas_take_what_the_tools_take_and_nothing_else(shape: str, parts: Parts) -> None:
    found = schemas(shape)
    assert list(found) == NAMES
    for name, schema in found.items():
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema)
        assert schema["additionalProperties"] is False
        assert not {"scope", "conversation"} & set(schema["properties"])
        for arguments in CALLS[name]:
            nulls = dict.fromkeys(schema["properties"]) if "openai" in shape else {}
            given = {**nulls, **arguments}
            assert validator.is_valid(given), given
            assert "error" not in ask(parts, name, given)
            for more in ({"scope": "x"}, {"conversation": "x"}, {"other": 1}):
                assert not validator.is_valid({**given, **more})
                assert "unknown argument" in refused(parts, name, {**given, **more})
        assert not validator.is_valid({})


def test_openai_wants_every_property_required() -> None:
    for schema in (*schemas("openai-chat").values(), *schemas("openai-responses").values()):
        assert schema["required"] == list(schema["properties"])
    assert schemas("anthropic")["search_conversation_history"]["required"] == ["query"]


def test_definitions_are_json_and_new_each_time() -> None:
    for shape in SHAPES:
        one = tool_definitions(shape)
        assert json.loads(json.dumps(one)) == one == tool_definitions(shape)
        one[0].clear()
        assert tool_definitions(shape)[0]
    with pytest.raises(InvalidSetting, match="openai-chat"):
        tool_definitions("another")


def test_an_agent_of_pydantic_ai_searches_with_them(parts: Parts) -> None:
    returned: list[Any] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert [tool.name for tool in info.function_tools] == NAMES
        newest = messages[-1].parts[-1]
        if isinstance(newest, ToolReturnPart):
            returned.append(newest.content)
            return ModelResponse(parts=[TextPart("It is 4,000 EUR.")])
        return ModelResponse(parts=[ToolCallPart(NAMES[0], {"query": "4,000 eur"})])

    def tool_of(definition: dict[str, Any]) -> Tool[object]:
        told = ToolDefinition(**definition)

        def called(**arguments: Any) -> str:
            return call_tool(history(parts, run=RUN), told.name, arguments)

        return Tool.from_schema(called, told.name, told.description, told.parameters_json_schema)

    agent = Agent(FunctionModel(model), tools=list(map(tool_of, tool_definitions("pydantic-ai"))))
    assert asyncio.run(agent.run("How much?")).output == "It is 4,000 EUR."
    assert [hit["message_id"] for hit in json.loads(returned[0])["hits"]] == ["m1"]


# --- calls ---


def test_a_search_answers_with_everything_to_read_on(parts: Parts) -> None:
    value = ask(parts, "search_conversation_history", '{"query": "4,000 eur"}')
    assert value == {
        "hits": [
            {
                "message_id": "m1",
                "run": RUN,
                "source": "run",
                "role": "assistant",
                "pair": 0,
                "at": "2025-06-15T15:06:41Z",
                "part": 0,
                "quote": "a budget of 4,000 EUR \ud800",
                "start": 0,
                "end": 23,
            }
        ],
        "next_offset": None,
    }
    text = call_tool(history(parts), "search_conversation_history", {"query": "4,000"})
    assert "\\ud800" in text
    text.encode()


def test_times_are_those_of_the_calendar(parts: Parts) -> None:
    def found(**times: str) -> list[str]:
        value = ask(parts, "search_conversation_history", {"query": "budget", **times})
        return [hit["message_id"] for hit in value["hits"]]

    assert START == 1_750_000_000 * SECOND
    assert found(since="2025-06-15T15:06:41Z") == ["m1"]
    assert found(until="2025-06-15T17:06:41+02:00") == ["m0"]
    assert found(since="2025-06-15") == ["m1", "m0"]
    assert found(until="2025-06-15") == []


def test_messages_and_results_are_read_again(parts: Parts) -> None:
    read = ask(parts, "read_message", {"message_id": "m0", "start": 4, "length": 3})
    assert read["parts"] == [{"part": 0, "kind": "text", "name": None, "start": 4, "text": "bud"}]
    assert (read["length"], read["next_start"]) == (10, 7)
    kept = ask(parts, "read_tool_result", json.dumps({"handle": handle(b"kept"), "start": None}))
    assert (kept["text"], kept["next_start"]) == ("kept", None)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("delete_everything", {}, "there is no tool"),
        ("x" * 500, {}, "there is no tool"),
        ("read_message", "{", "no JSON"),
        ("read_message", "[1]", "a JSON object"),
        ("read_message", '"m0"', "a JSON object"),
        ("read_message", "", "message_id: is missing"),
        ("read_message", "[" * 9_000, "no JSON"),
        ("read_message", '{"message_id": "' + "m" * 30_000 + '"}', "more than"),
        ("read_message", {"message_id": None}, "message_id: is missing"),
        ("read_message", {"message_id": 7}, "message_id: must be text"),
        ("read_message", {"message_id": "m0", "start": "0"}, "start: must be a whole number"),
        ("read_message", {"message_id": "m0", "start": True}, "start: must be a whole number"),
        (
            "read_message",
            {"message_id": "m0", "length": 0},
            "length: must be a whole number from 1",
        ),
        ("read_message", {"message_id": "m0", "start": 11}, "start: there are only 10"),
        ("read_message", {"message_id": "m7"}, "no message 'm7'"),
        ("read_message", {"message_id": "m0", "run": "other"}, "no message 'm0'"),
        ("read_message", {"message_id": "a\nb"}, "message_id: has a forbidden character"),
        ("search_conversation_history", {"query": "!"}, "text: has no word"),
        ("search_conversation_history", {"query": "a", "roles": "user"}, "roles: must be a list"),
        ("search_conversation_history", {"query": "a", "roles": ["root"]}, "roles: must be among"),
        ("search_conversation_history", {"query": "a", "roles": [None]}, "roles: must be text"),
        ("search_conversation_history", {"query": "a", "since": "soon"}, "since: is no time"),
        ("search_conversation_history", {"query": "a", "limit": 51}, "limit: must be from 1 to 50"),
        ("search_conversation_history", {"query": "a", "limit": 2.0}, "limit: must be a whole"),
        ("read_tool_result", {"handle": "tr_1"}, "handle: must be tr_"),
        ("read_tool_result", {"handle": "tr_" + "0" * 64}, "no such tool result"),
        ("read_tool_result", {1: 2}, "unknown argument"),
    ],
)
def test_what_is_wrong_with_a_call_is_told(
    parts: Parts, name: str, arguments: Any, says: str
) -> None:
    message = refused(parts, name, arguments)
    assert says in message
    assert len(message) < 300


def test_every_property_has_a_description() -> None:
    for tool in TOOLS.values():
        assert set(tool.required) <= set(tool.properties)
        assert all(schema["description"] for schema in tool.properties.values())


class Failing:
    """A store of which whatever is asked fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error


def failing_store(error: Exception) -> Any:
    return Failing(error)


def test_what_the_store_says_is_not_told_to_the_model(parts: Parts) -> None:
    for error, code in (
        (
            StoreUnavailable("postgresql://user@10.0.0.7/ledger cannot be reached"),
            "store_unavailable",
        ),
        (DamagedOriginal("/var/lib/ledger.db: message 3"), "damaged_original"),
    ):
        failing = replace(parts, originals=failing_store(error))
        for name, calls in CALLS.items():
            text = call_tool(history(failing), name, calls[0])
            assert json.loads(text)["error"]["code"] == code
            assert "ledger.db" not in text
            assert "10.0.0.7" not in text
