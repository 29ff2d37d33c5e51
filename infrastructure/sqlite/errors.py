"""What SQLite says, in the words of our error tree."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from eventsourcing.persistence import ConnectionPoolClosedError, IntegrityError

from compaction_ledger.domain.errors import (
    DamagedLog,
    DiskFull,
    LedgerBusy,
    LedgerError,
    LedgerReadOnly,
    NotALedger,
    StoreError,
    StoreUnavailable,
)

_PRIMARY_CODE = 0xFF
_SHARED_MEMORY = (
    64 * 1024
)  # what SQLite needs beside the file; without it, it speaks of an I/O error


def translated(error: Exception, path: Path) -> Exception:
    """The error to raise instead. A broken unique key keeps the type that ``eventsourcing`` expects."""
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityError(error)
    if isinstance(error, ConnectionPoolClosedError):
        return StoreUnavailable(f"{path} was closed")
    if not isinstance(error, sqlite3.Error):  # the pool had no connection to give in time
        return LedgerBusy(f"{path} has been in use by this process for too long: {error}")
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own word
        return _not_of_sqlite(path, error)
    return _by_code(code & _PRIMARY_CODE, path, error)


def _not_of_sqlite(path: Path, error: sqlite3.Error) -> LedgerError:
    kind = DamagedLog if str(error).startswith("Could not decode to UTF-8") else StoreError
    return kind(f"{path}: {error}")


def _by_code(code: int, path: Path, error: sqlite3.Error) -> LedgerError:
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LedgerBusy(f"{path} has been locked by another process for too long")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return LedgerReadOnly(f"{path} or its folder cannot be written")
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"the disk of {path} is full; nothing was stored")
        case sqlite3.SQLITE_NOTADB:
            return NotALedger(f"{path} is not an SQLite file")
        case sqlite3.SQLITE_CORRUPT:
            return DamagedLog(f"{path} is damaged as an SQLite file: {error}")
        case sqlite3.SQLITE_ERROR:  # all statements are ours: a table or column is not there
            return DamagedLog(f"{path} does not have the tables of a ledger: {error}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            return _unavailable(path, error)
        case _:
            return StoreError(f"{path}: {error}")


def _unavailable(path: Path, error: sqlite3.Error) -> StoreError:
    """SQLite names neither a read-only folder nor, in places, a full disk: so we look."""
    if _is_read_only(path):
        return LedgerReadOnly(f"{path} or its folder cannot be written")
    if path.parent.is_dir() and shutil.disk_usage(path.parent).free < _SHARED_MEMORY:
        return DiskFull(f"the disk of {path} is full; nothing was stored")
    return StoreUnavailable(f"{path} cannot be opened, read or written: {error}")


def _is_read_only(path: Path) -> bool:
    found = path if os.access(path, os.F_OK) else path.parent
    writable = os.access(found, os.W_OK) and os.access(path.parent, os.W_OK)
    return os.access(found, os.R_OK) and not writable
