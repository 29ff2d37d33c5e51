"""T1, T2, T4, T10: the messages of Pydantic AI, as it writes them itself."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.interface import Answered, Call, Part, Wire
from compaction_ledger.domain.messages.pydantic_ai import PydanticAI
from compaction_ledger.domain.messages.structure import boundaries

SHAPE = PydanticAI()
RETRY: Wire = {"part_kind": "retry-prompt", "content": [{"msg": "m"}], "tool_call_id": "x"}
SYSTEM_PART = {"part_kind": "system-prompt", "content": "Be kind."}


def dumped(*messages: ModelMessage) -> list[Wire]:
    return cast("list[Wire]", ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))


def loaded(messages: list[Wire]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(json.dumps(messages))


def request(*parts: Wire, **members: Any) -> Wire:
    return {"parts": list(parts), "kind": "request", **members}


def prompt(text: str) -> Wire:
    return {"content": text, "part_kind": "user-prompt"}


RUN = dumped(
    ModelRequest(
        parts=[
            SystemPromptPart("Be kind."),
            UserPromptPart(
                [
                    "Look:",
                    ImageUrl("http://x/y.png"),
                    BinaryContent(data=b"1", media_type="image/png"),
                    CachePoint(),
                    "Well?",
                ]
            ),
        ],
        instructions="Be brief.",
    ),
    ModelResponse(
        parts=[
            ThinkingPart("Hm."),
            NativeToolCallPart("web", {"q": 1}, "b1"),
            NativeToolReturnPart("web", {"r": [1]}, "b1"),
            TextPart("So:"),
            ToolCallPart("find", '{"a":  1}', "c1"),
            ToolCallPart("find", {"a": "é"}, "c2"),
            ToolCallPart("find", None, "c3"),
        ]
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("find", {"z": [1, "é"]}, "c1"),
            ToolReturnPart("find", ["one", ImageUrl("http://x/y.png"), {"two": 2}], "c2"),
            ToolReturnPart("find", "plain", "c3"),
            UserPromptPart("And?"),
        ]
    ),
    ModelResponse(parts=[TextPart("Done.")]),
    ModelRequest(parts=[UserPromptPart("Thanks. Next?")]),
)


def test_what_the_library_writes_is_read() -> None:
    entries = SHAPE.read(RUN)
    roles = [entry.role for entry in entries]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert list(entries[1].calls) == [
        Call("c1", "find", 4),
        Call("c2", "find", 5),
        Call("c3", "find", 6),
    ]
    assert list(entries[2].results) == [Answered("c1", 0), Answered("c2", 1), Answered("c3", 2)]
    assert boundaries(entries) == [0, 4]
    assert SHAPE.parts(RUN[0]) == [
        Part(0, "text", "Be kind.", role="system"),
        Part(1, "text", "Look:\nWell?"),
    ]
    assert SHAPE.parts(RUN[1]) == [
        Part(0, "thinking", "Hm."),
        Part(1, "call", '{"q":1}', "web", "b1"),
        Part(2, "other", '{"r":[1]}', "web", "b1"),
        Part(3, "text", "So:"),
        Part(4, "call", '{"a":  1}', "find", "c1"),
        Part(5, "call", '{"a":"é"}', "find", "c2"),
        Part(6, "call", "", "find", "c3"),
    ]
    assert SHAPE.parts(RUN[2]) == [
        Part(0, "result", '{"z":[1,"é"]}', "find", "c1"),
        Part(1, "result", 'one\n{"two":2}', "find", "c2"),
        Part(2, "result", "plain", "find", "c3"),
        Part(3, "text", "And?", role="user"),
    ]


def test_what_is_made_is_read_by_the_library() -> None:
    made = SHAPE.assemble(RUN, 4, ["The first block.", "The second."])
    first, second = loaded(made)
    assert isinstance(first, ModelRequest)
    assert isinstance(second, ModelRequest)
    assert [type(part) for part in first.parts] == [SystemPromptPart]
    assert first.instructions == "Be brief."
    assert [part.content for part in second.parts if isinstance(part, UserPromptPart)] == [
        "The first block.",
        "The second.",
        "Thanks. Next?",
    ]
    stub = SHAPE.with_results(RUN[2], {0: "stub", 1: "stub"})
    [read] = loaded([stub])
    contents: list[Any] = [part.content for part in read.parts if isinstance(part, ToolReturnPart)]
    assert [contents[0], contents[2]] == ["stub", "plain"]
    assert contents[1][0] == "stub"
    assert [type(piece) for piece in contents[1][1:]] == [ImageUrl]
    with pytest.raises(InvalidInput):
        SHAPE.with_results(RUN[2], {3: "x"})


def test_retries_speak_for_a_tool_or_for_the_framework() -> None:
    answer = request({**RETRY, "tool_name": "find"})
    [entry] = SHAPE.read([answer])
    assert (entry.role, list(entry.results)) == ("tool", [Answered("x", 0)])
    assert SHAPE.parts(answer) == [Part(0, "result", '[{"msg":"m"}]', "find", "x")]
    for part in (RETRY, {"part_kind": "retry-feedback", "content": "Again."}):
        [entry] = SHAPE.read([request(part)])
        assert (entry.role, entry.begins_turn, list(entry.results)) == ("user", False, [])
        [said] = SHAPE.parts(request(part))
        assert (said.kind, said.role) == ("text", "tool")  # nobody's own words


def test_instructions_stand_in_requests_of_their_own_or_beside_the_users_prompt() -> None:
    alone = request(SYSTEM_PART)
    beside = request(SYSTEM_PART, prompt("one"), instructions="i", run_id="r")
    answer: Wire = {"parts": [{"part_kind": "text", "content": "y"}], "kind": "response"}
    later = request(prompt("two"), timestamp="t")
    assert [entry.role for entry in SHAPE.read([alone, beside])] == ["system", "user"]
    assert SHAPE.head([alone, beside]) == 1
    assert SHAPE.head([beside, answer]) == 0
    made = SHAPE.assemble([alone, beside, answer, later], 3, ["A", alone])
    assert made == [
        alone,
        request(SYSTEM_PART, instructions="i", run_id="r"),
        request(prompt("A")),
        alone,
        request(prompt("two"), timestamp="t"),
    ]
    assert made[0] is alone
    assert SHAPE.assemble([alone, beside, answer, later], 3, ["A"])[2:] == [
        request(prompt("A"), prompt("two"), timestamp="t")
    ]
    assert SHAPE.assemble([later, answer, later], 2, ["A"]) == [
        request(prompt("A"), prompt("two"), timestamp="t")
    ]
    assert SHAPE.assemble([later, answer], 1, ["A"]) == [request(prompt("A")), answer]


def test_a_spoken_prompt_begins_a_turn() -> None:
    spoken = request({"part_kind": "speech", "speaker": "user", "transcript": "Hi."})
    [entry] = SHAPE.read([spoken])
    assert entry.begins_turn
    assert SHAPE.parts(spoken) == [Part(0, "text", "Hi.")]


def test_cache_points_may_move() -> None:
    def asked(*content: Any) -> Wire:
        return request({"part_kind": "user-prompt", "content": list(content)})

    point = {"kind": "cache-point", "ttl": "5m"}
    assert SHAPE.settled(asked("a", point, "b")) == SHAPE.settled(asked("a", "b", point))
    assert SHAPE.settled(asked("a", point)) == asked("a")


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"kind": "request"}, "message 0 parts"),
        (request({"content": "x"}), "message 0 parts[0]"),
        (request(prompt("x"), cast("Wire", "y")), "message 0 parts[1]"),
        (
            request({"part_kind": "tool-return", "tool_call_id": None}),
            "message 0 parts[0].tool_call_id",
        ),
        (
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_call_id": "x"}]},
            "message 0 parts[0].tool_name",
        ),
        (
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "x"}]},
            "message 0 parts[0].tool_call_id",
        ),
        (
            {"kind": "response", "parts": [{"part_kind": "builtin-tool-return"}]},
            "message 0 parts[0].tool_call_id",
        ),
    ],
)
def test_t2_a_malformed_message_is_refused_by_its_member(message: Wire, place: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        SHAPE.read([message])
    assert refusal.value.place == place


def test_a_providers_return_may_come_in_a_later_response() -> None:
    back: Wire = {
        "kind": "response",
        "parts": [{"part_kind": "builtin-tool-return", "tool_call_id": "b", "content": "x"}],
    }
    call: Wire = {
        "kind": "response",
        "parts": [{"part_kind": "builtin-tool-call", "tool_name": "web", "tool_call_id": "b"}],
    }
    asked = request(prompt("x"))
    assert boundaries(SHAPE.read([asked, call, asked, back, asked])) == [0, 4]


def test_t10_system_prompts_of_all_requests_that_are_cut_away_stay_in_order() -> None:
    first = request({**SYSTEM_PART, "content": "One."}, prompt("a"))
    answer: Wire = {"parts": [{"part_kind": "text", "content": "y"}], "kind": "response"}
    alone = request({**SYSTEM_PART, "content": "Two."})
    three, four = ({**SYSTEM_PART, "content": words} for words in ("Three.", "Four."))
    third = request(prompt("b"), three, four, instructions="i")
    fourth = request(prompt("c"))
    run = [first, answer, alone, third, answer, fourth]
    early = SHAPE.assemble(run, 3, ["x", alone])
    late = SHAPE.assemble(run, 5, ["x", alone, "y"])
    contents = [[part["content"] for part in message["parts"]] for message in late]
    assert contents == [["One."], ["x"], ["Two."], ["y", "Three.", "Four.", "c"]]
    kinds = [part["part_kind"] for part in late[3]["parts"]]
    assert kinds == ["user-prompt", "system-prompt", "system-prompt", "user-prompt"]
    assert late[:3] == early[:3]  # what is behind it alone has changed
    assert late[2] is alone
    assert early[3] is third
    assert SHAPE.problems(late) == []
    assert isinstance(loaded(late)[3], ModelRequest)
    assert SHAPE.assemble(run, 5, [alone])[2]["parts"] == late[3]["parts"][1:]
    nothing_behind = SHAPE.assemble(run, 6, [alone])
    assert nothing_behind[2] == request(three, four)


def test_t9_each_part_of_a_request_says_who_speaks() -> None:
    returned = {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "c", "content": "r"}
    spoken = {"part_kind": "speech", "speaker": "user", "transcript": "s"}
    parts = SHAPE.parts(request(SYSTEM_PART, prompt("u"), returned, spoken, {"part_kind": "new"}))
    assert [part.role for part in parts] == ["system", "user", None, "user", None]
    parts = SHAPE.parts(request(SYSTEM_PART, prompt("u"), RETRY))
    assert [part.role for part in parts] == ["system", None, "tool"]
