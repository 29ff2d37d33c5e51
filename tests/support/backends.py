"""Every store behind the ports, opened alike, so that one suite runs on each of them.

A new backend is one class here and one line in ``BACKENDS``.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import psycopg
from pg_servers import everyday_server, fresh_schema, worker_database

from compaction_ledger import composition, postgres_parts
from compaction_ledger.composition import Parts
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.event_store.application import LedgerLog, SealedRecorder
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.infrastructure.event_store.postgres_recorder import SealedPostgresRecorder
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.history.memory import MemoryHistoryIndex
from compaction_ledger.infrastructure.originals.memory import MemoryOriginals
from compaction_ledger.infrastructure.postgres import database as postgres
from compaction_ledger.infrastructure.postgres import migrating
from compaction_ledger.infrastructure.postgres.address import Address, parse_address
from compaction_ledger.infrastructure.sqlite.database import Database, open_database
from compaction_ledger.infrastructure.transcripts.memory import MemoryTranscripts
from compaction_ledger.infrastructure.tree.memory import MemoryTree
from compaction_ledger.infrastructure.work.memory import MemoryWorkList
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

Recorder = SealedSQLiteRecorder | SealedMemoryRecorder | SealedPostgresRecorder
SECOND = 1_000_000
START = 1_750_000_000 * SECOND


class Clock:
    """A clock that stands still until it is set: the store's clock of a test."""

    def __init__(self, now: int = START) -> None:
        self._now = now

    @property
    def now(self) -> int:
        """The time, in microseconds since the epoch."""
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._now = now
        self.set(now)

    def set(self, now: int) -> None:
        """Tell whoever has to know."""

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass, or run backwards."""
        self.now += int(seconds * SECOND)


class Backend(Protocol):
    """One store. What is opened twice is two sessions on the same data."""

    name: str
    clock: Clock

    def open(self, registry: PromptRegistry = DEFAULT_REGISTRY) -> Parts:
        """Another session."""
        ...

    def recorder(self) -> Recorder:
        """A recorder on the same data."""
        ...

    def close(self) -> None:
        """Close whatever was opened."""
        ...


@dataclass
class MemoryBackend:
    """Dictionaries: its sessions share them."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    name: str = "memory"

    def __post_init__(self) -> None:
        self._recorder = SealedMemoryRecorder(self.clock)
        self._transcripts = MemoryTranscripts()
        self._originals = MemoryOriginals()
        self._history = MemoryHistoryIndex()
        self._work = MemoryWorkList(self.clock)
        self._tree = MemoryTree(self._recorder)
        self._read_models: dict[str, MemoryReadModels] = {}

    def open(self, registry: PromptRegistry = DEFAULT_REGISTRY) -> Parts:
        read_models = self._read_models.setdefault(registry.fingerprint, MemoryReadModels(registry))
        return composition.parts_of(
            LedgerLog(self._recorder),
            self._transcripts,
            read_models,
            WindowPolicy(),
            registry,
            Settings(),
            lambda: None,
            work=self._work,
            originals=self._originals,
            history=self._history,
            tree=self._tree,
        )

    def recorder(self) -> SealedMemoryRecorder:
        return self._recorder

    def close(self) -> None:
        """Nothing to close."""


@dataclass
class SQLiteBackend:
    """One file: each session is a connection pool of its own."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    name: str = "sqlite"

    def __post_init__(self) -> None:
        self.path = self.folder / "ledger.db"
        self._to_close: list[Callable[[], None]] = []

    def open(self, registry: PromptRegistry = DEFAULT_REGISTRY) -> Parts:
        parts = composition.open_sqlite(
            self.path,
            policy=WindowPolicy(),
            registry=registry,
            settings=Settings(),
            clock=self.clock,
        )
        self._to_close.append(parts.close)
        return parts

    def database(self) -> Database:
        """The bare database, as another program would open it."""
        database = open_database(self.path)
        self._to_close.append(database.close)
        return database

    def recorder(self) -> SealedSQLiteRecorder:
        return SealedSQLiteRecorder(self.database(), self.clock)

    def close(self) -> None:
        for close in self._to_close:
            close()


class DatabaseClock(Clock):
    """The clock of a database, in the place of its own: every session on it goes by this one."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address = address
        self._execute("CREATE TABLE {schema}.test_clock (now bigint NOT NULL)")
        self._execute(f"INSERT INTO {{schema}}.test_clock VALUES ({START})")
        self._execute(
            "CREATE OR REPLACE FUNCTION {schema}.store_clock() RETURNS bigint LANGUAGE sql VOLATILE "
            "AS 'SELECT now FROM {schema}.test_clock'"
        )

    def set(self, now: int) -> None:
        """Tell the database."""
        self._execute(f"UPDATE {{schema}}.test_clock SET now = {now:d}")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._address.conninfo, autocommit=True) as connection:
            connection.execute(postgres.in_schema(statement, self._address))


@cache
def everyday_database() -> str:
    """The URL of a database for this process of the run."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(worker_database(stack.enter_context(everyday_server())))


@dataclass
class PostgresBackend:
    """One schema of a database: each session is a connection pool of its own."""

    folder: Path
    name: str = "postgres"

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        url = everyday_database()
        schema = self._stack.enter_context(fresh_schema(url))
        self.url = f"{url}{'&' if '?' in url else '?'}schema={schema}"
        migrating.migrate(self.database())
        self.clock: Clock = DatabaseClock(parse_address(self.url))

    def open(self, registry: PromptRegistry = DEFAULT_REGISTRY) -> Parts:
        opened = postgres_parts.open_parts(self.url, registry, Settings(), clock_seconds=0)
        self._stack.callback(opened.close)
        return composition.parts_of(
            opened.log,
            opened.transcripts,
            opened.read_models,
            WindowPolicy(),
            registry,
            Settings(),
            opened.close,
            work=opened.work,
            store=opened.store,
            originals=opened.originals,
            history=opened.history,
            tree=opened.tree,
        )

    def database(self) -> postgres.Database:
        """The bare database, as another program would open it."""
        database = postgres.Database(parse_address(self.url))
        self._stack.callback(database.close)
        return database

    def recorder(self) -> SealedPostgresRecorder:
        return SealedPostgresRecorder(self.database(), clock_seconds=0)

    def close(self) -> None:
        self._stack.close()


BACKENDS: dict[str, type[MemoryBackend | SQLiteBackend | PostgresBackend]] = {
    "memory": MemoryBackend,
    "sqlite": SQLiteBackend,
    "postgres": PostgresBackend,
}


def sealed(recorder: Recorder) -> SealedRecorder:
    """The recorder under the protocol that the application asks for."""
    return recorder
