"""Commits whose outcome is not known (A9), and failures within a transaction, on real connections."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from backends import Clock
from histories import CONVERSATION, SCOPE, TRUNCATED, Worker, key_of, lines, made_up_job
from scenarios import claimed

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedLog, DiskFull, LedgerBusy, StoreError
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.sqlite.database import (
    Connection,
    ConnectionPool,
    Database,
    open_database,
)
from compaction_ledger.infrastructure.transcripts.sqlite import SQLiteTranscripts
from compaction_ledger.projections.sqlite import SQLiteReadModels
from compaction_ledger.settings import Settings

JOB = made_up_job()
FULL = 2  # PRAGMA synchronous
PLAN: list[str] = []
"""What happens at each of the next commits: ``fails before``, ``fails after``, or else ``well``."""


class FailingConnection(sqlite3.Connection):
    """A connection that dies around its commit, or that finds no room, as planned."""

    def commit(self) -> None:
        happens = PLAN.pop(0) if PLAN else "well"
        if happens == "fails before":
            raise sqlite3.OperationalError("disk I/O error")
        super().commit()
        if happens == "fails after":
            raise sqlite3.OperationalError("disk I/O error")


class FailingPool(ConnectionPool):
    """Hands out such connections, optionally bounded to so many pages."""

    pages: int | None = None

    def _create_connection(self) -> Connection:
        connection = sqlite3.connect(
            self._uri,
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            factory=FailingConnection,
        )
        if self.pages is not None:
            connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return Connection(connection, max_age=None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A ledger whose connections fail as planned."""
    PLAN.clear()
    path = tmp_path / "ledger.db"
    open_database(path).close()
    failing = Database(path)
    failing.pool.close()
    failing.pool = FailingPool(path, read_only=False)
    yield failing
    failing.close()


@pytest.fixture
def parts(database: Database) -> Parts:
    """A session on it."""
    return composition.parts_of(
        LedgerLog(SealedSQLiteRecorder(database, Clock())),
        SQLiteTranscripts(database),
        SQLiteReadModels(database, DEFAULT_REGISTRY),
        WindowPolicy(),
        DEFAULT_REGISTRY,
        Settings(),
        database.close,
    )


def test_a_commit_that_happened_is_found_and_is_a_success(parts: Parts) -> None:
    Worker(parts, made_up_job(10)).claim()  # the conversation has its reference now
    one = Worker(parts, JOB)
    for step, index in ((one.claim, 1), (one.start, 2), (one.finish, 3)):
        PLAN[:] = ["fails after"]
        assert step().indices == [index]
        assert PLAN == []
    assert parts.context.log.size() == 4
    assert list(parts.context.log.verify()) == []


