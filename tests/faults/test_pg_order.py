"""One order (L1, L2): readers that follow the index pass over nothing, whoever writes, and however long."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import psycopg
import pytest
from histories import key_of, made_up_job
from kept_processes import wait_until
from pg_ledgers import PgLedger, Session, ledger_on
from psycopg import sql
from psycopg.pq import ExecStatus
from scenarios import claimed, released

from compaction_ledger.domain.errors import DamagedLog, InvalidSetting
from compaction_ledger.domain.events import RangeClaimed, RangeFact
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.infrastructure.event_store.postgres_recorder import SealedPostgresRecorder
from compaction_ledger.infrastructure.postgres.connections import Question
from compaction_ledger.infrastructure.postgres.database import Database


@pytest.fixture
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """A ledger on the server that all tests share."""
    with ledger_on(pg_server) as one:
        yield one


def append(session: Session, number: int, facts: int = 1) -> Sequence[int]:
    """One event or two at once, in a stream of their own."""
    job = made_up_job(10 * number)
    new: list[RangeFact] = [claimed(f"c{number}", job=job), released(f"c{number}", job=job)]
    return session.log.append(key_of(job), EMPTY, new[:facts])


class Tail:
    """A reader that follows the log by its index, as the read models do."""

    def __init__(self, session: Session) -> None:
        self._log = session.log
        self.claims: list[str] = []
        self._position = 0

    def look(self) -> list[str]:
        """The claims that were seen so far."""
        while found := self._log.read(self._position, 100):
            assert [entry.index for entry in found] == [
                *range(self._position, self._position + len(found))
            ]
            self._position += len(found)
            self.claims += [e.fact.claim_id for e in found if isinstance(e.fact, RangeClaimed)]
        return self.claims

    def follow(self, claims: int) -> None:
        """Until so many were seen."""
        while len(self.look()) < claims:
            time.sleep(0.001)


class Taken(Exception):
    """What was about to be sent was taken."""


@contextmanager
def in_mid_append(ledger: PgLedger, number: int) -> Iterator[psycopg.Connection]:
    """Just what we send for an append, in a transaction that does not end until it is told to."""
    session = ledger.open()
    sent: list[tuple[Question, Sequence[bytes]]] = []

    def take(question: Question, parameters: Sequence[bytes]) -> None:
        sent.append((question, parameters))
        raise Taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.database, "try_ask", take)
        with suppress(Taken):
            append(session, number)
    ((question, parameters),) = sent
    with psycopg.connect(ledger.address.conninfo) as connection:
        connection.execute("SELECT 1")  # begins it
        done = connection.pgconn.exec_params(
            question.text, parameters, param_formats=question.formats
        )
        assert done.status == ExecStatus.TUPLES_OK
        yield connection
        connection.rollback()


# --- a writer that takes its time ---------------------------------------------------------------


@pytest.mark.parametrize("variable", [None, "POSTGRES_ENABLE_DB_FUNCTIONS"])
@pytest.mark.parametrize("commits", [True, False])
def test_whoever_comes_second_is_seen_second(
    ledger: PgLedger, monkeypatch: pytest.MonkeyPatch, commits: bool, variable: str | None
) -> None:
    """The first one has its place already; a reader sees neither until both can be seen in order."""
    if variable:
        monkeypatch.setenv(variable, "y")
    session, tail = ledger.open(), Tail(ledger.open())
    with ThreadPoolExecutor(1) as pool:
        with in_mid_append(ledger, 1) as first:
            second = pool.submit(append, session, 2)
            wait_until(lambda: len(ledger.waiting_for_the_head()) == 1)
            assert tail.look() == []
            assert not second.done()
            if commits:
                first.commit()
        assert second.result() == [1 if commits else 0]
    tail.follow(2 if commits else 1)
    assert tail.claims == (["c1", "c2"] if commits else ["c2"])
    ledger.check()


def test_the_librarys_own_functions_are_refused(ledger: PgLedger) -> None:
    """They take no lock."""
    database = Database(ledger.address)
    database.enable_db_functions = True
    with pytest.raises(InvalidSetting, match="POSTGRES_ENABLE_DB_FUNCTIONS"):
        SealedPostgresRecorder(database)
    database.close()


# --- many writers -------------------------------------------------------------------------------

WRITERS = 8


@pytest.mark.slow
@pytest.mark.parametrize("variable", [None, "POSTGRES_ENABLE_DB_FUNCTIONS"])
@pytest.mark.parametrize("each", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_a_reader_behind_eight_writers_misses_nothing(
    ledger: PgLedger, monkeypatch: pytest.MonkeyPatch, each: int, variable: str | None
) -> None:
    if variable:
        monkeypatch.setenv(variable, "y")
    sessions = [ledger.open() for _ in range(2)]
    tails = [Tail(ledger.open()) for _ in range(2)]

    def write(writer: int) -> list[tuple[int, str]]:
        told: list[tuple[int, str]] = []
        for step in range(each):
            number = writer * each + step
            (index, *_) = append(sessions[writer % 2], number, 1 + step % 2)
            told.append((index, f"c{number}"))
        return told

    with ThreadPoolExecutor(WRITERS + len(tails)) as pool:
        following = [pool.submit(tail.follow, WRITERS * each) for tail in tails]
        told = [place for places in pool.map(write, range(WRITERS)) for place in places]
        for one in following:
            one.result()
    expected = [claim for _, claim in sorted(told)]
    assert [tail.claims for tail in tails] == [expected, expected]
    ledger.check()


@pytest.mark.slow
def test_a_reader_behind_a_sequence_misses_much(ledger: PgLedger) -> None:
    """Why it is not the database's sequence that decides: numbers are given out before the commit (L2)."""
    ledger.execute("CREATE TABLE {schema}.by_sequence (id bigserial PRIMARY KEY, text text)")
    table = sql.Identifier(ledger.address.schema, "by_sequence")
    insert = sql.SQL("INSERT INTO {} (text) VALUES ('x')").format(table)
    read = sql.SQL("SELECT id FROM {} WHERE id > %s ORDER BY id").format(table)
    each, over = 300, threading.Event()

    def write(writer: int) -> None:
        chance = random.Random(writer)
        with psycopg.connect(ledger.address.conninfo) as connection:
            for _ in range(each):
                connection.execute(insert)
                time.sleep(chance.uniform(0, 0.002))
                connection.commit()

    def tail() -> int:
        seen = last = 0
        with psycopg.connect(ledger.address.conninfo, autocommit=True) as connection:
            while True:
                at_the_end = over.is_set()
                found = [number for (number,) in connection.execute(read, (last,))]
                seen, last = seen + len(found), max([last, *found])
                if at_the_end:
                    return seen

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        tailing = pool.submit(tail)
        list(pool.map(write, range(WRITERS)))
        over.set()
        missed = WRITERS * each - tailing.result()
    assert missed > 0


