"""Through PgBouncer in transaction mode: the next transaction may meet another connection to the server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from histories import CONVERSATION, SCOPE, Worker, key_of, lines, made_up_job
from kept_processes import Order, keep, unprivileged
from pg_bouncer import Bouncer, bouncer_program, running_bouncer
from pg_fixtures import durable_server
from pg_ledgers import PgLedger, Session, everything_holds, ledger_on
from pg_load import Load
from pg_servers import Server
from scenarios import claimed

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.connections import LedgerConnection, connect
from compaction_ledger.settings import Settings

pytestmark = pytest.mark.slow

__all__ = ["durable_server"]

STRICT = 0
MODERN = 200


@pytest.fixture
def ledger(durable_server: Server) -> Iterator[PgLedger]:
    """A ledger without tables yet, on a server that may be killed."""
    with ledger_on(durable_server.url(), made=False) as one:
        yield one


@pytest.fixture
def bouncer(durable_server: Server) -> Iterator[Bouncer]:
    """A pooler that knows of no prepared statements, with three connections to the server."""
    settings = {"admin_users": "postgres"}
    with running_bouncer(durable_server.url(), pool_size=3, settings=settings) as one:
        yield one


# --- the whole life -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool_size", "prepared"),
    [
        (2, STRICT),
        pytest.param(3, STRICT, marks=pytest.mark.slow),
        pytest.param(5, STRICT, marks=pytest.mark.slow),
        (5, MODERN),
    ],
)
def test_the_whole_life_of_a_ledger(
    ledger: PgLedger, durable_server: Server, pool_size: int, prepared: int
) -> None:
    settings = Settings(shared_attempts_at_once=3)
    with running_bouncer(
        durable_server.url(), pool_size=pool_size, max_prepared_statements=prepared
    ) as bouncer:
        url = ledger.at(bouncer.url())
        with Ledger.open(url, settings=settings) as one, Ledger.open(url, settings=settings) as two:
            names = [f"c-{number}" for number in range(6)]

            def live(name: str) -> int:
                mine = (one, two)[int(name[-1]) % 2]
                mine.transcripts.append(SCOPE, name, *lines(50))
                assert len(mine.plan(name, scope=SCOPE).due) == 3
                made = 0
                while mine.plan(name, scope=SCOPE).due:  # not all are admitted at once (D2)
                    made += mine.compact(name, scope=SCOPE).completed
                mine.transcripts.revise(SCOPE, name, "a7", "another answer")
                assert len(mine.plan(name, scope=SCOPE).due) == 1
                mine.record_delivery(mine.assemble(name, scope=SCOPE, budget=10**6))
                return made

            with ThreadPoolExecutor(6) as pool:
                rebuilding = pool.submit(one.rebuild)
                assert list(pool.map(live, names)) == [3] * 6
                rebuilding.result()
            one.rebuild()
            assert one.verify().ok
            entries = everything_holds(two)
            assert len(entries) == 6 * (3 * 3 + 1)
            (row,) = [row for row in bouncer.show() if row["database"] == "postgres"]
            assert row["sv_active"] + row["sv_idle"] + row["sv_used"] <= pool_size
    ledger.check()


# --- prepared statements ------------------------------------------------------------------------


def test_that_a_pooler_stands_between_is_noticed(ledger: PgLedger, bouncer: Bouncer) -> None:
    """Statements are prepared on the server where that is who answers, and not otherwise."""
    for url, expected in ((ledger.url, 2), (ledger.at(bouncer.url()), None)):
        session = ledger.open(url)
        with session.database._connection(10) as connection:
            assert connection.prepare_threshold == expected


def test_a_pooler_that_is_not_noticed_costs_nothing_but_tries(
    ledger: PgLedger, bouncer: Bouncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not know of was not carried out; then it is sent in whole."""
    monkeypatch.setattr(
        "compaction_ledger.infrastructure.postgres.connections._configure", _prepare_at_once
    )
    sessions = [ledger.open(ledger.at(bouncer.url())) for _ in range(3)]
    with Load(ledger, sessions) as load:
        load.get_on()
    load.check()
    assert load.errors == []


def _prepare_at_once(connection: LedgerConnection) -> None:
    connection.prepare_threshold = 0


