"""Rows of the read models that hold anything whatever (H9): one is found, harms nothing, and is mended.

Each column of each table in turn holds each of the values below. Whatever it is, requests, plans and
compactions go on, verification names it, and questions answer or say that a row is damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from backends import SQLiteBackend
from command_line import call
from copies import copy_ledger
from histories import CONVERSATION, SCOPE, bring_in, every_kind, fill, made_up_job
from window_histories import every_window_kind

from compaction_ledger import Ledger
from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.projections.records import RECORDS, Record, columns
from compaction_ledger.settings import Settings

SUMMARY, IMPORTED = 2, 3  # where the two texts stand that a request uses
VALUES = ["'x'", "x'ff'", "CAST(x'ff' AS TEXT)", "NULL", "1.5"]
TEXTS = ["''", "'[[1, 2]]'"]
NUMBERS = ["-1", "9223372036854775807", "'1180591620717411303424'"]  # the last is 2^70
OF_WINDOWS = ("identity", "status", "replaces", "quote_end", "superseded_by", "tokens")
COLUMNS = [
    pytest.param(
        record.table,
        column,
        id=f"{record.table}-{column}",
        marks=pytest.mark.slow
        if record.table.startswith("window_") and column not in OF_WINDOWS
        else (),
    )
    for record in RECORDS
    for column in columns(record)
]
SHOWN = [
    ("summaries", "identity"),
    ("summaries", "from_pair"),
    ("summaries", "settings"),
    ("summaries", "prompt_version"),
    ("summaries", "recorded_at"),
    ("ranges", "status"),
    ("ranges", "updated_at"),
    ("attempts", "number"),
    ("attempts", "also"),
    ("deliveries", "idx"),
]
STATE = ["generation", "position", "layout", "verdicts", "active"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with every kind of fact, projected and closed; its tables take any value."""
    store = SQLiteBackend(tmp_path_factory.mktemp("original"))
    parts = store.open()
    fill(parts, 80)
    every_kind(parts)
    every_window_kind(parts)
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    ledger.record_delivery(ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6))
    assert ledger.verify().ok
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')"
            " WHERE type = 'table' AND (name GLOB '*_1' OR name = 'read_model_generations')"
        )
        connection.commit()
    return store.path


@pytest.fixture
def damage(original: Path, tmp_path: Path) -> Callable[[str], Path | None]:
    """Makes a copy and changes it; ``None`` where SQLite itself does not take that value there."""
    path = tmp_path / "ledger.db"

    def change(statement: str) -> Path | None:
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        copy_ledger(original, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.text_factory = bytes
            before = _dump(connection)
            try:
                connection.execute(statement)
            except sqlite3.IntegrityError:
                return None
            connection.commit()
            changed = _dump(connection) != before
        return path if changed else None

    return change


def _dump(connection: sqlite3.Connection) -> list[object]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        " AND (name GLOB '*_1' OR name = 'read_model_generations')"
    ).fetchall()
    return [connection.execute(f"SELECT * FROM {name.decode()}").fetchall() for (name,) in names]


def record_of(table: str) -> type[Record]:
    return next(record for record in RECORDS if record.table == table)


def is_number(table: str, column: str) -> bool:
    return "int" in str(record_of(table).__annotations__[column])


def spoil(table: str, column: str, value: str) -> str:
    """The change of a column: of all rows, or if the column is part of their key, of one."""
    record = record_of(table)
    key = ", ".join(columns(record)[: record.key])
    one = f" WHERE ({key}) IN (SELECT {key} FROM {table}_1 LIMIT 1)" if column in key else ""
    return f"UPDATE {table}_1 SET {column} = {value}{one}"


def request(ledger: Ledger) -> Assembly:
    return ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)


def questions(ledger: Ledger) -> list[Callable[[], object]]:
    models = ledger._parts.read_models
    return [
        ledger.position,
        ledger.ranges,
        lambda: ledger.summaries(CONVERSATION, scope=SCOPE),
        lambda: ledger.attempts(CONVERSATION, scope=SCOPE),
        lambda: ledger.deliveries(CONVERSATION, scope=SCOPE),
        lambda: models.window_chunks(SCOPE, CONVERSATION),
        lambda: models.window_pins(SCOPE, CONVERSATION),
        lambda: models.window_deliveries(SCOPE, CONVERSATION),
    ]


