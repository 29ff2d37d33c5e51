"""Making the tables of a ledger, and bringing older ones up to date: scripts by number, each applied once.

A lock of the database lets any number of processes do it at once. It is a lock of the transaction, so that
it works through a pooler, too.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import psycopg

from compaction_ledger.domain.errors import NewerFormat, NotALedger, StoreError
from compaction_ledger.infrastructure.postgres.address import Address
from compaction_ledger.infrastructure.postgres.connections import connect
from compaction_ledger.infrastructure.postgres.database import (
    Cursor,
    Database,
    in_schema,
    script,
)
from compaction_ledger.infrastructure.postgres.errors import translated

OLDEST_SERVER = 130_000  # pg_current_xact_id, gen_random_uuid
_NAME = re.compile(r"([0-9]{4})_([a-z_]+)\.sql")
_TABLE = """
CREATE TABLE IF NOT EXISTS {schema}.schema_migrations (
    version    integer PRIMARY KEY,
    name       text COLLATE "C" NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


class Migration(NamedTuple):
    """One script."""

    version: int
    name: str
    file: str

    @property
    def title(self) -> str:
        """Number and name, such as ``0001_log``."""
        return self.file.removesuffix(".sql")


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations that this software knows, in order."""
    folder = files("compaction_ledger.infrastructure.postgres").joinpath("migrations")
    found = (_NAME.fullmatch(entry.name) for entry in folder.iterdir())
    return tuple(sorted(Migration(int(m[1]), m[2], m[0]) for m in found if m))


def prepare(database: Database, *, create: bool) -> None:
    """See to it that the ledger's tables are there and are those that we know.

    With ``create`` they are made or brought up to date. Raises :class:`NotALedger`, :class:`NewerFormat`, and
    whatever the server answers, at once: it is asked for the first time.
    """
    check_server(database.address)
    missing = pending(database)
    if not missing:
        return
    if not create:
        raise _unprepared(database.address, missing)
    migrate(database)


def check_server(address: Address) -> None:
    """See to it that a ledger can be on this server. Raises whatever it answers, at once."""
    try:
        with connect(address) as connection:
            _check_server(connection, address)
    except psycopg.Error as error:
        raise translated(error, address.name) from error


def pending(database: Database) -> list[Migration]:
    """The migrations that have not been applied. Raises :class:`NewerFormat`."""
    return database.run(lambda cursor: _missing(cursor, database.address), commit=False)


def migrate(
    database: Database, *, step_by_step: bool = False, up_to: int | None = None
) -> list[Migration]:
    """Apply what has not been applied, all of it or nothing, and return it.

    A new ledger is made by ``schema.sql`` at once; ``step_by_step``, or only ``up_to`` a version, by the
    migrations, as one that is older is brought up to date.
    """
    address = database.address

    def work(cursor: Cursor) -> list[Migration]:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_of(address),))
        missing = [
            one for one in _missing(cursor, address) if up_to is None or one.version <= up_to
        ]
        if missing and missing[0].version == 1:
            cursor.execute(in_schema("CREATE SCHEMA IF NOT EXISTS {schema}", address))
            cursor.execute(in_schema(_TABLE, address))
        whole = missing == list(migrations()) and not step_by_step
        for text in [script("", "schema.sql")] if whole else map(text_of, missing):
            cursor.connection.execute(in_schema(text, address), prepare=False)
        for migration in missing:
            cursor.execute(
                in_schema(
                    "INSERT INTO {schema}.schema_migrations (version, name) VALUES (%s, %s)",
                    address,
                ),
                (migration.version, migration.name),
            )
        return missing

    return database.run(work, commit=True, repeatable=True)


def text_of(migration: Migration) -> str:
    """The script of a migration, with ``{schema}`` and ``{read_models}`` in it."""
    return script("migrations", migration.file)


def _missing(cursor: Cursor, address: Address) -> list[Migration]:
    cursor.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = 'schema_migrations'",
        (address.schema,),
    )
    if cursor.fetchone() == (0,):
        return list(migrations())
    cursor.execute(in_schema("SELECT version FROM {schema}.schema_migrations", address))
    applied = {version for (version,) in cursor.fetchall()}
    known = {migration.version for migration in migrations()}
    if applied - known:
        raise NewerFormat(
            f"{address.name} has version {max(applied)}, this software knows up to {max(known)}"
        )
    return [migration for migration in migrations() if migration.version not in applied]


def _unprepared(address: Address, missing: list[Migration]) -> StoreError:
    if missing[0].version == 1:
        return NotALedger(f"there is no ledger at {address.name}")
    return StoreError(
        f"{address.name} is of an older version of this software: run `compaction-ledger migrate`"
    )


def _check_server(connection: psycopg.Connection[tuple[object, ...]], address: Address) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise NotALedger(f"{address.name}: PostgreSQL 13 or newer is needed")
    row = connection.execute("SHOW server_encoding").fetchone()
    if row != ("UTF8",):
        raise NotALedger(f"{address.name}: the database must be made with the encoding UTF8")


def _lock_of(address: Address) -> int:
    """A number for the lock of this ledger: other ledgers in the database have others."""
    digest = hashlib.sha256(f"compaction-ledger/migrate/{address.schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
