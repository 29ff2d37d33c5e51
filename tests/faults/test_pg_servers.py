"""A PostgreSQL server that is killed, restarted, full, or that refuses; and what its clients are told."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress

import psycopg
import pytest
from histories import CONVERSATION, SCOPE, Worker, fill, made_up_job
from kept_processes import wait_until
from pg_fixtures import durable_server
from pg_ledgers import PgLedger, Session, everything_holds, ledger_on, with_parameters
from pg_load import Load
from pg_servers import Server

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import LedgerBusy, StoreUnavailable
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Cursor
from compaction_ledger.usecases.range_session import Outcome

pytestmark = pytest.mark.slow

__all__ = ["durable_server"]


@pytest.fixture
def ledger(durable_server: Server) -> Iterator[PgLedger]:
    """A ledger on a server that may be killed."""
    with ledger_on(durable_server.url()) as one:
        yield one


def end_all(server: Server) -> None:
    """End the sessions of all ledgers, as an administrator may."""
    for pid in server.backend_pids("compaction-ledger"):
        server.execute("SELECT pg_terminate_backend(%s)", pid)


# --- kill -9 under load -------------------------------------------------------------------------


def test_a_server_that_is_killed_and_started_again_loses_nothing(
    ledger: PgLedger, durable_server: Server
) -> None:
    with Load(ledger, [ledger.open(), ledger.open()]) as load:
        load.get_on()
        durable_server.kill()
        time.sleep(0.5)
        durable_server.start()
        load.get_on()
    load.check()
    assert load.errors == []  # patience was enough for all of them


def test_a_killed_server_process_takes_the_others_with_it_and_nothing_is_lost(
    ledger: PgLedger, durable_server: Server
) -> None:
    with Load(ledger, [ledger.open(), ledger.open()]) as load:
        for _ in range(2):
            load.get_on()
            os.kill(random.choice(durable_server.backend_pids("compaction-ledger")), signal.SIGKILL)
            load.get_on()
    load.check()


@pytest.mark.slow
def test_a_restart_in_the_middle_is_not_noticed(ledger: PgLedger, durable_server: Server) -> None:
    with Load(ledger, [ledger.open(), ledger.open()]) as load:
        for mode in ("fast", "immediate"):
            load.get_on()
            durable_server.restart(mode)
            load.get_on()
    load.check()
    assert load.errors == []


def test_sessions_that_an_administrator_ends_are_not_missed(
    ledger: PgLedger, durable_server: Server
) -> None:
    with Load(ledger, [ledger.open(), ledger.open()]) as load:
        for _ in range(5):
            load.get_on(steps=2)
            end_all(durable_server)
        load.get_on()
    load.check()
    assert load.errors == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_killed_again_and_again_loses_nothing(
    ledger: PgLedger, durable_server: Server, seed: int
) -> None:
    chance = random.Random(seed)
    with Load(ledger, [ledger.open() for _ in range(3)], threads=9) as load:
        for _ in range(8):
            time.sleep(chance.uniform(0, 0.5))
            if chance.random() < 0.5:
                durable_server.kill()
                time.sleep(chance.uniform(0, 2))
                durable_server.start()
            else:
                pids = durable_server.backend_pids("compaction-ledger")
                os.kill(chance.choice(pids), signal.SIGKILL)
            load.get_on()
    load.check()


SLEEP = (
    "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    "  PERFORM pg_sleep(0.7); RETURN NULL; END $$;"
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {schema}.stored_events"
    "  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.dawdle()"
)


@pytest.mark.parametrize(
    "moment",
    [pytest.param("waits for the head", marks=pytest.mark.slow), "is about to commit"],
)
def test_a_server_process_is_killed_while_it(
    ledger: PgLedger, durable_server: Server, moment: str
) -> None:
    """All others of the server go down with it, and come back."""
    session = ledger.open()
    worker = Worker(session.parts, made_up_job())
    worker.claim()
    started: list[Future[Outcome]] = []
    with ThreadPoolExecutor(1) as pool:
        if moment == "waits for the head":
            with suppress(psycopg.Error), ledger.holding_the_head():
                started.append(pool.submit(worker.start))
                wait_until(lambda: len(ledger.waiting_for_the_head()) == 1)
                os.kill(ledger.waiting_for_the_head()[0], signal.SIGKILL)
        else:
            ledger.execute(SLEEP)
            started.append(pool.submit(worker.start))
            wait_until(lambda: len(ledger.busy_with("PgSleep")) == 1)
            os.kill(ledger.busy_with("PgSleep")[0], signal.SIGKILL)
        assert started[0].result().indices == [1]
    assert len(ledger.check()) == 2


# --- numbers that are given out again -----------------------------------------------------------


def test_a_commit_that_a_crash_undid_is_done_again_though_its_number_was_committed_by_another(
    ledger: PgLedger, durable_server: Server
) -> None:
    """After a crash PostgreSQL gives out again what nothing was heard of: asked for, it is "committed"."""
    database = ledger.open().database
    ledger.execute("CREATE TABLE {schema}.notes (text text)")
    note = database.sql(
        "INSERT INTO {schema}.notes VALUES (%s) RETURNING pg_current_xact_id()::text"
    )
    numbers: list[str] = []
    others: list[str] = []

    def work(cursor: Cursor) -> str:
        ((number,),) = cursor.execute(note, ("mine",)).fetchall()
        numbers.append(number)
        if len(numbers) == 1:
            durable_server.kill()
            durable_server.start()
            while number not in others:
                ((other,),) = ledger.execute(note.decode(), "another")
                others.append(str(other))
        return f"try {len(numbers)}"

    assert database.run(work, commit=True) == "try 2"
    (status,) = ledger.execute("SELECT pg_xact_status(%s::xid8)", numbers[0])
    assert status == ("committed",)
    stored = ledger.execute("SELECT text FROM {schema}.notes ORDER BY text")
    assert stored == [("another",)] * len(others) + [("mine",)]


# --- no connection ------------------------------------------------------------------------------


@contextmanager
def all_in_use(session: Session) -> Iterator[None]:
    """All connections of a session's pool are taken."""
    with ExitStack() as stack:
        for _ in range(session.pool_size):
            stack.enter_context(session.database._connection(10))
        yield


