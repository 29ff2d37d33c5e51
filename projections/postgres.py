"""Read models on PostgreSQL: each row and its position in one transaction, whoever follows the log (P2, P3).

A follower locks the row of the generation that it applies a batch to. The tables of a generation are made and
dropped by functions of the database (``migrations/0003_read_models.sql``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from compaction_ledger.domain.errors import DamagedLog, DamagedReadModel, NotALedger
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.projections.generations import (
    LAYOUT,
    Generation,
    Key,
    ReplacedGeneration,
    Session,
    Values,
    checked,
    none_serves,
)
from compaction_ledger.projections.postgres_values import (
    TYPES,
    array,
    escaped,
    escaped_column,
    escaped_rows,
    unescaped_rows,
)
from compaction_ledger.projections.records import Record, columns
from compaction_ledger.projections.stored import FOLLOWING_PATIENCE, StoredReadModels
from compaction_ledger.projections.waiting import Pauses

HOLD_SECONDS = 10.0
"""For how long a follower may hold a generation and wait for its own client before others end that."""

ANSWER_SECONDS = 60.0
"""For how long the answer to one statement of a follower is waited for."""

FEW = 50
"""Up to so many rows are stored with one statement, new or not; it takes two messages to copy rows in."""

_GENERATIONS = (
    "SELECT generation, position, layout, active, verdicts FROM {read_models}.generations"
)

CLEANING_PATIENCE = 5.0
"""For how many seconds readers of a generation that is over are waited for."""

T = TypeVar("T")


class Cursor(Protocol):
    """The part of a psycopg cursor that is used here."""

    def execute(self, query: bytes, params: Sequence[Any] | None = ..., /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def copy(self, statement: bytes, /) -> Any: ...


class Database(Protocol):
    """Where the tables are."""

    read_only: bool

    def sql(self, statement: str) -> bytes: ...

    def call(self, statement: bytes, parameters: Sequence[Any] = ..., /) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own."""
        ...

    def run(
        self,
        work: Callable[[Any], T],
        *,
        commit: bool,
        durable: bool = ...,
        answer_seconds: float | None = ...,
    ) -> T:
        """A transaction; rolled back on any error, and tried again from its beginning on a passing one."""
        ...


class PostgresReadModels(StoredReadModels):
    """The read models in a schema beside the ledger's own."""

    def __init__(
        self,
        database: Database,
        registry: PromptRegistry,
        *,
        patience: float = FOLLOWING_PATIENCE,
        hold_seconds: float = HOLD_SECONDS,
    ) -> None:
        super().__init__(PostgresStore(database, hold_seconds), registry, patience)


class PostgresStore:
    """The tables in a database."""

    batch = 500
    rebuild_batch = 5_000
    damage: tuple[type[Exception], ...] = (DamagedLog, NotALedger)
    answer_seconds = ANSWER_SECONDS

    def __init__(self, database: Database, hold_seconds: float = HOLD_SECONDS) -> None:
        self._database = database
        self._hold_seconds = hold_seconds
        self._served = 0
        self.read_only = database.read_only

    # --- asking ---

    def read(self, work: Callable[[Session], T], *, lenient: bool = False) -> T:  # noqa: ARG002
        """As :class:`Store` says; begins anew where the tables were taken away by a switch."""
        while True:
            served: list[int] = []
            reading = partial(self._read, work, served)
            try:
                return self._database.run(reading, commit=False)
            except NotALedger:
                if not served or served[-1] == self.serving().number:
                    raise

    def _read(self, work: Callable[[Session], T], served: list[int], cursor: Cursor) -> T:
        return work(PostgresSession(cursor, self._database.sql, served))

    def serving(self) -> Generation:
        rows = self._database.call(self._database.sql(f"{_GENERATIONS} WHERE active"))
        if not rows:
            raise none_serves()
        return checked(*rows[0])

    def select(
        self,
        kind: type[Record],
        given: Mapping[str, str],
        order: str,
        *,
        lenient: bool = False,  # noqa: ARG002 - there is no text that is none
    ) -> Sequence[Values] | None:
        """As :class:`Store` says, in one statement, where the generation is still the one we know of."""
        on, parameters = _condition(given)
        while True:
            number = self._served
            if number:
                statement = self._database.sql(_select_serving(kind, number, on, order))
                try:
                    rows = self._database.call(statement, parameters)
                except NotALedger:
                    if self.serving().number == number:
                        raise
                    rows = []
                if rows:
                    return unescaped_rows(kind, rows if rows[0][0] is not None else [])
            at = self.serving()
            if not at.is_ours:
                return None
            self._served = at.number

    # --- changing ---

    def change(self, work: Callable[[Session], T], *, slow: bool = False) -> T:
        """As :class:`Store` says. Raises :class:`DamagedReadModel` where a table is not what it should be."""
        try:
            return self._database.run(
                lambda cursor: work(PostgresSession(cursor, self._database.sql)),
                commit=True,
                durable=False,
                answer_seconds=None if slow else self.answer_seconds,
            )
        except NotALedger as error:
            if not self.read(lambda session: session.is_known()):
                raise
            raise DamagedReadModel(f"the read models cannot be changed: {error}") from error

    def release(self) -> None:
        """End what holds a generation and waits for its own client, for too long already.

        A process that stands still in the middle of a message is not noticed by the server.
        """
        self._database.call(self._database.sql(_script("release.sql")), (self._hold_seconds,))

    def clean(self) -> None:
        """Drop the tables of generations that are over. What readers keep is left to the next rebuild."""
        pauses = Pauses(CLEANING_PATIENCE)
        while not pauses.are_over:
            rows = self._database.call(
                self._database.sql("SELECT {read_models}.drop_generations()")
            )
            if rows == [(0,)]:
                return
            pauses.pause()


