"""Compaction between turns, in the background (T11): one thread, one chunk at a time; nobody waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Thread
from time import monotonic

logger = logging.getLogger(__name__)


class Background:
    """Runs one piece of work at a time in a thread that ends when there is nothing to do.

    What is given while another runs is done behind it; of several that wait, only the newest: each looks
    at the run as it is then.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Condition()
        self._waiting: Callable[[], None] | None = None
        self._thread: Thread | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it begins nothing more: what runs long asks between its steps."""
        return self._closed

    def give(self, work: Callable[[], None]) -> None:
        """Have ``work`` done soon. After :meth:`close` nothing is begun any more."""
        with self._changed:
            if self._closed:
                return
            self._waiting = work
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError as error:
                    # There can be no more threads: the next turn tries again.
                    self._thread = self._waiting = None
                    logger.warning("nothing is compacted in the background: %s", error)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is left to do; whether that came within ``timeout`` seconds."""
        until = None if timeout is None else monotonic() + timeout
        with self._changed:
            while self._thread is not None:
                left = None if until is None else until - monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def close(self, timeout: float | None = None) -> bool:
        """Begin nothing more, and wait for what runs; whether it ended within ``timeout`` seconds."""
        with self._changed:
            self._closed = True
            self._waiting = None
        return self.wait(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                work, self._waiting = self._waiting, None
                if work is None:
                    self._thread = None
                    self._changed.notify_all()
                    return
            try:
                work()
            except Exception as error:  # no turn of anybody fails by it (A11)
                logger.warning("a compaction in the background failed: %s", error)
                logger.debug("a compaction in the background failed", exc_info=True)
