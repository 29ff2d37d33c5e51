"""Originals on PostgreSQL: answers that are lost (A9), many pieces, and what the database itself refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from originals_messages import KEY, SHAPE, messages
from pg_ledgers import PgLedger, ledger_on
from pg_proxy import Proxy

from compaction_ledger.domain.errors import ConcurrentAppend
from compaction_ledger.infrastructure.originals import postgres
from compaction_ledger.infrastructure.originals.postgres import PostgresOriginals
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database

PLACE = (KEY.scope, KEY.conversation)


@pytest.fixture(scope="module")
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """A ledger on the server that all tests share."""
    with ledger_on(pg_server) as one:
        yield one


@pytest.fixture
def database(ledger: PgLedger) -> Iterator[Database]:
    """The bare database, without any originals."""
    one = Database(parse_address(ledger.url))
    PostgresOriginals(one).forget(*PLACE)
    yield one
    one.close()


@pytest.mark.parametrize("pieces", [1, 3])
def test_what_was_stored_though_nobody_heard_of_it_is_found(
    ledger: PgLedger, database: Database, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut when the server has done it: the same is asked again, and is known."""
    monkeypatch.setattr(
        "compaction_ledger.infrastructure.postgres.connections.RECONNECT_SECONDS", 0.1
    )
    monkeypatch.setattr(postgres, "MESSAGES_AT_ONCE", 2)
    given = messages(0, 2 * pieces)
    with Proxy(ledger.url) as proxy:
        behind = Database(parse_address(proxy.url))
        originals = PostgresOriginals(behind)
        assert originals.count(KEY) == 0
        # One piece is one statement; several are a transaction, whose end is what is lost.
        fault = proxy.cut_after_forwarding("S" if pieces == 1 else "Q", 1 if pieces == 1 else 2)
        originals.append(KEY, SHAPE, 0, given)
        fault.wait(1)
        behind.close()
    kept = PostgresOriginals(database).read(KEY)
    assert [m.digest for m in kept] == [m.digest for m in given]


def test_pieces_are_appended_all_or_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MESSAGES_AT_ONCE", 2)
    originals = PostgresOriginals(database)
    originals.append(KEY, SHAPE, 0, messages(0, 5))
    assert [m.position for m in originals.read(KEY)] == [0, 1, 2, 3, 4]
    originals.append(KEY, SHAPE, 0, messages(0, 5))
    originals.append(KEY, SHAPE, 1, messages(1, 4))
    for first, given in (
        (0, messages(0, 7)),  # the first pieces are there, the last is not
        (1, messages(1, 6)),
        (1, [*messages(1, 4), *messages(8, 9)]),
        (5, messages(5, 7)),
    ):
        if first == 5:
            originals.append(KEY, SHAPE, first, given)
            continue
        with pytest.raises(ConcurrentAppend):
            originals.append(KEY, SHAPE, first, given)
        assert originals.count(KEY) == 5
    assert originals.count(KEY) == 7


def test_large_pieces_are_told_apart_by_their_bytes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "BYTES_AT_ONCE", 100)
    given = [
        replace(m, wire=bytes(size))
        for m, size in zip(messages(0, 6), (10, 500, 1, 98, 2, 60), strict=True)
    ]
    PostgresOriginals(database).append(KEY, SHAPE, 0, given)
    assert [len(m.wire) for m in PostgresOriginals(database).read(KEY)] == [10, 500, 1, 98, 2, 60]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {schema}.window_messages SET wire = 'x'",
        "UPDATE {schema}.window_results SET content = 'x'",
        "UPDATE {schema}.window_runs SET shape = 'x'",
        "UPDATE {schema}.window_runs SET name = 'x'",
    ],
)
def test_the_database_refuses_to_change_what_was_written(
    ledger: PgLedger, database: Database, change: str
) -> None:
    originals = PostgresOriginals(database)
    originals.append(KEY, SHAPE, 0, messages(0, 2))
    digest = originals.keep_result(*PLACE, b"what a tool said")
    with (
        psycopg.connect(parse_address(ledger.url).conninfo) as connection,
        pytest.raises(psycopg.Error, match="append-only"),
    ):
        connection.execute(database.sql(change))
    assert originals.result(*PLACE, digest) == b"what a tool said"
    assert originals.shape(KEY) == SHAPE
