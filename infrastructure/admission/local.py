"""A bound on attempts at once within this process (D1)."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from compaction_ledger.domain.errors import InvalidSetting


class LocalAdmission:
    """At most ``limit`` attempts at once, for any number of threads. Never waits (D2)."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise InvalidSetting(f"must be at least 1, not {limit}", place="admission limit")
        self._limit = limit
        self._in_use = 0
        self._lock = Lock()

    @property
    def in_use(self) -> int:
        """How many slots are taken now."""
        return self._in_use

    def admit(self) -> Callable[[], None] | None:
        """Take a slot and return what gives it back; ``None`` means: not now (D2).

        Giving back twice gives back once.
        """
        with self._lock:
            if self._in_use >= self._limit:
                return None
            self._in_use += 1
        held = [True]

        def release() -> None:
            with self._lock:
                if held:
                    held.clear()
                    self._in_use -= 1

        return release
