"""Connections that wait for no answer for ever, and a pool of them for each process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self
from uuid import uuid4

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg_pool import ConnectionPool

from compaction_ledger.infrastructure.postgres.address import Address
from compaction_ledger.infrastructure.postgres.errors import said

ANSWER_SECONDS = 75.0
"""How long an answer is waited for before the connection counts as lost; longer than for any lock.

One row is waited for twice for up to 30 seconds: for one's turn, and for whoever has it.
"""

CONNECT_SECONDS = 10
RECONNECT_SECONDS = 1.0
"""How long until it is tried again to connect, while somebody waits for a connection."""

_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_KEEPALIVE: dict[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# The pid of the server process is what the server says at the start, unless a pooler stands between.
_IS_DIRECT = "SELECT pg_backend_pid()"


class Question(NamedTuple):
    """A statement with ``$1``, ``$2`` … for its parameters, which are text (0) or binary (1)."""

    name: bytes
    text: bytes
    formats: Sequence[int]


class LedgerConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no answer is waited for longer than ``answer_seconds`` (``None``: for ever)."""

    answer_seconds: float | None = ANSWER_SECONDS
    refused: ClassVar[str | None] = None
    """Why none could be made the last time it was tried: each pool has a class of its own."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Self:
        """As the base class; remembers why it failed."""
        try:
            made = super().connect(*args, **kwargs)
        except psycopg.Error as error:
            cls.refused = said(error)
            raise
        cls.refused = None
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._questions: set[bytes] = set()
        self.ident = uuid4()
        """What the database knows it by, also through a pooler."""
        self.marks = 0
        """How many transactions left a mark so far."""
        # psycopg numbers what it prepares from zero on in each connection. Behind a pooler that is not
        # noticed such a name might be that of another's statement, which would be run instead.
        self._prepared._prepared_idx = self.ident.int >> 66  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """As the base class, with an end."""
        return super().wait(gen, interval, self.answer_seconds if timeout is None else timeout)

    def ask(
        self, question: Question, parameters: Sequence[bytes]
    ) -> list[tuple[bytes | None, ...]]:
        """Run one statement that is run over and over; the rows, as PostgreSQL writes them as text.

        A shorter way than a cursor's, through the same library: it takes a third of the time.
        """
        with self.lock:
            if self.prepare_threshold is None:
                self.pgconn.send_query_params(
                    question.text, parameters, param_formats=question.formats
                )
            else:
                if question.name not in self._questions:
                    self.pgconn.send_prepare(question.name, question.text)
                    self._result()
                    self._questions.add(question.name)
                self.pgconn.send_query_prepared(question.name, parameters, question.formats)
            result = self._result()
        columns = range(result.nfields)
        return [
            tuple(result.get_value(row, column) for column in columns)
            for row in range(result.ntuples)
        ]

    def _result(self) -> PGresult:
        results: list[PGresult] = self.wait(execute(self.pgconn))
        for result in results:  # what goes wrong at the commit comes behind the rows
            if result.status not in _FINE:
                raise error_from_result(result)
        return results[0]


Pool = ConnectionPool[LedgerConnection]


def connect(address: Address) -> LedgerConnection:
    """One connection outside of any pool."""
    return LedgerConnection.connect(address.conninfo, **_arguments(address))


def make_pool(address: Address, size: int, patience: float) -> Pool:
    """A pool that opens its connections when they are asked for."""
    pool: Pool = ConnectionPool(
        address.conninfo,
        connection_class=type("PooledConnection", (LedgerConnection,), {"refused": None}),
        kwargs=_arguments(address),
        min_size=1,
        max_size=size,
        open=False,
        configure=_configure,
        timeout=patience,
        max_idle=600,
        # Otherwise it waits twice as long after each failure, and goes on waiting when the server is back.
        reconnect_timeout=RECONNECT_SECONDS,
        reconnect_failed=_connect_if_awaited,
        num_workers=1,
        name="compaction-ledger",
    )
    pool.open(wait=False)
    return pool


class PoolOfProcess:
    """The pool of the present process: a process that was forked off makes its own.

    A connection cannot be shared by two processes, and closing the parent's would end it there too: so those
    are kept, unused, and libpq closes none that another process opened.
    """

    def __init__(self, make: Callable[[], Pool]) -> None:
        self._make = make
        self._pools: dict[int, Pool] = {}
        """By process."""
        self._closed = False

    def get(self) -> Pool:
        """The pool; made when it is first asked for. Of several threads that do so at once, one makes it."""
        process = os.getpid()
        pool = self._pools.get(process)
        if pool is not None:
            return pool
        made = self._make()
        pool = self._pools.setdefault(process, made)
        if pool is not made or self._closed:
            made.close()
        return pool

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        pool = self._pools.get(os.getpid())
        if pool is not None:
            pool.close()


def _arguments(address: Address) -> dict[str, Any]:
    """What is asked of libpq, where the URL does not say otherwise."""
    wanted: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "compaction-ledger",
        "client_encoding": "utf8",
        **_KEEPALIVE,
    }
    given = conninfo_to_dict(address.conninfo)
    return {"autocommit": True} | {k: v for k, v in wanted.items() if k not in given}


def _connect_if_awaited(pool: Pool) -> None:
    """Try again. Where nobody waits, the next one who asks for a connection sets it off."""
    if pool.get_stats()["requests_waiting"]:
        pool.check()


def _configure(connection: LedgerConnection) -> None:
    """Prepare statements on the server only where it is the server that we talk to.

    Behind a pooler in transaction mode the next statement may meet another server process.
    """
    connection.prepare_threshold = None
    row = connection.execute(_IS_DIRECT).fetchone()
    if row == (connection.info.backend_pid,):
        connection.prepare_threshold = 2
