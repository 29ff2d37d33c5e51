"""What sealing and encryption add to a lifecycle (L1, S1): beside the same ledger without either.

The floor stores the same rows in the same transactions, through the same code: but without head, envelope,
leaf or key. Its place in the log is what the database gives out.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import measures
import pg_measures
from eventsourcing.persistence import StoredEvent
from timing import median, ratio, side_by_side

from compaction_ledger.composition import Parts, open_sqlite, parts_of, system_clock
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.postgres_recorder import (
    LATEST,
    Places,
    SealedPostgresRecorder,
)
from compaction_ledger.infrastructure.event_store.sealing import check_time, stream_hex
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.postgres import migrating
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database as PostgresDatabase
from compaction_ledger.infrastructure.sqlite.database import open_database
from compaction_ledger.infrastructure.transcripts.memory import MemoryTranscripts
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

TIMES = 98
TEXT = "The fund closed at 59.46 EUR; the ongoing charges are 0.45 per cent. " * 20
_INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, leaf, envelope, state) "
    "VALUES (?, ?, ?, x'', x'', ?)"
)
_UNSEALED = """
CREATE SEQUENCE {schema}.unsealed_places MINVALUE 0;
CREATE OR REPLACE FUNCTION {schema}.append_event(
    not_before bigint, not_after bigint, stream text, version bigint, topic text, payload bytea,
    before text, after text,
    OUT idx bigint, OUT recorded bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    idx := nextval('{schema}.unsealed_places');
    recorded := {schema}.store_clock();
    IF recorded < not_before OR recorded >= not_after THEN
        RAISE EXCEPTION 'it is now %', recorded USING ERRCODE = 'CL001';
    END IF;
    INSERT INTO {schema}.stored_events VALUES (idx, stream, version, topic, '', '', payload);
END $$
"""


class UnsealedSQLite(SealedSQLiteRecorder):
    """Stores payloads and nothing that proves them."""

    def _seal(
        self,
        cursor: sqlite3.Cursor,
        events: Sequence[StoredEvent],
        subject: str = "",
        within: tuple[int, int] | None = None,
    ) -> list[tuple[int, StoredEvent, bytes]]:
        check_time(self.clock(), within)
        stored: list[tuple[int, StoredEvent, bytes]] = []
        for event in events:
            stream = stream_hex(event.originator_id)
            row = (stream, event.originator_version, event.topic, event.state)
            cursor.execute(_INSERT, row)
            stored.append((cursor.lastrowid or 0, event, b""))
        return stored


class UnsealedPostgres(SealedPostgresRecorder):
    """Likewise, in the database's function of the same name."""

    def _sending(
        self, events: Sequence[StoredEvent], subject: str, within: tuple[int, int]
    ) -> Callable[[], Places]:
        ((event),) = events
        times = (within[0], min(within[1], LATEST))
        row = (*times, stream_hex(event.originator_id), event.originator_version, event.topic)
        texts = [str(value).encode() for value in row]
        texts += [event.state, b"", b""]
        return lambda: [
            (int(idx or 0), int(recorded or 0))
            for idx, recorded in self.datastore.try_ask(self._append_one, texts)
        ]


def _unsealed(recorder: Any, close: Callable[[], None]) -> Parts:
    return parts_of(
        LedgerLog(recorder),
        MemoryTranscripts(),
        MemoryReadModels(DEFAULT_REGISTRY),
        WindowPolicy(),
        DEFAULT_REGISTRY,
        Settings(),
        close,
    )


def _compared(sealed: Parts, plain: Parts, bare: Parts, rounds: int) -> dict[str, list[float]]:
    def lifecycles(parts: Parts) -> Callable[[], object]:
        def run() -> None:
            measures._our_lifecycles(parts, f"c-{uuid.uuid4().hex}", TIMES, TEXT)

        return run

    works = {"ours": lifecycles(sealed), "plain": lifecycles(plain), "bare": lifecycles(bare)}
    with closing(sealed), closing(plain), closing(bare):
        return side_by_side(works, rounds)


def on_sqlite(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of lifecycles on files: sealed and encrypted, sealed alone, neither."""

    def opened(name: str, settings: Settings) -> Parts:
        return open_sqlite(
            folder / name, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=settings
        )

    database = open_database(folder / "bare.db")
    bare = _unsealed(UnsealedSQLite(database, system_clock), database.close)
    plain = opened("plain.db", Settings(encryption="off"))
    return _compared(opened("sealed.db", Settings()), plain, bare, rounds)


def on_postgres(folder: Path, rounds: int) -> dict[str, list[float]]:
    """The same, on a server."""
    with pg_measures.bench() as bench:

        def opened(settings: Settings) -> Parts:
            return pg_measures.open_parts(bench.ledger_url(), settings)

        address = parse_address(bench.ledger_url())
        database = PostgresDatabase(address)
        migrating.migrate(database)
        database.run(
            lambda cursor: cursor.connection.execute(database.sql(_UNSEALED), prepare=False),
            commit=True,
        )
        bare = _unsealed(UnsealedPostgres(database), database.close)
        plain = opened(Settings(encryption="off", keys_folder=folder / "plain"))
        return _compared(opened(Settings(keys_folder=folder / "keys")), plain, bare, rounds)


def figures(folder: Path, rounds: int) -> dict[str, float]:
    """What sealing and encryption add, as a share of a lifecycle without either."""
    found: dict[str, float] = {}
    for store, seconds in (
        ("sqlite", on_sqlite(folder, rounds)),
        ("postgres", on_postgres(folder, rounds)),
    ):
        found |= {
            f"seal_and_encrypt_overhead_{store}": ratio(seconds, "ours", "bare") - 1,
            f"seal_overhead_{store}": ratio(seconds, "plain", "bare") - 1,
            f"unsealed_lifecycle_us_{store}": median(seconds["bare"]) / TIMES * 1e6,
        }
    return found
