"""Rings of keys for tests: in memory and in a folder, with what a test may look at."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from backends import everyday_database

from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring
from compaction_ledger.infrastructure.keys.memory import MemoryKeyProvider, MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.postgres_keys import PostgresWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys
from compaction_ledger.infrastructure.keys.wrapped_keys import WrappedKeys
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database


def memory_store(_folder: Path) -> WrappedKeys:
    """In memory."""
    return MemoryWrappedKeys()


def file_store(folder: Path) -> WrappedKeys:
    """In a file."""
    return SQLiteWrappedKeys(folder / "data-keys.db")


def database_of_keys() -> str:
    """The URL of a schema for data keys, which is not there yet."""
    url = everyday_database()
    return f"{url}{'&' if '?' in url else '?'}schema=keys_{secrets.token_hex(6)}"


def database_store(_folder: Path) -> WrappedKeys:
    """In a database of its own schema."""
    return PostgresWrappedKeys(Database(parse_address(database_of_keys())), look_seconds=0)


STORES: dict[str, Callable[[Path], WrappedKeys]] = {
    "memory": memory_store,
    "file": file_store,
    "postgres": database_store,
}


def two_sessions(store: str, folder: Path) -> tuple[WrappedKeys, WrappedKeys]:
    """Two sessions on one store. Neither sees by mere waiting what the other does."""
    if store == "memory":
        keys = MemoryWrappedKeys()
        return keys, keys
    if store == "file":
        return file_store(folder), file_store(folder)
    address = parse_address(database_of_keys())
    one, other = (
        PostgresWrappedKeys(Database(address), clock=lambda: 0.0, look_seconds=1.0)
        for _ in range(2)
    )
    return one, other


def folder_ring(folder: Path) -> KeyRing:
    """The ring of a ledger whose keys folder this is."""
    return KeyRing(
        lambda: FileKeyring.open(folder, create=True), SQLiteWrappedKeys(folder / "data-keys.db")
    )


def memory_ring() -> KeyRing:
    """A ring in memory."""
    return KeyRing(MemoryKeyProvider, MemoryWrappedKeys())
