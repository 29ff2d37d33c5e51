"""T1, T2, T4, T5, T10: what holds of every wire shape, over generated transcripts."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_transcripts import SHAPES as NAMES
from wire_transcripts import broken, transcripts
from wire_values import Wire as JsonObject

from compaction_ledger.domain.errors import InvalidInput, InvalidSetting, MalformedMessage
from compaction_ledger.domain.messages.interface import Lead, MessageShape, Wire
from compaction_ledger.domain.messages.shapes import SHAPES, shape_named
from compaction_ledger.domain.messages.structure import (
    boundaries,
    structural_problems,
)
from compaction_ledger.domain.window.originals import message_digest

EXAMPLES = 15
SYSTEMS: dict[str, Wire] = {
    "openai-chat": {"role": "system", "content": "Be brief."},
    "openai-responses": {"type": "message", "role": "developer", "content": "Be brief."},
    "anthropic": {"role": "system", "content": "Be brief."},
    "converse": {"role": "system", "content": [{"text": "Be brief."}]},
    "pydantic-ai": {
        "kind": "request",
        "parts": [{"part_kind": "system-prompt", "content": "Be brief."}],
    },
}
BREAKS_STRUCTURE = {
    "lost_call": "result_without_call",
    "result_alone": "result_without_call",
    "result_first": "result_before_call",
    "two_calls_one_id": "duplicate_call",
    "two_results": "result_again",
}

every_shape = pytest.mark.parametrize("name", NAMES)


def as_bytes(messages: Sequence[Wire]) -> bytes:
    return json.dumps(messages, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def refused(shape: MessageShape, messages: Sequence[Wire]) -> list[str]:
    return [each.code for each in shape.problems(messages) if each.code != "pending_call"]


def test_the_shapes_are_known_by_name() -> None:
    assert sorted(SHAPES) == sorted(NAMES)
    assert all(shape_named(name).name == name for name in NAMES)
    with pytest.raises(InvalidSetting, match=r"'gemini' is no message shape; .*openai-chat"):
        shape_named("gemini")


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t1_reading_takes_each_message_as_it_is_and_writing_gives_the_same(
    name: str, data: st.DataObject
) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name))
    before = copy.deepcopy(messages)
    entries = shape.read(messages, first=7)
    assert [entry.position for entry in entries] == list(range(7, 7 + len(messages)))
    assert [entry.id for entry in entries][:1] == ["m7"]
    assert all(entry.wire is message for entry, message in zip(entries, messages, strict=True))
    written = shape.assemble(messages, 0, [])
    assert len(written) == len(messages)
    assert all(new is old for new, old in zip(written, messages, strict=True))
    assert as_bytes(messages) == as_bytes(before)


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t4_t5_every_safe_cut_gives_a_valid_request_with_the_same_objects(
    name: str, data: st.DataObject
) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name, pending=data.draw(st.booleans())))
    before = copy.deepcopy(messages)
    lead: list[Lead] = data.draw(st.lists(st.sampled_from(["A", "B\n", SYSTEMS[name]]), max_size=4))
    head = shape.head(messages)
    for cut in boundaries(shape.read(messages)):
        assert shape.read(messages)[cut].begins_turn
        made = shape.assemble(messages, cut, lead)
        assert refused(shape, made) == []
        assert all(made[index] is messages[index] for index in range(head))
        kept = {id(message) for message in made}
        lost = [each for each in messages[max(cut, head) + 1 :] if id(each) not in kept]
        assert all(each.get("role") == "system" for each in lost)  # joined with those before it
        assert structural_problems(shape.read(made)) == []
    assert messages == before


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t10_one_more_text_is_only_put_behind_the_earlier_ones(
    name: str, data: st.DataObject
) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name, turns=4))
    for cut, later in pairwise(boundaries(shape.read(messages))[1:]):
        first = as_bytes(shape.assemble(messages, cut, ["the first block"]))
        second = as_bytes(shape.assemble(messages, later, ["the first block", "the second"]))
        end = first.index(b"the first block") + len(b"the first block")
        assert second[:end] == first[:end]
        same = as_bytes(shape.assemble(messages, cut, ["the first block", "the second"]))
        assert same[:end] == first[:end]
        assert len(same) > len(first)
        assert same.endswith(first[end + 3 :])  # behind the end of the block


@every_shape
@pytest.mark.parametrize("mistake", BREAKS_STRUCTURE)
@given(data=st.data())
@settings(max_examples=5)
def test_t2_a_transcript_that_is_broken_between_calls_and_results_is_told(
    name: str, mistake: str, data: st.DataObject
) -> None:
    case = data.draw(broken(name, mistake))
    entries = SHAPES[name].read(case.messages)
    assert BREAKS_STRUCTURE[mistake] in {each.code for each in structural_problems(entries)}


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t2_sound_transcripts_are_told_to_be_sound(name: str, data: st.DataObject) -> None:
    pending = data.draw(st.booleans())
    entries = SHAPES[name].read(data.draw(transcripts(name, pending=pending)))
    assert structural_problems(entries) == []
    assert (sum(len(each.calls) - len(each.results) for each in entries) > 0) == pending


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_the_parts_of_a_message_are_those_that_reading_it_counts(
    name: str, data: st.DataObject
) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name))
    for entry in shape.read(messages):
        parts = shape.parts(entry.wire)
        assert [part.part for part in parts] == list(range(len(parts)))
        for call in entry.calls:
            part = parts[call.part]
            assert (part.kind, part.call_id, part.name) == ("call", call.id, call.name)
        for result in entry.results:
            assert parts[result.part].kind in ("result", "other")
            assert parts[result.part].call_id == result.call_id


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t14_a_replaced_result_changes_its_text_and_nothing_else(
    name: str, data: st.DataObject
) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name))
    before = copy.deepcopy(messages)
    replaced: list[Wire] = []
    for message in messages:
        parts = shape.parts(message)
        places = [part.part for part in parts if part.kind == "result"]
        new = shape.with_results(message, dict.fromkeys(places, "[kept apart]"))
        assert (new is message) == (not places)
        replaced.append(new)
        for old, now in zip(parts, shape.parts(new), strict=True):
            assert now == (old._replace(text="[kept apart]") if old.kind == "result" else old)
        with pytest.raises(InvalidInput, match="no tool result"):
            shape.with_results(message, {len(parts): "x"})
    assert messages == before
    assert refused(shape, replaced) == []


def same(shape: MessageShape, one: Wire, other: Wire) -> bool:
    """Whether two messages are one, but for cache markers."""
    return message_digest(shape.settled(one)) == message_digest(shape.settled(other))


@every_shape
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_what_is_settled_stays_as_it_is(name: str, data: st.DataObject) -> None:
    shape, messages = SHAPES[name], data.draw(transcripts(name))
    before = copy.deepcopy(messages)
    for message in messages:
        settled = shape.settled(message)
        assert shape.settled(settled) is settled
        assert same(shape, message, settled)
        assert same(shape, message, copy.deepcopy(message))
        reordered = dict(reversed(list(message.items())))
        assert same(shape, message, reordered)
        assert not same(shape, message, {**message, "x": 1})
    assert messages == before


@every_shape
def test_equal_in_python_is_not_equal_in_json(name: str) -> None:
    shape = SHAPES[name]
    one = dict(SYSTEMS[name])
    assert not same(shape, {**one, "x": 1}, {**one, "x": True})
    assert not same(shape, {**one, "x": [1]}, {**one, "x": [1.0]})
    assert not same(shape, {**one, "x": [1]}, {**one, "x": [1, 2]})
    assert not same(shape, {**one, "x": {"y": 1}}, {**one, "x": [1]})
    assert same(shape, {**one, "x": [1, {"y": None}]}, {**one, "x": [1, {"y": None}]})


class ModelObject:
    """An object of an SDK."""

    def model_dump(self) -> JsonObject:
        return {"role": "user", "content": "x"}


@every_shape
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (None, "is not a JSON object but NoneType"),
        ("hello", "is not a JSON object but str"),
        ([], "is not a JSON object but list"),
        (ModelObject(), "ModelObject; give it as a JSON object"),
        ({}, "has n"),
        ({"role": "oracle", "kind": "oracle", "content": "x"}, "'oracle' is none of"),
        ({"role": ["user"], "kind": ["request"], "content": "x"}, "is none of"),
    ],
)
def test_t1_what_is_no_message_is_refused_by_its_place(name: str, wrong: object, why: str) -> None:
    messages: list[object] = [SYSTEMS[name], wrong]
    with pytest.raises(MalformedMessage, match=why) as refusal:
        SHAPES[name].read(messages, first=3)  # type: ignore[arg-type]
    assert refusal.value.place is not None
    assert refusal.value.place.startswith("message 4")