class PostgresSession:
    """One transaction. ``served`` takes the numbers of the generations that were found to serve."""

    def __init__(
        self,
        cursor: Cursor,
        sql: Callable[[str], bytes],
        served: list[int] | None = None,
    ) -> None:
        self._cursor = cursor
        self._sql = sql
        self._found_serving = [] if served is None else served

    def _execute(self, statement: str, *parameters: Any) -> None:
        self._cursor.execute(self._sql(statement), parameters or None)

    # --- which there are ---

    def serving(self) -> Generation:
        self._execute(f"{_GENERATIONS} WHERE active")
        row = self._cursor.fetchone()
        if row is None:
            raise none_serves()
        at = checked(*row)
        self._found_serving.append(at.number)
        return at

    def find(self, number: int) -> Generation:
        self._execute(f"{_GENERATIONS} WHERE generation = %s", number)
        row = self._cursor.fetchone()
        if row is None:
            raise ReplacedGeneration
        return checked(*row)

    def known(self) -> Sequence[Generation]:
        self._execute(f"{_GENERATIONS} ORDER BY generation")
        return [checked(*row) for row in self._cursor.fetchall()]

    def is_prepared(self) -> bool:
        if not self.is_known():  # somebody took it away, and only a migration makes it
            return True
        self._execute("SELECT EXISTS (SELECT FROM {read_models}.generations)")
        return bool(self._cursor.fetchone()[0])

    def is_known(self) -> bool:
        self._execute("SELECT to_regclass('{read_models}.generations') IS NOT NULL")
        return bool(self._cursor.fetchone()[0])

    def is_kept_by_others(self) -> bool:
        return self.is_known() and self.serving().layout > LAYOUT

    # --- their life ---

    def hold(self, number: int) -> Generation | None:
        self._execute(_script("hold.sql"), number)
        row = self._cursor.fetchone()
        if row is None:
            self.find(number)
            return None
        return checked(*row[:5])

    def hold_all(self) -> None:
        self._execute("SELECT {read_models}.hold_generations()")

    def begin(self, verdicts: str) -> int:
        self._execute("SELECT {read_models}.begin_generation(%s, %s)", LAYOUT, verdicts)
        return int(self._cursor.fetchone()[0])

    def index(self, number: int) -> None:
        self._execute("SELECT {read_models}.index_generation(%s)", number)

    def advance(self, number: int, position: int) -> None:
        self._execute(
            "UPDATE {read_models}.generations SET position = %s WHERE generation = %s",
            position,
            number,
        )

    def switch(self, number: int) -> None:
        self._execute("SELECT {read_models}.switch_generation(%s)", number)

    # --- rows ---

    def rows(
        self, kind: type[Record], number: int, given: Mapping[str, str], order: str
    ) -> Sequence[Values]:
        where, parameters = _condition(given)
        names = ", ".join(columns(kind))
        self._execute(
            f"SELECT {names} FROM {_table(kind, number)} AS r WHERE {where} ORDER BY {order}",
            *parameters,
        )
        return unescaped_rows(kind, self._cursor.fetchall())

    def forget(self, kind: type[Record], number: int, scope: str, conversation: str) -> None:
        where, parameters = _condition({"scope": scope, "conversation": conversation})
        self._execute(f"DELETE FROM {_table(kind, number)} AS r WHERE {where}", *parameters)

    def tally(self, number: int) -> Sequence[Values]:
        self._execute(
            "SELECT status, count(*), min(expires_at)"
            f" FROM {{read_models}}.ranges_{number} GROUP BY status"
        )
        return list(self._cursor.fetchall())

    def rows_at(
        self, kind: type[Record], number: int, names: Sequence[str], keys: Collection[Values]
    ) -> Sequence[Values]:
        by_column = zip(TYPES[kind], zip(*keys, strict=True), strict=False)
        arrays = [
            array(escaped_column(column) if type_ == "text" else column, type_)
            for type_, column in by_column
        ]
        self._execute(_look_up(kind, number, tuple(names)), *arrays)
        return unescaped_rows(kind, self._cursor.fetchall())

    def write(
        self,
        kind: type[Record],
        number: int,
        rows: Mapping[Key, Record],
        stored: Mapping[Key, bool],
    ) -> None:
        if len(rows) <= FEW:
            self._put(kind, number, list(rows.values()))
            return
        there = self._keys_there(kind, number, rows, stored)
        self._copy(kind, number, [row for key, row in rows.items() if key not in there])
        self._put(kind, number, [row for key, row in rows.items() if key in there])

    def _keys_there(
        self, kind: type[Record], number: int, keys: Collection[Key], stored: Mapping[Key, bool]
    ) -> set[Key]:
        """Those of ``keys`` that the table has already."""
        there = {key for key in keys if stored.get(key)}
        unknown = [key for key in keys if key not in stored]
        if unknown:
            names = columns(kind)[: kind.key]
            found = self.rows_at(
                kind, number, names, [key if kind.key > 1 else (key,) for key in unknown]
            )
            there |= {tuple(row[: kind.key]) if kind.key > 1 else row[0] for row in found}
        return there

    def _copy(self, kind: type[Record], number: int, rows: Sequence[Record]) -> None:
        """Store rows that the table has not."""
        if not rows:
            return
        with self._cursor.copy(self._sql(_copy_into(kind, number))) as copy:
            copy.set_types(TYPES[kind])
            for values in escaped_rows(kind, list(map(kind.values_of, rows))):
                copy.write_row(values)

    def _put(self, kind: type[Record], number: int, rows: Sequence[Record]) -> None:
        """Store rows, over those that have the same key."""
        if rows:
            values = escaped_rows(kind, list(map(kind.values_of, rows)))
            arrays = map(array, zip(*values, strict=True), TYPES[kind])
            self._execute(_upsert(kind, number), *arrays)


