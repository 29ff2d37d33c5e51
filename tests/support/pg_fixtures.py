"""Fixtures on PostgreSQL, for a conftest to import."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pg_servers import Server, everyday_server, fresh_schema, running_server, worker_database

__all__ = ["durable_server", "pg_schema", "pg_server"]


@pytest.fixture(scope="session")
def pg_server() -> Iterator[str]:
    """The URL of a database for this process of the run, on the server that all of the run shares."""
    with everyday_server() as server, worker_database(server) as database:
        yield database


@pytest.fixture
def pg_schema(pg_server: str) -> Iterator[str]:
    """The name of a schema for this test, on ``pg_server``."""
    with fresh_schema(pg_server) as name:
        yield name


@pytest.fixture(scope="module")
def durable_server() -> Iterator[Server]:
    """A server for this file alone, which keeps what is committed; what stops it starts it again."""
    with running_server() as server:
        yield server
