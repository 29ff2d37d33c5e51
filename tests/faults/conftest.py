"""Real faults on real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import SQLiteBackend
from pg_fixtures import durable_server, pg_schema, pg_server

__all__ = ["durable_server", "pg_schema", "pg_server"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteBackend]:
    """A ledger file and its sessions."""
    backend = SQLiteBackend(tmp_path)
    yield backend
    backend.close()
