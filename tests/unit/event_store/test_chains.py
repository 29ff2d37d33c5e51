"""Verification forgets streams that were not seen for long, and finds the same as if it did not (L3, K4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from backends import SQLiteBackend
from eventsourcing.persistence import StoredEvent

from compaction_ledger.domain.log import Finding
from compaction_ledger.infrastructure.event_store import chains, verification
from compaction_ledger.infrastructure.event_store.rows import PlainRow
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder

STREAMS, ROUNDS = 40, 5


class Counting:
    """A recorder that counts how often events were looked up again."""

    def __init__(self, recorder: SealedSQLiteRecorder) -> None:
        self._recorder = recorder
        self.lookups = 0
        self.plain_rows = recorder.plain_rows
        self.totals = recorder.totals
        self.subjects = recorder.subjects
        self.subject_of = recorder.subject_of

    def rows_before(self, events: Sequence[tuple[str, int]]) -> Sequence[PlainRow]:
        self.lookups += 1
        return self._recorder.rows_before(events)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteBackend]:
    """A log where many streams go on in turns, so that each is forgotten before it comes again."""
    backend = SQLiteBackend(tmp_path)
    backend.open()
    recorder = backend.recorder()
    for version in range(1, ROUNDS + 1):
        for stream in range(STREAMS):
            event = StoredEvent(UUID(int=stream), version, "AttemptStarted@1", b"{}")
            recorder.insert_events([event])
    yield backend
    backend.close()


@pytest.fixture(params=[(4, 3), (16, 8), (7, 15)], ids=str)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches, and few streams in memory."""
    batch, kept = request.param
    monkeypatch.setattr(verification, "BATCH", batch)
    monkeypatch.setattr(
        verification, "Chains", lambda log, origin: chains.Chains(log, origin, kept)
    )


def found(store: SQLiteBackend) -> tuple[list[Finding], int]:
    log = Counting(store.recorder())
    return list(verification.verify_seal(log)), log.lookups


def tamper(store: SQLiteBackend, *statements: str) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DROP TRIGGER stored_events_no_update")
        connection.execute("DROP TRIGGER stored_events_no_delete")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.usefixtures("small")
def test_what_is_right_is_right(store: SQLiteBackend) -> None:  # L3
    findings, lookups = found(store)
    assert findings == []
    assert lookups > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stored_events SET envelope = replace(envelope, 'previous', 'following') WHERE idx = 90",
        "UPDATE stored_events SET leaf = zeroblob(32) WHERE idx = 41",
        "UPDATE stored_events SET leaf = 'text' WHERE idx = 41",
        "UPDATE stored_events SET originator_version = 9 WHERE idx = 85",
        "UPDATE stored_events SET originator_version = 'x' WHERE idx = 85",
        "UPDATE stored_events SET originator_id = upper(hex(randomblob(16))) WHERE idx = 85",
        "UPDATE stored_events SET originator_id = 7 WHERE idx = 85",
        "UPDATE stored_events SET topic = 'Other@1' WHERE idx = 100",
        "DELETE FROM stored_events WHERE idx = 120",
        "UPDATE stored_events SET envelope = x'00' WHERE idx = 0",
    ],
)
def test_the_same_is_found(
    store: SQLiteBackend, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # K4
    tamper(store, statement)
    whole, lookups = found(store)
    assert whole
    assert lookups == 0
    monkeypatch.setattr(verification, "BATCH", 8)
    monkeypatch.setattr(verification, "Chains", lambda log, origin: chains.Chains(log, origin, 4))
    forgetful, lookups = found(store)
    assert lookups > 0
    # The next of the stream is found, too, where the one before it cannot be looked up.
    extra = {finding.index for finding in forgetful} - {finding.index for finding in whole}
    assert {finding.index for finding in forgetful} >= {finding.index for finding in whole}
    assert len(extra) <= 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("version", [1, 3])
def test_an_event_that_stands_there_twice(store: SQLiteBackend, version: int) -> None:  # K4
    """Without the index that forbids it, and long after its stream was forgotten."""
    size = STREAMS * ROUNDS
    first = (version - 1) * STREAMS + 2
    columns = "originator_id, originator_version, topic, leaf, envelope, state"
    tamper(
        store,
        "CREATE TABLE other (idx INTEGER PRIMARY KEY, originator_id TEXT, originator_version INTEGER, "
        "topic TEXT, leaf BLOB, envelope BLOB, state BLOB)",
        f"INSERT INTO other SELECT idx, {columns} FROM stored_events",
        f"INSERT INTO other SELECT {size}, {columns} FROM stored_events WHERE idx = {first}",
        "DROP TABLE stored_events",
        "ALTER TABLE other RENAME TO stored_events",
        f"UPDATE log_head SET size = {size + 1}",
    )
    findings, _ = found(store)
    assert ("stream", size) in {(finding.code, finding.index) for finding in findings}
