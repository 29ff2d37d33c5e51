"""Originals in the ledger's own SQLite file: append-only, bytes as they came."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from compaction_ledger.domain.errors import LedgerReadOnly
from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.originals import NewOriginal, Original
from compaction_ledger.infrastructure.originals import checking
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.sqlite.formats import file_format

POSITIONS = 1 << 32  # as in 0002_window.sql: a message's key is run * 2^32 + position
WINDOW_FORMAT = 2

_RUN = "SELECT key, shape FROM window_runs WHERE scope = ? AND conversation = ? AND run = ?"
_COUNT = "SELECT max(key) FROM window_messages WHERE key >= ? AND key < ?"
_ROWS = (
    "SELECT key, role, exchange, at, digest, wire FROM window_messages "
    "WHERE key >= ? AND key < ? ORDER BY key"
)
_IDENTITIES = (
    "SELECT role, exchange, digest FROM window_messages WHERE key >= ? AND key < ? ORDER BY key"
)
_DIGESTS = "SELECT key, digest FROM window_messages WHERE key >= ? AND key < ? ORDER BY key"
_PLACE = "WHERE scope = ? AND conversation = ?"


class SQLiteOriginals:
    """The embedded store. In a file of format 1, which can only be read, there is nothing yet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- writing ---

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages, in one transaction that waits for its turn before it looks."""
        checking.check_append(key, shape, first, messages)
        with self._database.transaction(commit=True) as cursor:
            self._check_format(cursor)
            run, present = _run(cursor, key) or (None, shape)
            checking.check_shape(key, present, shape)
            count = 0 if run is None else _count(cursor, run)
            if checking.is_kept_already(
                key, first, messages, count, lambda: _identities(cursor, run, first, len(messages))
            ):
                return
            row = _begin(cursor, key, shape) if run is None else run
            cursor.executemany(
                "INSERT INTO window_messages (key, role, exchange, at, digest, wire) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (at, message.role, message.exchange, message.at, message.digest, message.wire)
                    for at, message in enumerate(messages, start=row * POSITIONS + first)
                ),
            )

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once (T14)."""
        checking.check_conversation(scope, conversation)
        checking.check_bytes(content, "result")
        digest = checking.sha256(content)
        with self._database.transaction(commit=True) as cursor:
            self._check_format(cursor)
            cursor.execute(
                "INSERT INTO window_results (scope, conversation, digest, content) "
                "VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (scope, conversation, digest, content),
            )
        return digest

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation, in one transaction."""
        checking.check_conversation(scope, conversation)
        place = (scope, conversation)
        with self._database.transaction(commit=True) as cursor:
            self._check_format(cursor)
            for (run,) in cursor.execute(
                f"SELECT key FROM window_runs {_PLACE}",  # noqa: S608 - our own words
                place,
            ).fetchall():
                cursor.execute("DELETE FROM window_messages WHERE key >= ? AND key < ?", _span(run))
            for table in ("window_runs", "window_results"):
                cursor.execute(f"DELETE FROM {table} {_PLACE}", place)  # noqa: S608 - our own words

    # --- reading ---

    def count(self, key: WindowKey) -> int:
        """How many messages are kept."""
        check_key(key)
        with self._database.transaction(commit=False) as cursor:
            run = self._run(cursor, key)
            return 0 if run is None else _count(cursor, run[0])

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape."""
        check_key(key)
        with self._database.transaction(commit=False) as cursor:
            run = self._run(cursor, key)
            return None if run is None else run[1]

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message, in order."""
        check_key(key)
        with self._database.transaction(commit=False, lenient=True) as cursor:
            run = self._run(cursor, key)
            rows = [] if run is None else cursor.execute(_DIGESTS, _span(run[0])).fetchall()
        checking.check_dense(key, (row[0] % POSITIONS for row in rows), 0, 0)
        return [checking.digest_of(key, at, row[1]) for at, row in enumerate(rows)]

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``, as they were at one moment."""
        check_key(key)
        checking.check_part(start, stop)
        with self._database.transaction(commit=False, lenient=True) as cursor:
            run = self._run(cursor, key)
            if run is None:
                return []
            end = _count(cursor, run[0])
            if stop is not None:
                end = min(stop, end)
            if start >= end:
                return []
            first = run[0] * POSITIONS
            rows: list[Any] = cursor.execute(_ROWS, (first + start, first + end)).fetchall()
        checking.check_dense(key, (row[0] % POSITIONS for row in rows), start, end)
        return [checking.original_of(key, row[0] % POSITIONS, *row[1:]) for row in rows]

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation, in the order they began."""
        checking.check_conversation(scope, conversation)
        with self._database.transaction(commit=False) as cursor:
            if not self._has_windows(cursor):
                return []
            rows = cursor.execute(
                f"SELECT run FROM window_runs {_PLACE} ORDER BY key",  # noqa: S608 - our own words
                (scope, conversation),
            ).fetchall()
        return [run for (run,) in rows]

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """The content, checked against its digest."""
        if not checking.check_result(scope, conversation, digest):
            return None
        with self._database.transaction(commit=False, lenient=True) as cursor:
            if not self._has_windows(cursor):
                return None
            rows = cursor.execute(
                f"SELECT content FROM window_results {_PLACE} AND digest = ?",  # noqa: S608
                (scope, conversation, digest),
            ).fetchall()
        return checking.checked_result(rows[0][0], digest) if rows else None

    # --- inside ---

    def _check_format(self, cursor: sqlite3.Cursor) -> None:
        """Raises :class:`LedgerReadOnly` where the file could not be brought up to date."""
        if not self._has_windows(cursor):
            raise LedgerReadOnly(
                f"{self._database.path} is of an older format and cannot be written"
            )

    def _run(self, cursor: sqlite3.Cursor, key: WindowKey) -> tuple[int, str] | None:
        return _run(cursor, key) if self._has_windows(cursor) else None

    def _has_windows(self, cursor: sqlite3.Cursor) -> bool:
        return self._database.is_current or file_format(cursor) >= WINDOW_FORMAT


def _run(cursor: sqlite3.Cursor, key: WindowKey) -> tuple[int, str] | None:
    rows = cursor.execute(_RUN, (key.scope, key.conversation, key.run)).fetchall()
    return (int(rows[0][0]), str(rows[0][1])) if rows else None


def _begin(cursor: sqlite3.Cursor, key: WindowKey, shape: str) -> int:
    cursor.execute(
        "INSERT INTO window_runs (scope, conversation, run, shape) VALUES (?, ?, ?, ?)",
        (key.scope, key.conversation, key.run, shape),
    )
    return int(cursor.lastrowid or 0)


def _span(run: int) -> tuple[int, int]:
    """The keys of a run's messages: from the first, below the second."""
    return run * POSITIONS, (run + 1) * POSITIONS


def _count(cursor: sqlite3.Cursor, run: int) -> int:
    (newest,) = cursor.execute(_COUNT, _span(run)).fetchall()[0]
    return 0 if newest is None else int(newest) % POSITIONS + 1


def _identities(
    cursor: sqlite3.Cursor, run: int | None, first: int, many: int
) -> list[checking.Identity]:
    at = (run or 0) * POSITIONS + first
    return [checking.Identity(*row) for row in cursor.execute(_IDENTITIES, (at, at + many))]
