"""Read models that stand in tables: going past the software, to look at them and to change them."""

from __future__ import annotations

from pathlib import Path

from backends import PostgresBackend, SQLiteBackend

Stored = SQLiteBackend | PostgresBackend

# What is said of SQLite's tables, as it is said of PostgreSQL's.
_IN_POSTGRES = (
    ("read_model_generations", "{read_models}.generations"),
    (" summaries_1", " {read_models}.summaries_1"),
    (" ranges_1", " {read_models}.ranges_1"),
    (" window_chunks_1", " {read_models}.window_chunks_1"),
    (" window_pins_1", " {read_models}.window_pins_1"),
    (" window_deliveries_1", " {read_models}.window_deliveries_1"),
    ("active = 0", "active = false"),
    ("x'00'", "'00'"),
)


def place(store: Stored) -> Path | str:
    """Where the ledger is, for another process to open it."""
    return store.path if isinstance(store, SQLiteBackend) else store.url


def change(store: Stored, statement: str) -> None:
    """Change tables by a statement that names them as SQLite does."""
    if isinstance(store, SQLiteBackend):
        with store.database().transaction(commit=True) as cursor:
            cursor.execute(statement)
        return
    for ours, theirs in _IN_POSTGRES:
        statement = statement.replace(ours, theirs)
    database = store.database()
    database.call(database.sql(statement))


def tables_of_summaries(store: Stored) -> list[str]:
    """The names of the tables of summaries that there are, of whatever generation."""
    if isinstance(store, SQLiteBackend):
        with store.database().transaction(commit=False) as cursor:
            cursor.execute(
                "SELECT name FROM sqlite_master"
                " WHERE name GLOB 'summaries_[0-9]*' AND type = 'table' ORDER BY name"
            )
            return [name for (name,) in cursor.fetchall()]
    database = store.database()
    rows = database.call(
        b"SELECT tablename FROM pg_tables"
        b" WHERE schemaname = %s AND tablename LIKE 'summaries%%' ORDER BY tablename",
        (database.address.read_models_schema,),
    )
    return [name for (name,) in rows]


def generations(store: Stored) -> int:
    """How many generations are known."""
    if isinstance(store, SQLiteBackend):
        with store.database().transaction(commit=False) as cursor:
            cursor.execute("SELECT count(*) FROM read_model_generations")
            return int(cursor.fetchone()[0])
    database = store.database()
    ((count,),) = database.call(database.sql("SELECT count(*) FROM {read_models}.generations"))
    return int(count)
