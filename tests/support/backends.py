"""Every store behind the ports, opened alike, so that one suite runs on each of them.

A new backend is one class here and one line in ``BACKENDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.event_store.application import LedgerLog, SealedRecorder
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.sqlite.database import Database, open_database
from compaction_ledger.infrastructure.transcripts.memory import MemoryTranscripts
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

Recorder = SealedSQLiteRecorder | SealedMemoryRecorder
SECOND = 1_000_000
START = 1_750_000_000 * SECOND


@dataclass
class Clock:
    """A clock that stands still until it is set: the store's clock of a test."""

    now: int = START

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
        self._read_models: dict[str, MemoryReadModels] = {}

    def open(self, registry: PromptRegistry = DEFAULT_REGISTRY) -> Parts:
        read_models = self._read_models.setdefault(registry.fingerprint, MemoryReadModels(registry))
        return composition._parts(
            LedgerLog(self._recorder),
            self._transcripts,
            read_models,
            WindowPolicy(),
            registry,
            Settings(),
            lambda: None,
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


BACKENDS: dict[str, type[MemoryBackend | SQLiteBackend]] = {
    "memory": MemoryBackend,
    "sqlite": SQLiteBackend,
}


def sealed(recorder: Recorder) -> SealedRecorder:
    """The recorder under the protocol that the application asks for."""
    return recorder
