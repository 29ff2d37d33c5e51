"""Runs of an agent for tests of the window: messages, summarizers that remember, and windows on any store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from compaction_ledger.composition import Parts
from compaction_ledger.domain.finish import Answer, FinishFacts
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.window.pins import PinProposer
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.structure import StructuredSummary
from compaction_ledger.domain.window.summarization import ChunkRequest, ChunkSummarizer
from compaction_ledger.settings import Settings
from compaction_ledger.window import Window
from compaction_ledger.window_parts import WindowOptions, open_window

Json = dict[str, Any]
PLACE = ("tenant", "support", "run-1")
BUDGET = WindowBudget(6_000, when_outgrown="search")
STOP = FinishFacts(("stop",))


def good(request: ChunkRequest) -> Answer:
    """A short summary that says nothing but which messages it is of."""
    ids = list(dict.fromkeys(line.message_id for line in request.lines))
    summary = StructuredSummary(entities=(f"messages {ids[0]} to {ids[-1]}",))
    return Answer(summary.canonical(), STOP)


@dataclass(slots=True)
class RememberingSummarizer:
    """Summarizes by naming the messages that it was given, and keeps every request."""

    answer: Callable[[ChunkRequest], Answer] = good
    requests: list[ChunkRequest] = field(default_factory=list[ChunkRequest])
    begun: Event = field(default_factory=Event)
    may_answer: Event = field(default_factory=Event)
    held: bool = False
    _lock: Any = field(default_factory=Lock)

    @property
    def model(self) -> ModelIdentity:
        return ModelIdentity.of("test", "remembering")

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        with self._lock:
            self.requests.append(request)
        self.begun.set()
        if self.held:
            assert self.may_answer.wait(30)
        return self.answer(request)


def turn(number: int, words: str = "") -> list[Json]:
    """What one turn adds to a run: a question, a tool call, its result, an answer."""
    call = f"call_{number}"
    arguments = json.dumps({"number": number})
    return [
        {"role": "user", "content": f"{words}Look at case {number}, please."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call,
                    "type": "function",
                    "function": {"name": "look", "arguments": arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call, "content": f"case {number} is open " * 12},
        {"role": "assistant", "content": f"Case {number} is open. Its ticket is INC-{number:05d}."},
    ]


def growing(turns: int, words: dict[int, str] | None = None) -> Iterator[list[Json]]:
    """A run's complete list of messages at each call of the model, with instructions in front."""
    messages: list[Json] = [{"role": "system", "content": "You look at cases."}]
    for number in range(turns):
        asked, called, result, answered = turn(number, (words or {}).get(number, ""))
        messages = [*messages, asked]
        yield messages
        messages = [*messages, called, result]
        yield messages
        messages = [*messages, answered]


def window_on(
    parts: Parts,
    summarizer: ChunkSummarizer | None = None,
    *,
    budget: WindowBudget | int = BUDGET,
    place: tuple[str, str, str] = PLACE,
    shape: str = "openai-chat",
    proposer: PinProposer | None = None,
    rules: bool = False,
    strict: bool = False,
    background: bool = False,
    settings: Settings | None = None,
) -> Window:
    """A window on an open ledger; by default nobody proposes pins and nothing runs in the background."""
    options = WindowOptions(
        budget, shape, summarizer, proposer="rules" if rules else proposer, strict=strict
    )
    return open_window(parts, settings or Settings(), place, options, background=background)


def text_of(messages: Any) -> str:
    """All of a request as text."""
    return json.dumps(messages, ensure_ascii=False)
