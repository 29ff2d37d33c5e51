"""Threads that do something at the same moment. None of them waits for one that has failed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

T = TypeVar("T")

SECONDS = 60


def all_at_once(count: int, act: Callable[[int, Callable[[], object]], T]) -> list[T]:
    """What ``act`` returns in each of so many threads.

    It is given the thread's number, and what waits until all threads do. Raises what went wrong first of all.
    """
    barrier = Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> T:
        try:
            return act(number, lambda: barrier.wait(SECONDS))
        except BaseException as error:
            errors.append(error)
            barrier.abort()
            raise

    with ThreadPoolExecutor(count) as pool:
        doing = [pool.submit(run, number) for number in range(count)]
    for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
        raise error
    return [each.result() for each in doing]