def test_a_commit_that_did_not_happen_is_an_error_and_nothing_is_stored(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    PLAN[:] = ["fails before"]
    with pytest.raises(StoreError):
        one.start()
    assert parts.context.log.size() == 1
    assert one.start().indices == [1]  # the same connection, the same command
    assert list(parts.context.log.verify()) == []


def test_of_several_facts_all_or_none_are_found(parts: Parts) -> None:
    late, other = Worker(parts, JOB, "late"), Worker(parts, JOB, "other")
    late.claim(1)
    late.start(1, 1)
    clock = parts.context.log.sealed.clock  # type: ignore[attr-defined]
    clock.advance(10)
    PLAN[:] = ["fails before"]
    with pytest.raises(StoreError):
        other.claim()
    assert parts.context.log.size() == 2
    PLAN[:] = ["fails after"]
    assert other.claim().indices == [2, 3, 4]  # failed, released, claimed
    assert parts.context.log.size() == 5


def test_a_command_whose_acknowledgement_was_lost_comes_again(parts: Parts) -> None:
    """Whoever committed died before it could read back (A2)."""
    for number, step in enumerate(("claim", "start", "finish")):
        assert getattr(Worker(parts, JOB), step)().indices == [number]
        again = getattr(Worker(parts, JOB), step)()
        assert (again.indices, again.already) == ((), True)
    assert parts.context.log.size() == 3


def test_a_subject_whose_commit_is_unknown(parts: Parts) -> None:
    PLAN[:] = ["fails after"]
    one = Worker(parts, JOB)
    with pytest.raises(StoreError):
        one.claim()
    assert one.claim().indices == [0]  # the reference that was stored is the one that is used
    assert list(parts.context.log.verify()) == []


@pytest.mark.parametrize("happens", ["fails before", "fails after"])
def test_a_transcript_whose_commit_is_unknown_can_be_looked_at(parts: Parts, happens: str) -> None:
    PLAN[:] = [happens]
    with pytest.raises(StoreError):
        parts.transcripts.append(SCOPE, CONVERSATION, *lines(3))
    stored = [name for _, name in parts.transcripts.conversations()]
    assert stored == ([] if happens == "fails before" else [CONVERSATION])
    parts.transcripts.append(SCOPE, CONVERSATION, *lines(1, start=10))
    expected = 2 if happens == "fails before" else 8
    assert len(parts.transcripts.conversation(SCOPE, CONVERSATION).messages) == expected


@pytest.mark.parametrize("happens", ["fails before", "fails after"])
def test_a_batch_of_rows_whose_commit_is_unknown_is_applied_once(
    parts: Parts, happens: str
) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    one.finish(TRUNCATED)
    PLAN[:] = [happens]
    with pytest.raises(StoreError):
        parts.read_models.catch_up(parts.context.log)
    assert parts.read_models.catch_up(parts.context.log) == 3
    rows = parts.read_models.records()
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == rows


@pytest.mark.parametrize("commits", range(1, 4))
def test_a_rebuild_that_fails_at_any_commit_leaves_the_old_rows(parts: Parts, commits: int) -> None:
    Worker(parts, JOB).complete()
    parts.read_models.catch_up(parts.context.log)
    rows = parts.read_models.records()
    for happens in ("fails before", "fails after"):
        PLAN[:] = ["well"] * (commits - 1) + [happens]
        try:
            parts.read_models.rebuild(parts.context.log)
        except StoreError:
            PLAN.clear()
        assert parts.read_models.records() == rows
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == rows


def test_many_failures_leave_the_pool_usable(parts: Parts, database: Database) -> None:
    one = Worker(parts, JOB)
    one.claim()
    for _ in range(50):
        PLAN[:] = ["fails before"]
        with pytest.raises(StoreError):
            one.start()
    assert database.pool.num_in_use == 0
    assert one.start().indices == [1]


def test_a_connection_that_did_not_get_its_turn_waits_for_the_disk_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows may be lost when the power fails, an event that is stored next may not."""
    monkeypatch.setattr("compaction_ledger.infrastructure.sqlite.database.BUSY_TIMEOUT_SECONDS", 0)
    database = open_database(tmp_path / "ledger.db")
    with closing(database), closing(sqlite3.connect(database.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy), database.transaction(commit=True, durable=False):
            pass
        assert database.pool.num_in_use == 0
        other.rollback()
        with database.transaction(commit=True) as cursor:
            assert cursor.execute("PRAGMA synchronous").fetchone() == (FULL,)


def test_an_answer_that_was_not_read_to_its_end_locks_nothing(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "ledger.db")) as database:
        with database.transaction(commit=True) as cursor:
            cursor.execute("CREATE TABLE two AS SELECT 1 AS n UNION SELECT 2")
        with database.transaction(commit=False) as unfinished:
            unfinished.execute("SELECT n FROM two")
            assert unfinished.fetchone() == (1,)
        with database.transaction(commit=True) as cursor:
            cursor.execute("DROP TABLE two")


def test_a_ledger_that_cannot_be_put_together_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_database(path)) as database, database.transaction(commit=True) as cursor:
        cursor.execute("CREATE VIEW summaries_1 AS SELECT 1")  # in the way of the first table
    closed: list[Path] = []
    monkeypatch.setattr(Database, "close", lambda self: closed.append(self.path))
    with pytest.raises(DamagedLog) as failure:
        composition.open_sqlite(
            path, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
        )
    assert closed == [path]
    assert failure.value.__traceback__ is not None  # which keeps the database from being collected


def test_a_full_database_is_a_full_disk(tmp_path: Path, database: Database) -> None:
    """Without a disk to fill: the bound that SQLite itself keeps."""
    pool = FailingPool(database.path, read_only=False)
    database.pool.close()
    with sqlite3.connect(database.path) as connection:
        pool.pages = connection.execute("PRAGMA page_count").fetchone()[0] + 8
    connection.close()
    database.pool = pool
    log = LedgerLog(SealedSQLiteRecorder(database, Clock()))

    def fill_up() -> int:
        for number in range(1_000):
            job = made_up_job(number * 10)
            try:
                log.append(key_of(job), EMPTY, [claimed(f"c{number}", job=job)])
            except DiskFull:
                return number
        raise AssertionError("never full")

    stored = fill_up()
    assert stored > 0
    assert log.size() == stored
    assert list(log.verify()) == []
    assert len(log.read(0, 10_000)) == stored
