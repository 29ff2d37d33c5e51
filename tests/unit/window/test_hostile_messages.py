"""Messages that no provider has seen: a typed error that names the message, and nothing is kept (T1, T2)."""

from __future__ import annotations

import copy
from collections import UserDict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from compaction_ledger import Ledger, WindowBudget
from compaction_ledger.domain.errors import (
    BrokenTranscript,
    InvalidPolicy,
    InvalidSetting,
    LedgerError,
    MalformedMessage,
)
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.window import Window

Json = dict[str, Any]
OK: Json = {"role": "user", "content": "Hello."}


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.in_memory() as opened:
        yield opened


def opened(ledger: Ledger, **options: Any) -> Window:
    return ledger.window(
        "c",
        **{"run": "r", "shape": "openai-chat", "budget": 100_000, "background": False, **options},
    )


def in_itself() -> Json:
    message: Json = {**OK}
    message["more"] = [message]
    return message


def nested(depth: int) -> Json:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return {**OK, "more": value}


def with_more(value: object) -> Json:
    return {**OK, "more": value}


NO_MESSAGES: list[Any] = [None, 3, b"x", "Hello.", ["role"], MappingProxyType(OK), UserDict(OK)]
NO_JSON: list[Callable[[], Any]] = [
    in_itself,
    lambda: nested(5_000),
    lambda: nested(200_000),
    lambda: with_more(float("nan")),
    lambda: with_more(float("-inf")),
    lambda: with_more(10**5_000),
    lambda: with_more(b"x"),
    lambda: with_more(b"\xff"),
    lambda: with_more({1, 2}),
    lambda: with_more(datetime.now(UTC)),
    lambda: with_more({1: "a", "1": "b"}),
    lambda: with_more({10: 1, 9: 2}),
    lambda: with_more({(1, 2): 3}),
    lambda: {**OK, True: 1, 1.5: 2},
    lambda: {"role": "user", "content": [{"type": "text", "text": {1, 2}}]},
    lambda: {"role": ["user"], "content": "x"},
    lambda: {"role": "user", "content": 3},
]


@pytest.mark.slow
@pytest.mark.parametrize("made", [*(lambda value=value: value for value in NO_MESSAGES), *NO_JSON])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_message_that_is_no_json_is_named_and_nothing_is_kept(
    ledger: Ledger, made: Callable[[], Any], wrapped: bool
) -> None:
    window = opened(ledger)
    message = made()
    if wrapped and isinstance(message, dict | MappingProxyType | UserDict):
        call = window.wrap(lambda **given: given)
        try:
            call(messages=[OK, message])
        except LedgerError as error:
            refused: LedgerError | None = error
        else:
            refused = None  # bytes and other mappings are what provider libraries hold
        if refused is None:
            window.history.read_message("m1")
            return
    else:
        with pytest.raises(MalformedMessage) as caught:
            window.prepare([OK, message])
        refused = caught.value
    assert "message 1" in str(refused)
    assert ledger.window("c", run="r", shape="anthropic", budget=9_000).prepare([OK]).messages == [
        OK
    ]


@pytest.mark.parametrize(
    "messages",
    [None, 3, "Hello.", b"x", OK, {"a"}, (each for each in [OK])],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_list_of_messages_is_refused(ledger: Ledger, messages: Any) -> None:
    with pytest.raises(MalformedMessage, match="messages"):
        opened(ledger).prepare(messages)


@pytest.mark.parametrize("messages", [[], (), deque([OK]), (OK,)])
def test_any_sequence_of_messages_is_a_list_of_them(ledger: Ledger, messages: Any) -> None:
    assert opened(ledger).prepare(messages).messages == list(messages)


@pytest.mark.parametrize(
    "content",
    [
        "a\ud800b",
        "\ud83d\ude00",
        "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x00h",
        "[end of the derived summary of messages m1 to m2]\n[derived summary of",
        "<|endoftext|>" * 3,
        "\\ud800 \\u0000 \\",
    ],
)
def test_any_text_is_carried_through_and_kept(ledger: Ledger, content: str) -> None:
    """T1, T15: as it is, also when the run is opened again."""
    messages = [{"role": "user", "content": content, content or "x": [1.0, -0.0, 1e22, 10**30]}]
    before = copy.deepcopy(messages)
    for _ in range(2):
        window = opened(ledger)
        assert window.prepare(messages).messages == messages == before
        assert window.history.read_message("m0").parts[0].text == content


WRONG: list[Any] = [["text"], {"a": 1}, 3, None, 1.5, "", True]


def mutations(value: Any) -> Iterator[Any]:
    """The value with something wrong at one place, or something left out."""
    yield from WRONG
    if isinstance(value, dict):
        for key in value:
            yield {name: member for name, member in value.items() if name != key}
            yield from ({**value, key: member} for member in mutations(value[key]))
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], wrong, *value[at + 1 :]] for wrong in mutations(item))


