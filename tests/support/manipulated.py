"""One ledger with some of everything in it, to be tampered with: built once, and copied for each change."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from histories import SCOPE, Worker, bring_in, fill, present_job
from manipulations import PostgresVictim, SQLiteVictim, Victim, victim
from pg_ledgers import PgLedger
from window_runs import BUDGET, RememberingSummarizer, growing, window_on
from witnesses import RunningWitness, running_witness

from compaction_ledger.composition import Parts
from compaction_ledger.settings import Settings

GOOD, OTHER, WINDOWED, GONE, LATE = "c-good", "c-other", "c-window", "c-gone", "c-late"
RUN = (SCOPE, WINDOWED, "run-1")
TURNS = list(growing(12, {2: "Never spend more than 500 euros. "}))

# Where things stand in the history below: of GOOD two summaries and an import, of OTHER a summary, a
# delivery, a summary of GONE and its erasure, a window with a pin, a chunk and a delivery, and what came
# later.
FIRST, STARTED, SUMMARY, IMPORTED, OTHER_CLAIM, OTHER_SUMMARY, DELIVERY = 2, 4, 5, 6, 7, 9, 10
GONE_CLAIM, GONE_SUMMARY, REQUESTED, PIN, CHUNK = 11, 13, 14, 16, 19
LATE_CLAIM, LAST, SIZE = 21, 23, 24
SIGNED = (10, 21)


def build(victim: Victim) -> None:
    """The history that all manipulations begin with."""
    with victim.opened() as ledger:
        parts = ledger._parts
        for conversation, pairs in ((GOOD, 60), (OTHER, 40), (GONE, 40), (LATE, 40)):
            fill(parts, pairs, conversation)
        _complete(parts, GOOD, 0)
        _complete(parts, GOOD, 10)
        bring_in(parts, present_job(parts, 20, conversation=GOOD), f"{GOOD} 20: made elsewhere.")
        _complete(parts, OTHER, 0)
        assert ledger.checkpoint().checkpoint.size == SIGNED[0]
        ledger.catch_up()
        ledger.record_delivery(ledger.assemble(GOOD, scope=SCOPE, budget=10**6))
        _complete(parts, GONE, 0)
        ledger.catch_up()
        ledger.erase(GONE, scope=SCOPE)
        window = window_on(parts, RememberingSummarizer(), place=RUN, budget=BUDGET, rules=True)
        for messages in TURNS[:-2]:
            window.prepare(messages)
            window.compact()
        window.deliver(window.prepare(TURNS[-2]))
        assert ledger.checkpoint().checkpoint.size == SIGNED[1]
        _complete(parts, LATE, 0)
        ledger.catch_up()
        assert ledger.size() == SIZE


def _complete(parts: Parts, conversation: str, from_pair: int) -> None:
    job = present_job(parts, from_pair, conversation=conversation)
    text = f"{conversation} {from_pair}: it costs {from_pair}.{from_pair} %."
    Worker(parts, job, f"{conversation}-{from_pair}").complete(text)


class Original(ABC):
    """The ledger as it was built, and the witness that has cosigned it."""

    def __init__(self, folder: Path, built: Victim, witness: RunningWitness) -> None:
        self._folder = folder
        self.built = built
        self.witness = witness

    @abstractmethod
    def copied(self, folder: Path) -> Victim:
        """A ledger to tamper with; those that were copied before are of no use any more."""


class SQLiteOriginal(Original):
    """A file, which is copied with its folders."""

    def copied(self, folder: Path) -> SQLiteVictim:
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return SQLiteVictim(folder / "ledger.db", _settings(folder))


class PostgresOriginal(Original):
    """A schema, whose rows are put back, as the folders are."""

    def __init__(self, folder: Path, built: PostgresVictim, witness: RunningWitness) -> None:
        super().__init__(folder, built, witness)
        self._ledger = built.ledger
        self._tables = _tables(self._ledger)
        with self._connected() as connection:
            for number, (table, columns) in enumerate(self._tables.items()):
                saved = self._saved(number)
                connection.execute(f"CREATE TABLE {saved} (LIKE {table} INCLUDING ALL)".encode())
                connection.execute(_copying(table, saved, columns))

    def copied(self, folder: Path) -> PostgresVictim:
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        there = _tables(self._ledger)
        with self._connected() as connection:
            connection.execute("SET session_replication_role = replica")  # no triggers
            for table in there.keys() - self._tables.keys():  # of read models that were rebuilt
                if "saved_" not in table:
                    connection.execute(f"DROP TABLE {table}".encode())
            for number, (table, columns) in enumerate(self._tables.items()):
                saved = self._saved(number)
                if table not in there:
                    connection.execute(
                        f"CREATE TABLE {table} (LIKE {saved} INCLUDING ALL)".encode()
                    )
                connection.execute(f"DELETE FROM {table}".encode())
                connection.execute(_copying(saved, table, columns))
        return PostgresVictim(self._ledger.url, _settings(folder), self._ledger)

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(self._ledger.address.conninfo)

    def _saved(self, number: int) -> str:
        return f'"{self._ledger.address.schema}".saved_{number}'


def _copying(source: str, target: str, columns: str) -> bytes:
    """The statement that copies all rows of one table into another."""
    return (
        f"INSERT INTO {target} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {source}"
    ).encode()


def _tables(ledger: PgLedger) -> dict[str, str]:
    """The tables of a ledger, with their columns; those that the server fills are left out."""
    address = ledger.address
    rows = ledger.execute(
        "SELECT format('%%I.%%I', table_schema, table_name),"
        " string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position)"
        " FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name) WHERE table_schema IN (%s, %s)"
        " AND table_type = 'BASE TABLE' AND is_generated = 'NEVER' GROUP BY 1",
        address.schema,
        address.read_models_schema,
    )
    return {str(table): str(columns) for table, columns in rows}


def _settings(folder: Path) -> Settings:
    return Settings(keys_folder=folder / "keys", checkpoints_folder=folder / "checkpoints")


@contextmanager
def original(kind: str, folder: Path, pg_server: str) -> Iterator[Original]:
    """The ledger in an SQLite file or on PostgreSQL, with encrypted payloads, as it is by default."""
    home = folder / "original"
    home.mkdir()
    with victim(kind, home, pg_server, "on") as built:
        build(built)
        with running_witness(folder / "witness", built.verifier_keys()) as witness:
            witness.cosign(built)
            if isinstance(built, PostgresVictim):
                yield PostgresOriginal(home, built, witness)
            else:
                yield SQLiteOriginal(home, built, witness)
