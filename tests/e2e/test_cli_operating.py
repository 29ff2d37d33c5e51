"""`status` and `migrate`: what an operator asks and does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from backends import everyday_database
from command_line import call, run, start
from pg_servers import fresh_schema

from compaction_ledger import Ledger
from compaction_ledger.infrastructure.postgres.migrating import migrations

NAMES = [migration.title for migration in migrations()]


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of a schema that is not there yet."""
    url = everyday_database()
    with fresh_schema(url) as schema:
        yield f"{url}{'&' if '?' in url else '?'}schema={schema}"


def test_status_of_a_file(demo_ledger: Path) -> None:
    shown = call("status", ledger=demo_ledger).fine().out
    names = [line.split("  ")[0] for line in shown.splitlines()]
    assert names == [
        *("Ledger", "Store", "Size", "At", "Events", "Read models", "Ranges"),
        *("Open claims", "Work list"),
    ]
    assert "up to date" in shown
    assert "1 exhausted, 4 done" in shown


def test_status_says_what_lags_and_leaves_it(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    call("import", transcript, ledger=path).fine()
    with Ledger.open(path) as ledger:
        ledger._parts.read_models.catch_up = lambda *_: 0  # type: ignore[method-assign]
        ledger.compact("chat")
        behind = ledger.position()
    for _ in range(2):
        document = call("status", "--json", ledger=path).fine().json
        assert (document["position"], document["lag"]) == (behind, 6 - behind)
        assert document["lag_seconds"] > 0
    assert "6 events behind, for" in call("status", ledger=path).fine().out


@pytest.mark.slow
def test_status_again_and_again(demo_ledger: Path) -> None:
    with start(["status", "--watch", 0.1, "--ledger", demo_ledger]) as process:
        assert process.stdout is not None
        seen = [next(process.stdout) for _ in range(25)]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    times = [line for line in [*seen, *rest.splitlines(keepends=True)] if line.startswith("At")]
    assert len(set(times)) == len(times) >= 2


def test_status_is_told_once_as_json(demo_ledger: Path, tmp_path: Path) -> None:
    call("status", "--watch", 1, "--json", ledger=demo_ledger).failed("usage")
    call("status", "--watch", 0, ledger=demo_ledger).failed("usage")
    call("status", ledger=tmp_path / "none.db").failed("not_a_ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_migrate(place: str) -> None:
    given = ("--ledger", place)
    call("status", *given).failed("not_a_ledger")
    shown = call("migrate", "--dry-run", *given).fine().out
    assert " ".join(shown.split()) == (
        f"{len(NAMES)} migrations to be applied: {', '.join(NAMES)}."
    )
    assert call("migrate", "--json", *given).fine().json == {
        "applied": NAMES,
        "pending": [],
        "roles": None,
    }
    assert call("migrate", *given).fine().out == "The tables are up to date.\n"
    assert call("migrate", "--dry-run", "--json", *given).fine().json["pending"] == []
    assert "0 due" in call("status", *given).fine().out


def test_one_migration_is_one(place: str) -> None:
    with psycopg.connect(everyday_database(), autocommit=True) as connection:
        schema = place.rpartition("=")[2]
        call("migrate", "--ledger", place).fine()
        connection.execute(
            f"UPDATE {schema}.schema_migrations SET version = 99 WHERE version = 1".encode()
        )
    call("migrate", "--dry-run", "--ledger", place).failed("newer_format")


@pytest.mark.slow
def test_roles(place: str) -> None:
    schema = place.rpartition("=")[2]
    call("migrate", "--ledger", place).fine()
    script = run("migrate", "--roles", f"{schema}_w", f"{schema}_r", "--ledger", place).fine().out
    with psycopg.connect(everyday_database(), autocommit=True) as connection:
        for role in ("w", "r"):
            connection.execute(f"CREATE ROLE {schema}_{role}".encode())
        try:
            connection.execute(script.encode())
            rights = connection.execute(
                f"SELECT has_table_privilege('{schema}_w', '{schema}.messages', 'INSERT'), "
                f"has_table_privilege('{schema}_r', '{schema}.messages', 'INSERT')".encode()
            ).fetchone()
            assert rights == (True, False)
            as_reader = ("--ledger", f"{place}&options=-c%20role%3D{schema}_r")
            assert "0 due" in call("status", *as_reader).fine().out
            call("rebuild", *as_reader).failed("ledger_read_only")
        finally:
            for role in ("w", "r"):
                connection.execute(f"DROP OWNED BY {schema}_{role}".encode())
                connection.execute(f"DROP ROLE {schema}_{role}".encode())
    document = call("migrate", "--roles", "a", "b", "--json", "--ledger", place).fine().json
    assert (document["applied"], document["pending"]) == ([], None)
    assert document["roles"].endswith("COMMIT;\n")
    call("migrate", "--roles", "a", "a", "--ledger", place).failed("invalid_setting")
    call("migrate", "--roles", "a", "b", "--dry-run", "--ledger", place).failed("usage")


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--dry-run"], ["--roles", "w", "r"]])
def test_a_file_needs_no_migration(words: list[str], tmp_path: Path) -> None:
    message = call("migrate", *words, ledger=tmp_path / "ledger.db").failed("invalid_setting")
    assert "only a ledger on PostgreSQL is migrated" in message
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    place = "postgresql://nobody@127.0.0.1:1/none"
    for words in (["migrate"], ["migrate", "--dry-run"], ["status"]):
        call(*words, "--ledger", place).failed("store_unavailable")


@pytest.mark.parametrize("words", [["status"], ["migrate"], ["migrate", "--roles", "w", "r"]])
def test_a_wrong_url_is_refused_without_its_password(words: list[str]) -> None:
    """S4: what is no URL of PostgreSQL is not taken for a file, whose name would be shown."""
    for scheme in ("postgresql+driver", "mysql", "postgressql"):
        message = call(*words, "--ledger", f"{scheme}://me:hush@host/db").failed("invalid_setting")
        assert "this is no PostgreSQL URL" in message
        assert "hush" not in message
