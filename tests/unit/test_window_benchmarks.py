"""The measures of the window run, at small size, and measure what they say: reuse, constraints, costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import window_measures
import window_reuse
import window_workload
from window_workload import CONSTRAINTS, Json

from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.usecases.window.reading import encode_all


@pytest.mark.parametrize("shape", window_measures.SHAPES)
def test_the_measured_run_is_valid_in_each_shape(shape: str) -> None:
    messages = window_workload.in_shape(shape, window_workload.transcript(40))
    assert {problem.code for problem in shape_named(shape).problems(messages)} <= {"pending_call"}


def test_each_constraint_is_said_once_in_the_first_half_of_a_run() -> None:
    messages = [each for step in window_workload.steps(100) for each in (*step.new, step.answer)]
    said = [
        [number for number, message in enumerate(messages) if each in str(message["content"])]
        for each in CONSTRAINTS
    ]
    assert all(len(places) == 1 and places[0] < len(messages) // 2 for places in said)


@pytest.mark.parametrize("shape", window_measures.SHAPES)
def test_a_measured_turn_has_chunks_pins_and_verbatim_messages(shape: str) -> None:
    case = window_measures.case(shape, 300, window_workload.LONG)
    request = case.request()
    assert len(request.manifest.chunks) == window_measures.CHUNKS
    assert len(request.manifest.pins) == window_measures.PINS
    assert request.messages[-1] is case.messages[-1]
    assert json.loads(case.floor()) == case.messages


@pytest.mark.slow
def test_costs_have_a_figure_for_each_shape_and_the_worst_of_them() -> None:
    figures = window_measures.over_floor(1, 1, small=300, large=600)
    for name in ("window_over_floor", "window_growth", "window_growth_over_floor"):
        each = [
            figures[f"{name}_{shape.replace('-', '_')}{size}"]
            for shape in window_measures.SHAPES
            for size in ("", "_short")
        ]
        assert figures[name] == max(each) > 0


class Everything:
    """Sends the whole run each time."""

    calls = 0

    def __init__(self) -> None:
        self.messages: list[Json] = []

    def add(self, messages: Sequence[Json]) -> None:
        self.messages += messages

    def request(self) -> list[bytes]:
        return encode_all(self.messages)


class Nothing(Everything):
    """Sends something else each time."""

    def request(self) -> list[bytes]:
        return encode_all([{"role": "user", "content": str(len(self.messages))}])


def test_reuse_is_high_for_what_only_grows_and_low_for_what_changes() -> None:
    grows, changes = window_reuse.run(Everything(), 30), window_reuse.run(Nothing(), 30)
    assert grows.requests == changes.requests == 75
    assert grows.bytes_reused / grows.bytes_sent > 0.9
    assert grows.kept == len(CONSTRAINTS)
    assert changes.kept == 0
    # What differs is the text: all before it is the same.
    assert changes.bytes_reused <= 75 * len('{"role":"user","content":"999')


@pytest.mark.slow
def test_our_window_keeps_every_constraint_and_is_compacted(tmp_path: Path) -> None:
    budget = WindowBudget(6_000)
    measured, regrouped = window_reuse.ours(tmp_path / "ledger.db", budget, 40)
    assert measured.kept == len(CONSTRAINTS)
    assert measured.calls > 3
    assert regrouped > 0
    assert 0 < measured.bytes_reused < measured.bytes_sent
    assert measured.bytes_sent <= measured.requests * budget.limit * window_reuse.BYTES_PER_TOKEN


@pytest.mark.slow
@pytest.mark.parametrize(
    "peer", ["langchain", "langchain_untrimmed", "strands", "strands_same_share"]
)
def test_the_peers_run_where_they_are_installed(peer: str) -> None:
    pytest.importorskip("langchain" if peer.startswith("langchain") else "strands")
    budget = WindowBudget(6_000)
    measured = window_reuse.run(window_reuse.peers(budget)[peer](), 30)
    assert measured.calls > 1
    assert 0 < measured.bytes_reused < measured.bytes_sent
