"""The database of one ledger: calls of one statement, and transactions, tried again where that is safe.

What PostgreSQL says becomes an error of our tree. A statement or transaction of which it is certain that
nothing was stored (a deadlock, a server that starts or stops) is tried again for a while; a commit whose
answer was lost is looked up (A9).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from importlib.resources import files
from typing import Any, LiteralString, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from eventsourcing.postgres import PostgresDatastore
from psycopg_pool import PoolTimeout

from compaction_ledger.domain.errors import (
    LedgerBusy,
    LedgerReadOnly,
    StoreError,
    StoreUnavailable,
)
from compaction_ledger.infrastructure.postgres.address import Address
from compaction_ledger.infrastructure.postgres.connections import (
    ANSWER_SECONDS,
    LedgerConnection,
    Pool,
    PoolOfProcess,
    Question,
    make_pool,
)
from compaction_ledger.infrastructure.postgres.errors import (
    is_lost,
    is_passing,
    is_unprepared,
    translated,
)

T = TypeVar("T")
Values = tuple[Any, ...]
Cursor = psycopg.Cursor[Values]
Statement = LiteralString | bytes
"""What psycopg takes for a statement: never text that came from outside."""

POOL_SIZE = 10
PATIENCE = 15.0
"""For how many seconds a thing is tried again, by default."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
_SETTLING_LOOKS = 90

_WRITING = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '30s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '60s'"
)
_MARK = "SELECT {schema}.mark_transaction('%s', %d)"
_LAST_COMMIT = "SELECT {schema}.last_commit_of(%s)"
_END_SESSION = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_xid = %s::xid8::xid AND usename = current_user AND state LIKE 'idle in%%'"
)


class Lost(Exception):
    """The connection went while an answer was waited for: it is not known what was done (A9)."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Again(Exception):
    """Nothing was stored, and it may work the next time."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Kind(Enum):
    """Kinds of transactions, with the message that begins one."""

    READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    FAST = f"{_WRITING}; SET LOCAL synchronous_commit = off"
    REPEATABLE = _WRITING
    MARKED = f"{_WRITING}; {_MARK}"
    """With a mark, by which it can be told later what became of it."""


class _Mark(NamedTuple):
    """What a transaction leaves behind if it commits: a row, by its connection and with its number on that.

    PostgreSQL's own number of the transaction would not do: after a crash, or on a server that took over,
    numbers are given out again where nothing was heard of the transactions that had them. It tells only
    which session to end.
    """

    connection: UUID
    number: int
    transaction: str


