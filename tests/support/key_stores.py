"""Rings of keys for tests: in memory and in a folder, with what a test may look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring
from compaction_ledger.infrastructure.keys.memory import MemoryKeyProvider, MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys
from compaction_ledger.infrastructure.keys.wrapped_keys import WrappedKeys


def memory_store(_folder: Path) -> WrappedKeys:
    """In memory."""
    return MemoryWrappedKeys()


def file_store(folder: Path) -> WrappedKeys:
    """In a file."""
    return SQLiteWrappedKeys(folder / "data-keys.db")


STORES: dict[str, Callable[[Path], WrappedKeys]] = {"memory": memory_store, "file": file_store}


def folder_ring(folder: Path) -> KeyRing:
    """The ring of a ledger whose keys folder this is."""
    return KeyRing(
        lambda: FileKeyring.open(folder, create=True), SQLiteWrappedKeys(folder / "data-keys.db")
    )


def memory_ring() -> KeyRing:
    """A ring in memory."""
    return KeyRing(MemoryKeyProvider, MemoryWrappedKeys())
