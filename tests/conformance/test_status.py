"""The status of a ledger, on every backend: what lags is seen to lag, and nothing is written."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from backends import SECOND, START, Backend, PostgresBackend, SQLiteBackend
from histories import CONVERSATION, LEASE, SCOPE, Worker, lines, made_up_job

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import LedgerReadOnly
from compaction_ledger.domain.work import Backlog
from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.sqlite.formats import FORMAT
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.status import LedgerStatus


def status(parts: Parts) -> LedgerStatus:
    return Ledger(parts, Settings()).status()


def test_an_empty_ledger(backend: Backend, parts: Parts) -> None:
    found = status(parts)
    assert (found.at, found.events, found.position, found.lag) == (START, 0, 0, 0)
    assert (found.ranges, found.next_expiry, found.rebuild) == ({}, None, None)
    assert (found.oldest_lagging, found.lag_time) == (None, 0)
    assert found.backlog == Backlog()
    kinds = {"memory": "memory", "sqlite": "sqlite", "postgres": "postgresql"}
    assert found.store.kind == kinds[backend.name]


def test_what_lags_is_seen_to_lag(backend: Backend, parts: Parts) -> None:
    Worker(parts, made_up_job(0)).complete()
    parts.read_models.catch_up(parts.context.log)
    backend.clock.advance(10)
    Worker(parts, made_up_job(10)).claim()
    backend.clock.advance(25)
    Worker(parts, made_up_job(20)).claim()
    found = status(parts)
    assert (found.events, found.position, found.lag) == (5, 3, 2)
    assert (found.oldest_lagging, found.lag_time) == (START + 10 * SECOND, 25 * SECOND)
    assert found.ranges == {"done": 1}
    assert status(parts) == found  # nothing caught up meanwhile
    assert parts.read_models.position() == 3

    parts.read_models.catch_up(parts.context.log)
    found = status(parts)
    assert (found.lag, found.lag_time) == (0, 0)
    assert (found.ranges, found.next_expiry) == (
        {"done": 1, "running": 2},
        START + 10 * SECOND + LEASE,
    )


def test_a_rebuild_that_goes_on(backend: Backend, parts: Parts) -> None:
    Worker(parts, made_up_job(0)).complete()
    parts.read_models.catch_up(parts.context.log)
    watched = backend.open()
    seen: list[LedgerStatus] = []
    parts.read_models.rebuild(parts.context.log, lambda *_: seen.append(status(watched)))
    (during,) = seen
    assert during.rebuild is not None
    assert (during.rebuild.position, during.rebuild.active) == (3, False)
    assert (during.position, during.ranges) == (3, {"done": 1})
    assert status(watched).rebuild is None


def test_the_work_list(backend: Backend, parts: Parts) -> None:
    parts.work.notice([("a", "c1"), ("a", "c2"), ("b", "c3")])
    parts.work.take("w", 1, 60)
    backend.clock.advance(7)
    assert status(parts).backlog == Backlog(2, 1, 0, 7 * SECOND)


def test_a_file_tells_its_format_and_size(sqlite_store: SQLiteBackend) -> None:
    store = status(sqlite_store.open()).store
    assert (store.name, store.version) == (str(sqlite_store.path), sqlite3.sqlite_version)
    assert (store.layout, store.slots) == (FORMAT, None)
    log = sqlite_store.path.with_name(sqlite_store.path.name + "-wal")
    assert store.size == sqlite_store.path.stat().st_size + log.stat().st_size


def test_a_database_tells_its_migration_size_and_slots(tmp_path: Path) -> None:
    backend = PostgresBackend(tmp_path)
    before = status(backend.open()).store
    assert before.layout >= 4
    assert before.size is not None
    assert before.size > 100_000
    assert "password" not in before.name
    admission = SharedAdmission(backend.database(), 1, "tester")
    leave = admission.admit()
    assert leave is not None
    assert SharedAdmission(backend.database(), 1, "other").admit() is None
    slots = status(backend.open()).store.slots
    assert slots is not None
    assert (slots.taken, slots.waiting) == (1, 1)
    leave()
    admission.close()
    backend.close()


def test_what_is_opened_to_be_read_is_not_written(backend: Backend, parts: Parts) -> None:
    """Whatever the role may do that opens it."""
    Worker(parts, made_up_job(0)).complete()
    if not isinstance(backend, (SQLiteBackend, PostgresBackend)):
        return
    place = backend.path if isinstance(backend, SQLiteBackend) else backend.url
    with Ledger.open(place, create=False, read_only=True) as reader:
        for write in (
            lambda: reader.transcripts.append(SCOPE, "new", *lines(1)),
            lambda: reader.notice([(SCOPE, CONVERSATION)]),
            lambda: Worker(reader._parts, made_up_job(10), "other").claim(),
            reader.catch_up,
            reader.rebuild,
        ):
            with pytest.raises(LedgerReadOnly):
                write()
        assert list(reader.verify().findings) == []
    assert (parts.context.log.size(), list(parts.transcripts.conversations())) == (3, [])
    assert (parts.read_models.position(), parts.work.backlog().due) == (0, 0)


def test_a_reader_alone_may_ask(backend: Backend, parts: Parts, tmp_path: Path) -> None:
    Worker(parts, made_up_job(0)).complete()
    if not isinstance(backend, (SQLiteBackend, PostgresBackend)):
        return
    place = backend.path if isinstance(backend, SQLiteBackend) else backend.url
    with Ledger.open(place, create=False, read_only=True) as reader:
        found = reader.status()
    own = status(parts)
    assert (found.events, found.position, found.ranges) == (3, 0, {})
    assert replace(found, at=0, oldest_lagging=0) == replace(own, at=0, oldest_lagging=0)
