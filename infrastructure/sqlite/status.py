"""What a ledger file says of itself."""

from __future__ import annotations

import sqlite3

from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.domain.status import StoreStatus
from compaction_ledger.infrastructure.sqlite.database import Database


def store_status(database: Database) -> StoreStatus:
    """The file's format, and its size with its write-ahead log. Raises kinds of :class:`StoreError`."""
    with database.transaction(commit=False) as cursor:
        ((layout,),) = cursor.execute("PRAGMA user_version").fetchall()
    log = database.path.with_name(f"{database.path.name}-wal")
    try:
        size = database.path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    except OSError as error:
        raise StoreUnavailable(f"{database.path} cannot be looked at: {error}") from error
    name = str(database.path)
    return StoreStatus("sqlite", name, sqlite3.sqlite_version, layout, size, None)
