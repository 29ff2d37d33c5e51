"""What somebody does to a ledger behind the software's back, on a real SQLite file or a real PostgreSQL (K4).

A :class:`Victim` is one ledger with its store laid open. What is done to it needs no key: hashes are made
anew, as anybody can, and signatures are not.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal

import psycopg
from histories import Worker, fill, key_of, present_job
from pg_ledgers import PgLedger, ledger_on

from compaction_ledger import Ledger
from compaction_ledger.infrastructure.event_store.envelope import Envelope, leaf_hash, parse
from compaction_ledger.infrastructure.event_store.envelope import key_of as envelope_key
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.postgres.database import in_schema
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.verifying import Verification

COLUMNS = "idx, originator_id, originator_version, topic, state, envelope, leaf"
Rewrite = Callable[[Row], Row]


@dataclass
class Victim:
    """One ledger: the place it is opened at, the folders beside it, and its store laid open."""

    place: str | Path
    settings: Settings
    no_bytes: ClassVar[str] = "x''"

    @abstractmethod
    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements past all of our software and its triggers; what the last one answers."""

    @abstractmethod
    def _insert(self, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def change(self, statement: str, *values: object) -> None:
        """One statement with ``?`` for each value, past all of our software and its triggers."""

    # --- using it as one should ---

    @contextmanager
    def opened(self, *, read_only: bool = False) -> Iterator[Ledger]:
        """The ledger, opened as anybody opens it."""
        with Ledger.open(self.place, settings=self.settings, read_only=read_only) as ledger:
            yield ledger

    def grow(self, conversation: str, ranges: int = 1) -> int:
        """Summarize some ranges of a new conversation; returns the size of the log."""
        with self.opened() as ledger:
            parts = ledger._parts
            fill(parts, 20 + 10 * ranges, conversation)
            for number in range(ranges):
                worker = Worker(parts, present_job(parts, 10 * number, conversation=conversation))
                worker.claim()
                worker.start()
                worker.finish()
            ledger.catch_up()
            return ledger.size()

    def sign(self) -> str:
        """Publish a checkpoint; returns the newest one as it was signed."""
        with self.opened() as ledger:
            return ledger.checkpoint().data.decode()

    def verifier_keys(self) -> list[str]:
        """The signer's verifier keys."""
        with self.opened(read_only=True) as ledger:
            return [str(key) for key in ledger.signer_keys().verifier_keys()]

    def verify(self, **against: Any) -> Verification:
        """What verification of the log says, read models left out."""
        with self.opened(read_only=True) as ledger:
            return ledger.verify(seal_only=True, **against)

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        assert self.settings.checkpoints_folder is not None
        return self.settings.checkpoints_folder

    # --- and as one should not ---

    def rows(self) -> list[Row]:
        """The stored events, in the order of the index."""
        found = self.execute(f"SELECT {COLUMNS} FROM {self.table('stored_events')} ORDER BY idx")
        return [Row(*row) for row in found]

    def put(self, rows: Sequence[Row]) -> None:
        """Put other events in the place of all, and set the head to match."""
        self.execute(f"DELETE FROM {self.table('stored_events')}")
        self._insert(rows)
        self.execute(f"UPDATE {self.table('log_head')} SET size = {len(rows)}")

    def edit(self, index: int, **columns: object) -> None:
        """Set columns of one event."""
        settings = ", ".join(f"{name} = ?" for name in columns)
        self.change(
            f"UPDATE {self.table('stored_events')} SET {settings} WHERE idx = ?",
            *columns.values(),
            index,
        )

    def append(self, row: Row) -> None:
        """Put an event behind all others, and set the head to match."""
        self._insert([row])
        self.execute(f"UPDATE {self.table('log_head')} SET size = size + 1")

    def cut(self, size: int) -> None:
        """Cut the tail off, and set the head back."""
        self.put(self.rows()[:size])

    def forget_signing(self) -> None:
        """Put what the store knows of signing back to the beginning, and take the checkpoints away."""
        self.execute(
            f"UPDATE {self.table('signer')} SET size = 0, root = {self.no_bytes}",
            f"DELETE FROM {self.table('tree_nodes')}",
        )
        shutil.rmtree(self.checkpoints)

    def rewrite(self, change: Rewrite) -> None:
        """Rewrite the log with valid hashes: the seal holds throughout, and every chain."""
        self.put(resealed(map(change, self.rows())))

    def table(self, name: str) -> str:
        """A table's name as a statement needs it."""
        return name

    def read_model(self, name: str) -> str:
        """The name of a table of the serving read models; ``generations`` is the one that says which."""
        generations = self._read_models("generations")
        if name == "generations":
            return generations
        ((number,),) = self.execute(
            f"SELECT generation FROM {generations} ORDER BY active DESC LIMIT 1"
        )
        return self._read_models(f"{name}_{number}")

    @abstractmethod
    def _read_models(self, name: str) -> str: ...


@dataclass
class SQLiteVictim(Victim):
    """A file."""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        with self._connected() as connection:
            for statement in statements:
                found = connection.execute(statement).fetchall()
        return found

    def _insert(self, rows: Sequence[Row]) -> None:
        with self._connected() as connection:
            connection.executemany(
                f"INSERT INTO stored_events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
            )

    def change(self, statement: str, *values: Any) -> None:
        with self._connected() as connection:
            connection.execute(statement, values)

    def _read_models(self, name: str) -> str:
        return "read_model_generations" if name == "generations" else name

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.place)) as connection:
            triggers = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'stored_events'"
            ).fetchall()
            for (name,) in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            yield connection
            connection.commit()


