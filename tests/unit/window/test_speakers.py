"""T7, T9, T15: whose words they are, where one message holds words of several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from window_runs import RememberingSummarizer, window_on

from compaction_ledger import Ledger
from compaction_ledger.domain.window.policy import WindowBudget

Json = dict[str, Any]
BUDGET = WindowBudget(20_000, trigger=1_000, keep=200)
FILLER = "Nothing else is new about this fund. " * 60


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        yield ledger


def anthropic_turn(number: int) -> list[Json]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"Found. {FILLER}"}
    beside = {"type": "text", "text": f"Luxembourg only, {number}."}
    return [
        {"role": "user", "content": f"Look at fund {number}."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, beside]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def converse_turn(number: int) -> list[Json]:
    use = {"toolUse": {"toolUseId": f"t{number}", "name": "look", "input": {}}}
    content = [{"text": f"Found. {FILLER}"}]
    result = {"toolResult": {"toolUseId": f"t{number}", "content": content}}
    return [
        {"role": "user", "content": [{"text": f"Look at fund {number}."}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, {"text": f"Luxembourg only, {number}."}]},
        {"role": "assistant", "content": [{"text": "Done."}]},
    ]


def pydantic_turn(number: int) -> list[Json]:
    parts = [
        {"part_kind": "system-prompt", "content": f"Instruction {number}: advise on funds."},
        {"part_kind": "user-prompt", "content": f"Look at fund {number}. {FILLER}"},
    ]
    answer = {"part_kind": "text", "content": "Done."}
    return [{"kind": "request", "parts": parts}, {"kind": "response", "parts": [answer]}]


@pytest.mark.parametrize(
    ("shape", "turn"), [("anthropic", anthropic_turn), ("converse", converse_turn)]
)
def test_a_text_beside_a_result_is_the_users(ledger: Ledger, shape: str, turn: Any) -> None:
    run = [message for number in range(4) for message in turn(number)]
    window = window_on(
        ledger._parts, summarizer := RememberingSummarizer(), budget=BUDGET, shape=shape
    )
    window.prepare([*run, turn(4)[0]])
    outcome = window.compact()
    assert outcome is not None
    assert outcome.result == "completed"
    lines = [line for request in summarizer.requests for line in request.lines]
    assert {line.role for line in lines if line.text.startswith("Luxembourg only")} == {"user"}
    assert {line.role for line in lines if line.text.startswith("Found.")} == {"tool"}
    hits = window.history.search("Luxembourg").hits
    assert len(hits) == 4
    assert {hit.role for hit in hits} == {"user"}
    assert {hit.role for hit in window.history.search("found nothing").hits} == {"tool"}
    parts = window.history.read_message("m2").parts
    assert [part.role for part in parts] == [None, "user"]


def test_a_system_prompt_is_never_the_users_and_never_summarized(ledger: Ledger) -> None:
    run = [message for number in range(4) for message in pydantic_turn(number)]
    window = window_on(
        ledger._parts, summarizer := RememberingSummarizer(), budget=BUDGET, shape="pydantic-ai"
    )
    asked = [*run, {"kind": "request", "parts": pydantic_turn(4)[0]["parts"][1:]}]
    for _ in range(3):
        window.prepare(asked)
        outcome = window.compact()
        assert outcome is not None
        assert outcome.result == "completed"
    lines = [line for request in summarizer.requests for line in request.lines]
    assert lines
    assert not [line for line in lines if line.role == "system" or "Instruction" in line.text]
    prepared = window.prepare(asked)
    assert [chunk.last for chunk in prepared.manifest.chunks] == [1, 3, 5]
    said = [
        part["content"].split(":")[0]
        for message in prepared.messages
        for part in message["parts"]
        if part["part_kind"] == "system-prompt"
    ]
    assert said == [f"Instruction {number}" for number in range(4)]
    hits = window.history.search("Instruction").hits
    assert [hit.role for hit in hits] == ["system"] * 4
    assert [part.role for part in window.history.read_message("m0").parts] == ["system", None]