def test_more_threads_than_connections_take_turns(ledger: PgLedger) -> None:
    session = ledger.open(pool_size=2)
    workers = [Worker(session.parts, made_up_job(10 * number)) for number in range(30)]
    with ThreadPoolExecutor(15) as pool:
        list(pool.map(Worker.complete, workers))
    assert len(ledger.check()) == 90


def test_where_all_connections_are_in_use_for_too_long_it_is_said(ledger: PgLedger) -> None:
    session = ledger.open(pool_size=2, patience=0.3)
    worker = Worker(session.parts, made_up_job())
    with all_in_use(session), pytest.raises(LedgerBusy, match="all 2 connections of this process"):
        worker.claim()
    worker.complete()
    assert len(ledger.check()) == 3


@pytest.fixture
def plain(ledger: PgLedger, durable_server: Server) -> Iterator[str]:
    """The URL of a ledger of a role that may do nothing much, with a password, and two connections."""
    hba = durable_server.data / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text(f"host all plain 127.0.0.1/32 scram-sha-256\n{before}")
    durable_server.reload()
    durable_server.execute(f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 2")
    durable_server.execute("GRANT CREATE ON DATABASE postgres TO plain")
    url = durable_server.url(user="plain").replace("plain@", f"plain:{PASSWORD}@")
    yield with_parameters(url, schema=f"{ledger.address.schema}_plain")
    durable_server.execute("DROP OWNED BY plain CASCADE")
    durable_server.execute("DROP ROLE plain")
    hba.write_text(before)
    durable_server.reload()


PASSWORD = "geheim-und-lang"


def test_where_the_server_has_too_few_connections_those_there_are_are_shared(plain: str) -> None:
    """53300, for most of what the pool asks for."""
    with closing(Session(plain, pool_size=8)) as session:
        workers = [Worker(session.parts, made_up_job(10 * number)) for number in range(20)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(Worker.complete, workers))
        assert len(everything_holds(session.ledger)) == 60


def test_where_the_server_has_no_connection_left_it_is_said(
    plain: str, durable_server: Server
) -> None:
    """53300, after patience; and as soon as others leave, it goes on."""
    bare = parse_address(plain).conninfo
    with closing(Session(plain, patience=1.5)) as session:
        session.log.size()
        durable_server.execute("ALTER ROLE plain CONNECTION LIMIT 0")
        end_all(durable_server)
        with pytest.raises(StoreUnavailable, match="too many connections for role"):
            session.log.size()
        with pytest.raises(StoreUnavailable, match="too many connections for role"):
            Session(plain)
        durable_server.execute("ALTER ROLE plain CONNECTION LIMIT 1")
        with psycopg.connect(bare), pytest.raises(StoreUnavailable, match="too many connections"):
            session.log.size()
        assert session.log.size() == 0


def test_a_wrong_password_is_one_clear_error_that_does_not_hold_it(
    plain: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S4: not in the message, nor in what a traceback shows, nor in any record of a log."""
    wrong = "ganz-falsch"
    caplog.set_level("DEBUG")
    with pytest.raises(StoreUnavailable, match="password authentication failed") as raised:
        Ledger.open(plain.replace(PASSWORD, wrong))
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + caplog.text
    assert wrong not in shown
    assert len(str(raised.value).splitlines()) == 1


def test_a_password_that_is_changed_while_a_ledger_is_open(
    plain: str, durable_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with closing(Session(plain, patience=0.5)) as session:
        session.log.size()
        durable_server.execute("ALTER ROLE plain PASSWORD 'another'")
        end_all(durable_server)
        with pytest.raises(StoreUnavailable, match="password authentication failed") as raised:
            session.log.size()
        shown = "".join(traceback.format_exception(raised.value)) + caplog.text
        pool = session.database._pools.get()
        shown += "".join(map(repr, (session.database, session.database.address, pool)))
        assert PASSWORD not in shown
        assert "another" not in shown


# --- a server that is about to start or stop ----------------------------------------------------


def test_a_server_that_stops_takes_nobody_new_and_those_it_has_go_on(
    ledger: PgLedger, durable_server: Server
) -> None:
    """57P03: "shutting down". It waits for whoever is connected."""
    session = ledger.open(pool_size=1)
    worker = Worker(session.parts, made_up_job())
    worker.claim()
    assert durable_server.process is not None
    durable_server.process.signal(signal.SIGTERM)
    try:
        wait_until(lambda: "smart shutdown request" in durable_server.log_text())
        with pytest.raises(StoreUnavailable, match="shutting down"):
            ledger.open()
        worker.start()
        session.database._pools.get().drain()
        durable_server.process.wait()
    finally:
        durable_server.start()
    worker.finish()
    assert len(ledger.check()) == 3


@pytest.mark.slow
def test_a_server_that_recovers_is_waited_for(ledger: PgLedger, durable_server: Server) -> None:
    """57P03: "starting up", here for as long as it looks for an archive that is not there."""
    patient, hasty = ledger.open(), ledger.open(patience=0.2)
    worker = Worker(patient.parts, made_up_job())
    worker.claim()
    durable_server.kill()
    durable_server.configure({"restore_command": "sleep 0.7; false", "hot_standby": "off"})
    sign = durable_server.data / "recovery.signal"
    sign.touch()
    durable_server.user.own(sign)
    with ThreadPoolExecutor(2) as pool:
        starting = pool.submit(durable_server.start)
        wait_until(lambda: "starting archive recovery" in durable_server.log_text())
        finishing = pool.submit(lambda: (worker.start(), worker.finish()))
        for ask in (hasty.log.size, ledger.open):
            with pytest.raises(StoreUnavailable, match=r"starting up|not (yet )?accepting"):
                ask()
        assert not finishing.done()
        starting.result()
        finishing.result()
    assert len(ledger.check()) == 3


# --- settings of others -------------------------------------------------------------------------

ODD = {
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "datestyle": "German",
    "intervalstyle": "sql_standard",
    "plan_cache_mode": "force_custom_plan",
    "enable_indexscan": "off",
    "search_path": "nowhere",
    "timezone": "Asia/Kathmandu",
    "default_transaction_isolation": "serializable",
    "xmloption": "document",
}


def test_what_is_set_for_the_database_changes_nothing(durable_server: Server) -> None:
    """An administrator may have set it for all that use the database, for the sake of another program."""
    words = " ".join(f"-c {name}={value}" for name, value in ODD.items())
    url = with_parameters(durable_server.url(), options=words)
    with ledger_on(url, made=False) as odd:
        session = odd.open()
        fill(session.parts, 40)
        assert session.ledger.compact(CONVERSATION, scope=SCOPE).completed == 2
        session.parts.transcripts.revise(SCOPE, CONVERSATION, "a1", r"Ein \\ \x00 Umlaut: ü")
        session.ledger.record_delivery(
            session.ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
        )
        session.ledger.rebuild()
        assert len(odd.check()) == 7
        found = session.parts.transcripts.conversation(SCOPE, CONVERSATION).messages[3]
        assert found.text == r"Ein \\ \x00 Umlaut: ü"
