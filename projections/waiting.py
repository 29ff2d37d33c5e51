"""Waiting for another follower: pauses that grow, and an end of all patience."""

from __future__ import annotations

import random
import time

FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.1
"""In seconds."""


class Pauses:
    """Pauses that grow, and an end of all patience."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.begin_anew()

    def begin_anew(self) -> None:
        """What was waited for gets on."""
        self._began = time.monotonic()
        self._pause = FIRST_PAUSE

    @property
    def are_long(self) -> bool:
        """Whether what is waited for should have been done by now."""
        return self._pause == LONGEST_PAUSE

    @property
    def are_over(self) -> bool:
        """Whether nobody should wait any longer."""
        return time.monotonic() - self._began >= self._patience

    def pause(self) -> None:
        """Wait a little."""
        time.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come at once
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
