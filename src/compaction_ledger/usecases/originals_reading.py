"""Reading many of a run's originals in few calls of the store (T11, T15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compaction_ledger.domain.errors import DamagedOriginal
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Original, Originals

NEARBY = 16
"""Originals that stand no farther apart are read at once, up to ``MOST_AT_ONCE``."""

MOST_AT_ONCE = 128


def stretches(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Positions as few stretches in order, from (included) and to (excluded)."""
    start = stop = -1
    for position in sorted(positions):
        if start < 0:
            start = position
        elif position - stop > NEARBY or position - start >= MOST_AT_ONCE:
            yield start, stop
            start = position
        stop = position + 1
    if start >= 0:
        yield start, stop


def read_readable(originals: Originals, key: WindowKey, start: int, stop: int) -> list[Original]:
    """The originals from ``start``, below ``stop``; those that the store cannot read are left out."""
    try:
        return list(originals.read(key, start, stop))
    except DamagedOriginal:
        if stop - start <= 1:
            return []
    middle = (start + stop) // 2
    return [
        *read_readable(originals, key, start, middle),
        *read_readable(originals, key, middle, stop),
    ]
