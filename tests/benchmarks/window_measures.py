"""What a window costs at each turn, by one JSON encoding of its transcript, both in the processor's time."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import window_workload
from timing import Work, frozen, median, ratio, side_by_side

from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.messages.interface import MessageShape
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.blocks import ChunkSummary, RecordedPin
from compaction_ledger.domain.window.cutting import Cut, plan_cut
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.placement import Holding, Request, Room, place
from compaction_ledger.domain.window.tokens import Gauge, Utf8Counter
from compaction_ledger.usecases.window.reading import encode_all, read_turn

Figures = dict[str, float]
SHAPES = ("openai-chat", "anthropic", "converse", "openai-responses")
CHUNKS, PINS = 6, 15
KEY = WindowKey("default", "bench", "run")
MODEL = ModelIdentity.of("bench", "model")
PROMPT = PromptVersion("window-compaction", 1)
LINES = tuple(
    f"- INC-{20_000 + n} of payments-api: {30 + n} failures a minute on node-{n % 9}, decided as CHG-{n}."
    for n in range(24)
)


@dataclass(frozen=True, slots=True)
class Case:
    """A transcript of one shape, and the chunks and pins that hold of it."""

    shape: MessageShape
    messages: Sequence[Any]
    holding: Holding
    keep: int

    def request(self) -> Request:
        """All of a turn but its storage: read, check, encode, count, plan a cut, place."""
        gauge = Gauge(Utf8Counter())
        turn = read_turn(self.shape, self.messages, gauge, None)
        transcript, chunks = turn.transcript, self.holding.chunks
        planned = plan_cut(
            transcript.tokens, transcript.boundaries, chunks[-1].last + 1, self.keep, self.keep
        )
        assert isinstance(planned, Cut), planned
        room = Room(1 << 40, share=1 << 20)
        return place(transcript, self.holding, room, encode_all, gauge.count)

    def floor(self) -> str:
        """One JSON encoding of the same messages, by the standard library."""
        return json.dumps(self.messages)


def case(shape_name: str, count: int, vary: int) -> Case:
    """A run of ``count`` messages, of which the first 60 % are in six chunks; 15 pins."""
    shape = shape_named(shape_name)
    chat = window_workload.transcript(count * 2, vary)
    messages = window_workload.in_shape(shape_name, chat)[:count]
    transcript = read_turn(shape, messages, Gauge(Utf8Counter()), None).transcript
    places = [each for each in transcript.boundaries if each > 1]
    cuts = [places[len(places) * 6 * n // (10 * CHUNKS)] for n in range(1, CHUNKS + 1)]
    chunks = [
        ChunkSummary(
            first,
            cut - 1,
            f"{cut:064x}",
            "0" * 64,
            MODEL,
            PROMPT,
            0,
            n * 100,
            ("entities:", *LINES),
        )
        for n, (first, cut) in enumerate(zip([1, *cuts], cuts, strict=False), start=1)
    ]
    step = max(1, len(places) // (2 * PINS))
    pins = [
        _pin(places[n * step], window_workload.CONSTRAINTS[n], 20 + n * 30) for n in range(PINS)
    ]
    return Case(shape, messages, Holding(chunks, pins), sum(transcript.tokens) * 2 // 10)


def _pin(message: int, quote: str, index: int) -> RecordedPin:
    fact = PinAccepted(
        KEY, f"p{index}", message, "0" * 64, 0, 0, len(quote), quote, 0, "rule", None
    )
    return RecordedPin(fact, index)


def over_floor(rounds: int, few: int, small: int = 5_000, large: int = 50_000) -> Figures:
    """Each shape's turn over its floor at ``small`` messages, and what a message costs more at ``large``.

    Both with long and with short results of tools: with short ones there is less to encode for each message
    that has to be read. The figures without a shape are the worst of all. The transcripts are no stranger to
    the garbage collector, as in a program that works with them; what was imported before is.
    """
    with frozen():
        return _over_floor(rounds, few, small, large)


def _over_floor(rounds: int, few: int, small: int, large: int) -> Figures:
    figures: Figures = {}
    names: list[str] = []
    for shape in SHAPES:
        for size, vary in (("", window_workload.LONG), ("_short", window_workload.SHORT)):
            name = shape.replace("-", "_") + size
            names.append(name)
            made = case(shape, small, vary)
            works: dict[str, Work] = {"ours": made.request, "floor": made.floor}
            seconds = side_by_side(works, rounds, time.process_time, freeze=False)
            figures |= {
                f"window_over_floor_{name}": ratio(seconds, "ours", "floor"),
                f"window_us_a_message_{name}": median(seconds["ours"]) / small * 1e6,
            }
            figures |= _growth(name, made, case(shape, large, vary), few)
    for figure in ("over_floor", "growth", "growth_over_floor"):
        figures[f"window_{figure}"] = max(figures[f"window_{figure}_{name}"] for name in names)
    return figures


def _growth(name: str, small: Case, large: Case, rounds: int) -> Figures:
    """One turn at the large size by as many at the small one as have its messages, in turns."""
    times = len(large.messages) // len(small.messages)
    seconds = side_by_side(
        {
            "ours": large.request,
            "ours_small": lambda: [small.request() for _ in range(times)],
            "floor": large.floor,
            "floor_small": lambda: [small.floor() for _ in range(times)],
        },
        rounds,
        time.process_time,
        freeze=False,
    )
    ours, floor = ratio(seconds, "ours", "ours_small"), ratio(seconds, "floor", "floor_small")
    return {
        f"window_growth_{name}": ours,
        f"window_growth_of_floor_{name}": floor,
        f"window_growth_over_floor_{name}": ours / floor,
    }
