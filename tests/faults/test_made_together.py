"""Two processes make the same file at once: neither takes what the other half made for a stranger's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from compaction_ledger.domain.errors import KeyMissing
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys
from compaction_ledger.infrastructure.sqlite.database import open_database
from compaction_ledger.infrastructure.witness.store import SQLiteWitnessStore

HEAD_START_SECONDS = 0.2  # for the other to get as far as the locks let it
CONNECT = sqlite3.connect


def make_data_keys(path: Path) -> None:
    with closing(SQLiteWrappedKeys(path)) as keys:
        keys.add([])


def make_witness(path: Path) -> None:
    SQLiteWitnessStore(path)


def make_ledger(path: Path) -> None:
    open_database(path).close()


@pytest.mark.parametrize("make", [make_data_keys, make_witness, make_ledger])
@pytest.mark.parametrize(
    "before",
    [
        "PRAGMA application_id",
        "PRAGMA user_version",
        "SELECT count(*) FROM sqlite_master",
        "BEGIN IMMEDIATE",
        "CREATE TABLE",
        "COMMIT",
    ],
)
def test_a_file_that_another_makes_meanwhile_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], before: str
) -> None:
    """Whichever statement the other comes before: what is read of the header is of one moment."""
    path = tmp_path / "made.db"
    others: list[Thread] = []
    failures: list[Exception] = []

    def make_as_another() -> None:
        try:
            make(path)
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)

    def let_another_in(statement: str) -> None:
        if before in statement and not others:
            others.append(Thread(target=make_as_another))
            others[0].start()
            others[0].join(HEAD_START_SECONDS)

    def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = CONNECT(*arguments, **settings)
        connection.set_trace_callback(let_another_in)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    make(path)
    assert others, f"nothing says {before!r}"
    others[0].join()
    assert failures == []
    make(path)


def test_a_database_of_something_else_is_no_store_of_keys(tmp_path: Path) -> None:
    """Nor is it changed: it may well be that nobody ever set its numbers."""
    path = tmp_path / "data-keys.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id INTEGER)")
    before = path.read_bytes()
    with (
        closing(SQLiteWrappedKeys(path)) as keys,
        pytest.raises(KeyMissing, match="something else"),
    ):
        keys.add([])
    assert path.read_bytes() == before
