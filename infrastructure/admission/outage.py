"""Keeps an outage of the provider from using up the attempts of every range (D3).

::

               unavailable, `threshold` times in a row
      closed ------------------------------------------> open
        ^                                                 |  the wait is over:
        |   succeeded                                     v  one claim is let through
        +------------------------------------------- half open
                                                          |
      open <----------------------------------------------+
               unavailable, or released unused

``closed``: claims are made. ``open``: none are, until a time. ``half_open``: one probe is out and
nothing else is let through. Times are microseconds and come from the caller, as does the jitter.
"""

from __future__ import annotations

import random as standard_random
from collections.abc import Callable
from threading import Lock
from typing import Literal

from compaction_ledger.domain.errors import InvalidSetting

GateState = Literal["closed", "open", "half_open"]

SECOND = 1_000_000
FIRST_WAIT = 2 * SECOND
LONGEST_WAIT = 300 * SECOND
LONGEST_RETRY_AFTER = 3_600 * SECOND
PROBE_LEASE = 900 * SECOND
"""A probe that has said nothing for so long is taken for lost."""


def retry_delay(failures_in_a_row: int, retry_after: float | None, jitter: float) -> int:
    """How long to wait, in microseconds, after ``failures_in_a_row`` refusals.

    It doubles from two seconds up to five minutes; ``jitter`` (0 up to 1) spreads it over its upper
    half. The provider's ``retry_after`` (seconds) is never undercut, and believed up to one hour.
    """
    doublings = min(max(failures_in_a_row, 1) - 1, 16)
    full = min(FIRST_WAIT << doublings, LONGEST_WAIT)
    delay = full // 2 + int(full / 2 * jitter)
    if retry_after is None or not retry_after > 0:
        return delay
    asked = int(min(retry_after * SECOND, LONGEST_RETRY_AFTER))
    return max(delay, asked + int(min(full, asked) / 2 * jitter))


class OutageGate:
    """Says whether a new claim may be made now. Thread-safe; one for each process and provider."""

    def __init__(
        self, threshold: int = 3, *, random: Callable[[], float] = standard_random.random
    ) -> None:
        if threshold < 1:
            raise InvalidSetting(f"must be at least 1, not {threshold}", place="outage threshold")
        self._threshold = threshold
        self._random = random
        self._lock = Lock()
        self._state: GateState = "closed"
        self._failures = 0
        self._retry_at = 0
        self._probe_lost_at = 0

    @property
    def state(self) -> GateState:
        """Where the gate stands."""
        return self._state

    @property
    def failures_in_a_row(self) -> int:
        """How many refusals have come since the provider last answered."""
        return self._failures

    def may_claim(self, now: int) -> bool:
        """Whether to claim now. In an outage one caller is let through, with the probe."""
        with self._lock:
            if self._state == "closed":
                return True
            if self._state == "half_open" and now < self._probe_lost_at:
                return False
            # A clock that was set back must not keep the gate shut for longer than any wait.
            self._retry_at = min(self._retry_at, now + 2 * LONGEST_RETRY_AFTER)
            if self._state == "open" and now < self._retry_at:
                return False
            self._state = "half_open"
            self._probe_lost_at = now + PROBE_LEASE
            return True

    def shut_until(self, now: int) -> int:
        """When it is worth asking again. What comes of a probe that is out is seen within seconds."""
        with self._lock:
            if self._state == "closed":
                return now
            if self._state == "half_open":
                return min(now + FIRST_WAIT, self._probe_lost_at)
            return max(now, self._retry_at)

    def succeeded(self) -> None:
        """The provider answered, whatever C1 to C3 said of the answer: it can be reached."""
        with self._lock:
            self._state = "closed"
            self._failures = 0

    def unavailable(self, now: int, retry_after: float | None = None) -> int:
        """A call brought no answer: refused, timed out, or an error. Returns when to try again."""
        with self._lock:
            self._failures += 1
            delay = retry_delay(self._failures, retry_after, self._random())
            if self._failures >= self._threshold:
                self._open_until(now + delay)
            return now + delay

    def released_unused(self) -> None:
        """A claim that was let through was not made: the probe goes back, for the next caller."""
        with self._lock:
            if self._state == "half_open":
                self._state = "open"

    def _open_until(self, retry_at: int) -> None:
        self._retry_at = max(self._retry_at, retry_at) if self._state == "open" else retry_at
        self._state = "open"
