"""What `work` prints: a line for each thing that happened, from whatever thread."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from pydantic import BaseModel

from compaction_ledger.cli.documents.common import moment
from compaction_ledger.cli.documents.compaction import RangeCompacted
from compaction_ledger.cli.documents.work import WorkDocument, WorkError, WorkEvent
from compaction_ledger.cli.views.work import line_of
from compaction_ledger.composition import system_clock
from compaction_ledger.domain.errors import LedgerError, StoreError
from compaction_ledger.serving import Listener
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.working import LookFailure

_NOTHING: dict[str, Any] = dict.fromkeys(WorkDocument.model_fields)


class Paper:
    """Where lines are written. When nobody reads any more, ``on_broken`` is called, and they are left out."""

    def __init__(self, *, as_json: bool, on_broken: Callable[[], None]) -> None:
        self.as_json = as_json
        self.broken = False
        self._on_broken = on_broken
        self._lock = Lock()

    def write(self, document: WorkDocument) -> None:
        """Write what happened."""
        if self.as_json:
            self.write_json(document)
        elif (line := line_of(document)) is not None:
            self._write(line)

    def write_json(self, document: BaseModel) -> None:
        """Write a document, on one line. What is not ASCII is escaped."""
        self._write(json.dumps(document.model_dump(mode="json"), separators=(",", ":")))

    def _write(self, line: str) -> None:
        with self._lock:
            if self.broken:
                return
            try:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
            except OSError:
                self.broken = True
        if self.broken:
            self._on_broken()


class Reporter(Listener):
    """Tells on paper what a worker does. ``worker`` is its number."""

    def __init__(self, paper: Paper, worker: int) -> None:
        self.paper = paper
        self._worker = worker
        self.found_something = False
        """Whether somebody should look at something."""

    def range_done(self, scope: str, conversation: str, outcome: RangeOutcome) -> None:
        """What became of a range, if something was tried on it."""
        if outcome.attempted or outcome.result == "refused":
            done = RangeCompacted.of(outcome)
            self._tell("range", scope=scope, conversation=conversation, range=done)
        if outcome.result in {"failed", "exhausted", "refused", "outage"}:
            self.found_something = True

    def failed(self, failure: LookFailure) -> None:
        """A conversation met an error."""
        place = {"scope": failure.scope, "conversation": failure.conversation}
        self._tell("error", **place, error=WorkError.of(failure))
        self.found_something = True

    def store_away(self, error: StoreError) -> None:
        """The store cannot do its part now."""
        told = WorkError(code=error.code, message=str(error), number=None)
        self._tell("store_away", error=told)

    def store_back(self) -> None:
        """The store can do its part again."""
        self._tell("store_back")

    def signing_failed(self, error: LedgerError) -> None:
        """The log could not be signed."""
        told = WorkError(code=error.code, message=str(error), number=None)
        self._tell("signing_failed", error=told)
        self.found_something = True

    def worker_started(self, worker: int, process: int) -> None:
        """A process began."""
        self._tell("worker_started", worker=worker, process=process)

    def worker_ended(self, worker: int, process: int, code: int, again_in: float | None) -> None:
        """A process ended."""
        self._tell(
            "worker_ended", worker=worker, process=process, exit_code=code, again_in=again_in
        )

    def end(self, counts: Mapping[str, int], *, stopped: bool) -> None:
        """Everything ended."""
        self._tell("end", counts=dict(counts), stopped=stopped)

    def _tell(self, event: WorkEvent, **members: Any) -> None:
        known = {"event": event, "at": moment(system_clock()), "worker": self._worker}
        self.paper.write(WorkDocument.model_validate({**_NOTHING, **known, **members}))
