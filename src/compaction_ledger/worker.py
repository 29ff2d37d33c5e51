"""A worker: compacts one conversation or all that are due, and stops cleanly when asked to."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from compaction_ledger.domain.errors import InvalidSetting, LedgerError, StoreError
from compaction_ledger.usecases.compaction import CompactionReport, Compactor, OnRange
from compaction_ledger.usecases.stopping import Stopped

OnConversation = Callable[[str, str], OnRange | None]
"""Called before each conversation with scope and id; returns what is told of its ranges."""


class SignalStop:
    """A stop that a call of :meth:`request` asks for, in any thread; SIGINT and SIGTERM can be made to.

    It is heeded before the next step. A model call is interrupted at once if the request comes in the very
    thread that waits for it, as a signal does where the main thread compacts. Calls that other threads wait
    for are ended by ``on_request``, if that is the summarizer's ``cancel``: it is called at each request.
    """

    def __init__(self, on_request: Callable[[], None] | None = None) -> None:
        self.signal_number: int | None = None
        """The first signal that asked, if a signal did."""
        self._on_request = on_request
        self._requested = False
        self._calling: set[int] = set()
        """The threads that wait for a model."""

    @property
    def requested(self) -> bool:
        """Whether a stop was asked for."""
        return self._requested

    def request(self) -> None:
        """Ask for a stop; raises :class:`Stopped` where this thread itself waits for a model."""
        self._requested = True
        if self._on_request is not None:
            self._on_request()
        this = threading.get_ident()
        if this in self._calling:
            self._calling.discard(this)
            raise Stopped

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Around a model call. A stop that came just before it is heeded too."""
        this = threading.get_ident()
        self._calling.add(this)
        try:
            if self._requested:
                raise Stopped
            yield
        finally:
            self._calling.discard(this)

    @contextmanager
    def on_signals(self) -> Generator[None]:
        """While this lasts, SIGINT and SIGTERM ask for a stop. Only the main thread can use it."""

        def asked(number: int, _frame: FrameType | None) -> None:
            if self.signal_number is None:
                self.signal_number = number
            self.request()

        before = {
            number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class ConversationFailure:
    """A conversation that could not be compacted, or not to its end, and the error that it ended with."""

    scope: str
    conversation: str
    error: LedgerError


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """What a run over conversations did. ``stopped`` if it was asked to stop before its end."""

    reports: tuple[CompactionReport, ...]
    stopped: bool
    failures: tuple[ConversationFailure, ...] = ()


def run_worker(
    compactor: Compactor,
    conversations: Iterator[tuple[str, str]],
    *,
    upgrade: bool = False,
    on_conversation: OnConversation | None = None,
) -> WorkerRun:
    """Compact each conversation in turn until the end or until the compactor's stop is requested.

    An error of one conversation is reported, and the run goes on. It ends with :class:`StoreError` kinds,
    which concern the whole file, and with :class:`InvalidSetting`, which every conversation would meet.
    """
    reports: list[CompactionReport] = []
    failures: list[ConversationFailure] = []

    def run(*, stopped: bool) -> WorkerRun:
        return WorkerRun(tuple(reports), stopped, tuple(failures))

    for scope, conversation in conversations:
        if compactor.stop.requested:
            return run(stopped=True)
        on_range = on_conversation(scope, conversation) if on_conversation else None
        try:
            reports.append(
                compactor.compact(scope, conversation, upgrade=upgrade, on_range=on_range)
            )
        except Stopped:
            return run(stopped=True)
        except (StoreError, InvalidSetting):
            raise
        except LedgerError as error:
            failures.append(ConversationFailure(scope, conversation, error))
    return run(stopped=compactor.stop.requested)


def worker_name() -> str:
    """A name for this worker's claims: host, process and a random part."""
    host = "".join(c if c.isprintable() else "-" for c in socket.gethostname()) or "host"
    return f"{host}/{os.getpid()}/{secrets.token_hex(4)}"
