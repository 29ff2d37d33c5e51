"""Real faults on real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import SQLiteBackend


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteBackend]:
    """A ledger file and its sessions."""
    backend = SQLiteBackend(tmp_path)
    yield backend
    backend.close()
