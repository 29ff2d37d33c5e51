"""One suite per port, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import BACKENDS, Backend, SQLiteBackend

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
