"""One run of `backfill`: the archive first, then whatever is due, until nothing is.

The work list is that of every worker: several runs, and `work` beside them, share what there is to do. A run
ends when nothing is due, nothing is with a worker, and nothing waits for its time but what met an error.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from threading import Event, Lock, Thread

from compaction_ledger.cli.backfill.telling import Teller
from compaction_ledger.cli.documents.backfill import (
    ArchiveRecord,
    BackfillDocument,
    RefusedRecord,
    SummarizedRecord,
    failures_of,
)
from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.ports import Summarizer
from compaction_ledger.domain.takeover import ScopeFrom
from compaction_ledger.domain.work import Backlog
from compaction_ledger.ledger import Ledger
from compaction_ledger.serving import Listener, Pace
from compaction_ledger.usecases.archiving import ArchiveImport
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.working import LookFailure
from compaction_ledger.worker import SignalStop

LOOK_SECONDS = 1.0
"""How often it is asked how far it is; seldomer where the answer takes long."""

LOOK_SHARE = 9
"""For so many times as long as the answer took, it is not asked for again."""


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """What to take over, and whose it is."""

    places: tuple[Path, ...]
    format: str | None
    scope_from: ScopeFrom
    scope: str


@dataclass(slots=True)
class Heard(Listener):
    """What the workers of this process tell."""

    results: Counter[str] = field(default_factory=Counter[str])
    failures: list[LookFailure] = field(default_factory=list[LookFailure])
    tell: Callable[[str], None] = lambda _: None
    _lock: Lock = field(default_factory=Lock)

    def range_done(self, scope: str, conversation: str, outcome: RangeOutcome) -> None:  # noqa: ARG002
        with self._lock:
            self.results[outcome.result] += 1

    def failed(self, failure: LookFailure) -> None:
        with self._lock:
            self.failures.append(failure)

    def store_away(self, error: StoreError) -> None:
        self.tell(f"the store cannot do it, and is asked again: {error}")

    def store_back(self) -> None:
        self.tell("the store can do it again")


@dataclass(frozen=True, slots=True)
class Until:
    """A stop that is asked for by a signal, or because everything is done."""

    signals: SignalStop
    done: Event

    @property
    def requested(self) -> bool:
        return self.done.is_set() or self.signals.requested

    @contextmanager
    def interruptible(self) -> Generator[None]:
        with self.signals.interruptible():
            yield


@dataclass(slots=True)
class Backfill:
    """A run on an open ledger. At the first signal nothing new is begun; a second interrupts calls."""

    ledger: Ledger
    archive: ArchivePlace
    teller: Teller
    pace: Pace
    summarizer: Summarizer | None = None
    upgrade: bool = False
    import_only: bool = False
    _hurry: Event = field(default_factory=Event)
    _signals: int = 0
    _stop: SignalStop = field(init=False)
    _heard: Heard = field(init=False)

    def __post_init__(self) -> None:
        self._stop = SignalStop(self._asked)
        self._heard = Heard(tell=self.teller.note)

    def run(self) -> BackfillDocument:
        """Do it. Raises kinds of :class:`LedgerError` that concern everything; then run it again."""
        with self._stop.on_signals():
            self.ledger.catch_up()  # so that what is done is known
            began = time.monotonic()
            imported = self._import()
            record = ArchiveRecord.of(imported, time.monotonic() - began)
            summarized = None
            if not self.import_only and not self._stop.requested:
                summarized = self._summarize(imported)
            number = self._stop.signal_number
            return BackfillDocument(
                stopped=self._stop.requested,
                signal=None if number is None else Signals(number).name,
                archive=record,
                summarized=summarized,
                failures=failures_of(self._heard.failures),
                refused=[RefusedRecord.of(one) for one in imported.refused],
                events=self.ledger.size(),
                seconds=round(time.monotonic() - began, 3),
                peak_memory=peak_memory(),
            )

    @property
    def signal_number(self) -> int | None:
        """The signal that stopped it, if one did."""
        return self._stop.signal_number

    def _asked(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self._hurry.set()

    def _import(self) -> ArchiveImport:
        given = self.archive
        with self.teller.importing() as tell:
            return self.ledger.import_archive(
                *given.places,
                format=given.format,
                scope=given.scope,
                scope_from=given.scope_from,
                stop=self._stop,
                on_progress=tell,
            )

    def _summarize(self, imported: ArchiveImport) -> SummarizedRecord:
        began, before = time.monotonic(), self._done()
        until = Until(self._stop, Event())
        with self.teller.summarizing(imported.targets) as tell:

            def tell_done(done: int) -> None:
                tell(imported.done + done - before)

            watch = Thread(target=self._watch, args=(until.done, tell_done), daemon=True)
            watch.start()
            try:
                self.ledger.work(
                    summarizer=self.summarizer,
                    upgrade=self.upgrade,
                    stop=until,
                    pace=self.pace,
                    listener=self._heard,
                    hurry=self._hurry,
                )
            finally:
                until.done.set()
                watch.join()
        seconds = round(time.monotonic() - began, 3)
        done = max(0, self._done() - before)
        return SummarizedRecord(ranges=dict(self._heard.results), done=done, seconds=seconds)

    def _done(self) -> int:
        return self.ledger.status().ranges.get("done", 0)

    def _watch(self, done: Event, tell: Callable[[int], None]) -> None:
        """Tell how far it is, and say when everything is done."""
        pause = 0.0
        while not done.wait(pause):
            began = time.monotonic()
            with suppress(StoreError):  # the workers wait for it, and tell
                status = self.ledger.status()
                tell(status.ranges.get("done", 0))
                if is_done(status.backlog):
                    done.set()
            pause = max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - began))


def is_done(backlog: Backlog) -> bool:
    """Whether nothing is left to wait for. What met an error is left to whoever looks into it."""
    return backlog.due == backlog.leased == 0 and backlog.waiting == backlog.failing


def peak_memory() -> int | None:
    """The most memory that this process has held, in bytes; ``None`` where the system does not tell."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
