"""The part of the composition root that needs psycopg: the adapters of a ledger on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from compaction_ledger.domain.history import HistoryIndex
from compaction_ledger.domain.ports import ReadModelStore, TranscriptStore, WorkList
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.proof.ports import TreeStore
from compaction_ledger.domain.status import StoreStatus
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.erasure_parts import stored_ring
from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.erasure.transcripts import GuardedTranscriptStore
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.postgres_recorder import (
    CLOCK_SECONDS,
    SealedPostgresRecorder,
)
from compaction_ledger.infrastructure.history.memory import MemoryHistoryIndex
from compaction_ledger.infrastructure.history.postgres import PostgresHistoryIndex
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.originals.postgres import PostgresOriginals
from compaction_ledger.infrastructure.postgres import migrating, roles
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database
from compaction_ledger.infrastructure.postgres.status import store_status
from compaction_ledger.infrastructure.transcripts.postgres import PostgresTranscripts
from compaction_ledger.infrastructure.tree.postgres import PostgresTree
from compaction_ledger.infrastructure.work.postgres import PostgresWorkList
from compaction_ledger.places import places_of
from compaction_ledger.projections.postgres import PostgresReadModels
from compaction_ledger.settings import Settings
from compaction_ledger.worker import worker_name


class PostgresParts(NamedTuple):
    """What a ledger on PostgreSQL is put together from."""

    database: Database
    log: LedgerLog
    transcripts: TranscriptStore
    originals: Originals
    history: HistoryIndex
    read_models: ReadModelStore
    shared_admission: SharedAdmission | None
    work: WorkList
    store: Callable[[], StoreStatus]
    ring: KeyRing
    close: Callable[[], None]
    tree: TreeStore


def open_parts(
    url: str,
    registry: PromptRegistry,
    settings: Settings,
    *,
    create: bool = True,
    read_only: bool = False,
    clock_seconds: float = CLOCK_SECONDS,
) -> PostgresParts:
    """The adapters over one database. Raises :class:`InvalidSetting` and :class:`StoreError` kinds."""
    database = _database(url, settings, read_only=read_only)
    try:
        migrating.prepare(database, create=create and not read_only)
        shared = shared_admission(database, settings, worker_name())
        recorder = SealedPostgresRecorder(database, clock_seconds=clock_seconds)
        ring = stored_ring(
            places_of(url, settings).keys,
            settings,
            lambda: any(subject.key for subject in recorder.subjects().values()),
            lambda: not recorder.head()[0],
            read_only=read_only,
        )
        transcripts = GuardedTranscriptStore(PostgresTranscripts(database), ring)

        def close() -> None:
            if shared:
                shared.close()
            database.close()

        return PostgresParts(
            database,
            LedgerLog(recorder, ring),
            transcripts,
            PostgresOriginals(database),
            MemoryHistoryIndex() if read_only else PostgresHistoryIndex(database),
            PostgresReadModels(database, registry),
            shared,
            PostgresWorkList(database, transcripts),
            lambda: store_status(database),
            ring,
            close,
            PostgresTree(database),
        )
    except BaseException:
        database.close()
        raise


def shared_admission(database: Database, settings: Settings, holder: str) -> SharedAdmission | None:
    """The bound on attempts among all processes on this database (D1), where the settings ask for one."""
    limit = settings.shared_attempts_at_once
    if limit is None:
        return None
    return SharedAdmission(database, limit, holder, settings.slot_lease_seconds)


def migrate(url: str, settings: Settings, *, dry_run: bool = False) -> list[str]:
    """Make the tables of the ledger at ``url``, or bring them up to date; the names of what was applied.

    With ``dry_run`` of what would be, and nothing is.
    """
    database = _database(url, settings, read_only=dry_run)
    try:
        migrating.check_server(database.address)
        found = migrating.pending(database) if dry_run else migrating.migrate(database)
    finally:
        database.close()
    return [migration.title for migration in found]


def role_statements(url: str, writer: str, reader: str) -> str:
    """The script that lets two roles work with the ledger at ``url``. Raises :class:`InvalidSetting`."""
    return roles.role_statements(parse_address(url), writer, reader)


def _database(url: str, settings: Settings, *, read_only: bool = False) -> Database:
    return Database(
        parse_address(url),
        read_only=read_only,
        pool_size=settings.database_connections,
        patience=settings.database_patience_seconds,
    )