# --- a writer that keeps to no rule -------------------------------------------------------------

ROGUE = (
    "INSERT INTO {schema}.stored_events"
    " SELECT %s, originator_id, originator_version + 1, topic, leaf, envelope, state"
    " FROM {schema}.stored_events WHERE idx = 0"
)


def test_what_was_put_in_without_the_heads_lock_is_damage(ledger: PgLedger) -> None:
    """Nobody passes over it, and nothing is stored behind it."""
    session, tail = ledger.open(), Tail(ledger.open())
    append(session, 0)
    append(session, 1)
    assert tail.look() == ["c0", "c1"]
    ledger.execute(ROGUE, 2)
    assert tail.look() == ["c0", "c1"]  # the head does not know of it
    with pytest.raises(DamagedLog) as damage:
        append(session, 2)
    assert damage.value.index == 2
    findings = [(finding.code, finding.index) for finding in session.log.verify()]
    assert ("head", None) in findings
    assert ("seal", 2) in findings
    ledger.execute("UPDATE {schema}.log_head SET size = 3")
    with pytest.raises(DamagedLog) as damage:
        tail.look()
    assert damage.value.index == 2


def test_what_was_put_in_further_on_is_damage_as_soon_as_the_head_comes_there(
    ledger: PgLedger,
) -> None:
    session, tail = ledger.open(), Tail(ledger.open())
    append(session, 0)
    ledger.execute(ROGUE, 2)
    append(session, 1)
    assert tail.look() == ["c0", "c1"]
    with pytest.raises(DamagedLog) as damage:
        append(session, 2)
    assert damage.value.index == 2
    ledger.execute(ROGUE.replace("+ 1", "+ 2"), 4)
    findings = [(finding.code, finding.index) for finding in session.log.verify()]
    assert ("hole", 3) in findings
    ledger.execute("UPDATE {schema}.log_head SET size = 5")
    with pytest.raises(DamagedLog) as damage:
        tail.look()
    assert damage.value.index == 3


@pytest.mark.parametrize("commits", [True, False])
def test_an_append_waits_for_what_may_come_to_be_in_its_place(
    ledger: PgLedger, commits: bool
) -> None:
    session = ledger.open()
    append(session, 0)
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(ledger.address.conninfo) as rogue:
            rogue.execute(session.database.sql(ROGUE), (1,))
            appending = pool.submit(append, session, 1)
            wait_until(lambda: len(ledger.waiting_for_the_head()) == 1)
            if not commits:
                rogue.rollback()
        if commits:
            with pytest.raises(DamagedLog) as damage:
                appending.result()
            assert damage.value.index == 1
            assert session.log.size() == 1
        else:
            assert appending.result() == [1]
            ledger.check()
