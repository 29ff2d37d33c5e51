"""Fifteen side constraints in a long run reach every later request, word for word (T9), in every shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from planted import CONSTRAINTS, lost, plant, spread
from window_runs import RememberingSummarizer, text_of, window_on

from compaction_ledger import Ledger
from compaction_ledger.composition import Parts
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.policy import WindowBudget

TURNS = 60
PLACES = {
    "top": list(range(15)),
    "middle": list(range(22, 37)),
    "end": list(range(TURNS - 15, TURNS)),
    "spread": spread(15, TURNS),
}
Turn = Callable[[str, str], list[dict[str, Any]]]
ANSWER = "The case is open and somebody looks at it; there is nothing else to say of it today."


def pydantic_turn(asked: str, answer: str) -> list[dict[str, Any]]:
    return [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": asked}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": answer}]},
    ]


def plain_turn(asked: str, answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]


def converse_turn(asked: str, answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [{"text": asked}]},
        {"role": "assistant", "content": [{"text": answer}]},
    ]


TURN: dict[str, Turn] = {
    "openai-chat": plain_turn,
    "openai-responses": plain_turn,
    "anthropic": plain_turn,
    "converse": converse_turn,
    "pydantic-ai": pydantic_turn,
}


@pytest.fixture
def parts() -> Iterator[Parts]:
    with Ledger.in_memory() as ledger:
        yield ledger._parts


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("shape", TURN)
def test_all_fifteen_reach_every_later_request(parts: Parts, shape: str, places: list[int]) -> None:
    planted = plant(lambda turn, said: f"{said} How is case {turn}?", CONSTRAINTS, places)
    budget = WindowBudget(9_000, trigger=4_500, keep=1_500, summaries=3_500)
    window = window_on(parts, RememberingSummarizer(), shape=shape, budget=budget, rules=True)
    messages: list[dict[str, Any]] = []
    summarized = 0
    for turn in range(TURNS):
        asked = planted[turn].text if turn in planted else f"How is case {turn}, and why?"
        question, answer = TURN[shape](asked, ANSWER)
        messages.append(question)
        prepared = window.prepare(messages)
        said = {place: each for place, each in planted.items() if place <= turn}
        assert lost(said, text_of(prepared.messages)) == []
        assert shape_named(shape).problems(prepared.messages) == []
        messages.append(answer)
        window.compact()
        summarized = max(summarized, len(prepared.manifest.chunks))
    assert summarized >= 1
    assert window.refused_pins == ()
    assert [pin.quote for pin in window.pins()] == list(CONSTRAINTS)
