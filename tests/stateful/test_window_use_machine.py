"""An agent and its windows: turns of any form and size come, requests are prepared, chunks are summarized
or are not, budgets change, windows are opened again and beside each other (T1 to T12, T14, A1, A3).

Whatever happened before, each request is held against the run itself.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from backends import SECOND, MemoryBackend
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from window_runs import PLACE, STOP, RememberingSummarizer, good, window_on
from wire_transcripts import SHAPES, WRITERS, step, whole_turn

from compaction_ledger.domain.errors import PinRefused, WindowTooSmall
from compaction_ledger.domain.finish import Answer, FinishFacts
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.messages.structure import boundaries
from compaction_ledger.domain.window.events import ChunkAttemptStarted, ChunkCompleted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.summarization import ChunkRequest
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.window.preparing import Prepared
from compaction_ledger.usecases.window.reading import encode_all
from compaction_ledger.window import Window

KEY = WindowKey(*PLACE)
BUDGETS = [
    WindowBudget(1_500, trigger=900, keep=300, summaries=800),
    WindowBudget(5_000, trigger=2_000, keep=600, summaries=1_200),
    WindowBudget(5_000, trigger=2_000, keep=600, summaries=1_200, when_outgrown="search"),
    WindowBudget(8_000, trigger=2_500, keep=1_400, summaries=1_300, externalize_over=1_000),
    WindowBudget(60_000),
]
WORDS_BESIDE = 1_500
"""So many bytes of blocks may say what is left out, what is pinned, and where it was said."""

MOODS = ("good", "invalid", "truncated", "not_smaller", "raises", "unavailable", "interrupted")


def moody(mood: str, request: ChunkRequest) -> Answer:
    if mood == "raises":
        raise RuntimeError("not today")
    if mood == "interrupted":
        raise KeyboardInterrupt
    return {
        "good": lambda: good(request),
        "invalid": lambda: Answer("In short: all is well.", STOP),
        "truncated": lambda: Answer('{"decisions": [', FinishFacts(("length",))),
        "not_smaller": lambda: Answer(
            json.dumps({**json.loads(good(request).text), "entities": ["x" * 20_000]}), STOP
        ),
        "unavailable": lambda: Answer(fault="provider_unavailable"),
    }[mood]()


def texts(value: Any) -> Iterator[str]:
    """Every text in a request, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def counted(window: Window, messages: list[bytes]) -> list[int]:
    """As this window counts them, by the figures that it was told."""
    return window._parts.context.gauge.count(messages)


