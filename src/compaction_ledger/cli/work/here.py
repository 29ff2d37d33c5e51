"""`work` in this process: one of several that a parent keeps, or the only one."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from compaction_ledger.cli.documents.operating import WorkBacklog
from compaction_ledger.cli.documents.work import (
    ChildStatus,
    WorkerStatus,
    WorkStatusDocument,
    backlog_of,
)
from compaction_ledger.cli.failing import BROKEN_PIPE, FINDING
from compaction_ledger.cli.work.health import health_page
from compaction_ledger.cli.work.options import WorkOptions
from compaction_ledger.cli.work.reporting import Paper, Reporter
from compaction_ledger.domain.errors import LedgerBusy, StoreError, StoreUnavailable
from compaction_ledger.domain.ports import Summarizer
from compaction_ledger.ledger import Ledger
from compaction_ledger.serving import Activity, Served
from compaction_ledger.worker import SignalStop

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
TICK = 0.1
_STDIN = 0
STATUS_SECONDS = 1.0
BACKLOG_SECONDS = 15.0


@dataclass(slots=True)
class Here:
    """A worker in this process. ``child`` is its number among those of a parent; 0 if it has none."""

    options: WorkOptions
    child: int = 0
    hurry: Event = field(default_factory=Event)
    activity: Activity = field(default_factory=Activity)
    _requests: int = 0
    _stop: SignalStop = field(init=False)
    _reporter: Reporter = field(init=False)
    _backlog: _Backlog = field(init=False)

    def __post_init__(self) -> None:
        self._stop = SignalStop(self._asked)
        as_json = self.options.json or self.child > 0
        paper = Paper(as_json=as_json, on_broken=self._stop.request)
        self._reporter = Reporter(paper, self.child or 1)
        self._backlog = _Backlog()

    def run(self) -> int:
        """Work; the exit code. Raises kinds of :class:`LedgerError` that there is no waiting for."""
        options = self.options
        # That the database is away is told once, in our words, and not with each try of each connection.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
        with (
            self._stop.on_signals(),
            self._watched_by_parent(),
            health_page(options.health_host, options.health_port, self._status),
            options.choice.open() as summarizer,
        ):
            ledger = self._opened()
            if ledger is None:
                return 0
            with ledger:
                self._backlog.ledger = ledger
                served = self._work(ledger, summarizer)
                self._backlog.ledger = None
        return self._ended(served)

    def _opened(self) -> Ledger | None:
        """The ledger, as soon as its store can be reached; ``None`` after a stop."""
        tries = 0
        while not self._stop.requested:
            try:
                ledger = self.options.open()
            except (StoreUnavailable, LedgerBusy) as error:
                if self.options.pace.until_idle:
                    raise
                if tries == 0:
                    self._reporter.store_away(error)
                tries += 1
                longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1))
                self._wait(longest * random.uniform(0.5, 1.0))  # noqa: S311 - not all at once
            else:
                if tries:
                    self._reporter.store_back()
                return ledger
        return None

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stop.requested:
            time.sleep(TICK)

    def _work(self, ledger: Ledger, summarizer: Summarizer) -> Served:
        return ledger.work(
            summarizer=summarizer,
            upgrade=self.options.upgrade,
            stop=self._stop,
            pace=self.options.pace,
            listener=self._reporter,
            activity=self.activity,
            hurry=self.hurry,
            sign_every=self.options.sign_every,
        )

    def _ended(self, served: Served) -> int:
        self._reporter.end(served.counts, stopped=served.stopped)
        if self._reporter.paper.broken and not self.child:
            return BROKEN_PIPE
        finding = self.options.pace.until_idle and self._reporter.found_something
        return FINDING if served.abandoned or finding else 0

    def _asked(self) -> None:
        """The first request to stop lets calls end; at the second they are interrupted."""
        self._requests += 1
        if self._requests > 1:
            self.hurry.set()

    # --- who watches ---

    @contextmanager
    def _watched_by_parent(self) -> Generator[None]:
        """Tell the parent how it is, and end when there is none any more."""
        if not self.child:
            yield
            return
        over = Event()
        Thread(target=self._end_with_parent, name="compaction-ledger parent", daemon=True).start()
        teller = Thread(target=self._tell_parent, args=(over,), daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join(STATUS_SECONDS)

    def _end_with_parent(self) -> None:
        """The parent never writes; the end of what it could write is its own."""
        while os.read(_STDIN, 1):  # not by Python's own file: its lock would be missed at the exit
            pass
        self._stop.request()

    def _tell_parent(self, over: Event) -> None:
        while True:
            backlog = self._backlog.now() if self.child == 1 else None
            status = WorkerStatus.of(self.child, os.getpid(), self.activity.condition())
            self._reporter.paper.write_json(ChildStatus(status=status, backlog=backlog))
            if over.wait(STATUS_SECONDS):
                return

    def _status(self) -> WorkStatusDocument:
        status = WorkerStatus.of(1, os.getpid(), self.activity.condition())
        return WorkStatusDocument.of([status], self._backlog.now())


class _Backlog:
    """How much there is to do, asked for once in a while however often somebody wants to know."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.ledger: Ledger | None = None
        self._clock = clock
        self._lock = Lock()
        self._known: WorkBacklog | None = None
        self._again_at = 0.0

    def now(self) -> WorkBacklog | None:
        """As last asked for. Who comes while another asks does not wait for the answer."""
        if self._lock.acquire(blocking=False):
            try:
                if self.ledger is not None and self._clock() >= self._again_at:
                    self._again_at = self._clock() + BACKLOG_SECONDS
                    self._known = backlog_of(self.ledger.backlog())
            except StoreError:
                self._known = None
            finally:
                self._lock.release()
        return self._known
