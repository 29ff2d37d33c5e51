"""Every store of originals, opened alike. What is opened twice is two sessions on the same data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from aws_servers import client, fresh_name, make_bucket
from backends import MemoryBackend, PostgresBackend, SQLiteBackend

from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.infrastructure.originals.dynamodb import DynamoDBOriginals
from compaction_ledger.infrastructure.originals.s3 import S3Originals


class Store(Protocol):
    """A store of originals of one kind, empty at first."""

    name: str
    place: str
    """How another process reaches it (:func:`opened`)."""

    def open(self) -> Originals:
        """Another session."""
        ...

    def close(self) -> None:
        """Close whatever was opened."""
        ...


class LedgerStore:
    """The originals of a ledger."""

    def __init__(self, backend: MemoryBackend | SQLiteBackend | PostgresBackend) -> None:
        self.backend = backend
        self.name = backend.name
        self.place = str(getattr(backend, "url", None) or getattr(backend, "path", ""))

    def open(self) -> Originals:
        return self.backend.open().originals

    def close(self) -> None:
        self.backend.close()


class S3Store:
    """A bucket of its own."""

    name = "s3"

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self.url, self.bucket = url, fresh_name()
        self.client = self.new_client()
        make_bucket(self.client, self.bucket)
        self.place = f"s3 {url} {self.bucket}"

    def new_client(self, **settings: Any) -> Any:
        """Another client, for somebody who goes past this software, or to be broken."""
        made = client("s3", settings.pop("url", self.url), **settings)
        self._stack.callback(made.close)
        return made

    def open(self, prefix: str = "") -> S3Originals:
        return S3Originals(self.new_client(), self.bucket, prefix)

    def close(self) -> None:
        self._stack.close()


class DynamoDBStore:
    """A table of its own."""

    name = "dynamodb"

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self.url, self.table = url, fresh_name()
        self.client = self.new_client()
        DynamoDBOriginals(self.client, self.table).make_table()
        self.place = f"dynamodb {url} {self.table}"

    def new_client(self, **settings: Any) -> Any:
        """Another client, for somebody who goes past this software, or to be broken."""
        made = client("dynamodb", settings.pop("url", self.url), **settings)
        self._stack.callback(made.close)
        return made

    def open(self, prefix: str = "") -> DynamoDBOriginals:
        return DynamoDBOriginals(self.new_client(), self.table, prefix)

    def close(self) -> None:
        self._stack.close()


STORES: dict[str, Callable[[Path, Callable[[], str]], Store]] = {
    "memory": lambda folder, _: LedgerStore(MemoryBackend(folder)),
    "sqlite": lambda folder, _: LedgerStore(SQLiteBackend(folder)),
    "postgres": lambda folder, _: LedgerStore(PostgresBackend(folder)),
    "s3": lambda _, aws: S3Store(aws()),
    "dynamodb": lambda _, aws: DynamoDBStore(aws()),
}
"""By name: made in a folder, with a function that gives the address of a server of S3 and DynamoDB."""
