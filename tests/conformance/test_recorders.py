"""The recorder test cases that ``eventsourcing`` ships, on our recorders.

Adapted only where a promise of ours is deliberately stronger:

* A stored name has a schema version (A10), so the stock topics get ``@1`` on their way in and lose
  it on their way out; without one the recorder refuses (below).
* Each event is sealed: after every stock case the whole seal is verified. The stock cases begin
  some streams at version 0, which verification names (``stream``: ours begin at 1); nothing else
  may be found.
* ``AggregateRecorderTestCase`` wants no notification ids back, as from a recorder that has none;
  ours always knows the index, so for that case the ids are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest import TestCase
from uuid import UUID, uuid4

import pytest
from backends import Backend, Clock, PostgresBackend, Recorder, SQLiteBackend, sealed
from eventsourcing.persistence import IntegrityError, Notification, StoredEvent
from eventsourcing.tests import persistence as stock

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import Erased, InvalidInput
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.infrastructure.event_store.postgres_recorder import SealedPostgresRecorder
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.event_store.verification import verify_seal
from compaction_ledger.infrastructure.sqlite.database import open_database

if TYPE_CHECKING:
    from eventsourcing.persistence import ApplicationRecorder as _Base
else:
    _Base = object


class _StockNames(_Base):
    """Gives the stock topics a schema version on the way in, and takes it off on the way out."""

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        named = [replace(event, topic=f"{event.topic}@1") for event in stored_events]
        return super().insert_events(named, **kwargs)  # type: ignore[safe-super]

    def select_events(self, originator_id: UUID | str, **how: Any) -> Sequence[StoredEvent]:
        found = super().select_events(originator_id, **how)  # type: ignore[safe-super]
        return [replace(event, topic=event.topic.removesuffix("@1")) for event in found]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        named = [f"{topic}@1" for topic in topics]
        found = super().select_notifications(  # type: ignore[safe-super]
            start, limit, stop, named, inclusive_of_start=inclusive_of_start
        )
        return [replace(event, topic=event.topic.removesuffix("@1")) for event in found]


class _WithoutIds(_StockNames):
    """As a recorder of aggregates alone: hands no notification ids back."""

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        super().insert_events(stored_events, **kwargs)
        return None


class _SQLite(_StockNames, SealedSQLiteRecorder):
    pass


class _Memory(_StockNames, SealedMemoryRecorder):
    pass


class _Postgres(_StockNames, SealedPostgresRecorder):
    pass


class _PostgresWithoutIds(_WithoutIds, SealedPostgresRecorder):
    pass


class _SQLiteWithoutIds(_WithoutIds, SealedSQLiteRecorder):
    pass


class _MemoryWithoutIds(_WithoutIds, SealedMemoryRecorder):
    pass


class _OnSQLite(TestCase):
    recorder_class: type[SealedSQLiteRecorder] = _SQLite

    def create_recorder(self) -> SealedSQLiteRecorder:
        folder = Path(self.enterContext(TemporaryDirectory()))
        database = open_database(folder / "ledger.db")
        self.addCleanup(database.close)
        recorder = self.recorder_class(database, Clock())
        self.addCleanup(_the_seal_holds, recorder)
        return recorder


class _OnMemory(TestCase):
    recorder_class: type[SealedMemoryRecorder] = _Memory

    def create_recorder(self) -> SealedMemoryRecorder:
        recorder = self.recorder_class(Clock())
        self.addCleanup(_the_seal_holds, recorder)
        return recorder


class _OnPostgres(TestCase):
    recorder_class: type[SealedPostgresRecorder] = _Postgres

    def create_recorder(self) -> SealedPostgresRecorder:
        backend = PostgresBackend(Path())
        self.addCleanup(backend.close)
        recorder = self.recorder_class(backend.database(), clock_seconds=0)
        self.addCleanup(_the_seal_holds, recorder)
        return recorder


def _the_seal_holds(recorder: Recorder) -> None:
    found = [f for f in verify_seal(sealed(recorder)) if f.code != "stream"]
    assert found == []


class TestSQLiteAggregates(_OnSQLite, stock.AggregateRecorderTestCase):
    recorder_class = _SQLiteWithoutIds


class TestMemoryAggregates(_OnMemory, stock.AggregateRecorderTestCase):
    recorder_class = _MemoryWithoutIds


class TestSQLiteApplication(_OnSQLite, stock.ApplicationRecorderTestCase[SealedSQLiteRecorder]):
    pass


class TestMemoryApplication(_OnMemory, stock.ApplicationRecorderTestCase[SealedMemoryRecorder]):
    def test_insert_subscribe(self) -> None:
        # SQLite offers no subscription, in stock or ours: followers poll by index (L2).
        self.optional_test_insert_subscribe()


class TestPostgresAggregates(_OnPostgres, stock.AggregateRecorderTestCase):
    recorder_class = _PostgresWithoutIds


class TestPostgresApplication(
    _OnPostgres, stock.ApplicationRecorderTestCase[SealedPostgresRecorder]
):
    @pytest.mark.slow
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestPostgresNonInterleaving(_OnPostgres, stock.NonInterleavingNotificationIDsBaseCase):
    pass


class TestSQLiteNonInterleaving(_OnSQLite, stock.NonInterleavingNotificationIDsBaseCase):
    pass


class TestMemoryNonInterleaving(_OnMemory, stock.NonInterleavingNotificationIDsBaseCase):
    pass


# --- where ours promise more --------------------------------------------------------------------


def event(version: int = 1, stream: UUID | None = None, topic: str = "Happened@1") -> StoredEvent:
    return StoredEvent(stream or uuid4(), version, topic, b"{}")


def test_every_event_is_sealed_at_its_index(backend: Backend) -> None:
    recorder, stream = backend.recorder(), uuid4()
    assert recorder.insert_events([event(1, stream), event(2, stream)]) == [1, 2]
    assert recorder.insert_events([event()]) == [3]
    rows = recorder.rows(0, 10)
    assert [row[0] for row in rows] == [0, 1, 2]
    assert all(row[5] and row[6] for row in rows)
    assert recorder.head()[0] == 3
    assert list(verify_seal(sealed(recorder))) == []


def test_plain_rows_and_single_events(backend: Backend) -> None:
    """What verification reads: rows as they come, and events by stream and version, many at once."""
    recorder, streams = backend.recorder(), [uuid4() for _ in range(120)]
    for version in (1, 2):
        recorder.insert_events([event(version, stream) for stream in streams])
    read = sealed(recorder)
    assert list(map(tuple, read.plain_rows(0, 1000))) == list(map(tuple, recorder.rows(0, 1000)))
    assert [row[0] for row in read.plain_rows(7, 3)] == [7, 8, 9]
    wanted = [(stream.hex, version) for stream in streams for version in (2, 3)]
    found = read.rows_before(wanted)
    assert sorted(row[0] for row in found) == list(range(120, 240))
    assert read.rows_before([]) == []


def test_single_events_are_found_by_the_index(sqlite_store: SQLiteBackend) -> None:
    """On SQLite a list of pairs would be a scan of the whole log."""
    recorder = sqlite_store.recorder()
    recorder.insert_events([event() for _ in range(5)])
    seen: list[str] = []
    with recorder.datastore.transaction(commit=False) as cursor:
        cursor.connection.set_trace_callback(seen.append)
    recorder.rows_before([(uuid4().hex, 1), (uuid4().hex, 7)])
    (statement,) = (text for text in seen if text.startswith("SELECT"))
    with recorder.datastore.transaction(commit=False) as cursor:
        plan = cursor.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    assert not [step for *_, step in plan if step.startswith("SCAN")], plan


def test_nothing_to_store_is_nothing_stored(backend: Backend) -> None:
    recorder = backend.recorder()
    assert not recorder.insert_events([])
    assert recorder.head()[0] == 0
    assert recorder.max_notification_id() is None


def test_a_conflict_takes_no_index(backend: Backend) -> None:
    recorder, stream = backend.recorder(), uuid4()
    recorder.insert_events([event(1, stream)])
    for conflict in ([event(), event(1, stream)], [event(2, stream), event(2, stream)]):
        with pytest.raises(IntegrityError):
            recorder.insert_events(conflict)
    assert recorder.insert_events([event(2, stream)]) == [2]
    assert list(verify_seal(sealed(recorder))) == []


def test_of_an_erased_subject_nothing_is_stored_but_its_erasure(backend: Backend) -> None:  # S3
    recorder = backend.recorder()
    subject = recorder.subject("s", "c", "1" * 32).reference
    other = recorder.subject("s", "another", "2" * 32).reference
    recorder.insert_events([event()], subject=subject)
    recorder.insert_events([event(topic="ErasureRequested@1")], subject=subject)
    for late in ([event()], [event(), event()]):
        with pytest.raises(Erased):
            recorder.insert_events(late, subject=subject)
    assert recorder.find_subject("s", "c") == Subject(subject, "", "erased", "s", "c")
    assert recorder.erased_references() == {subject}
    recorder.insert_events([event()], subject=other)
    recorder.insert_events([event(topic="ErasureCompleted@1")], subject=subject)
    assert recorder.find_subject("s", "c") is None
    with pytest.raises(Erased):
        recorder.insert_events([event()], subject=subject)
    assert [row.topic for row in recorder.rows(0, 10)] == [
        "Happened@1",
        "ErasureRequested@1",
        "Happened@1",
        "ErasureCompleted@1",
    ]


@pytest.mark.parametrize(
    "topic", ["Happened", "Happened@", "Happened@x", "Häppened@1", 'A"@1', "@1", "A@01"]
)
def test_a_name_that_no_envelope_can_hold_is_refused(backend: Backend, topic: str) -> None:
    recorder = backend.recorder()
    with pytest.raises(InvalidInput):
        recorder.insert_events([event(), event(topic=topic)])
    assert recorder.head()[0] == 0
    assert recorder.rows(0, 10) == []
    assert recorder.insert_events([event()]) == [1]
    assert list(verify_seal(sealed(recorder))) == []


def test_rows_at_leaves_out_what_is_not_there(backend: Backend) -> None:
    recorder = backend.recorder()
    recorder.insert_events([event() for _ in range(4)])
    assert sorted(row[0] for row in recorder.rows_at([3, 1, 7, -1])) == [1, 3]
    assert recorder.rows_at([]) == []
    assert [row[0] for row in recorder.rows(1, 10, 3)] == [1, 2]
    assert [row[0] for row in recorder.rows(2, 1)] == [2]


def test_a_subject_keeps_its_first_reference(backend: Backend) -> None:
    recorder = backend.recorder()
    assert recorder.find_subject("s", "c") is None
    known = Subject("1" * 32, "", "live", "s", "c")
    assert recorder.subject("s", "c", "1" * 32) == known
    assert recorder.subject("s", "c", "2" * 32) == known
    assert recorder.find_subject("s", "c") == recorder.subject_of("1" * 32) == known
    keyed = recorder.subject("s", "c", "2" * 32, "a" * 32)
    assert keyed == known._replace(key="a" * 32)
    assert (
        recorder.subject("s", "c", "2" * 32, "b" * 32) == keyed == recorder.find_subject("s", "c")
    )
    assert recorder.find_subject("c", "s") is None


@pytest.mark.slow
def test_the_carried_clock_is_not_ahead_by_the_time_that_an_answer_took(tmp_path: Path) -> None:
    with closing(PostgresBackend(tmp_path)) as backend:
        database = backend.database()
        database.call(
            database.sql(
                "CREATE OR REPLACE FUNCTION {schema}.store_clock() RETURNS bigint LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_sleep(0.3); RETURN extract(epoch FROM clock_timestamp()) * 1e6; END $$"
            )
        )
        recorder = SealedPostgresRecorder(database)
        for _ in range(3):
            assert recorder.clock() <= time.time_ns() // 1_000
