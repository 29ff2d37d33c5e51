"""Runs with chunks and pins as the placement of a request is given them, made up so that anything comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from wire_transcripts import transcripts

from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.blocks import ChunkSummary, RecordedPin
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.placement import Holding, Transcript
from compaction_ledger.domain.window.tokens import Gauge, Utf8Counter
from compaction_ledger.usecases.window.reading import Turn, read_turn

KEY = WindowKey("scope", "conversation", "run")
MODEL = ModelIdentity.of("maker", "model")
PROMPT = PromptVersion("window-compaction", 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A run of one shape, and what holds of it."""

    turn: Turn
    holding: Holding

    @property
    def transcript(self) -> Transcript:
        return self.turn.transcript


def read(shape: str, messages: Sequence[Any], over: int | None = None) -> Turn:
    """A run, read with the built-in counter."""
    return read_turn(shape_named(shape), messages, Gauge(Utf8Counter()), over)


def summary(first: int, last: int, index: int, *lines: str) -> ChunkSummary:
    """The summary of a chunk, completed at ``index``."""
    return ChunkSummary(
        first,
        last,
        f"{index:064x}",
        "0" * 64,
        MODEL,
        PROMPT,
        0,
        index,
        lines or ("entities:", "- x"),
    )


def pin(message: int, quote: str, index: int, supersedes: str | None = None) -> RecordedPin:
    """A pin that was accepted at ``index``; its id is ``p`` and that."""
    fact = PinAccepted(
        KEY, f"p{index}", message, "0" * 64, 0, 0, len(quote), quote, 0, "caller", supersedes
    )
    return RecordedPin(fact, index)


@st.composite
def cases(draw: st.DrawFn, shape: str, turns: int = 6, unknown: bool = True) -> Case:
    """A valid run, cut into chunks at any safe places, with pins accepted before, between and behind them."""
    turn = read(shape, draw(transcripts(shape, turns=turns, unknown=unknown)))
    head = shape_named(shape).head(turn.messages)
    places = [place for place in turn.transcript.boundaries if place > head]
    cuts = sorted(draw(st.sets(st.sampled_from(places)))) if places else []
    index, first = 0, head
    chunks: list[ChunkSummary] = []
    pins: list[RecordedPin] = []
    for cut in cuts:
        pins += _pins(draw, cut, index)
        index += 10
        chunks.append(summary(first, cut - 1, index, "entities:", f"- INV-{index}"))
        first = cut
    pins += _pins(draw, len(turn.messages), index)
    return Case(turn, Holding(chunks, pins))


def _pins(draw: st.DrawFn, below: int, index: int) -> list[RecordedPin]:
    count = draw(st.integers(0, 2))
    made = [
        pin(draw(st.integers(0, max(0, below - 1))), f"at most {index + n}00 EUR", index + n)
        for n in range(1, count + 1)
    ]
    if len(made) == 2 and draw(st.booleans()):
        made[1] = pin(made[1].pin.message, made[1].pin.quote, made[1].index, made[0].pin.pin_id)
    return made
