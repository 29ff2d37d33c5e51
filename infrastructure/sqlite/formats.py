"""The formats of a ledger file, and how an older file is brought up to date: one script for each format.

Format 1 is made by ``schema.sql``; what each later one adds stands in ``upgrades/``. A new file is made by
all of them in turn, so that it cannot differ from one that was brought up to date.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from compaction_ledger.domain.errors import NewerFormat, NotALedger

APPLICATION_ID = 0x434C4447  # "CLDG"
FORMAT = 4


def file_format(cursor: sqlite3.Cursor) -> int:
    """The format of the ledger file now: another process may bring it up to date while it is being read."""
    return int(cursor.execute("PRAGMA user_version").fetchall()[0][0])


def judge(cursor: sqlite3.Cursor, path: Path) -> int:
    """The format of the file at ``path``, 0 for an empty database.

    Raises :class:`NotALedger`, and :class:`NewerFormat` for one that later software wrote.
    """
    cursor.execute("PRAGMA application_id")
    application_id = cursor.fetchone()[0]
    version = file_format(cursor)
    if application_id == APPLICATION_ID and version:
        if version > FORMAT:
            raise NewerFormat(f"{path} has format {version}, this software knows up to {FORMAT}")
        return version
    cursor.execute("SELECT count(*) FROM sqlite_master")
    if application_id or version or cursor.fetchone()[0]:
        raise NotALedger(f"{path} is a database of something else")
    return 0


def bring_up_to_date(cursor: sqlite3.Cursor, path: Path) -> None:
    """Make the tables that are missing, within a writing transaction of the caller's.

    An empty file gets those of format 1 and each later one. Safe when several processes do it at once: the
    lock decides, the rest find it done. Raises as :func:`judge`.
    """
    found = judge(cursor, path)
    if not found:
        _make(cursor)
    for script in _upgrades(found or 1):
        for statement in statements(script):
            cursor.execute(statement)
    cursor.execute(f"PRAGMA user_version = {FORMAT}")


def _make(cursor: sqlite3.Cursor) -> None:
    """The tables of format 1, in an empty database."""
    for statement in statements(_script("schema.sql")):
        cursor.execute(statement)
    cursor.execute(
        "INSERT INTO log_head VALUES (0, 0, ?)", (f"compaction-ledger/{uuid.uuid4().hex}",)
    )
    cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _upgrades(present: int) -> Iterator[str]:
    """The scripts that lead from format ``present`` to the newest, one for each format, in order."""
    folder = files("compaction_ledger.infrastructure.sqlite").joinpath("upgrades")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    for number in range(present + 1, FORMAT + 1):
        (name,) = (name for name in names if name.startswith(f"{number:04d}_"))
        yield _script(f"upgrades/{name}")


def _script(name: str) -> str:
    """The text of an SQL file of this package."""
    place = files("compaction_ledger.infrastructure.sqlite").joinpath(name)
    return place.read_text(encoding="utf-8")


def statements(script: str) -> Iterator[str]:
    """The statements of an SQL script, one by one, so that they can run inside one transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