class AgentMachine(RuleBasedStateMachine):
    """One run, up to three windows on it, and a clock that may jump."""

    shape_name = "openai-chat"

    def __init__(self) -> None:
        super().__init__()
        self.backend = MemoryBackend(Path(mkdtemp()))
        self.shape = shape_named(self.shape_name)
        self.messages: list[Any] = []
        self.blocks: dict[str, str] = {}
        self.mood = "good"
        self.windows: list[tuple[Window, WindowBudget]] = []

    def teardown(self) -> None:
        self.backend.close()

    @initialize(data=st.data(), budget=st.sampled_from(BUDGETS))
    def begin(self, data: st.DataObject, budget: WindowBudget) -> None:
        self.writer = WRITERS[self.shape_name](unknown=True)
        self.messages += self.writer.head(data.draw)
        self.open(budget)

    def open(self, budget: WindowBudget) -> None:
        summarizer = RememberingSummarizer(lambda request: moody(self.mood, request))
        window = window_on(
            self.backend.open(), summarizer, budget=budget, shape=self.shape_name, rules=True
        )
        self.windows.append((window, budget))

    # --- what happens ---

    @rule(budget=st.sampled_from(BUDGETS))
    def another_window(self, budget: WindowBudget) -> None:
        del self.windows[: max(0, len(self.windows) - 2)]
        self.open(budget)

    @rule(data=st.data(), turns=st.integers(1, 4), large=st.sampled_from([0, 1, 2, 4, 40]))
    def turns(self, data: st.DataObject, turns: int, large: int) -> None:
        """Whole turns, whose results may be large, and whatever may stand behind them."""
        for _ in range(turns):
            made = whole_turn(data.draw, self.writer)
            self.messages += [self.padded(message, large) for message in made]
            self.messages += self.writer.between(data.draw)

    def padded(self, message: Any, large: int) -> Any:
        """The message with its first result's text much longer."""
        results = {
            part.part: part.text + "\nlong line" * 20 * large
            for part in self.shape.parts(message)
            if part.kind == "result"
        }
        return self.shape.with_results(message, results) if results else message

    @rule(mood=st.sampled_from(("good", "good", "good", *MOODS)), which=st.integers(0, 2))
    def compacted(self, mood: str, which: int) -> None:
        self.compact(mood, which)

    def compact(self, mood: str, which: int) -> None:
        self.mood = mood
        window = self.windows[which % len(self.windows)][0]
        if mood == "interrupted":
            try:
                window.compact()
            except KeyboardInterrupt:
                return
        else:
            window.compact()

    @rule(seconds=st.sampled_from([1, 60, int(Settings().lease_seconds) + 1, -30]))
    def time_goes_on(self, seconds: int) -> None:
        self.backend.clock.advance(seconds)
        assert self.backend.clock.now % SECOND == 0

    @rule(which=st.integers(0, 2), share=st.sampled_from([0, -5, 20, 40, 120]))
    def reported(self, which: int, share: int) -> None:
        """What the provider says of a window's last request: so many percent of what was counted."""
        window = self.windows[which % len(self.windows)][0]
        if window._last is not None:
            window.observe(window._last.tokens * share // 100)

    @rule(data=st.data(), which=st.integers(0, 2))
    @precondition(lambda self: self.messages)
    def pinned_late(self, data: st.DataObject, which: int) -> None:
        users = [
            (entry.position, part.text)
            for entry in self.shape.read(self.messages)
            if entry.role == "user" and entry.begins_turn
            for part in self.shape.parts(entry.wire)
            if part.kind == "text" and part.text.strip()
        ]
        if not users:
            return
        position, text = data.draw(st.sampled_from(users))
        try:
            self.windows[which % len(self.windows)][0].pin(text.strip(), message=position)
        except PinRefused:
            return

    @rule(
        data=st.data(),
        which=st.integers(0, 2),
        beside=st.sampled_from([0, 0, 0, 50]),
        mood=st.sampled_from(("good", "good", "good", "invalid", None)),
    )
    def prepared(self, data: st.DataObject, which: int, beside: int, mood: str | None) -> None:
        """In the middle of a turn, and compacted behind it or not."""
        asked = [*self.messages, *self.writer.user(data.draw)]
        for _ in range(data.draw(st.integers(0, 2))):
            asked += step(data.draw, self.writer)
        self.messages = asked
        self.check(which, beside)
        if mood is not None:
            self.compact(mood, which)
        if data.draw(st.booleans()):  # calls that are still pending
            ids = self.writer.ids(data.draw, 2)
            self.messages = asked = [*asked, *self.writer.calls(data.draw, ids)]
            self.check(which, beside)
            asked += self.writer.results(data.draw, ids)
        self.messages = [*asked, *self.writer.answer(data.draw)]

    # --- what must hold ---

    def check(self, which: int, beside: int) -> None:
        window, budget = self.windows[which % len(self.windows)]
        before = copy.deepcopy(self.messages)
        given = list(self.messages)
        prepared = refused = None
        try:
            prepared = window.prepare(given, beside=beside)
        except WindowTooSmall as error:
            refused = error
        assert given == before  # T2
        assert all(one is other for one, other in zip(given, self.messages, strict=True))
        if prepared is None:
            assert refused is not None
            assert refused.needed > refused.allowed == budget.limit  # T6
            apart = window._parts.context.gauge.apart
            assert self.least(window) + beside + apart > budget.limit
            return
        assert prepared.manifest.beside >= beside
        assert prepared.tokens + prepared.manifest.beside <= budget.limit  # T5
        assert sum(counted(window, encode_all(prepared.messages))) == prepared.tokens
        codes = {problem.code for problem in self.shape.problems(self.messages)}
        assert {p.code for p in self.shape.problems(prepared.messages)} <= codes
        assert prepared.rejected == ()
        self.check_messages(prepared)
        self.check_blocks(prepared)
        self.check_pins(window, prepared)
        self.check_log()

    def least(self, window: Window) -> int:
        """About the tokens of what has to be sent whatever happens."""
        entries = self.shape.read(self.messages)
        cuts = boundaries(entries)
        kept = [m for e, m in zip(entries, self.messages, strict=True) if e.role == "system"]
        kept += self.messages[cuts[-1] if cuts else 0 :]
        pins = sum(len(json.dumps(p.quote, ensure_ascii=False)) + 200 for p in window.all_pins())
        return sum(counted(window, [*encode_all(kept), b"x" * (4 * pins + WORDS_BESIDE)]))

    def check_messages(self, prepared: Prepared) -> None:
        """H8, T1: each message once; what stands as it is, is the very object that was given."""
        told = [n for g in prepared.manifest.messages for n in range(g.first, g.last + 1)]
        assert told == list(range(len(self.messages)))
        sent = set(map(id, prepared.messages))
        stubs = {stub.message for stub in prepared.manifest.stubs}
        roles = [entry.role for entry in self.shape.read(self.messages)]
        verbatim = [
            n
            for group in prepared.manifest.messages
            if group.disposition == "verbatim"
            for n in range(group.first, group.last + 1)
            if roles[n] != "system" and n not in stubs
        ]
        assert verbatim
        assert all(id(self.messages[n]) in sent for n in verbatim[1:])
        whole = json.dumps(self.messages[verbatim[0]], ensure_ascii=False)
        assert set(texts(self.messages[verbatim[0]])) <= set(texts(prepared.messages)), whole

    def check_blocks(self, prepared: Prepared) -> None:
        """T8, T10: a chunk's block never changes while those before it stand (a regroup may move pins)."""
        shown = [text for text in texts(prepared.messages) if text.startswith("[derived summary")]
        assert len(shown) == len(prepared.manifest.chunks)
        for number, text in enumerate(shown, start=1):
            before = " ".join(chunk.identity for chunk in prepared.manifest.chunks[:number])
            assert self.blocks.setdefault(before, text) == text

    def check_pins(self, window: Window, prepared: Prepared) -> None:
        """T9: the current ones, word for word: where they were said, or in a block."""
        cut = next(
            (g.first for g in reversed(prepared.manifest.messages) if g.disposition == "verbatim"),
            len(self.messages),
        )
        lines = {line for text in texts(prepared.messages) for line in text.splitlines()}
        for pin in window.pins():
            if pin.pin_id in prepared.manifest.pins_left_out:
                assert prepared.manifest.chunks == ()  # all else has gone before
                continue
            led = {f"> {line}" for line in pin.quote.splitlines()}
            assert pin.message >= cut or led <= lines

    def check_log(self) -> None:
        """A1, A3, T8, T11."""
        log = self.backend.open().context.log
        facts = [entry.fact for entry in log.history(KEY)]
        done = [fact.identity for fact in facts if isinstance(fact, ChunkCompleted)]
        assert len(done) == len(set(done))
        assert all(f.number <= 2 for f in facts if isinstance(f, ChunkAttemptStarted))
        behind = self.shape.head(self.messages)
        for chunk in log.load_window(KEY).chunks:
            assert chunk.first == behind
            behind = chunk.last + 1


def run(shape: str, examples: int, steps: int) -> None:
    machine: type[AgentMachine] = type("AgentMachine", (AgentMachine,), {"shape_name": shape})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
            derandomize="CI" in os.environ,
        ),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_an_agent_does_its_requests_hold(shape: str) -> None:
    run(shape, examples=4, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_an_agent_does_for_long_its_requests_hold(shape: str) -> None:
    run(shape, examples=30, steps=60)
