"""Ledgers on real PostgreSQL servers for tests of faults, and what must hold of them whatever happened."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from pg_servers import fresh_schema

from compaction_ledger import composition, postgres_parts
from compaction_ledger.composition import Parts
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.codec import encode
from compaction_ledger.infrastructure.postgres import migrating
from compaction_ledger.infrastructure.postgres.address import Address, parse_address
from compaction_ledger.infrastructure.postgres.database import Database, in_schema
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings


def with_parameters(url: str, **parameters: str) -> str:
    """The URL with more parameters; those that it has already are replaced."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True)) | parameters
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))


@dataclass
class Session:
    """One process's way to a ledger: a pool of connections, and the log, transcripts and rows on it."""

    url: str
    patience: float = 15.0
    pool_size: int = 10
    database: Database = field(init=False)
    parts: Parts = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(
            database_connections=self.pool_size, database_patience_seconds=self.patience
        )
        opened = postgres_parts.open_parts(self.url, DEFAULT_REGISTRY, settings, clock_seconds=0)
        self.database = opened.database
        self.parts = composition.parts_of(
            opened.log,
            opened.transcripts,
            opened.read_models,
            WindowPolicy(),
            DEFAULT_REGISTRY,
            settings,
            opened.close,
            opened.shared_admission,
            store=opened.store,
        )
        self.ledger = Ledger(self.parts, settings)

    def close(self) -> None:
        """End it."""
        self.parts.close()

    @property
    def log(self) -> LedgerLog:
        """The sealed log."""
        log = self.parts.context.log
        assert isinstance(log, LedgerLog)
        return log


@dataclass
class PgLedger:
    """A ledger in a schema of its own. ``url`` goes straight to the server."""

    url: str
    stack: ExitStack

    @property
    def address(self) -> Address:
        """Where it is."""
        return parse_address(self.url)

    def at(self, url: str) -> str:
        """The ledger's URL by another way to the same database."""
        return with_parameters(url, schema=self.address.schema)

    def open(self, url: str | None = None, *, patience: float = 15, pool_size: int = 10) -> Session:
        """Another session; through a proxy or a pooler, if a URL is given."""
        session = Session(self.url if url is None else self.at(url), patience, pool_size)
        self.stack.callback(session.parts.close)
        return session

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """One statement past all of our software, with ``{schema}`` in it; as the owner."""
        with psycopg.connect(self.address.conninfo, autocommit=True) as connection:
            cursor = connection.execute(in_schema(statement, self.address), values or None)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def holding_the_head(self) -> Iterator[psycopg.Connection]:
        """A transaction that keeps the head locked until it ends."""
        with psycopg.connect(self.address.conninfo) as connection:
            lock = "SELECT size FROM {schema}.log_head FOR UPDATE"
            connection.execute(in_schema(lock, self.address))
            yield connection
            connection.rollback()

    def waiting_for_the_head(self) -> list[int]:
        """The server processes that wait in an append, as they do for the head; the first one first."""
        rows = self.execute(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ %s "
            "ORDER BY query_start",
            f'"{self.address.schema}".append_event',
        )
        return [int(str(pid)) for (pid,) in rows]

    def busy_with(self, event: str) -> list[int]:
        """The server processes that wait for a certain event."""
        rows = self.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = %s", event)
        return [int(str(pid)) for (pid,) in rows]

    def check(self) -> list[Recorded]:
        """What must be so whatever happened: dense, sealed, projected, A2, A3. Returns what is stored."""
        session = self.open()
        try:
            return everything_holds(session.ledger)
        finally:
            session.parts.close()


@contextmanager
def ledger_on(url: str, *, made: bool = True) -> Iterator[PgLedger]:
    """A new ledger in the database at ``url``; with its tables, unless they are yet to be made."""
    with fresh_schema(url) as schema, ExitStack() as stack:
        ledger = PgLedger(with_parameters(url, schema=schema), stack)
        if made:
            database = Database(ledger.address)
            migrating.migrate(database)
            database.close()
        yield ledger


def everything_holds(ledger: Ledger) -> list[Recorded]:
    """What must be so whatever happened: dense, sealed, projected, A2, A3. Returns what is stored."""
    entries = list(ledger.events())
    assert [entry.index for entry in entries] == list(range(ledger.size()))
    ledger.catch_up()
    verification = ledger.verify()
    assert (verification.findings, verification.lag) == ((), 0)
    completions = Counter(e.fact.identity for e in entries if isinstance(e.fact, RangeCompleted))
    started = Counter(e.fact.identity for e in entries if isinstance(e.fact, AttemptStarted))
    assert set(completions.values()) <= {1}
    assert set(started.values()) <= {1, 2}
    were_in_time(entries)
    return entries


def were_in_time(entries: Sequence[Recorded]) -> None:
    """A5: by the times that are sealed, nobody was accepted behind a lease, or put out within it."""
    ends: dict[str, int] = {}
    for entry in entries:
        fact, now = entry.fact, entry.recorded_at
        match fact:
            case RangeClaimed():
                ends[fact.claim_id] = fact.expires_at
            case AttemptStarted() | ClaimRenewed():
                assert now < ends[fact.claim_id], entry
                ends[fact.claim_id] = fact.expires_at
            case AttemptFailed() if fact.failure == "lease_expired":
                assert now >= ends[fact.claim_id], entry
            case ClaimReleased() if fact.reason == "expired":
                assert now >= ends.pop(fact.claim_id), entry
            case AttemptFailed() | RangeCompleted():
                assert now < ends[fact.claim_id], entry
            case _:
                pass


def digest(fact: Fact) -> str:
    """What tells facts apart."""
    return hashlib.sha256(encode(fact)).hexdigest()


def are_once(entries: Sequence[Recorded], told: Sequence[tuple[int, Fact]]) -> None:
    """Nothing is lost and no success was false: what was told is stored, there, and nowhere else."""
    places: dict[str, list[int]] = {}
    for entry in entries:
        places.setdefault(digest(entry.fact), []).append(entry.index)
    for index, fact in told:
        assert places.get(digest(fact)) == [index]