@dataclass
class PostgresVictim(Victim):
    """A schema of a database."""

    ledger: PgLedger
    no_bytes: ClassVar[str] = "''::bytea"

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        self.ledger.execute("ALTER TABLE {schema}.stored_events DISABLE TRIGGER USER")
        found: list[tuple[Any, ...]] = []
        for statement in statements:
            found = self.ledger.execute(statement)
        return found

    def _insert(self, rows: Sequence[Row]) -> None:
        statement = (
            f"INSERT INTO {{schema}}.stored_events ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        )
        address = self.ledger.address
        with psycopg.connect(address.conninfo) as connection, connection.cursor() as cursor:
            cursor.executemany(in_schema(statement, address), rows)

    def change(self, statement: str, *values: object) -> None:
        self.execute()
        self.ledger.execute(statement.replace("?", "%s"), *values)

    def table(self, name: str) -> str:
        return f"{{schema}}.{name}"

    def _read_models(self, name: str) -> str:
        return f"{{read_models}}.{name}"


@contextmanager
def victim(
    kind: str, folder: Path, pg_server: str, encryption: Literal["on", "off"] = "off"
) -> Iterator[Victim]:
    """A new ledger in an SQLite file or on PostgreSQL, with its keys and checkpoints in ``folder``."""
    settings = Settings(
        encryption=encryption,
        keys_folder=folder / "keys",
        checkpoints_folder=folder / "checkpoints",
    )
    if kind == "sqlite":
        yield SQLiteVictim(folder / "ledger.db", settings)
        return
    with ledger_on(pg_server) as ledger:
        yield PostgresVictim(ledger.url, settings, ledger)


def resealed(rows: Iterator[Row]) -> list[Row]:
    """The same events with hashes that fit, payload, chain and leaf, as who knows the format makes them."""
    last: dict[str, str] = {}
    sealed: list[Row] = []
    for index, row in enumerate(rows):
        before = parse(row.envelope)
        assert isinstance(before, Envelope)
        envelope = replace(
            before,
            payload=sha256(row.payload).hexdigest(),
            key=envelope_key(row.payload),
            previous=last.get(row.stream, ""),
            version=row.version,
        ).encode()
        leaf = leaf_hash(envelope)
        last[row.stream] = leaf.hex()
        sealed.append(row._replace(idx=index, envelope=envelope, leaf=leaf))
    return sealed


def other_text(index: int) -> Rewrite:
    """A change of what one event says; its payload must be plain JSON."""

    def change(row: Row) -> Row:
        if row.idx != index:
            return row
        fact = json.loads(row.payload)
        fact["holder" if "holder" in fact else "detail"] = "somebody else"
        text = json.dumps(fact, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return row._replace(payload=text.encode())

    return change


__all__ = ["PostgresVictim", "SQLiteVictim", "Victim", "key_of", "other_text", "resealed", "victim"]