def look(path: Path) -> bool:
    """Ask everything of the ledger at ``path``; whether verification finds nothing."""
    with Ledger.open(path, read_only=True) as ledger:
        found = ledger.verify()
        used = {summary.index for summary in request(ledger).manifest.summaries}
        assert used <= {SUMMARY, IMPORTED}
        ledger.plan(CONVERSATION, scope=SCOPE)
        for question in questions(ledger):
            try:
                question()
            except DamagedReadModel:
                assert not found.ok
    return found.ok


def work(path: Path) -> None:
    """Append everything there is to the ledger at ``path``, and mend it."""
    with Ledger.open(path) as ledger:
        ledger.compact(CONVERSATION, scope=SCOPE)
        bring_in(ledger._parts, made_up_job(60))
        ledger.record_delivery(request(ledger))
        ledger.rebuild()
        assert ledger.verify().ok
        assert {0, 10} <= {summary.from_pair for summary in request(ledger).manifest.summaries}


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_any_value_in_any_column(
    damage: Callable[[str], Path | None], table: str, column: str
) -> None:
    tried = 0
    for value in [*VALUES, *(NUMBERS if is_number(table, column) else TEXTS)]:
        path = damage(spoil(table, column, value))
        if path is not None:
            tried += 1
            assert not look(path), value
            if value == "x'ff'":
                work(path)
    assert tried >= 4


@pytest.mark.slow
@pytest.mark.parametrize("column", STATE)
def test_any_value_in_the_table_of_generations(
    damage: Callable[[str], Path | None], column: str
) -> None:
    for value in [*VALUES, "-1", "5"]:
        path = damage(f"UPDATE read_model_generations SET {column} = {value}")
        if path is not None:
            look(path)
            work(path)


@pytest.mark.parametrize("column", columns(RECORDS[0]))
@pytest.mark.parametrize("value", ["x'ff'", "CAST(x'ff' AS TEXT)", "1.5"])
def test_a_damaged_row_takes_no_other_with_it(
    damage: Callable[[str], Path | None], column: str, value: str
) -> None:
    """The imported summary is used as before; the damaged one is named where its range can be told."""
    path = damage(f"UPDATE summaries_1 SET {column} = {value} WHERE idx = {SUMMARY}")
    if path is None:
        return
    with Ledger.open(path, read_only=True) as ledger:
        manifest = request(ledger).manifest
        used = [summary.index for summary in manifest.summaries]
        damaged = [r.from_pair for r in manifest.rejected if r.reason == "damaged"]
        if used == [SUMMARY, IMPORTED]:  # the number as text: as good as another text
            assert value == "1.5"
            return
        assert used == [IMPORTED]
        told = column not in ("identity", "scope", "conversation", "from_pair", "to_pair")
        if value != "1.5":
            assert damaged == ([0] if told else [])


@pytest.mark.slow
def test_the_command_line_says_that_a_row_is_damaged(
    damage: Callable[[str], Path | None],
) -> None:
    for table, column in SHOWN:
        path = damage(spoil(table, column, "x'ff'"))
        assert path is not None
        words = ["--scope", SCOPE]
        assert call("verify", ledger=path).code == 1
        call("assemble", CONVERSATION, "--budget", "100000", *words, ledger=path).fine()
        call("plan", CONVERSATION, *words, ledger=path).fine()
        call("log", ledger=path).fine()
        for asked in (["ranges"], ["show", CONVERSATION, "0", *words]):
            done = call(*asked, ledger=path)
            if done.code:
                assert done.code in (1, 2), done
                assert done.err.startswith("error[damaged_read_model]") or table == "summaries"
        assert call("compact", CONVERSATION, *words, ledger=path).code in (0, 1)
        call("rebuild", ledger=path).fine()
        call("verify", ledger=path).fine()


@pytest.mark.slow
def test_garbage_in_the_table_of_generations_on_the_command_line(
    damage: Callable[[str], Path | None],
) -> None:
    for column in STATE:
        for value in ("'x'", "-1", "1.5"):
            path = damage(f"UPDATE read_model_generations SET {column} = {value}")
            if path is None:
                continue
            for asked in (["log"], ["plan", CONVERSATION, "--scope", SCOPE]):
                call(*asked, ledger=path).fine()
            assert call("ranges", ledger=path).code in (0, 1)
            call("rebuild", ledger=path).fine()
            call("verify", ledger=path).fine()
