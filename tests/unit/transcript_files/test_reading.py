"""T1: lists of messages in files, and the shape they have; never a guess."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidSetting, MalformedRecord
from compaction_ledger.infrastructure.transcript_files import read_transcripts

Write = Callable[..., Path]

USER = {"role": "user", "content": "x"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
CHAT = [USER, CALL, {"role": "tool", "tool_call_id": "a", "content": "1"}]
ITEMS = [USER, {"type": "reasoning", "summary": []}, {"role": "assistant", "content": "y"}]
BLOCKS = [USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}]
CONVERSE = [{"role": "user", "content": [{"text": "x"}]}]
PYDANTIC_AI = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x"}]}]
LISTS: dict[str, list[Any]] = {
    "openai-chat": CHAT,
    "openai-responses": ITEMS,
    "anthropic": BLOCKS,
    "converse": CONVERSE,
    "pydantic-ai": PYDANTIC_AI,
}
every_shape = pytest.mark.parametrize("shape", LISTS)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of one JSON value, or with several of JSON Lines."""

    def write(*values: Any, indent: int | None = None) -> Path:
        path = tmp_path / "run.json"
        path.write_text("\n".join(json.dumps(value, indent=indent) for value in values))
        return path

    return write


@every_shape
def test_a_list_of_messages(write: Write, shape: str) -> None:
    [found] = read_transcripts(write(LISTS[shape]))
    assert (found.shape, found.place, found.system) == (shape, "run.json", None)
    assert found.messages == LISTS[shape]


@every_shape
@pytest.mark.parametrize("indent", [None, 2])
def test_a_body_of_a_request(write: Write, shape: str, indent: int | None) -> None:
    member = "input" if shape == "openai-responses" else "messages"
    [found] = read_transcripts(write({member: LISTS[shape], "model": "m"}, indent=indent))
    place = "run.json:1" if indent is None else "run.json"
    assert (found.shape, found.place) == (shape, f"{place}.{member}")
    assert found.messages == LISTS[shape]


@every_shape
def test_a_message_on_each_line(write: Write, shape: str) -> None:
    [found] = read_transcripts(write(*LISTS[shape]))
    assert (found.shape, found.place) == (shape, "run.json")
    assert found.messages == LISTS[shape]


def test_recorded_exchanges(write: Write) -> None:
    lines = [
        {"request": {"messages": CHAT}, "response": {}},
        {"request": "", "response": {"object": "response"}},
        {"response": {"output": {}}},
        {"record": {"history": CHAT}},
        {"file": "a.json", "record": CHAT},
        {"request": {"input": "What?", "instructions": "Be brief."}},
    ]
    found = read_transcripts(write(*lines))
    assert [(each.shape, each.place) for each in found] == [
        ("openai-chat", "run.json:1.request.messages"),
        ("openai-chat", "run.json:4.record.history"),
        ("openai-chat", "run.json:5.record"),
        ("openai-responses", "run.json:6.request.input"),
    ]
    assert found[3].messages == [{"role": "user", "content": "What?"}]
    assert found[3].system == "Be brief."


def test_a_list_of_records(write: Write) -> None:
    found = read_transcripts(
        write([{"traj": CHAT}, {"messages": BLOCKS, "system": [{"text": "s"}]}])
    )
    assert [(each.shape, each.place, each.system) for each in found] == [
        ("openai-chat", "run.json[0].traj", None),
        ("anthropic", "run.json[1].messages", [{"text": "s"}]),
    ]


@pytest.mark.parametrize(
    ("around", "shape"),
    [
        ({"uri": "https://api.openai.com/v1/chat/completions"}, "openai-chat"),
        ({"uri": "https://api.anthropic.com/v1/messages?beta=true"}, "anthropic"),
        ({"response": {"object": "chat.completion"}}, "openai-chat"),
        ({"response": {"object": "response"}}, "openai-responses"),
        ({"response": {"type": "message", "stop_reason": "end_turn"}}, "anthropic"),
        ({"tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "openai-chat"),
        ({"tools": [{"type": "function", "name": "f", "parameters": {}}]}, "openai-responses"),
    ],
)
def test_what_stands_around_plain_messages_tells_their_shape(
    write: Write, around: dict[str, Any], shape: str
) -> None:
    [found] = read_transcripts(write({"request": {"messages": [USER]}, **around}))
    assert found.shape == shape


@pytest.mark.parametrize(
    ("messages", "shape"),
    [
        ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "openai-responses"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "openai-chat"),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], "anthropic"),
        ([{"role": "user", "content": None}], "openai-chat"),
    ],
)
def test_messages_that_only_one_shape_has(write: Write, messages: list[Any], shape: str) -> None:
    [found] = read_transcripts(write(messages))
    assert found.shape == shape


def test_plain_messages_are_of_no_certain_shape_unless_it_is_named(write: Write) -> None:
    path = write([USER, {"role": "assistant", "content": "y"}])
    with pytest.raises(
        MalformedRecord, match=r"^run\.json: .*\(openai-chat, openai-responses, anthropic\)"
    ):
        read_transcripts(path)
    [found] = read_transcripts(path, "anthropic")
    assert found.shape == "anthropic"
    with pytest.raises(InvalidSetting, match="'gemini' is no message shape"):
        read_transcripts(path, "gemini")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([[]], r"^run\.json: the list of messages is empty"),
        ([5], r"^run\.json: is neither a list nor an object but a number"),
        ([None], "but null"),
        ([True], "but true"),
        (["x"], "but text"),
        ([[CHAT, 5]], r"^run\.json\[1\]: is neither a list nor an object"),
        ([{"contents": [{"role": "model", "parts": []}]}], "of no known shape .openai-chat: mess"),
        ([[USER, 5]], r"^run\.json\[1\]: is no message but a number"),
        ([[USER, []]], r"^run\.json\[1\]: is no message but a list"),
        ([{"a": 1, "messages": CHAT, "input": ITEMS}], "in more than one of messages, input"),
        ([{"title": "t", "mapping": {}}], r"^run\.json:1: no messages .* 'title', 'mapping'"),
        ([{"response": {}}], r"^run\.json: no messages are in it"),
        ([USER, {"messages": CHAT}], r"^run\.json:2: the lines before are messages"),
        ([{"messages": CHAT}, USER], r"^run\.json:2: is a message, and the lines before"),
        ([[CHAT[2], BLOCKS[1]]], "openai-chat, anthropic"),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_place(
    write: Write, values: list[Any], error: str
) -> None:
    with pytest.raises(MalformedRecord, match=error):
        read_transcripts(write(*values))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MalformedRecord, match=r"^none\.json: cannot be read"):
        read_transcripts(tmp_path / "none.json")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"messages": []}\n{"messages": [')
    with pytest.raises(MalformedRecord, match=r"^broken\.jsonl:"):
        read_transcripts(broken)
