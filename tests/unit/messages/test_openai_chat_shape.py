"""T1, T2, T4, T10: OpenAI Chat Completions messages."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.interface import Answered, Call, Part, Wire
from compaction_ledger.domain.messages.openai_chat import OpenAIChat
from compaction_ledger.domain.messages.structure import boundaries, structural_problems

CHAT = OpenAIChat()


def function(call_id: str, arguments: Any = '{"q":  1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "find", "arguments": arguments}}


@pytest.mark.parametrize(
    ("role", "read"),
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
    ],
)
def test_roles(role: str, read: str) -> None:
    [entry] = CHAT.read([{"role": role, "content": "x"}])
    assert (entry.role, entry.begins_turn) == (read, role == "user")


def test_calls_and_results_of_all_kinds() -> None:
    custom = {"id": "c2", "type": "custom", "custom": {"name": "grep", "input": "a b"}}
    unknown = {"id": "c3", "type": "telepathy"}
    message: Wire = {
        "role": "assistant",
        "content": [{"type": "text", "text": "So:"}, {"type": "hologram"}],
        "tool_calls": [function(""), custom, unknown],
        "function_call": {"name": "old", "arguments": "{}"},
        "refusal": "No.",
        "reasoning_content": "Hm.",
        "audio": {"id": "audio_1"},
    }
    [entry] = CHAT.read([message])
    assert list(entry.calls) == [
        Call("", "find", 2),
        Call("c2", "grep", 3),
        Call("c3", "telepathy", 4),
        Call("old", "old", 5),
    ]
    assert CHAT.parts(message) == [
        Part(0, "text", "So:"),
        Part(1, "other", ""),
        Part(2, "call", '{"q":  1}', "find", ""),
        Part(3, "call", "a b", "grep", "c2"),
        Part(4, "call", "", "telepathy", "c3"),
        Part(5, "call", "{}", "old", "old"),
        Part(6, "text", "No."),
        Part(7, "thinking", "Hm."),
        Part(8, "media", ""),
    ]


def test_a_function_is_answered_by_its_name() -> None:
    messages: list[Wire] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "user", "content": "y"},
    ]
    entries = CHAT.read(messages)
    assert entries[2].role == "tool"
    assert structural_problems(entries) == []
    assert boundaries(entries) == [0, 3]


def test_tool_call_ids_are_read_where_there_is_no_single_one() -> None:
    message: Wire = {"role": "tool", "content": "out", "tool_call_ids": ["a", "b"]}
    [entry] = CHAT.read([message])
    assert list(entry.results) == [Answered("a", 0), Answered("b", 0)]
    assert CHAT.parts(message) == [Part(0, "result", "out", None, "a")]


def test_an_object_of_arguments_is_shown_as_compact_json() -> None:
    message: Wire = {"role": "assistant", "tool_calls": [function("a", {"b": "é", "a": [1, 2]})]}
    assert CHAT.parts(message)[0].text == '{"b":"é","a":[1,2]}'


def test_results_with_several_blocks() -> None:
    blocks = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "two"},
    ]
    message: Wire = {"role": "tool", "tool_call_id": "a", "name": "find", "content": blocks}
    assert CHAT.parts(message) == [Part(0, "result", "one\ntwo", "find", "a")]
    assert CHAT.with_results(message, {0: "stub"}) == {
        **message,
        "content": [{"type": "text", "text": "stub"}, blocks[1]],  # nobody could reread the image
    }
    with pytest.raises(InvalidInput):
        CHAT.with_results({"role": "user", "content": "x"}, {0: "stub"})


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "content": 5}, "message 2 content"),
        ({"role": "assistant", "tool_calls": {}}, "message 2 tool_calls"),
        ({"role": "assistant", "tool_calls": ["x"]}, "message 2 tool_calls[0]"),
        ({"role": "assistant", "tool_calls": [{"id": None}]}, "message 2 tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": 5}]}, "message 2 tool_calls[0].id"),
        (
            {"role": "assistant", "tool_calls": [function("a"), {"id": "b", "type": "function"}]},
            "message 2 tool_calls[1].function.name",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "b", "type": "custom", "custom": {}}]},
            "message 2 tool_calls[0].custom.name",
        ),
        ({"role": "assistant", "function_call": {}}, "message 2 function_call.name"),
        ({"role": "tool", "content": "x"}, "message 2 tool_call_id"),
        ({"role": "tool", "content": "x", "tool_call_ids": []}, "message 2 tool_call_id"),
        ({"role": "tool", "content": "x", "tool_call_ids": [None]}, "message 2 tool_call_ids[0]"),
        ({"role": "function", "content": "x"}, "message 2 name"),
    ],
)
def test_t2_a_malformed_message_is_refused_by_its_member(message: Wire, place: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        CHAT.read([{"role": "user", "content": "x"}, message], first=1)
    assert refusal.value.place == place


def test_cache_markers_are_left_out_of_what_is_settled() -> None:
    marked: Wire = {
        "role": "user",
        "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "b", "prompt_cache_breakpoint": {}},
        ],
        "cache_control": {"type": "ephemeral"},
    }
    plain: Wire = {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    assert CHAT.settled(marked) == plain
    assert "cache_control" in marked


def test_t10_texts_stand_behind_the_instructions_as_the_assistants() -> None:
    note: Wire = {"role": "system", "content": "From now on, in French."}
    messages: list[Wire] = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "one"},
        note,
        {"role": "user", "content": "two"},
    ]
    assert CHAT.head(messages) == 2
    made = CHAT.assemble(messages, 4, ["A", note, "B"])
    assert made == [
        *messages[:2],
        {"role": "assistant", "content": "A"},
        note,
        {"role": "assistant", "content": "B"},
        messages[4],
    ]
    assert CHAT.assemble(messages, 0, ["A"]) == [
        *messages[:2],
        {"role": "assistant", "content": "A"},
        *messages[2:],
    ]