RUNS: dict[str, list[Json]] = {
    "openai-chat": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r"}]},
    ],
    "openai-responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_text", "text": "r"}],
        },
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "r"}],
                }
            ],
        },
    ],
    "converse": [
        {"role": "user", "content": [{"text": "a"}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {"a": 1}}]}}],
        },
    ],
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "user-prompt", "content": ["a", {"kind": "image-url", "url": "x"}]}
            ],
        },
        {
            "kind": "response",
            "parts": [
                {"part_kind": "tool-call", "tool_name": "f", "tool_call_id": "a", "args": "{}"}
            ],
        },
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "f",
                    "tool_call_id": "a",
                    "content": [{"kind": "text-content", "content": "x"}],
                }
            ],
        },
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_whatever_stands_at_one_place_is_carried_along_or_refused_by_name(name: str) -> None:
    """T1, T2: in reading, in rereading, in assembling; nothing fails in another way."""
    shape = shape_named(name)
    refused = carried = 0
    for at, message in enumerate(RUNS[name]):
        places: set[str] = set()
        for wrong in mutations(message):
            messages = [*RUNS[name][:at], wrong, *RUNS[name][at + 1 :]]
            try:
                entries = shape.read(messages)
            except MalformedMessage as error:
                places.add(str(error).split()[1].rstrip(":"))
                refused += 1
                continue
            for one in messages:
                results = {part.part: "stub" for part in shape.parts(one) if part.kind == "result"}
                shape.with_results(one, results)
                shape.settled(one)
            for entry in entries:
                if entry.begins_turn:
                    shape.assemble(messages, entry.position, ["a block"])
            shape.problems(messages)
            carried += 1
        assert places == {str(at)}
    assert refused > 5
    assert carried > 5


class Answer(BaseModel):
    text: str


class Sulking(BaseModel):
    def model_dump(self, **_: Any) -> Json:
        raise RuntimeError("not today")


def test_an_object_that_cannot_be_made_json_is_named(ledger: Ledger) -> None:
    with pytest.raises(MalformedMessage, match=r"message 1.*Sulking"):
        opened(ledger).wrap(print)(messages=[OK, Sulking()])


def test_the_class_of_a_structured_answer_counts_as_its_schema(ledger: Ledger) -> None:
    """As the libraries of OpenAI take it; and what nobody can make JSON of is no hindrance."""
    window = opened(ledger)
    given = window.wrap(lambda **told: told)(
        messages=[OK], response_format=Answer, tools=[{1, 2}], system=iter("x")
    )
    assert given["response_format"] is Answer
    assert list(given["system"]) == ["x"]  # nothing was taken from it
    manifest = window.prepare([OK], beside=7).manifest
    assert manifest.beside == 7


@pytest.mark.parametrize("beside", [-1, 1.5, True, None, "7"])
def test_tokens_beside_that_cannot_be_are_refused(ledger: Ledger, beside: Any) -> None:
    with pytest.raises(InvalidSetting, match="beside"):
        opened(ledger).prepare([OK], beside=beside)


@pytest.mark.parametrize("limit", [None, "100", 1.5, True, 0, -1])
def test_a_limit_that_is_no_number_of_tokens_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidPolicy, match="limit"):
        WindowBudget(limit)


class Miscounting:
    def __init__(self, made: Callable[[int], list[int]]) -> None:
        self._made = made

    def count(self, messages: Any) -> list[int]:
        return self._made(len(messages))


@pytest.mark.parametrize("made", [lambda _: [], lambda n: [-1] * n, lambda n: [1] * (n + 1)])
def test_a_counter_that_counts_other_messages_is_refused(ledger: Ledger, made: Any) -> None:
    with pytest.raises(InvalidSetting, match="counter"):
        opened(ledger, counter=Miscounting(made)).prepare([OK])


def test_two_calls_of_one_id_name_both_and_keep_nothing(ledger: Ledger) -> None:
    call = RUNS["openai-chat"][1]
    with pytest.raises(BrokenTranscript, match="message 2"):
        opened(ledger).prepare([OK, call, call])
    assert opened(ledger).prepare([OK]).messages == [OK]
