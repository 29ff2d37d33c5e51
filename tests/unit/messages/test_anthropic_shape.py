"""T1, T2, T4, T5, T10: Anthropic Messages."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.anthropic import Anthropic
from compaction_ledger.domain.messages.interface import Answered, Call, Part, Wire
from compaction_ledger.domain.messages.structure import boundaries, structural_problems

ANTHROPIC = Anthropic()
USER: Wire = {"role": "user", "content": "x"}
SERVED = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_blocks_and_their_parts() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        text("So:"),
        {"type": "image", "source": {"type": "url", "url": "x"}},
        {"type": "tool_use", "id": "t1", "name": "find", "input": {"b": 1, "a": "é"}},
        {"type": "mcp_tool_use", "id": "m1", "name": "ask", "input": {}, "server_name": "s"},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "content": [text("a"), text("b")]},
        {"type": "code_execution_tool_result", "tool_use_id": "x", "content": {"stdout": "1"}},
        {"type": "file", "path": "a.py", "content": "…"},
    ]
    message: Wire = {"role": "assistant", "content": blocks}
    [entry] = ANTHROPIC.read([message])
    assert list(entry.calls) == [Call("t1", "find", 4)]
    assert list(entry.results) == [Answered("x", 7)]
    assert ANTHROPIC.parts(message) == [
        Part(0, "thinking", "Hm."),
        Part(1, "thinking", ""),
        Part(2, "text", "So:"),
        Part(3, "media", ""),
        Part(4, "call", '{"b":1,"a":"é"}', "find", "t1"),
        Part(5, "call", "{}", "ask", "m1"),
        Part(6, "other", "a\nb", None, "m1"),
        Part(7, "other", '{"stdout":"1"}', None, "x"),
        Part(8, "other", ""),
    ]


def test_t4_a_result_with_text_beside_it_begins_no_turn() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "out"}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    entries = ANTHROPIC.read(
        [
            USER,
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, text("and now?")]},
            {"role": "assistant", "content": "y"},
            {"role": "user", "content": []},
        ]
    )
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant", "user"]
    assert boundaries(entries) == [0, 4]


def test_t4_a_providers_own_call_is_open_only_where_its_turn_was_paused() -> None:
    whole: Wire = {"role": "assistant", "content": [SERVED, FOUND, text("y")]}
    assert boundaries(ANTHROPIC.read([USER, whole, USER])) == [0, 2]
    paused: list[Wire] = [
        USER,
        {"role": "assistant", "content": [SERVED]},
        USER,
        {"role": "assistant", "content": [FOUND, text("y")]},
        USER,
    ]
    entries = ANTHROPIC.read(paused)
    assert list(entries[1].calls) == [Call("s1", "web_search", 0)]
    assert list(entries[3].results) == [Answered("s1", 0)]
    assert boundaries(entries) == [0, 4]
    assert structural_problems(entries) == []
    backwards = ANTHROPIC.read([{"role": "assistant", "content": [FOUND, SERVED]}])
    assert [each.code for each in structural_problems(backwards)] == ["result_before_call"]


def test_t5_texts_become_the_first_blocks_and_the_turns_own_stay_as_they_are() -> None:
    own: Wire = {
        "id": "msg_1",
        "content": [{**text("one"), "cache_control": {"type": "ephemeral"}}],
        "role": "user",
    }
    messages: list[Wire] = [USER, {"role": "assistant", "content": "y"}, own]
    before = copy.deepcopy(own)
    [made] = ANTHROPIC.assemble(messages, 2, ["A", "B"])
    assert json.dumps(made) == json.dumps(
        {"role": "user", "content": [text("A"), text("B"), *own["content"]], "id": "msg_1"}
    )
    assert made["content"][2] is own["content"][0]
    assert own == before
    [plain] = ANTHROPIC.assemble([USER], 0, ["A"])
    assert plain == {"role": "user", "content": [text("A"), text("x")]}


def test_t5_where_no_users_message_follows_the_texts_are_one() -> None:
    answer: Wire = {"role": "assistant", "content": "y"}
    assert ANTHROPIC.assemble([USER, answer], 1, ["A"]) == [
        {"role": "user", "content": [text("A")]},
        answer,
    ]
    assert ANTHROPIC.assemble([USER, answer], 2, ["A"]) == [
        {"role": "user", "content": [text("A")]}
    ]


def test_kept_instructions_go_behind_the_users_turn_and_never_two_in_a_row() -> None:
    one: Wire = {"role": "system", "content": "One."}
    two: Wire = {"role": "system", "content": [text("Two.")]}
    answer: Wire = {"role": "assistant", "content": "y"}
    made = ANTHROPIC.assemble([USER, one, answer, USER, answer], 3, ["A", one])
    assert made[0]["content"] == [text("A"), text("x")]
    assert made[1] is one
    assert made[2] is answer
    joined = ANTHROPIC.assemble([USER, one, answer, USER, two, answer], 3, [one, "A", one])
    assert joined[1] == {"role": "system", "content": [text("One."), text("One."), text("Two.")]}
    assert joined[2] is answer
    assert two["content"] == [text("Two.")]


def test_results_are_replaced_in_their_own_form() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "a", "content": "long", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("l"), {"type": "image"}]},
        {"type": "tool_result", "tool_use_id": "c"},
        text("x"),
    ]
    message: Wire = {"role": "user", "content": blocks}
    made = ANTHROPIC.with_results(message, {0: "A", 1: "B"})
    assert made["content"] == [
        {**blocks[0], "content": "A"},
        {**blocks[1], "content": [text("B"), {"type": "image"}]},
        *blocks[2:],
    ]
    assert made["content"][3] is blocks[3]
    for part in (3, 4, -1):
        with pytest.raises(InvalidInput, match="no tool result"):
            ANTHROPIC.with_results(message, {part: "x"})


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user"}, "message 1 content"),
        ({"role": "user", "content": {}}, "message 1 content"),
        ({"role": "user", "content": ["x"]}, "message 1 content[0]"),
        ({"role": "user", "content": [text("x"), {"text": "x"}]}, "message 1 content[1]"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]},
            "message 1 content[0].id",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "f"}]},
            "message 1 content[0].name",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": None}]},
            "message 1 content[0].tool_use_id",
        ),
    ],
)
def test_t2_a_malformed_message_is_refused_by_its_member(message: Wire, place: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        ANTHROPIC.read([USER, message])
    assert refusal.value.place == place


def test_cache_markers_may_move_and_the_input_of_a_call_is_no_place_for_them() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    inner = {"type": "tool_result", "tool_use_id": "a", "content": [{**text("x"), **marker}]}
    call = {"type": "tool_use", "id": "a", "name": "f", "input": dict(marker)}
    marked: Wire = {"role": "user", "content": [{**inner, **marker}, text("y"), call]}
    moved: Wire = {
        "role": "user",
        "content": [{**inner, "content": [text("x")]}, {**text("y"), **marker}, call],
    }
    before = copy.deepcopy(marked)
    assert ANTHROPIC.settled(marked) == ANTHROPIC.settled(moved)
    assert ANTHROPIC.settled(marked)["content"][2] is call
    assert marked == before
    other: Wire = {"role": "user", "content": [inner, text("z"), call]}
    assert ANTHROPIC.settled(marked) != ANTHROPIC.settled(other)


def test_t9_what_stands_beside_a_result_is_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "r"}
    parts = ANTHROPIC.parts({"role": "user", "content": [result, text("Only Luxembourg.")]})
    assert [(part.kind, part.role) for part in parts] == [("result", None), ("text", "user")]
    served = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "r"}
    parts = ANTHROPIC.parts({"role": "assistant", "content": [text("So"), served]})
    assert [part.role for part in parts] == [None, None]
    assert ANTHROPIC.parts({"role": "user", "content": [text("x")]})[0].role is None
