"""The tables on PostgreSQL: migrations and the schema are the same, and what is not a ledger is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from backends import PostgresBackend, everyday_database
from chunk_scenarios import WINDOW, A, done
from pg_servers import fresh_schema

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import InvalidSetting, NewerFormat, NotALedger, StoreError
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.window.window_stream import EMPTY
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.postgres_recorder import SealedPostgresRecorder
from compaction_ledger.infrastructure.postgres import migrating
from compaction_ledger.infrastructure.postgres.address import Address, parse_address
from compaction_ledger.infrastructure.postgres.database import Database, Values, in_schema
from compaction_ledger.projections.postgres import PostgresReadModels
from compaction_ledger.projections.records import RECORDS

# What there is in a schema, each thing in words of the server's own.
CATALOG = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
    coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(l.collname, ''), a.attidentity::text
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE c.relnamespace = %(schema)s::text::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0
    AND NOT a.attisdropped
UNION ALL SELECT 'table', relname, coalesce(array_to_string(reloptions, ','), ''), relkind::text,
    relpersistence::text, '', '', '' FROM pg_class
WHERE relnamespace = %(schema)s::text::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', '', ''
FROM pg_constraint WHERE connamespace = %(schema)s::text::regnamespace
UNION ALL SELECT 'index', tablename, indexname, indexdef, '', '', '', ''
FROM pg_indexes WHERE schemaname = %(schema)s::text
UNION ALL SELECT 'trigger', c.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled::text, '', '', ''
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = %(schema)s::text::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'function', proname, pg_get_function_identity_arguments(oid), pg_get_functiondef(oid),
    coalesce(array_to_string(proacl, ','), ''), '', '', ''
FROM pg_proc WHERE pronamespace = %(schema)s::text::regnamespace
"""


@pytest.fixture
def database() -> Iterator[Database]:
    """A schema in which there is nothing yet."""
    with empty_schema() as found:
        yield found


@contextmanager
def empty_schema() -> Iterator[Database]:
    url = everyday_database()
    with fresh_schema(url) as schema:
        database = Database(parse_address(f"{url}?schema={schema}"), patience=2)
        yield database
        database.close()


def catalog(address: Address) -> list[Values]:
    """Everything in both schemas of a ledger, without their names."""
    found: list[Values] = []
    with psycopg.connect(address.conninfo) as connection:
        for schema in (address.schema, address.read_models_schema):
            rows = connection.execute(CATALOG, {"schema": schema}).fetchall()
            found += [tuple(text.replace(address.schema, "") for text in row) for row in rows]
    return sorted(found)


def test_the_migrations_make_what_the_schema_says(database: Database) -> None:
    assert migrating.migrate(database) == list(migrating.migrations())
    with empty_schema() as other:
        migrating.migrate(other, step_by_step=True)
        migrated, made = catalog(other.address), catalog(database.address)
    assert migrated == made
    assert len(made) > 50
    assert {row[0] for row in made} >= {"column", "table", "constraint", "index", "trigger"}


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [migration.version for migration in migrating.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_was_applied_is_not_applied_again(database: Database) -> None:
    migrating.migrate(database)
    before = catalog(database.address)
    assert migrating.migrate(database) == []
    assert migrating.pending(database) == []
    assert catalog(database.address) == before


def test_an_older_ledger_is_brought_up_to_date(database: Database) -> None:
    migrating.migrate(database, up_to=2)
    assert [one.version for one in migrating.pending(database)] == [
        one.version for one in migrating.migrations() if one.version >= 3
    ]
    with pytest.raises(StoreError, match="compaction-ledger migrate"):
        migrating.prepare(database, create=False)
    migrating.prepare(database, create=True)
    assert migrating.pending(database) == []


def test_rows_from_before_windows_are_built_anew_with_their_tables(database: Database) -> None:
    """A generation of the layout that an older ledger has, which served it until then (P3)."""
    migrating.migrate(database, up_to=6)
    for statement in (
        "SELECT {read_models}.begin_generation(1, '')",
        "SELECT {read_models}.index_generation(1)",
        "SELECT {read_models}.switch_generation(1)",
    ):
        database.call(database.sql(statement))
    migrating.migrate(database)
    log = LedgerLog(SealedPostgresRecorder(database))
    log.append(WINDOW, EMPTY, done(A))
    models = PostgresReadModels(database, DEFAULT_REGISTRY)
    assert models.position() == 0
    assert list(models.window_chunks(WINDOW.scope, WINDOW.conversation)) == []
    assert models.catch_up(log) == log.size() == 3
    (row,) = models.window_chunks(WINDOW.scope, WINDOW.conversation)
    assert row.stands
    tables = database.call(
        b"SELECT tablename::text FROM pg_tables WHERE schemaname = %s AND tablename ~ '_[0-9]+$'",
        (database.address.read_models_schema,),
    )
    assert sorted(name for (name,) in tables) == sorted(f"{one.table}_2" for one in RECORDS)
    log.close()


def test_where_there_is_no_ledger_none_is_made_to_look_at(database: Database) -> None:
    with pytest.raises(NotALedger, match="there is no ledger"):
        migrating.prepare(database, create=False)
    assert len(migrating.pending(database)) == len(migrating.migrations())


def test_a_newer_ledger_is_left_alone(tmp_path: Path) -> None:
    backend = PostgresBackend(tmp_path)
    database = backend.database()
    statement = "INSERT INTO {schema}.schema_migrations (version, name) VALUES (9999, 'later')"
    database.call(database.sql(statement))
    with pytest.raises(NewerFormat, match="9999"):
        Ledger.open(backend.url)
    backend.close()


def test_a_database_of_another_encoding_is_refused() -> None:
    url, name = everyday_database(), f"latin_{next(count())}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'".encode()
        )
        try:
            with pytest.raises(NotALedger, match="UTF8"):
                Ledger.open(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))
        finally:
            connection.execute(f"DROP DATABASE {name}".encode())


@pytest.mark.parametrize("schema", ["", "Big", "1st", 'a"b', "a" * 49, "a-b", "a b"])
def test_a_schema_has_a_plain_name(schema: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        parse_address(f"postgresql://user:secret@host/db?schema={schema}")
    assert refusal.value.place == "schema"


@pytest.mark.parametrize("schema", ["user", "select", "a" * 48, "_x"])
def test_a_schema_may_be_named_as_words_of_sql_are(schema: str) -> None:
    address = parse_address(f"postgresql://host/db?schema={schema}")
    assert in_schema("{schema}.t {read_models}.u", address).decode() == (
        f'"{schema}".t "{schema}_read_models".u'
    )


def test_no_script_names_a_schema_by_hand() -> None:
    for migration in migrating.migrations():
        text = migrating.text_of(migration)
        made = re.findall(r"CREATE (?:UNLOGGED )?(?:TABLE|FUNCTION|VIEW) (?!IF)(\S+)", text)
        assert made or migration.name == "read_models"
        assert all(name.startswith(("{schema}.", "{read_models}.")) for name in made)
