"""The database of one ledger file, on the connection pool of ``eventsourcing``.

Every writing transaction is ``BEGIN IMMEDIATE``: it waits for its turn before it reads, so it never fails at
the end. Whatever SQLite says becomes an error of our tree, and a failed commit is rolled back.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock, Semaphore, local
from time import monotonic, sleep
from types import TracebackType
from typing import cast

from eventsourcing.persistence import ConnectionPoolClosedError, PersistenceError
from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool, SQLiteDatastore

from compaction_ledger.domain.errors import (
    LedgerBusy,
    LedgerError,
    LedgerReadOnly,
    NotALedger,
    StoreUnavailable,
)
from compaction_ledger.infrastructure import forking
from compaction_ledger.infrastructure.sqlite import formats
from compaction_ledger.infrastructure.sqlite.errors import translated

BUSY_TIMEOUT_SECONDS = 30


class Transaction:
    """One transaction on a pooled connection. Gives the cursor; rolls back on any error.

    A context manager of its own instead of three nested ones: it stands around every read and write.
    """

    __slots__ = ("_commit", "_connection", "_cursor", "_database", "_durable", "_lenient", "_raw")

    def __init__(
        self, database: Database, *, commit: bool, durable: bool = True, lenient: bool = False
    ) -> None:
        self._database = database
        self._commit = commit
        self._durable = durable
        self._lenient = lenient

    def __enter__(self) -> sqlite3.Cursor:
        try:
            self._connection = cast(
                Connection, self._database.pool.get_connection(is_writer=self._commit)
            )
        except (sqlite3.Error, PersistenceError, ConnectionPoolClosedError) as error:
            raise translated(error, self._database.path) from error
        self._raw = self._connection.raw
        self._cursor: sqlite3.Cursor | None = None
        try:
            if not self._durable:
                self._raw.execute("PRAGMA synchronous = NORMAL")
            if self._lenient:
                self._raw.text_factory = text_or_bytes
            self._cursor = self._raw.execute("BEGIN IMMEDIATE" if self._commit else "BEGIN")
        except BaseException as error:
            self._give_back()
            if isinstance(error, sqlite3.Error):
                raise translated(error, self._database.path) from error
            raise
        return self._cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection.is_inherited:  # it is the parent's to end
            raise StoreUnavailable(f"{self._database.path}: this process was forked within a call")
        try:
            if self._commit and error is None:
                self._raw.commit()
        except sqlite3.Error as failed:
            error = failed
        finally:
            self._give_back()
        if isinstance(error, sqlite3.Error):
            raise translated(error, self._database.path) from error

    def _give_back(self) -> None:
        """Undo what was not committed; a connection that cannot even do that is not used again."""
        self._raw.text_factory = str
        try:
            if self._cursor is not None:
                self._cursor.close()  # an answer that was not read to its end keeps its tables locked
            self._raw.rollback()  # nothing to do after a commit
            if not self._durable:
                self._raw.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            self._connection.close()
        with suppress(ConnectionPoolClosedError):  # by another thread, meanwhile
            self._database.pool.put_connection(self._connection)


def text_or_bytes(data: bytes) -> str | bytes:
    """The text in ``data``, or the bytes as they are."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


class Connection(SQLiteConnection):
    """A pooled connection that lets its transactions reach SQLite directly."""

    is_inherited = False
    """Whether it was opened before this process was forked off."""

    @property
    def raw(self) -> sqlite3.Connection:
        """The connection of the standard library."""
        return self._sqlite_conn


