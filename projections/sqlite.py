"""Read models in the ledger's own SQLite file: each row and its position in one transaction (P2, P3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.projections.generations import (
    LAYOUT,
    MAX_NUMBER,
    TABLE_NAME,
    Generation,
    Key,
    ReplacedGeneration,
    Session,
    Values,
    checked,
    none_serves,
)
from compaction_ledger.projections.records import Record, columns
from compaction_ledger.projections.stored import StoredReadModels

_COLUMNS = ("generation", "position", "layout", "verdicts", "active")
_MAX_PARAMETERS = 30_000  # SQLite takes 32,766 in one statement

# Whatever stands in a column, all of them can be read: text that is none would spoil the whole answer.
_NUMBER = "CASE typeof({0}) WHEN 'integer' THEN {0} END"
_GENERATIONS = (
    f"SELECT {', '.join(map(_NUMBER.format, ('generation', 'position', 'layout', 'active')))},"
    " CAST(verdicts AS BLOB) FROM read_model_generations"
)

T = TypeVar("T")


class Cursor(Protocol):
    """The part of a DB-API cursor that is used here."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Where the tables are. A transaction is rolled back on any error."""

    read_only: bool

    def transaction(
        self, *, commit: bool, durable: bool = True, lenient: bool = False
    ) -> AbstractContextManager[Cursor]: ...


class SQLiteReadModels(StoredReadModels):
    """The read models in the ledger's own file."""

    def __init__(self, database: Database, registry: PromptRegistry) -> None:
        super().__init__(SQLiteStore(database), registry)


class SQLiteStore:
    """The tables in an SQLite file, which has one writer at a time: nobody ever meets another."""

    batch = 500
    rebuild_batch = 5_000
    damage: tuple[type[Exception], ...] = (DamagedLog,)

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read_only = database.read_only

    def read(self, work: Callable[[Session], T], *, lenient: bool = False) -> T:
        with self._database.transaction(commit=False, lenient=lenient) as cursor:
            return work(SQLiteSession(cursor))

    def serving(self) -> Generation:
        return self.read(lambda session: session.serving())

    def select(
        self, kind: type[Record], given: Mapping[str, str], order: str, *, lenient: bool = False
    ) -> Sequence[Values] | None:
        def ask(session: Session) -> Sequence[Values] | None:
            at = session.serving()
            return session.rows(kind, at.number, given, order) if at.is_ours else None

        return self.read(ask, lenient=lenient)

    def change(self, work: Callable[[Session], T], *, slow: bool = False) -> T:  # noqa: ARG002
        with self._database.transaction(commit=True, durable=False) as cursor:
            return work(SQLiteSession(cursor))

    def release(self) -> None:
        """Nothing: SQLite gives up waiting by itself."""

    def clean(self) -> None:
        """Nothing: a switch drops the old tables, which readers keep for as long as they read."""


