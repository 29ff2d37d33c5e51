"""How fast it goes, lately, and when it will be done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW = 60.0
"""Over so many seconds the rate is taken: long enough to be steady, and short enough to notice a change."""


class Rate:
    """The rate of something that is counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, done: int) -> None:
        """So much is done now."""
        now = self._clock()
        self._seen.append((now, done))
        while self._seen[0][0] < now - WINDOW and len(self._seen) > 2:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """How much is done in a second; 0 where that is not known yet."""
        if len(self._seen) < 2:
            return 0.0
        (began, before), (ended, after) = self._seen[0], self._seen[-1]
        return (after - before) / (ended - began) if ended > began else 0.0

    def seconds_for(self, left: int) -> float | None:
        """How long what is left will take at this rate; ``None`` where there is no telling."""
        rate = self.per_second
        return left / rate if rate > 0 else None
