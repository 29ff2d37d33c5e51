"""Processes that fork with a ledger open, as web servers do that load an application before their workers.

SQLite keeps its locks by process: a connection must be neither used nor closed behind a fork. So pools are
emptied before one, and what is in use by other threads at that moment is left alone in the child for ever.
"""

from __future__ import annotations

import os
from operator import itemgetter
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary


class Forkable(Protocol):
    """What has to be told of a fork."""

    def before_fork(self) -> None: ...
    def after_fork(self) -> None: ...
    def begin_anew(self) -> None: ...


class _Watched:
    """Everything that has to be told. Nothing is added to it during a fork.

    The newest is told first: whoever uses another was made after it, and takes its own lock first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._all: WeakKeyDictionary[Forkable, int] = WeakKeyDictionary()
        self._added = 0
        self._told: list[Forkable] = []

    def add(self, one: Forkable) -> None:
        with self._lock:
            self._added += 1
            self._all[one] = self._added

    def before(self) -> None:
        self._lock.acquire()
        numbered = sorted(((number, one) for one, number in self._all.items()), key=itemgetter(0))
        self._told = [one for _, one in reversed(numbered)]
        for one in self._told:
            one.before_fork()

    def in_parent(self) -> None:
        told, self._told = self._told, []
        for one in told:
            one.after_fork()
        self._lock.release()

    def in_child(self) -> None:
        self._lock, self._told = Lock(), []
        for one in list(self._all):
            one.begin_anew()


_watched = _Watched()
watch = _watched.add
os.register_at_fork(
    before=_watched.before,
    after_in_parent=_watched.in_parent,
    after_in_child=_watched.in_child,
)


def keep_for_ever(something: object) -> None:
    """Let nothing ever free ``something``, not even the end of the interpreter."""
    import ctypes  # noqa: PLC0415 - only where a connection was in use

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(something))
