"""Where a transcript may be cut, and where it is (T3, T4). Positions are indices into the run's messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NoCut = Literal["below_trigger", "one_exchange", "open_call", "nothing_new"]
"""Why nothing is planned: not full enough; no earlier turn; a call is open across every later turn;
all earlier turns are in chunks already."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The messages ``first`` to ``last`` (both included) become a chunk; the next one begins a turn."""

    first: int
    last: int


def plan_cut(
    tokens: Sequence[int], boundaries: Sequence[int], first: int, keep: int, at_most: int
) -> Cut | NoCut:
    """The next chunk: from ``first`` to before the boundary behind which about ``keep`` tokens are left.

    ``tokens`` are those of each message, ``boundaries`` the places of a safe cut, in order. At least the
    last exchange stays. A chunk has at most ``at_most`` tokens, unless a single exchange has more: the rest
    becomes the next chunk.
    """
    later = boundaries[bisect_right(boundaries, first) :]
    if not later:
        return "one_exchange" if len(boundaries) <= 1 else "nothing_new"
    cut = _behind_which_is(keep, tokens, later)
    return Cut(first, _bounded(first, cut, at_most, tokens, later) - 1)


def _behind_which_is(keep: int, tokens: Sequence[int], later: Sequence[int]) -> int:
    """The first boundary with at most ``keep`` tokens behind it; the last one where all have more."""
    left, end = 0, len(tokens)
    found = later[-1]
    for boundary in reversed(later):
        left += sum(tokens[boundary:end])
        if left > keep:
            break
        found, end = boundary, boundary
    return found


def _bounded(
    first: int, cut: int, at_most: int, tokens: Sequence[int], later: Sequence[int]
) -> int:
    """The last boundary up to ``cut`` with at most so many tokens before it, from ``first``."""
    taken, start = 0, first
    found = 0
    for boundary in later:
        taken += sum(tokens[start:boundary])
        start = boundary
        if found and taken > at_most:
            break
        found = boundary
        if boundary >= cut or taken > at_most:
            break
    return found


def plan_regroup(sources: Sequence[int], blocks: Sequence[int], share: int, at_most: int) -> int:
    """How many of the oldest chunks become one (T8); 0 for none. All in tokens, oldest first.

    Where all ``blocks`` together have more than ``share``: as many of the oldest as bring them down to
    half of it, so that the next chunks are only appended (T10); supposing that the new block is as large
    as their largest, and as their ``sources`` together allow (``at_most``). One alone is none.
    """
    if sum(blocks) <= share:
        return 0
    over = sum(blocks) - share // 2
    source, saved, largest, count = 0, 0, 0, 0
    for tokens, block in zip(sources, blocks, strict=True):
        if count and source + tokens > at_most:
            break
        source += tokens
        saved += block
        largest = max(largest, block)
        count += 1
        if count > 1 and saved - largest >= over:
            break
    return count if count > 1 else 0


def left_to_search(blocks: Sequence[int], share: int) -> int:
    """How many of the oldest blocks are left to search (T8), so that the rest keeps within ``share``
    tokens.

    Whenever a block comes that is too much, the oldest go until half of the share is free, so that what
    stands in front does not change at every chunk (T10). A function of the list alone: everybody comes to
    the same.
    """
    gone, total = 0, 0
    for number, block in enumerate(blocks):
        total += block
        if total > share:
            while gone < number and total > share // 2:
                total -= blocks[gone]
                gone += 1
    return gone


def first_that_fits(
    tokens: Sequence[int], boundaries: Sequence[int], first: int, room: int
) -> int | None:
    """The first safe place from ``first`` on behind which at most ``room`` tokens stand; ``None`` if none
    has so few.
    """
    left, end, found = 0, len(tokens), None
    for boundary in reversed(boundaries):
        if boundary < first:
            break
        left += sum(tokens[boundary:end])
        if left > room:
            break
        found, end = boundary, boundary
    return found
