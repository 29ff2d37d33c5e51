"""What `status` and `migrate` answer."""

from __future__ import annotations

from typing import get_args

from compaction_ledger.cli.documents.common import (
    Count,
    Document,
    Time,
    moment,
    moment_or_none,
)
from compaction_ledger.domain.read_models import GenerationProgress, RangeStatus
from compaction_ledger.domain.status import StoreKind, StoreStatus
from compaction_ledger.domain.work import Backlog
from compaction_ledger.usecases.status import LedgerStatus

STATUSES: tuple[RangeStatus, ...] = get_args(RangeStatus)


class MigrateDocument(Document):
    """`compaction-ledger migrate`."""

    applied: list[str]
    """The migrations that were applied just now, in order."""

    pending: list[str] | None
    """Those that are not applied yet; `null` with `--roles`, which does not look."""

    roles: str | None
    """With `--roles`: the SQL script that lets the two roles work, to be run as the owner of the tables."""


class RebuildProgress(Document):
    """A rebuild of the read models that goes on, or was killed."""

    generation: Count
    """The number of its tables."""

    position: Count
    """How many events it reflects so far."""


class WorkBacklog(Document):
    """The work list: conversations to be looked at by workers."""

    due: Count
    """Are to be looked at now."""

    leased: Count
    """Are with a worker."""

    waiting: Count
    """Wait for their time, such as that of a second attempt."""

    failing: Count
    """Those of `waiting` that met an error when they were last looked at."""

    oldest_due_seconds: float | None
    """For how long the first of the due ones has been so."""


class StatusSlots(Document):
    """The bound on attempts at once among processes (D1)."""

    taken: Count
    """Slots that are taken now."""

    limit: Count | None
    """How many there are, if this call was told so."""

    waiting: Count
    """Processes that wait for one."""


class StatusStore(Document):
    """Where the ledger is, and how large."""

    kind: StoreKind
    name: str
    """The file, or host, database and schema; never a password."""

    version: str
    """Of SQLite, or of the server."""

    schema_version: Count
    """The format of the file, or the number of the newest migration."""

    bytes: Count | None
    """Of the file, or of the ledger's tables and indexes."""


class StatusDocument(Document):
    """`compaction-ledger status`. Nothing is written: what lags is seen to lag."""

    at: Time
    """The moment, by the store's clock."""

    events: Count
    """How many events the log holds."""

    position: Count
    """How many of them the read models reflect."""

    lag: Count
    """How many they do not reflect yet."""

    lag_seconds: float
    """For how long the first of those has been in the log."""

    rebuild: RebuildProgress | None
    """A rebuild that goes on, or was killed."""

    ranges: dict[str, Count]
    """How many ranges have each status, as far as the read models know."""

    open_claims: Count
    """Ranges that a worker holds, or has left behind: `running` of `ranges`."""

    next_expiry: Time | None
    """When the lease of the first of these is over."""

    exhausted: Count
    """Ranges whose two attempts failed: `exhausted` of `ranges`."""

    backlog: WorkBacklog
    """The work list."""

    slots: StatusSlots | None
    """The bound on attempts among processes; only on PostgreSQL."""

    store: StatusStore

    @classmethod
    def of(cls, status: LedgerStatus) -> StatusDocument:
        ranges: dict[str, int] = {name: status.ranges.get(name, 0) for name in STATUSES}
        return cls(
            at=moment(status.at),
            events=status.events,
            position=status.position,
            lag=status.lag,
            lag_seconds=seconds(status.lag_time),
            rebuild=_rebuild(status.rebuild),
            ranges=ranges,
            open_claims=ranges["running"],
            next_expiry=moment_or_none(status.next_expiry),
            exhausted=ranges["exhausted"],
            backlog=_backlog(status.backlog),
            slots=_slots(status),
            store=_store(status.store),
        )


def seconds(microseconds: int) -> float:
    """A length of time, to the millisecond."""
    return round(microseconds / 1_000_000, 3)


def _rebuild(rebuild: GenerationProgress | None) -> RebuildProgress | None:
    if rebuild is None:
        return None
    return RebuildProgress(generation=rebuild.number, position=rebuild.position)


def _backlog(backlog: Backlog) -> WorkBacklog:
    return WorkBacklog(
        due=backlog.due,
        leased=backlog.leased,
        waiting=backlog.waiting,
        failing=backlog.failing,
        oldest_due_seconds=None if backlog.oldest_due is None else seconds(backlog.oldest_due),
    )


def _slots(status: LedgerStatus) -> StatusSlots | None:
    slots = status.store.slots
    if slots is None:
        return None
    return StatusSlots(taken=slots.taken, limit=status.slots, waiting=slots.waiting)


def _store(store: StoreStatus) -> StatusStore:
    return StatusStore(
        kind=store.kind,
        name=store.name,
        version=store.version,
        schema_version=store.layout,
        bytes=store.size,
    )
