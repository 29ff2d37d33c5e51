"""How a caller asks a running compaction to stop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Stopped(BaseException):
    """Raised inside a model call when a stop is asked for. Not an ``Exception``: nothing may swallow it."""


class Stop(Protocol):
    """Whether a stop was asked for, and where it may interrupt."""

    @property
    def requested(self) -> bool: ...

    def interruptible(self) -> AbstractContextManager[None]:
        """Around a model call: there, and only there, a stop may raise :class:`Stopped`."""
        ...


class NeverStop:
    """For callers that do not stop."""

    requested = False

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Nothing interrupts."""
        yield
