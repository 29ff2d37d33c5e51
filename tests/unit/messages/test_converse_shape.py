"""T1, T2, T4, T5: Bedrock Converse messages."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.converse import Converse
from compaction_ledger.domain.messages.interface import Answered, Call, Part, Wire
from compaction_ledger.domain.messages.structure import boundaries

CONVERSE = Converse()
USER: Wire = {"role": "user", "content": [{"text": "x"}]}
USE = {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": [1]}}}
RESULT: dict[str, Any] = {
    "toolResult": {
        "toolUseId": "t",
        "content": [{"text": "one"}, {"image": {}}, {"json": {"b": 2, "a": "é"}}],
    }
}


def test_blocks_and_their_parts() -> None:
    thought = {"reasoningText": {"text": "Hm.", "signature": "s"}}
    pieces = {"content": [{"text": "a "}, {"text": "b"}], "citations": []}
    blocks: list[dict[str, Any]] = [
        {"text": "So:"},
        {"reasoningContent": thought},
        {"reasoningContent": {"redactedContent": "xx"}},
        {"document": {"name": "d"}},
        {"cachePoint": {"type": "default"}},
        {"guardContent": {"text": {"text": "guarded"}}},
        {"guardContent": {"image": {}}},
        {"citationsContent": pieces},
        {"hologram": {}},
        USE,
    ]
    message: Wire = {"role": "assistant", "content": blocks}
    [entry] = CONVERSE.read([message])
    assert list(entry.calls) == [Call("t", "f", 9)]
    assert CONVERSE.parts(message) == [
        Part(0, "text", "So:"),
        Part(1, "thinking", "Hm."),
        Part(2, "thinking", ""),
        Part(3, "media", ""),
        Part(4, "other", ""),
        Part(5, "text", "guarded"),
        Part(6, "other", ""),
        Part(7, "text", "a b"),
        Part(8, "other", ""),
        Part(9, "call", '{"a":[1]}', "f", "t"),
    ]


def test_results_are_read_and_replaced_with_all_else_as_it_was() -> None:
    message: Wire = {"role": "user", "content": [RESULT, {"cachePoint": {"type": "default"}}]}
    [entry] = CONVERSE.read([message])
    assert (entry.role, entry.begins_turn) == ("tool", False)
    assert list(entry.results) == [Answered("t", 0)]
    assert CONVERSE.parts(message)[0] == Part(0, "result", 'one\n{"b":2,"a":"é"}', None, "t")
    made = CONVERSE.with_results(message, {0: "stub"})
    assert made["content"] == [
        {"toolResult": {"toolUseId": "t", "content": [{"text": "stub"}, {"image": {}}]}},
        {"cachePoint": {"type": "default"}},
    ]
    for part in (1, 2):
        with pytest.raises(InvalidInput):
            CONVERSE.with_results(message, {part: "x"})


def test_t4_a_result_in_the_same_turn_leaves_nothing_open() -> None:
    served: Wire = {"role": "assistant", "content": [USE, RESULT, {"text": "y"}]}
    entries = CONVERSE.read([USER, served, USER, {"role": "assistant", "content": []}, USER])
    assert boundaries(entries) == [0, 2, 4]
    assert CONVERSE.parts(served)[1].kind == "other"
    with pytest.raises(InvalidInput):
        CONVERSE.with_results(served, {1: "x"})


def test_t5_texts_become_the_first_blocks_of_the_turn() -> None:
    note: Wire = {"role": "system", "content": [{"text": "In French."}]}
    answer: Wire = {"role": "assistant", "content": [{"text": "y"}]}
    made = CONVERSE.assemble([USER, answer, USER, answer], 2, ["A", note, "B"])
    assert made == [
        {"role": "user", "content": [{"text": "A"}, {"text": "B"}, {"text": "x"}]},
        note,
        answer,
    ]
    assert USER == {"role": "user", "content": [{"text": "x"}]}


def test_cache_points_may_move() -> None:
    point = {"cachePoint": {"type": "default"}}
    one: Wire = {"role": "user", "content": [{"text": "a"}, point, {"text": "b"}]}
    other: Wire = {"role": "user", "content": [{"text": "a"}, {"text": "b"}, point]}
    assert CONVERSE.settled(one) == CONVERSE.settled(other)
    assert CONVERSE.settled(one) == {"role": "user", "content": [{"text": "a"}, {"text": "b"}]}
    assert CONVERSE.settled(USER) is USER


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "content": "x"}, "message 1 content"),
        ({"role": "user", "content": [{"text": "x"}, "y"]}, "message 1 content[1]"),
        (
            {"role": "user", "content": [{"toolUse": None}]},
            "message 1 content[0].toolUse.toolUseId",
        ),
        (
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t"}}]},
            "message 1 content[0].toolUse.name",
        ),
        (
            {"role": "user", "content": [{"toolResult": {"toolUseId": None}}]},
            "message 1 content[0].toolResult.toolUseId",
        ),
    ],
)
def test_t2_a_malformed_message_is_refused_by_its_member(message: Wire, place: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        CONVERSE.read([USER, message])
    assert refusal.value.place == place


def test_t9_what_stands_beside_a_result_is_the_users() -> None:
    result = {"toolResult": {"toolUseId": "t", "content": [{"text": "r"}]}}
    parts = CONVERSE.parts({"role": "user", "content": [result, {"text": "Only Luxembourg."}]})
    assert [(part.kind, part.role) for part in parts] == [("result", None), ("text", "user")]
    assert CONVERSE.parts({"role": "user", "content": [{"text": "x"}]})[0].role is None