class SQLiteSession:
    """One transaction."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    # --- which there are ---

    def serving(self) -> Generation:
        self._cursor.execute(f"{_GENERATIONS} WHERE active = 1")
        row = self._cursor.fetchone()
        if row is None:
            raise none_serves()
        return _generation(row)

    def find(self, number: int) -> Generation:
        self._cursor.execute(f"{_GENERATIONS} WHERE generation = ?", (number,))
        row = self._cursor.fetchone()
        if row is None:
            raise ReplacedGeneration
        return _generation(row)

    def known(self) -> Sequence[Generation]:
        self._cursor.execute(f"{_GENERATIONS} ORDER BY generation")
        return list(map(_generation, self._cursor.fetchall()))

    def is_prepared(self) -> bool:
        self._cursor.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'read_model_generations'"
        )
        return bool(self._cursor.fetchone()[0])

    def is_known(self) -> bool:
        self._cursor.execute("SELECT name FROM pragma_table_info('read_model_generations')")
        return tuple(name for (name,) in self._cursor.fetchall()) == _COLUMNS

    def is_kept_by_others(self) -> bool:
        return self.is_known() and self.serving().layout > LAYOUT

    # --- their life ---

    def hold(self, number: int) -> Generation | None:
        return self.find(number)

    def hold_all(self) -> None:
        """Nothing: a transaction that commits has the file for itself."""

    def begin(self, verdicts: str) -> int:
        if not self.is_known():
            self._cursor.execute("DROP TABLE IF EXISTS read_model_generations")
            self._run("state.sql")
        self._cursor.execute(
            "DELETE FROM read_model_generations WHERE generation NOT BETWEEN 1 AND ?",
            (MAX_NUMBER - 1,),
        )
        self._cursor.execute("SELECT generation FROM read_model_generations")
        numbers = {number for (number,) in self._cursor.fetchall()} | set(self._tables().values())
        self._cursor.execute("SELECT generation FROM read_model_generations WHERE active = 1")
        self._drop_all_but(self._cursor.fetchone() or (0,))
        number: int = max(numbers, default=0) + 1
        self._run("tables.sql", number)
        self._cursor.execute(
            "INSERT INTO read_model_generations VALUES (?, 0, ?, ?, 0)", (number, LAYOUT, verdicts)
        )
        return number

    def index(self, number: int) -> None:
        self._run("indexes.sql", number)

    def advance(self, number: int, position: int) -> None:
        self._cursor.execute(
            "UPDATE read_model_generations SET position = ? WHERE generation = ?",
            (position, number),
        )

    def switch(self, number: int) -> None:
        self._drop_all_but((number,))
        self._cursor.execute(
            "UPDATE read_model_generations SET active = 1 WHERE generation = ?", (number,)
        )

    def _tables(self) -> dict[str, int]:
        """All tables of any generation, with its number."""
        self._cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = (re.fullmatch(TABLE_NAME, name) for (name,) in self._cursor.fetchall())
        return {match[0]: int(match[2]) for match in found if match}

    def _drop_all_but(self, kept: tuple[int]) -> None:
        for name, number in self._tables().items():
            if number != kept[0]:
                self._cursor.execute(f"DROP TABLE {name}")
        self._cursor.execute("DELETE FROM read_model_generations WHERE generation <> ?", kept)

    def _run(self, script: str, number: int = 0) -> None:
        for statement in _statements(script):
            self._cursor.execute(statement.replace("{g}", str(number)))

    # --- rows ---

    def rows(
        self, kind: type[Record], number: int, given: Mapping[str, str], order: str
    ) -> Sequence[Values]:
        where = " AND ".join(f"{name} = ?" for name in given) or "1"
        statement = f"SELECT * FROM {kind.table}_{number} WHERE {where} ORDER BY {order}"
        self._cursor.execute(statement, list(given.values()))
        return self._cursor.fetchall()

    def forget(self, kind: type[Record], number: int, scope: str, conversation: str) -> None:
        self._cursor.execute(
            f"DELETE FROM {kind.table}_{number} WHERE scope = ? AND conversation = ?",
            (scope, conversation),
        )

    def tally(self, number: int) -> Sequence[Values]:
        self._cursor.execute(
            f"SELECT status, count(*), min(expires_at) FROM ranges_{number} GROUP BY status"
        )
        return self._cursor.fetchall()

    def rows_at(
        self, kind: type[Record], number: int, names: Sequence[str], keys: Collection[Values]
    ) -> Sequence[Values]:
        found: list[Values] = []
        for some in _chunks(list(keys), _MAX_PARAMETERS // len(names)):
            marks = ", ".join([f"({', '.join('?' * len(names))})"] * len(some))
            self._cursor.execute(
                f"SELECT * FROM {kind.table}_{number}"
                f" WHERE ({', '.join(names)}) IN (VALUES {marks})",
                [value for key in some for value in key],
            )
            found += self._cursor.fetchall()
        return found

    def write(
        self,
        kind: type[Record],
        number: int,
        rows: Mapping[Key, Record],
        stored: Mapping[Key, bool],  # noqa: ARG002 - rows are replaced, known or not
    ) -> None:
        marks = ",".join("?" * len(columns(kind)))
        statement = f"INSERT OR REPLACE INTO {kind.table}_{number} VALUES ({marks})"
        self._cursor.executemany(statement, map(kind.values_of, rows.values()))


def _generation(row: Sequence[Any]) -> Generation:
    number, position, layout, active, verdicts = row
    text = verdicts.decode(errors="replace") if type(verdicts) is bytes else None
    return checked(number, position, layout, active, text)


def _chunks(keys: list[Values], size: int) -> Iterator[list[Values]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


@cache
def _statements(name: str) -> tuple[str, ...]:
    script = files("compaction_ledger.projections").joinpath("sql", "sqlite", name)
    parts = script.read_text(encoding="utf-8").split(";")
    return tuple(part.strip() for part in parts if part.strip())