def test_no_two_connections_give_their_statements_the_same_names(ledger: PgLedger) -> None:
    """Or behind a pooler that is not noticed, one would be answered with what another has asked."""
    names: list[str] = []
    connections = [connect(parse_address(ledger.url)) for _ in range(3)]
    for connection in connections:
        with connection:
            for statement in (b"SELECT 1 WHERE true", b"SELECT 2 WHERE true"):
                connection.execute(statement, prepare=True)
            rows = connection.execute("SELECT name FROM pg_prepared_statements", prepare=False)
            names += [name for (name,) in rows]
    assert len(names) == len(set(names)) == 6
    assert all(len(name) < 64 for name in names)


def test_two_ledgers_behind_a_pooler_that_is_not_noticed_are_not_mixed_up(
    durable_server: Server,
) -> None:
    """Each prepares the statement that appends on one connection, and then meets that of the other."""
    with (
        running_bouncer(durable_server.url(), pool_size=2) as bouncer,
        ledger_on(durable_server.url()) as first,
        ledger_on(durable_server.url()) as second,
        psycopg.connect(bouncer.url(), prepare_threshold=None) as holder,
        psycopg.connect(bouncer.url(), prepare_threshold=None) as another,
    ):
        one, two = (each.open(each.at(bouncer.url()), pool_size=1) for each in (first, second))
        for session in (one, two):
            session.log._subject(SCOPE, CONVERSATION)
            session.log.sealed._read_origin()  # type: ignore[attr-defined]
            with session.database._connection(10) as connection:
                connection.prepare_threshold = 2
        holder.execute("SELECT 1")  # has the one connection, so this is the other:
        append(one, 0)
        another.execute("SELECT 1")  # has that, and the one is free:
        holder.commit()
        append(two, 0)
        holder.execute("SELECT 1")
        another.commit()
        append(two, 1)
        holder.commit()
        assert [len(first.check()), len(second.check())] == [1, 2]


def append(session: Session, number: int) -> None:
    """One event."""
    job = made_up_job(10 * number)
    session.log.append(key_of(job), EMPTY, [claimed("c", job=job)])


# --- what becomes of it -------------------------------------------------------------------------


def killed_and_restarted(bouncer: Bouncer) -> None:
    """Kill a pooler (-9) and start it again, on the same port."""
    os.kill(bouncer.process.pid, signal.SIGKILL)
    bouncer.process.wait()
    bouncer.process = keep(
        Order(
            command=[bouncer_program(), bouncer.folder / "pgbouncer.ini"],
            lock=bouncer.folder / "lock",
            log=bouncer.folder / "log",
            user=unprivileged(),
            folder=bouncer.folder,
        )
    )


@pytest.fixture
def load(ledger: PgLedger, bouncer: Bouncer) -> Load:
    """What works through the pooler."""
    return Load(ledger, [ledger.open(ledger.at(bouncer.url())) for _ in range(2)])


def test_a_pooler_is_killed_and_restarted(load: Load, bouncer: Bouncer) -> None:
    with load:
        for _ in range(2):
            load.get_on()
            killed_and_restarted(bouncer)
            load.get_on()
    load.check()
    assert load.errors == []


def test_the_server_behind_it_is_restarted_and_killed(load: Load, durable_server: Server) -> None:
    """The pooler tells of it in its own way."""
    with load:
        load.get_on()
        durable_server.restart()
        load.get_on()
        durable_server.kill()
        durable_server.start()
        load.get_on()
    load.check()
    assert load.errors == []


def test_its_connections_are_closed_and_held_back(load: Load, bouncer: Bouncer) -> None:
    with load:
        load.get_on()
        bouncer.order("RECONNECT")
        load.get_on()
        bouncer.order("PAUSE")
        time.sleep(0.5)
        bouncer.order("RESUME")
        load.get_on()
        bouncer.order("KILL postgres")  # all of its clients
        time.sleep(0.2)
        bouncer.order("RESUME postgres")
        load.get_on()
    load.check()
    assert load.errors == []


def test_who_waits_for_one_of_its_connections_for_too_long_is_told(
    ledger: PgLedger, durable_server: Server
) -> None:
    with running_bouncer(
        durable_server.url(), pool_size=1, settings={"query_wait_timeout": "1"}
    ) as bouncer:
        ledger.open()
        session = ledger.open(ledger.at(bouncer.url()), patience=0.5)
        worker = Worker(session.parts, made_up_job())
        with psycopg.connect(bouncer.url()) as other:
            other.execute("SELECT 1")  # and holds on to the only one
            with pytest.raises(StoreUnavailable, match="query_wait_timeout"):
                session.log.size()
        worker.complete()
    assert len(ledger.check()) == 3
