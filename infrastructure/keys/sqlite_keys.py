"""Wrapped data keys in a small SQLite file of their own, in the keys folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakSet

from compaction_ledger.domain.errors import (
    DamagedLog,
    KeyMissing,
    KeysUnavailable,
    NewerFormat,
    NotALedger,
    StoreUnavailable,
)
from compaction_ledger.infrastructure import forking
from compaction_ledger.infrastructure.keys.wrapped_keys import Tombstone, WrappedKey
from compaction_ledger.infrastructure.sqlite.errors import translated
from compaction_ledger.infrastructure.sqlite.formats import statements

APPLICATION_ID = 0x434C4B59  # "CLKY"
FORMAT = 1
BUSY_SECONDS = 30
_HEADER_BYTES = 100
_COUNTER = slice(24, 28)
_TABLES = """
CREATE TABLE data_keys (id TEXT PRIMARY KEY, epoch TEXT NOT NULL, wrapped BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX data_keys_by_epoch ON data_keys (epoch) WHERE wrapped <> x'';
CREATE TABLE erasures (
    reference TEXT PRIMARY KEY,
    name      BLOB NOT NULL,
    key       TEXT NOT NULL,
    state     TEXT NOT NULL CHECK (state IN ('begun', 'destroyed', 'completed'))
) WITHOUT ROWID;
CREATE TABLE revision (id INTEGER PRIMARY KEY CHECK (id = 0), number INTEGER NOT NULL);
INSERT INTO revision VALUES (0, 0);
"""
_NEXT_REVISION = "UPDATE revision SET number = number + 1"


class _Headers:
    """The headers of the files that this process has open, in memory: one for each file.

    Whoever closes any descriptor of a file drops all locks that this process has on it, SQLite's own too
    (https://www.sqlite.org/howtocorrupt.html, 2.2). So a file is opened beside SQLite only while nobody here
    is connected to it, and what was opened is closed when nobody is any more. ``lock`` is held meanwhile.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._known: dict[tuple[int, int], tuple[mmap, WeakSet[object]]] = {}
        forking.watch(self)

    def of(self, path: Path, user: object) -> mmap:
        """The header of the file, for ``user``, who has just connected to it."""
        found = path.stat()
        place = found.st_dev, found.st_ino
        if place not in self._known:
            with path.open("rb") as file:
                header = mmap(file.fileno(), _HEADER_BYTES, access=ACCESS_READ)
            self._known[place] = header, WeakSet()
        header, users = self._known[place]
        users.add(user)
        self._close_unused()
        return header

    def drop(self, user: object) -> None:
        """``user`` is not connected any more."""
        for _, users in self._known.values():
            users.discard(user)
        self._close_unused()

    def _close_unused(self) -> None:
        for place, (header, users) in list(self._known.items()):
            if not users:
                del self._known[place]
                header.close()

    def before_fork(self) -> None:
        """Nobody opens or closes a file meanwhile."""
        self.lock.acquire()

    def after_fork(self) -> None:
        """In the parent."""
        self.lock.release()

    def begin_anew(self) -> None:
        """In the child, where nobody is connected."""
        self.lock = Lock()


_headers = _Headers()


class SQLiteWrappedKeys:
    """One connection a process, behind a lock: what is asked of it is small.

    It has no write-ahead log, and deleted bytes are overwritten: what is destroyed stands in no other file.
    Without one, each change of the file is counted in its header (https://www.sqlite.org/fileformat.html,
    1.3.7): that is looked at in memory, so that looking for erasures costs next to nothing.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._header: mmap | None = None
        self._seen: tuple[bytes, int] | None = None  # SQLite's counter of changes, our revision
        forking.watch(self)

    # --- keys ---

    def add(self, keys: Sequence[WrappedKey]) -> None:
        """Keep these. Raises :class:`StoreError` kinds; an id that is taken stays as it is."""
        with self._writing() as cursor:
            cursor.executemany("INSERT OR IGNORE INTO data_keys VALUES (?, ?, ?)", keys)

    def find(self, key: str) -> WrappedKey | None:
        """The key of this id, destroyed or not."""
        rows = self._rows("SELECT id, epoch, wrapped FROM data_keys WHERE id = ?", (key,))
        return WrappedKey(*rows[0]) if rows else None

    def older_than(self, epoch: str, limit: int) -> Sequence[WrappedKey]:
        """At most so many keys that are wrapped under another epoch and are not destroyed."""
        rows = self._rows(
            "SELECT id, epoch, wrapped FROM data_keys WHERE epoch <> ? AND wrapped <> x'' LIMIT ?",
            (epoch, limit),
        )
        return [WrappedKey(*row) for row in rows]

    def replace(self, keys: Iterable[tuple[WrappedKey, WrappedKey]]) -> int:
        """Put the second in place of the first wherever that is still there; for how many it was."""
        with self._writing() as cursor:
            return sum(
                cursor.execute(
                    "UPDATE data_keys SET epoch = ?, wrapped = ? WHERE (id, epoch, wrapped) = (?, ?, ?)",
                    (new.epoch, new.wrapped, *old),
                ).rowcount
                for old, new in keys
            )

    def count(self) -> dict[str, int]:
        """How many keys are wrapped under each epoch, without those that are destroyed."""
        return dict(
            self._rows(
                "SELECT epoch, count(*) FROM data_keys WHERE wrapped <> x'' GROUP BY epoch", ()
            )
        )

    # --- erasures ---

    def revision(self) -> int:
        """How many changes there were to the erasures; 0 where there is no file yet."""
        header, seen = self._header, self._seen
        with suppress(ValueError):  # another thread has closed it just now
            if header is not None and seen is not None and header[_COUNTER] == seen[0]:
                return seen[1]
        with self._reading() as connection:
            if connection is None or self._header is None:
                return 0
            # Until it ends nobody writes to the file; what a killed writer has left is undone in it first.
            connection.execute("BEGIN")
            try:
                ((number,),) = connection.execute("SELECT number FROM revision").fetchall()
                self._seen = (self._header[_COUNTER], number)
            finally:
                connection.rollback()
            return int(number)

    def look(self) -> None:
        """Every look sees what there is now."""

    def tombstones(self) -> Sequence[Tombstone]:
        """Every erasure."""
        rows = self._rows("SELECT reference, name, key, state FROM erasures ORDER BY reference", ())
        return [Tombstone(*row) for row in rows]

    def bury(self, tombstone: Tombstone) -> None:
        """Keep this erasure; one that is known keeps its state, and its key, if it has one."""
        with self._writing() as cursor:
            cursor.execute(
                "INSERT INTO erasures VALUES (?, ?, ?, ?)"
                " ON CONFLICT (reference) DO UPDATE SET key = excluded.key WHERE key = ''",
                tombstone,
            )
            cursor.execute(_NEXT_REVISION)

    def destroy(self, reference: str) -> None:
        """Overwrite the wrapped key of a subject that was buried."""
        with self._writing() as cursor:
            cursor.execute(
                "UPDATE data_keys SET wrapped = x'' WHERE id ="
                " (SELECT key FROM erasures WHERE reference = ?)",
                (reference,),
            )
            cursor.execute(
                "UPDATE erasures SET state = 'destroyed' WHERE reference = ? AND state = 'begun'",
                (reference,),
            )
            cursor.execute(_NEXT_REVISION)

    def complete(self, reference: str) -> None:
        """Note that an erasure is complete."""
        with self._writing() as cursor:
            cursor.execute(
                "UPDATE erasures SET state = 'completed' WHERE reference = ?", (reference,)
            )
            cursor.execute(_NEXT_REVISION)

    # --- inside ---

    def _rows(self, statement: str, parameters: Sequence[str | int]) -> list[Any]:
        with self._reading() as connection:
            return (
                [] if connection is None else connection.execute(statement, parameters).fetchall()
            )

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection | None]:
        """The connection; none where there is no file, which is not made to be read."""
        with self._lock, self._translating():
            there = self._connection is not None or self.path.exists()
            yield self._connected() if there else None

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Cursor]:
        with self._lock, self._translating():
            connection = self._connected()
            cursor = connection.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                self._seen = None

    @contextmanager
    def _translating(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = translated(error, self.path)
            if isinstance(said, NotALedger | DamagedLog):
                said = KeyMissing(f"the data keys in {self.path} cannot be read: {error}")
            raise said from error
        except OSError as error:
            raise KeysUnavailable(f"{self.path} cannot be reached: {error.strerror}") from error

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailable(f"{self.path} was closed")
        if self._connection is None:
            with _headers.lock:
                connection = self._connect()
                try:
                    self._header = _headers.of(self.path, self)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        uri = self.path.absolute().as_uri()
        if self._read_only:
            uri += "?mode=ro"
        else:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # what may be in use is not even opened
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(self.path, flags, 0o600))
        connection = sqlite3.connect(
            uri, uri=True, check_same_thread=False, isolation_level=None, timeout=BUSY_SECONDS
        )
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA secure_delete = ON")
            self._check_format(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        """See to it that the file is one of ours, making its tables where it is empty."""
        connection.execute("BEGIN")  # another process may make it between two statements
        found = self._format(connection)
        connection.commit()
        if found:
            return
        if self._read_only:
            raise KeyMissing(f"there are no data keys in {self.path}")
        connection.execute("BEGIN IMMEDIATE")
        if not self._format(connection):  # another process may have been faster
            for statement in statements(_TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.commit()

    def _format(self, connection: sqlite3.Connection) -> int:
        """The format of the file, 0 for an empty one, within a transaction of the caller's."""
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        if application == APPLICATION_ID and version > FORMAT:
            raise NewerFormat(
                f"{self.path} has format {version}, this software knows up to {FORMAT}"
            )
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        is_empty = (application, version, tables) == (0, 0, 0)
        if not is_empty and (application, version) != (APPLICATION_ID, FORMAT):
            raise KeyMissing(f"{self.path} is a database of something else")
        return int(version)

    # --- the life of the connection ---

    def close(self) -> None:
        """Close the connection. Whatever is asked afterwards is :class:`StoreUnavailable`."""
        with self._lock:
            self._closed = True
            self._close()

    def _close(self) -> None:
        self._header = self._seen = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            with _headers.lock:
                _headers.drop(self)

    def before_fork(self) -> None:
        """SQLite's locks are a process's own: nothing open goes over to the child."""
        self._lock.acquire()
        self._close()

    def after_fork(self) -> None:
        """In the parent."""
        self._lock.release()

    def begin_anew(self) -> None:
        """In the child."""
        self._lock = Lock()
