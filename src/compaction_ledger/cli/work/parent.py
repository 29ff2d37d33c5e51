"""`work --processes`: a process that keeps others, which do the work.

::

                    stdin: held open; its end tells them that the parent is gone
      parent  ------------------------------------------------------------------> child
              <------------------------------------------------------------------
                    stdout: what happened, and about once a second how it is

Children are started anew and never forked: nothing of an open ledger is inherited. Each is in a process
group of its own, so that an interrupt at a terminal comes to the parent alone, which passes it on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from pydantic import ValidationError

from compaction_ledger.cli.documents.operating import WorkBacklog
from compaction_ledger.cli.documents.upkeep import ErrorDocument, ErrorRecord
from compaction_ledger.cli.documents.work import (
    ChildStatus,
    WorkDocument,
    WorkerStatus,
    WorkStatusDocument,
)
from compaction_ledger.cli.failing import BAD_INPUT, BROKEN_PIPE
from compaction_ledger.cli.work.health import health_page
from compaction_ledger.cli.work.options import WorkOptions
from compaction_ledger.cli.work.reporting import Paper, Reporter
from compaction_ledger.domain.errors import LedgerBusy, StoreUnavailable
from compaction_ledger.serving import INTERRUPTED
from compaction_ledger.worker import SignalStop

TICK = 0.1
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
STEADY = 60.0
"""Who has run for so long begins again at once, whatever was before."""

SILENCE = 10.0
"""A child that has said nothing for so long is not ready."""

GRACE = 10.0
"""How long beyond its time a child may take to end before it is killed."""


@dataclass(slots=True)
class _Child:
    number: int
    process: subprocess.Popen[bytes] | None = None
    status: WorkerStatus | None = None
    heard_at: float = 0.0
    restarts: int = 0
    exit_code: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])

    def now(self) -> WorkerStatus:
        """How it is."""
        process = self.process
        silent = time.monotonic() - self.heard_at > SILENCE
        known = self.status
        if process is None or known is None or silent:
            return WorkerStatus(
                worker=self.number,
                process=None if process is None else process.pid,
                ready=False,
                trouble="it says nothing" if process and known else "it has not begun yet",
                draining=False,
                busy=0,
                restarts=self.restarts,
                counts={},
            )
        return known.model_copy(update={"restarts": self.restarts})


@dataclass(slots=True)
class Parent:
    """Keeps as many processes as the options say, until they are to end."""

    options: WorkOptions
    _stop: SignalStop = field(init=False)
    _reporter: Reporter = field(init=False)
    _children: list[_Child] = field(init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _ending: Event = field(default_factory=Event, init=False)
    _requests: int = field(default=0, init=False)
    _backlog: WorkBacklog | None = field(default=None, init=False)
    _error: ErrorRecord | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._stop = SignalStop(self._asked)
        paper = Paper(as_json=self.options.json, on_broken=self._stop.request)
        self._reporter = Reporter(paper, 0)
        self._children = [_Child(number) for number in range(1, self.options.processes + 1)]

    def run(self) -> int:
        """Keep the children; the exit code. Raises a :class:`LedgerError` that there is no waiting for."""
        options = self.options
        with suppress(StoreUnavailable, LedgerBusy):  # the children wait for it
            options.open().close()
        with (
            self._stop.on_signals(),
            health_page(options.health_host, options.health_port, self._status),
        ):
            keepers = [
                Thread(target=self._keep, args=(child,), daemon=True) for child in self._children
            ]
            for keeper in keepers:
                keeper.start()
            try:
                self._wait_for(keepers)
            finally:
                self._signal_all(signal.SIGKILL)  # nobody is left then, unless we are interrupted
        return self._ended()

    def _wait_for(self, keepers: list[Thread]) -> None:
        """Until all are done. Requests to end are passed on, and at last the children are killed."""
        passed_on, kill_at = 0, float("inf")
        while any(keeper.is_alive() for keeper in keepers):
            if self._error is not None and not self._requests:
                self._asked()
            if self._requests > passed_on:
                passed_on = self._requests
                drain = self.options.pace.drain if passed_on == 1 else 0.0
                kill_at = time.monotonic() + drain + INTERRUPTED + GRACE
                self._ending.set()
                self._signal_all(signal.SIGTERM)
            if time.monotonic() > kill_at:
                self._signal_all(signal.SIGKILL)
            time.sleep(TICK)

    def _asked(self) -> None:
        self._requests += 1

    def _signal_all(self, number: signal.Signals) -> None:
        with self._lock:
            for child in self._children:
                if child.process is not None:
                    child.process.send_signal(number)

    def _ended(self) -> int:
        total: Counter[str] = Counter()
        for child in self._children:
            total += child.counts
        if self._error is not None:  # the child itself has told it on stderr
            if self.options.json:
                self._reporter.paper.write_json(ErrorDocument(error=self._error))
            return BAD_INPUT
        self._reporter.end(dict(sorted(total.items())), stopped=self._requests > 0)
        if self._reporter.paper.broken:
            return BROKEN_PIPE
        return max((child.exit_code for child in self._children), default=0)

    # --- one child ---

    def _keep(self, child: _Child) -> None:
        """Have a child running, whatever becomes of it, until all are to end."""
        pauses = 0
        while (process := self._started(child)) is not None:
            began = time.monotonic()
            with process:
                self._listen(child, process)
            code = process.returncode
            pauses = 1 if time.monotonic() - began > STEADY else pauses + 1
            pause = self._pause_after(child, code, pauses)
            with self._lock:
                child.process, child.status = None, None
            self._reporter.worker_ended(child.number, process.pid, code, pause)
            if pause is None or self._ending.wait(pause):
                return
            child.restarts += 1

    def _started(self, child: _Child) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._ending.is_set():
                return None
            process = child.process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    sys.executable,
                    "-m",
                    "compaction_ledger",
                    *self.options.words_of_child(child.number),
                ],
                env={**os.environ, **self.options.variables_of_child()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        self._reporter.worker_started(child.number, process.pid)
        return process

    def _pause_after(self, child: _Child, code: int, pauses: int) -> float | None:
        """How long to wait before the next one; ``None`` where none is to come.

        Who was told to end, and who has ended by itself as that was its task, is not replaced.
        """
        if self._ending.is_set() or self._error is not None:
            ended_by_us = code in {0, -signal.SIGTERM}
            child.exit_code = 0 if ended_by_us else 1
            return None
        if self.options.pace.until_idle and code in {0, 1}:
            child.exit_code = code
            return None
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(pauses - 1, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come back at once

    def _listen(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        """Pass on what a child says, until it ends."""
        if process.stdout is None:
            return
        for line in process.stdout:
            self._heard(child, line)

    def _heard(self, child: _Child, line: bytes) -> None:
        try:
            said = json.loads(line)
            if "status" in said:
                self._note(child, ChildStatus.model_validate(said))
            elif "error" in said and "event" not in said:
                self._complain(ErrorDocument.model_validate(said).error)
            else:
                self._pass_on(child, WorkDocument.model_validate(said))
        except (TypeError, ValueError, ValidationError):  # something else there writes to stdout
            sys.stderr.buffer.write(line)
            sys.stderr.flush()

    def _note(self, child: _Child, said: ChildStatus) -> None:
        child.status, child.heard_at = said.status, time.monotonic()
        if child.number == 1:
            self._backlog = said.backlog

    def _complain(self, error: ErrorRecord) -> None:
        """What every child would meet ends all of them; a defect ends the one that has met it."""
        if error.code != "internal" and self._error is None:
            self._error = error

    def _pass_on(self, child: _Child, said: WorkDocument) -> None:
        if said.event == "end":
            child.counts.update(said.counts or {})
        else:
            self._reporter.paper.write(said)

    # --- health ---

    def _status(self) -> WorkStatusDocument:
        return WorkStatusDocument.of([child.now() for child in self._children], self._backlog)
