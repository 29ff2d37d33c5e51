"""Generations of read-model tables on SQLite: which one serves, and how the next one takes its place (P3).

The table of generations says of each how far it has come, the layout of its tables, and the verdicts that
its rows are judged by. What stands in it is believed no more than a row: it is checked when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.projections.records import RECORDS

LAYOUT = 1
"""Of the tables and of what the fold puts into them: another number with every change of either."""

_COLUMNS = ("generation", "position", "layout", "verdicts", "active")
_MAX_NUMBER = 10**9 - 1
_TABLE = re.compile(rf"(?:{'|'.join(record.table for record in RECORDS)})_([1-9][0-9]{{0,8}})")


class Cursor(Protocol):
    """The part of a DB-API cursor that is used here."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class ReplacedGeneration(Exception):
    """The generation is not there any more: another process rebuilt. Never leaves this package."""


class Generation(NamedTuple):
    """One generation of tables."""

    number: int
    position: int
    layout: int
    verdicts: str
    active: int

    @property
    def is_ours(self) -> bool:
        """Whether its tables are of the layout that this software reads and writes."""
        return self.layout == LAYOUT


# Whatever stands in a column, all of them can be read: text that is none would spoil the whole answer.
_NUMBER = "CASE typeof({0}) WHEN 'integer' THEN {0} END"
_NUMBERS = ("generation", "position", "layout", "active")
_ROWS = (
    f"SELECT {', '.join(map(_NUMBER.format, _NUMBERS))}, CAST(verdicts AS BLOB)"
    " FROM read_model_generations"
)


def serving(cursor: Cursor) -> Generation:
    """The generation that serves, of whatever layout. Raises :class:`DamagedReadModel`."""
    cursor.execute(f"{_ROWS} WHERE active = 1")
    row = cursor.fetchone()
    if row is None:
        raise DamagedReadModel("the read models have no serving generation")
    return _checked(row)


def find(cursor: Cursor, number: int) -> Generation:
    """The generation with this number. Raises :class:`ReplacedGeneration`."""
    cursor.execute(f"{_ROWS} WHERE generation = ?", (number,))
    row = cursor.fetchone()
    if row is None:
        raise ReplacedGeneration
    return _checked(row)


def newest(cursor: Cursor) -> Generation | None:
    """The generation that was begun last."""
    cursor.execute(f"{_ROWS} ORDER BY generation DESC LIMIT 1")
    row = cursor.fetchone()
    return None if row is None else _checked(row)


def _checked(row: Sequence[Any]) -> Generation:
    """A generation of another layout is only known to be one: what else is said of it is not ours to read."""
    number, position, layout, active, verdicts = row
    if layout != LAYOUT:
        return Generation(number or 0, position or 0, layout or 0, "", active or 0)
    sound = type(number) is type(position) is type(active) is int and type(verdicts) is bytes
    if not (sound and 0 < number <= _MAX_NUMBER and 0 <= position <= MAX_INTEGER):
        raise DamagedReadModel("the table of the read models' generations is damaged")
    return Generation(number, position, layout, verdicts.decode(errors="replace"), active)


def has_state(cursor: Cursor) -> bool:
    """Whether the table of generations is there, and is the one that we know."""
    cursor.execute("SELECT name FROM pragma_table_info('read_model_generations')")
    return tuple(name for (name,) in cursor.fetchall()) == _COLUMNS


def is_newer(cursor: Cursor) -> bool:
    """Whether the serving generation is of a layout from after this software."""
    return has_state(cursor) and serving(cursor).layout > LAYOUT


def is_prepared(cursor: Cursor) -> bool:
    """Whether there is a table of generations, of whatever shape."""
    cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = 'read_model_generations'")
    return bool(cursor.fetchone()[0])


def begin(cursor: Cursor, verdicts: str) -> Generation:
    """Tables for a new generation; what a killed rebuild left behind is dropped."""
    if not has_state(cursor):
        cursor.execute("DROP TABLE IF EXISTS read_model_generations")
        for statement in _statements("state.sql"):
            cursor.execute(statement)
    cursor.execute(
        "DELETE FROM read_model_generations WHERE generation NOT BETWEEN 1 AND ?",
        (_MAX_NUMBER - 1,),
    )
    cursor.execute("SELECT generation FROM read_model_generations")
    known = {number for (number,) in cursor.fetchall()}
    tables = _tables(cursor)
    cursor.execute("SELECT generation FROM read_model_generations WHERE active = 1")
    _drop(cursor, tables, keep=cursor.fetchone())
    number = max(known | set(tables.values()), default=0) + 1
    _run(cursor, "tables.sql", number)
    begun = Generation(number, 0, LAYOUT, verdicts, 0)
    cursor.execute("INSERT INTO read_model_generations VALUES (?, ?, ?, ?, ?)", begun)
    return begun


def advance(cursor: Cursor, number: int, position: int) -> None:
    """Note how far a generation has come."""
    cursor.execute(
        "UPDATE read_model_generations SET position = ? WHERE generation = ?", (position, number)
    )


def switch(cursor: Cursor, number: int) -> None:
    """Let a generation serve that is complete, and drop all others."""
    _run(cursor, "indexes.sql", number)
    _drop(cursor, _tables(cursor), keep=(number,))
    cursor.execute("UPDATE read_model_generations SET active = 1 WHERE generation = ?", (number,))


def served_position(cursor: Cursor) -> int:
    """How far the rows have come that serve now; 0 where nothing of them can be read."""
    try:
        at = serving(cursor)
    except DamagedReadModel:
        return 0
    return at.position if at.is_ours else 0


def _tables(cursor: Cursor) -> dict[str, int]:
    """All tables of any generation, with its number."""
    cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    found = (_TABLE.fullmatch(name) for (name,) in cursor.fetchall())
    return {match[0]: int(match[1]) for match in found if match}


def _drop(cursor: Cursor, tables: dict[str, int], keep: tuple[int] | None) -> None:
    kept = keep[0] if keep else 0
    for name, number in tables.items():
        if number != kept:
            cursor.execute(f"DROP TABLE {name}")
    cursor.execute("DELETE FROM read_model_generations WHERE generation <> ?", (kept,))


def _run(cursor: Cursor, script: str, number: int) -> None:
    for statement in _statements(script):
        cursor.execute(statement.replace("{g}", str(number)))


@cache
def _statements(name: str) -> tuple[str, ...]:
    script = (
        files("compaction_ledger.projections")
        .joinpath("sql")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    return tuple(part.strip() for part in script.split(";") if part.strip())
