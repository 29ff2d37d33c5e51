"""What PostgreSQL says, in the words of our error tree, and whether it is worth asking again."""

from __future__ import annotations

import re

import psycopg
from eventsourcing.persistence import IntegrityError
from psycopg import errors as pg
from psycopg_pool import PoolClosed

from compaction_ledger.domain.errors import (
    DamagedLog,
    DiskFull,
    Erased,
    LedgerBusy,
    LedgerReadOnly,
    NotALedger,
    StoreError,
    StoreUnavailable,
    TimeHasPassed,
)

OUT_OF_TIME = "CL001"
ERASED = "CL004"

_LATER = (
    pg.DeadlockDetected,
    pg.SerializationFailure,
    pg.CannotConnectNow,
    pg.AdminShutdown,
    pg.CrashShutdown,
)
_UNPREPARED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
_BUSY = (
    pg.LockNotAvailable,
    pg.QueryCanceled,
    pg.TooManyConnections,
    pg.DeadlockDetected,
    pg.SerializationFailure,
    pg.IdleInTransactionSessionTimeout,
)
_NO_LEDGER = (
    pg.UndefinedTable,
    pg.UndefinedFunction,
    pg.UndefinedColumn,
    pg.InvalidSchemaName,
    pg.InvalidCatalogName,
)
_READ_ONLY = (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction)
_DAMAGED = (pg.DataCorrupted, pg.IndexCorrupted, pg.CharacterNotInRepertoire, pg.NoDataFound)
_PLACE = re.compile(r"\(idx\)=\(([0-9]+)\)")
_LAST_WORDS = ("FATAL", "PANIC")
_SECRET = re.compile(r"password\s*=\s*\S+|://[^@\s/]*@", re.IGNORECASE)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that nothing is known of what was asked last (A9).

    As libpq says it, or the server as it ends the connection, or a pooler whose own connection went.
    """
    if error.sqlstate is None:
        return isinstance(error, (pg.OperationalError, pg.InterfaceError))
    return error.sqlstate.startswith("08") or error.diag.severity_nonlocalized in _LAST_WORDS


def is_passing(error: psycopg.Error) -> bool:
    """Whether nothing was stored and the same can be asked again at once."""
    return isinstance(error, (*_LATER, *_UNPREPARED, pg.IdleInTransactionSessionTimeout))


def is_unprepared(error: psycopg.Error) -> bool:
    """Whether a pooler stands between that does not know of our prepared statements."""
    return isinstance(error, _UNPREPARED)


def translated(error: Exception, name: str) -> Exception:
    """The error to raise instead. A broken unique key keeps the type that ``eventsourcing`` expects."""
    if isinstance(error, pg.UniqueViolation):
        return _taken(error)
    if isinstance(error, PoolClosed):
        return StoreUnavailable(f"{name} was closed")
    if isinstance(error, psycopg.Error):
        return _by_kind(error, name)
    return StoreError(f"{name}: {error}")


def _by_kind(error: psycopg.Error, name: str) -> Exception:
    words = said(error)
    if error.sqlstate == OUT_OF_TIME:
        return TimeHasPassed(f"the decision no longer holds: {words}")
    if error.sqlstate == ERASED:
        return Erased("the conversation was erased: nothing is recorded of it any more")
    if isinstance(error, pg.DiskFull):
        return DiskFull(f"the disk of {name} is full; nothing was stored")
    if isinstance(error, _BUSY):
        return LedgerBusy(f"{name} is held by others for too long: {words}")
    if isinstance(error, _READ_ONLY):
        return LedgerReadOnly(f"{name} does not allow it: {words}")
    if isinstance(error, _NO_LEDGER):
        return NotALedger(f"{name} does not hold a ledger: {words}")
    if isinstance(error, _DAMAGED):
        return DamagedLog(f"{name} is damaged: {words}")
    if is_lost(error) or isinstance(error, _LATER):
        return StoreUnavailable(f"{name} cannot be reached: {words}")
    return StoreError(f"{name}: {words}")


def _taken(error: pg.UniqueViolation) -> Exception:
    """A version of a stream that another wrote first (A8), or a place that the head said was free."""
    place = _PLACE.search(error.diag.message_detail or "")
    if error.diag.table_name == "stored_events" and place:
        return DamagedLog("the head says that this place is free", index=int(place[1]))
    return IntegrityError(said(error))


def said(error: Exception) -> str:
    """The first line of what the server or libpq said, without anything that could be a secret."""
    lines = _SECRET.sub("…", str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
