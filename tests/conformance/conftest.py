"""One suite per port, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import BACKENDS, Backend, PostgresBackend, SQLiteBackend

from compaction_ledger.composition import Parts


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """A store of each kind."""
    store: Backend = BACKENDS[request.param](tmp_path)
    yield store
    store.close()


@pytest.fixture
def parts(backend: Backend) -> Parts:
    """One session on the store."""
    return backend.open()


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SQLiteBackend]:
    """The SQLite store, for what only a file can show."""
    store = SQLiteBackend(tmp_path)
    yield store
    store.close()


@pytest.fixture(params=[PostgresBackend, SQLiteBackend], ids=["postgres", "sqlite"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[PostgresBackend | SQLiteBackend]:
    """A store of each kind that keeps rows in tables, which others can change."""
    made: PostgresBackend | SQLiteBackend = request.param(tmp_path)
    yield made
    made.close()