class ConnectionPool(SQLiteConnectionPool):
    """Connections with the pragmas of a ledger."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._uri = _uri(path, read_only=read_only)
        self._asking = local()
        super().__init__(db_name=self._uri, pool_timeout=BUSY_TIMEOUT_SECONDS)
        forking.watch(self)

    def get_connection(
        self, timeout: float | None = None, *, is_writer: bool | None = None
    ) -> SQLiteConnection:
        """A connection that nobody else uses now."""
        self._asking.to_write = is_writer is True
        return super().get_connection(timeout, is_writer=is_writer)

    def close(self) -> None:
        """Close what nobody uses; what is in use is closed by its thread, when it is done.

        The base class closes it under the other thread's hands, and SQLite dies of that.
        """
        with self._put_condition:
            self._closed = True
            while self._pool:
                self._pool.popleft().close()

    def before_fork(self) -> None:
        """Hold the pool still, and close what nobody uses, so that the child inherits as little as can be."""
        self._put_condition.acquire()
        while self._pool:
            self._pool.popleft().close()

    def after_fork(self) -> None:
        """Go on, in the process that forked."""
        self._put_condition.release()

    def begin_anew(self) -> None:
        """Forget, in a process that was forked off, every connection and lock of the parent's.

        SQLite forbids to use a connection behind a fork, and even to close it.
        """
        inherited = [*self._pool, *self._in_use.values()]
        for connection in inherited:
            cast(Connection, connection).is_inherited = True
            forking.keep_for_ever(cast(Connection, connection).raw)
        self._pool, self._in_use = deque(), {}
        self._get_semaphore, self._writer_lock = Semaphore(), Lock()
        self._put_condition, self._no_readers = Condition(), Condition()
        self._num_readers = self._num_writers = 0
        self._asking = local()

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Take a connection back. Who waits to write learns at once when the pool was closed meanwhile."""
        was_writer = conn.is_writer
        try:
            super().put_connection(conn)
        except ConnectionPoolClosedError:
            conn.close()
            if was_writer:
                self._writer_lock.release()
            raise

    def _get_connection(self, timeout: float = 0.0) -> SQLiteConnection:
        """As the base class, which keeps the lock of a writer for whom there was no connection."""
        try:
            if self.closed:
                raise ConnectionPoolClosedError  # noqa: TRY301 - handled as any other failure
            return super()._get_connection(timeout)
        except BaseException:
            if self._asking.to_write:
                self._asking.to_write = False
                self._num_writers -= 1
                self._writer_lock.release()
            raise

    def _create_connection(self) -> Connection:
        connection = sqlite3.connect(
            self._uri,
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=BUSY_TIMEOUT_SECONDS,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
        except sqlite3.Error:
            connection.close()
            raise
        return Connection(connection, max_age=None)


class Database(SQLiteDatastore):
    """One open ledger file. :meth:`transaction` is the only way in."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.is_current = False
        """Whether the file is known to be of the newest format; one that cannot be written may be older."""
        self.pool = ConnectionPool(path, read_only=read_only)
        self.single_row_tracking = True
        self.originator_id_type = "uuid"

    def transaction(  # type: ignore[override]
        self, *, commit: bool, durable: bool = True, lenient: bool = False
    ) -> Transaction:
        """A transaction; rolled back on any error, which comes out as one of our own tree.

        A writing one is ``BEGIN IMMEDIATE``: it waits for its turn before it reads anything. One that is
        not ``durable`` may be lost as a whole when the power fails, never in part: for what can be made
        again from the log. The next durable commit makes it durable too. One that is ``lenient`` gives
        text that is not UTF-8 as bytes, where else nothing of the answer could be read.
        """
        return Transaction(self, commit=commit, durable=durable, lenient=lenient)


def scrub(database: Database) -> None:
    """Write the file anew without what was deleted in it, and empty its write-ahead log (S3).

    Raises :class:`LedgerBusy` where others read for too long; it can be done again.
    """
    with database.get_connection(commit=True) as connection:
        cursor = connection.cursor()
        try:
            # What is copied is what is left, and a file of it needs no memory.
            for statement in ("PRAGMA temp_store = FILE", "VACUUM", "PRAGMA temp_store = MEMORY"):
                cursor.execute(statement)
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            ((busy, *_),) = cursor.fetchall()
        except sqlite3.Error as error:
            raise translated(error, database.path) from error
    if busy:
        raise LedgerBusy(f"{database.path} is being read by others: its log could not be emptied")


def open_database(path: Path, *, create: bool = True, read_only: bool = False) -> Database:
    """Open a ledger file, making it when it is not there and ``create`` is set.

    A file of an older format is brought up to date, unless it is only read or cannot be written: then what
    came with later formats is not there, and reads as empty (:func:`formats.file_format`).
    Raises :class:`NotALedger`, :class:`NewerFormat`, :class:`LedgerReadOnly`, :class:`StoreUnavailable` …
    """
    if not _is_there(path):
        if not create or read_only:
            raise NotALedger(f"there is no ledger at {path}")
        if not path.parent.is_dir():
            raise NotALedger(f"there is no folder {path.parent} to make a ledger in")
    database = Database(path, read_only=read_only)
    try:
        found = _format_of(database)
        if not found:
            if not create or read_only:
                raise NotALedger(f"{path} is an empty database and no ledger")
            _set_wal(database)
        database.is_current = found == formats.FORMAT or (
            not read_only and _bring_up_to_date(database)
        )
    except LedgerError:
        database.close()
        raise
    return database


def _is_there(path: Path) -> bool:
    """Whether there is a file at ``path``. Raises for what is no file and for what cannot be looked at."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be reached: {error}") from error
    if not stat.S_ISREG(mode):
        raise NotALedger(f"{path} is a {'folder' if stat.S_ISDIR(mode) else 'device'} and no file")
    return True


def _format_of(database: Database) -> int:
    """The format of the file, 0 for an empty database. Raises for what is no ledger that we know."""
    with database.transaction(commit=False) as cursor:
        return formats.judge(cursor, database.path)


def _bring_up_to_date(database: Database) -> bool:
    """Make the tables that are missing, all of them or none; False where the file cannot be written."""
    try:
        with database.transaction(commit=True) as cursor:
            formats.bring_up_to_date(cursor, database.path)
    except LedgerReadOnly:
        if not _format_of(database):
            raise
        return False
    return True


def _set_wal(database: Database) -> None:
    """Switch to write-ahead logging. SQLite does not wait for its lock here, so we do."""
    deadline = monotonic() + BUSY_TIMEOUT_SECONDS
    with database.get_connection(commit=True) as connection:
        cursor = connection.cursor()
        while True:
            try:
                cursor.execute("PRAGMA journal_mode = WAL")
                cursor.fetchone()
            except sqlite3.OperationalError as error:
                busy = translated(error, database.path)
                if not isinstance(busy, LedgerBusy) or monotonic() > deadline:
                    raise busy from error
                sleep(0.01)
            else:
                return


def _uri(path: Path, *, read_only: bool) -> str:
    """How SQLite is told to open the file.

    A write-ahead log needs its two side files even to be read. Where they are not both there, the
    folder cannot be written and the log is empty, nobody has the file open and it is read by itself.
    """
    uri = path.absolute().as_uri()
    if not read_only:
        return uri
    log, index = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))
    empty = not log.exists() or log.stat().st_size == 0
    both = log.exists() and index.exists()
    alone = empty and not both and not os.access(path.parent, os.W_OK)
    return f"{uri}?mode=ro&immutable=1" if alone else f"{uri}?mode=ro"
