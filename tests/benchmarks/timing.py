"""Timing side by side: the things compared take turns, so that a drifting machine is the same for each."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

Work = Callable[[], object]
Clock = Callable[[], float]


def side_by_side(
    works: Mapping[str, Work],
    rounds: int,
    clock: Clock = time.perf_counter,
    *,
    freeze: bool = True,
) -> dict[str, list[float]]:
    """Seconds of each work in each round, after one round that does not count.

    What is there before, such as the imported peers, is left out of garbage collections meanwhile, unless
    ``freeze`` is off. The ``clock`` may be that of the process, for work that never waits: then others' work
    is not counted.
    """
    with frozen() if freeze else nullcontext():
        return _rounds(works, rounds, clock)


@contextmanager
def frozen() -> Iterator[None]:
    """What is there before is left out of garbage collections within."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _rounds(works: Mapping[str, Work], rounds: int, clock: Clock) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for count in range(rounds + 1):
        for name, work in works.items():
            gc.collect()
            start = clock()
            work()
            taken = clock() - start
            if count:
                seconds[name].append(taken)
    return seconds


def median(seconds: list[float]) -> float:
    """The median, in seconds."""
    return statistics.median(seconds)


def ratio(seconds: Mapping[str, list[float]], ours: str, other: str) -> float:
    """The median of the ratios round by round."""
    return statistics.median(a / b for a, b in zip(seconds[ours], seconds[other], strict=True))
