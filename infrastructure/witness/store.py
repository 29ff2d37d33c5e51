"""What a witness has cosigned last of each log, in an SQLite file of its own (K3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from compaction_ledger.domain.errors import NewerFormat, NotALedger, StoreUnavailable
from compaction_ledger.domain.proof.witnessing import Cosigned

APPLICATION_ID = 0x434C5754
FORMAT = 1
BUSY_SECONDS = 10.0

_TABLE = """
CREATE TABLE cosigned (
    origin TEXT PRIMARY KEY,
    note   BLOB NOT NULL
) WITHOUT ROWID
"""


class SQLiteWitnessStore:
    """One row for each log. A commit is on the disk before it is answered: ``synchronous = EXTRA``.

    Whatever SQLite says comes out as a kind of :class:`StoreError`; then nothing was cosigned.
    """

    def __init__(
        self, path: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self._path = path
        self._mode = "rwc" if create else "ro"
        self._busy_seconds = busy_seconds
        with self._translated(), closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE" if create else "BEGIN")
            self._check(connection)
            connection.commit()

    def latest(self, origin: str) -> bytes | None:
        """The checkpoint that was cosigned last, as a signed note."""
        with self._translated(), closing(self._connect()) as connection:
            return _latest(connection, origin)

    def all(self) -> Sequence[bytes]:
        """What was cosigned last of every log, in order of their origins."""
        with self._translated(), closing(self._connect()) as connection:
            rows = connection.execute("SELECT note FROM cosigned ORDER BY origin").fetchall()
            return [_note(row) for row in rows]

    @contextmanager
    def step(self, origin: str) -> Generator[tuple[bytes | None, Cosigned]]:
        """The latest, and what replaces it, under the file's lock; committed at the end."""
        with self._translated(), closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")

            def keep(note: bytes) -> None:
                connection.execute(
                    "INSERT INTO cosigned VALUES (?, ?) "
                    "ON CONFLICT (origin) DO UPDATE SET note = excluded.note",
                    (origin, note),
                )

            yield _latest(connection, origin), keep
            connection.commit()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={self._mode}",
            uri=True,
            isolation_level=None,
            timeout=self._busy_seconds,
        )
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        ((identity,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if not tables and not version and self._mode != "ro":
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        elif identity != APPLICATION_ID:
            raise NotALedger(f"{self._path} is not the store of a witness")
        elif version != FORMAT:
            raise NewerFormat(f"{self._path} is of format {version}, this software knows {FORMAT}")

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error


def _latest(connection: sqlite3.Connection, origin: str) -> bytes | None:
    row = connection.execute("SELECT note FROM cosigned WHERE origin = ?", (origin,)).fetchone()
    return None if row is None else _note(row)


def _note(row: tuple[object]) -> bytes:
    (note,) = row
    if type(note) is not bytes:
        raise StoreUnavailable("what was cosigned last is not what was kept")
    return note
