"""Generated transcripts of the five wire shapes: valid ones, and ones that a provider refuses.

``transcripts(shape)`` draws lists of messages that are valid as a request: texts of many scripts, contents
that are null or empty where they may be, parallel calls, results in another order and over several messages,
images, thinking with signatures, cache markers, blocks nobody knows yet, instructions in front and between.
``broken(shape)`` draws a list with one known mistake. Both shrink to short and plain conversations.
"""

from __future__ import annotations

from typing import Protocol

from hypothesis import strategies as st
from wire_block_writers import AnthropicWriter, ConverseWriter, PydanticAIWriter
from wire_mistakes import Broken
from wire_mutations import MUTATIONS
from wire_values import Draw, Wire, pick
from wire_writers import ChatWriter, ResponsesWriter, Writer


class _MakesWriter(Protocol):
    def __call__(self, *, unknown: bool) -> Writer: ...


WRITERS: dict[str, _MakesWriter] = {
    "openai-chat": ChatWriter,
    "openai-responses": ResponsesWriter,
    "anthropic": AnthropicWriter,
    "converse": ConverseWriter,
    "pydantic-ai": PydanticAIWriter,
}
SHAPES = tuple(WRITERS)


def transcripts(
    shape: str, *, pending: bool = False, unknown: bool = True, turns: int = 3
) -> st.SearchStrategy[list[Wire]]:
    """Valid transcripts of at most so many turns, one at least.

    ``pending``: it ends in calls of which one at least has no result yet. ``unknown``: blocks that no
    provider has today may stand in it, so that it is valid for a checker that carries them along.
    """
    return _transcripts(shape, pending, unknown, turns)


def broken(shape: str, mistake: str | None = None) -> st.SearchStrategy[Broken]:
    """Transcripts with one mistake: the one that is named, or any of ``MUTATIONS[shape]``."""
    names = [mistake] if mistake else sorted(MUTATIONS[shape])
    return st.sampled_from(names).flatmap(lambda name: _broken(shape, name))


@st.composite
def _transcripts(draw: Draw, shape: str, pending: bool, unknown: bool, turns: int) -> list[Wire]:
    writer = WRITERS[shape](unknown=unknown)
    found = writer.head(draw)
    for _ in range(pick(draw, st.integers(0, turns - 1))):
        found += [*whole_turn(draw, writer), *writer.between(draw)]
    found += writer.user(draw)
    end = "pending" if pending else pick(draw, st.sampled_from(["user", "results", "answer"]))
    if end != "user":
        for _ in range(pick(draw, st.integers(0, 2))):
            found += step(draw, writer)
    if end == "pending":
        ids = writer.ids(draw, pick(draw, st.integers(1, 3)))
        kept = pick(draw, st.permutations(ids))[: pick(draw, st.integers(0, len(ids) - 1))]
        found += writer.calls(draw, ids)
        found += writer.results(draw, kept) if kept else []
    elif end == "answer" and shape != "pydantic-ai":  # its histories end with a request
        found += writer.answer(draw)
    return found


@st.composite
def _broken(draw: Draw, shape: str, mistake: str) -> Broken:
    writer = WRITERS[shape](unknown=False)
    before: list[Wire] = writer.head(draw)
    for _ in range(pick(draw, st.integers(0, 1))):
        before += whole_turn(draw, writer)
    return MUTATIONS[shape][mistake](draw, writer, before)


def whole_turn(draw: Draw, writer: Writer) -> list[Wire]:
    """A user's words, some steps, the answer."""
    found = writer.user(draw)
    for _ in range(pick(draw, st.integers(0, 2))):
        found += step(draw, writer)
    return found + writer.answer(draw)


def step(draw: Draw, writer: Writer) -> list[Wire]:
    """Parallel calls and their results, in any order."""
    ids = writer.ids(draw, pick(draw, st.integers(1, 3)))
    return writer.calls(draw, ids) + writer.results(draw, pick(draw, st.permutations(ids)))