class Database(PostgresDatastore):
    """One open database. Every use of it is a :meth:`call` or a :meth:`run`.

    Where it is ``read_only``, the server refuses to write, whatever the role may do: :class:`LedgerReadOnly`.
    """

    def __init__(
        self,
        address: Address,
        *,
        read_only: bool = False,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
    ) -> None:
        self.address = address
        self.read_only = read_only
        self.patience = patience
        self._pools = PoolOfProcess(lambda: make_pool(address, pool_size, patience))
        # What the base class and the recorders on it look at:
        self.schema = address.schema
        self.originator_id_type = "text"
        self.single_row_tracking = True
        self.enable_db_functions = False
        self.lock_timeout = 30
        self.db_type_names = set[str]()
        self.psycopg_type_adapters = {}
        self.psycopg_python_types = {}

    def sql(self, statement: str) -> bytes:
        """A statement with the names of our schemas in place of ``{schema}`` and ``{read_models}``."""
        return in_schema(statement, self.address)

    # --- one statement ---

    def call(self, statement: Statement, parameters: Sequence[Any] = ()) -> list[Values]:
        """Run one statement by itself and return its rows; where the answer is lost, it is asked again.

        For what may be done twice without harm. Raises kinds of :class:`StoreError`.
        """
        return self.until_it_works(lambda: self.try_call(statement, parameters))

    def call_once(self, statement: Statement, parameters: Sequence[Any] = ()) -> list[Values]:
        """As :meth:`call`, once: raises :class:`Lost` where it is not known whether it was carried out."""
        try:
            return self.try_call(statement, parameters)
        except Again as again:
            raise again.error from again.__cause__

    def try_call(self, statement: Statement, parameters: Sequence[Any] = ()) -> list[Values]:
        """As :meth:`call_once`, within :meth:`until_it_works`: raises :class:`Again`, too."""

        def work(cursor: Cursor) -> list[Values]:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []

        with self._connection(ANSWER_SECONDS) as connection:
            if not self.read_only:
                return work(connection.cursor(binary=True))
            self._begin(connection, _Kind.READING)
            rows = _within(connection, work)
            _end(connection, commit=False)
            return rows

    def try_ask(
        self, question: Question, parameters: Sequence[bytes]
    ) -> list[tuple[bytes | None, ...]]:
        """As :meth:`try_call`, for the statement that everything waits for, and that writes."""
        if self.read_only:
            raise LedgerReadOnly(f"{self.address.name} was opened to be read")
        # As in a ``with``, without its cost.
        connection = self._take()
        try:
            return connection.ask(question, parameters)
        except psycopg.Error as error:
            raise self._failure(connection, error) from error
        finally:
            self._pools.get().putconn(connection)

    # --- several statements ---

    def run(
        self,
        work: Callable[[Cursor], T],
        *,
        commit: bool,
        durable: bool = True,
        repeatable: bool = False,
        answer_seconds: float | None = ANSWER_SECONDS,
    ) -> T:
        """Run ``work`` in a transaction and return what it returns; all of it again where that is safe.

        Without ``commit`` it reads one snapshot and can change nothing. One that is not ``durable`` may be
        lost as a whole when the server dies, never in part, and may be done twice when an answer is lost: for
        what can be made again from the log. What is ``repeatable`` may be done twice, too. ``answer_seconds``
        (``None``: no end) is for statements that take long. Raises kinds of :class:`StoreError`.
        """
        writes = commit and not self.read_only
        kind = _kind(commit=writes, durable=durable, repeatable=repeatable)
        return self.until_it_works(lambda: self._run(work, kind, answer_seconds))

    def _run(self, work: Callable[[Cursor], T], kind: _Kind, seconds: float | None) -> T:
        mark: _Mark | None = None
        committing = False
        results: list[T] = []
        try:
            with self._connection(seconds) as connection:
                mark = self._begin(connection, kind)
                results.append(_within(connection, work))
                committing = True
                _end(connection, commit=kind is not _Kind.READING)
        except Lost as lost:
            if mark is None or not committing or not self._was_committed(mark):
                raise Again(lost.error) from lost
        return results[0]

    def _begin(self, connection: LedgerConnection, kind: _Kind) -> _Mark | None:
        """Begin a transaction, in one message; its mark, where its fate will have to be known."""
        if kind is not _Kind.MARKED:
            connection.execute(kind.value.encode(), prepare=False)
            return None
        connection.marks += 1
        statements = self.sql(kind.value % (connection.ident, connection.marks))
        cursor = connection.execute(statements, prepare=False)
        while cursor.nextset():
            pass
        ((transaction,),) = cursor.fetchall()
        return _Mark(connection.ident, connection.marks, transaction)

    def _was_committed(self, mark: _Mark) -> bool:
        """Whether a transaction whose commit was not answered is stored (A9). Waits until that is settled."""
        last_commit = self.sql(_LAST_COMMIT)
        try:
            for _ in range(_SETTLING_LOOKS):
                try:
                    ((number,),) = self.call(last_commit, (mark.connection,))
                except LedgerBusy:
                    # It goes on; or it waits for a client that is gone: for us.
                    self.call(_END_SESSION, (mark.transaction,))
                else:
                    return bool(number == mark.number)
        except StoreError as error:
            raise StoreUnavailable(f"{error}; it is not known whether it was stored") from error
        raise StoreUnavailable(
            f"{self.address.name}: a commit is not settled; it may come to be stored"
        )

    # --- inside ---

    def until_it_works(self, action: Callable[[], T]) -> T:
        """Do ``action`` until no connection is lost and nothing passing is in the way, or patience ends."""
        deadline, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while True:
            try:
                return action()
            except (Again, Lost) as again:
                if time.monotonic() >= deadline:
                    raise again.error from again.__cause__
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that not all come back at once
            pause = min(2 * pause, LONGEST_PAUSE)

    @contextmanager
    def _connection(self, seconds: float | None) -> Generator[LedgerConnection]:
        connection = self._take()
        connection.answer_seconds = seconds
        try:
            yield connection
        except psycopg.Error as error:
            raise self._failure(connection, error) from error
        finally:
            connection.answer_seconds = ANSWER_SECONDS
            self._pools.get().putconn(connection)

    def _take(self) -> LedgerConnection:
        pool = self._pools.get()
        try:
            return pool.getconn()
        except PoolTimeout as error:
            raise self._no_connection(pool) from error
        except psycopg.Error as error:  # closed
            raise translated(error, self.address.name) from error

    def _no_connection(self, pool: Pool) -> StoreError:
        """Why there was none in time."""
        if refused := pool.connection_class.refused:
            return StoreUnavailable(f"{self.address.name} cannot be reached: {refused}")
        return LedgerBusy(
            f"{self.address.name}: all {pool.max_size} connections of this process are in use for too long"
        )

    def _failure(self, connection: LedgerConnection, error: psycopg.Error) -> Exception:
        """What to raise in place of ``error``; a connection that is lost is not used again."""
        said = translated(error, self.address.name)
        if is_lost(error) or connection.closed:
            connection.close()
            self._pools.get().drain()  # those that nobody uses have most likely gone the same way
            return Lost(said)
        if is_unprepared(error):
            connection.prepare_threshold = None
        return Again(said) if is_passing(error) else said

    # --- what the base class would do otherwise ---

    def register_type_adapters(self) -> None:
        """We have no types of our own."""

    def close(self) -> None:
        """Close the connections of this process."""
        self._pools.close()

    def __del__(self) -> None:
        """Nothing: who opened a ledger closes it."""


def in_schema(statement: str, address: Address) -> bytes:
    """``statement`` with the names of the schemas of the ledger at ``address`` in it."""
    named = statement.replace("{schema}", f'"{address.schema}"')
    return named.replace("{read_models}", f'"{address.read_models_schema}"').encode()


def script(folder: str, name: str) -> str:
    """The text of an SQL file of this package."""
    place = files("compaction_ledger.infrastructure.postgres").joinpath(folder).joinpath(name)
    return place.read_text(encoding="utf-8")


def _kind(*, commit: bool, durable: bool, repeatable: bool) -> _Kind:
    if not commit:
        return _Kind.READING
    if not durable:
        return _Kind.FAST
    return _Kind.REPEATABLE if repeatable else _Kind.MARKED


def _within(connection: LedgerConnection, work: Callable[[Cursor], T]) -> T:
    try:
        return work(connection.cursor(binary=True))
    except BaseException:
        if not connection.closed:
            with suppress(psycopg.Error):  # then the connection is not used again
                connection.execute("ROLLBACK", prepare=False)
        raise


def _end(connection: LedgerConnection, *, commit: bool) -> None:
    status = connection.execute("COMMIT" if commit else "ROLLBACK", prepare=False).statusmessage
    if commit and status != "COMMIT":  # a statement failed and somebody kept silent about it
        raise psycopg.errors.InFailedSqlTransaction(f"the transaction ended with {status}")