# What a conversation is found by, and by nothing else: both ids may be too long together for an index (E4),
# and an index of scopes alone would be read in vain.
_CONVERSATION = {"scope", "conversation"}
_NAME = "{{schema}}.conversation_name({0}.scope, {0}.conversation)"


def _table(kind: type[Record], number: int) -> str:
    return f"{{read_models}}.{kind.table}_{number}"


def _unnested(kinds: Sequence[str]) -> str:
    return f"unnest({', '.join(f'%s::{kind}[]' for kind in kinds)})"


def _condition(given: Mapping[str, str]) -> tuple[str, list[str]]:
    """What says of a row ``r`` that its columns have these values, and the parameters to it."""
    same = [f"r.{name} = %s" for name in given if name not in _CONVERSATION]
    if set(given) < _CONVERSATION:
        same += [f"r.{name} = %s" for name in given]
    elif given:
        same.insert(0, f"{_NAME.format('r')} = {{schema}}.conversation_name(%s::text, %s::text)")
    return " AND ".join(same) or "true", list(map(escaped, given.values()))


def _select_serving(kind: type[Record], number: int, on: str, order: str) -> str:
    """Asks a table of one generation: one row or more, and none only where it does not serve."""
    names = ", ".join(f"r.{name}" for name in columns(kind))
    return (
        f"SELECT {names} FROM {{read_models}}.generations AS g"
        f" LEFT JOIN {_table(kind, number)} AS r ON {on}"
        f" WHERE g.generation = {number} AND g.active AND g.layout = {LAYOUT} ORDER BY {order}"
    )


def _look_up(kind: type[Record], number: int, names: tuple[str, ...]) -> str:
    """Finds rows by many keys, each by the index: ``OFFSET 0`` keeps that from being made into a join."""
    same = [f"r.{name} = k.{name}" for name in names if name not in _CONVERSATION]
    if set(names) >= _CONVERSATION:
        same.append(f"{_NAME.format('r')} = {_NAME.format('k')}")
    return (
        f"SELECT found.* FROM {_unnested(TYPES[kind][: len(names)])} AS k({', '.join(names)})"
        f" CROSS JOIN LATERAL (SELECT {', '.join(columns(kind))} FROM {_table(kind, number)} AS r"
        f" WHERE {' AND '.join(same)} OFFSET 0) AS found"
    )


def _copy_into(kind: type[Record], number: int) -> str:
    names = ", ".join(columns(kind))
    return f"COPY {_table(kind, number)} ({names}) FROM STDIN (FORMAT BINARY)"


def _upsert(kind: type[Record], number: int) -> str:
    names = columns(kind)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[kind.key :])
    key = ", ".join(names[: kind.key])
    if set(names[: kind.key]) >= _CONVERSATION:
        key = key.replace("scope, conversation", "{schema}.conversation_name(scope, conversation)")
    return (
        f"INSERT INTO {_table(kind, number)} ({', '.join(names)})"
        f" SELECT * FROM {_unnested(TYPES[kind])} ON CONFLICT ({key}) DO UPDATE SET {changes}"
    )


@cache
def _script(name: str) -> str:
    script = files("compaction_ledger.projections").joinpath("sql", "postgres", name)
    return script.read_text(encoding="utf-8")
