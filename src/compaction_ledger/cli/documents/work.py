"""What `work` says, line by line, and what its health page says."""

from __future__ import annotations

from typing import Literal

from compaction_ledger.cli.documents.common import Count, Document, Time
from compaction_ledger.cli.documents.compaction import RangeCompacted
from compaction_ledger.cli.documents.operating import WorkBacklog, seconds
from compaction_ledger.domain.work import Backlog
from compaction_ledger.serving import Condition
from compaction_ledger.usecases.working import LookFailure

WorkEvent = Literal[
    "range",
    "error",
    "store_away",
    "store_back",
    "signing_failed",
    "worker_started",
    "worker_ended",
    "end",
]


class WorkError(Document):
    """An error that was met, and that the worker lived through."""

    code: str
    """Stable; see the error codes in cli.md."""

    message: str

    number: Count | None
    """How many times in a row its conversation has met one."""

    @classmethod
    def of(cls, failure: LookFailure) -> WorkError:
        return cls(code=failure.code, message=failure.message, number=failure.number)


class WorkDocument(Document):
    """`compaction-ledger work`. One of many: with `--json`, each stands on a line of its own."""

    event: WorkEvent
    """What happened: to a range, a conversation, the store or a process; or that all has ended."""

    at: Time
    """By the clock of the machine."""

    worker: Count
    """The number of the process, from 1; 0 for the one that keeps the others."""

    scope: str | None
    conversation: str | None

    range: RangeCompacted | None
    """Of `range`: what became of it."""

    error: WorkError | None
    """Of `error`, `store_away` and `signing_failed`."""

    process: Count | None
    """Of `worker_started` and `worker_ended`: the process id."""

    exit_code: int | None
    """Of `worker_ended`; below zero, it is the signal that ended it."""

    again_in: float | None
    """Of `worker_ended`: after how many seconds another one begins; `null` if none does."""

    stopped: bool | None
    """Of `end`: whether it was asked to end."""

    counts: dict[str, Count] | None
    """Of `end`: how much was done, by name; `ranges_completed` are the summaries."""


class WorkerStatus(Document):
    """One process that works."""

    worker: Count
    """Its number, from 1."""

    process: Count | None
    """Its process id; `null` while there is none."""

    ready: bool
    trouble: str | None
    """Why it is not ready."""

    draining: bool
    """Whether it is ending."""

    busy: Count
    """How many of its threads look at a conversation now."""

    restarts: Count
    """How many times another process took the place of one that ended."""

    counts: dict[str, Count]
    """How much the present process has done, by name."""

    @classmethod
    def of(cls, worker: int, process: int, condition: Condition) -> WorkerStatus:
        return cls(
            worker=worker,
            process=process,
            ready=condition.trouble is None,
            trouble=condition.trouble,
            draining=condition.draining,
            busy=condition.busy,
            restarts=0,
            counts=dict(condition.counts),
        )


class WorkStatusDocument(Document):
    """What the path `/status` of `work --health-port` answers."""

    ready: bool
    """Whether all of it is."""

    trouble: str | None
    """The first reason why it is not."""

    backlog: WorkBacklog | None
    """Up to a quarter of a minute old; `null` where it is not known."""

    workers: list[WorkerStatus]

    @classmethod
    def of(cls, workers: list[WorkerStatus], backlog: WorkBacklog | None) -> WorkStatusDocument:
        trouble = next((one.trouble for one in workers if one.trouble is not None), None)
        return cls(ready=trouble is None, trouble=trouble, backlog=backlog, workers=workers)


def backlog_of(backlog: Backlog) -> WorkBacklog:
    """The work list, as a document."""
    oldest = backlog.oldest_due
    return WorkBacklog(
        due=backlog.due,
        leased=backlog.leased,
        waiting=backlog.waiting,
        failing=backlog.failing,
        oldest_due_seconds=None if oldest is None else seconds(oldest),
    )


class ChildStatus(Document):
    """What a process of `--processes` tells its parent about once a second."""

    status: WorkerStatus
    backlog: WorkBacklog | None
