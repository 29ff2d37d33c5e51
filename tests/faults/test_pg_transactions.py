"""Transactions on PostgreSQL: cut at every message, settled behind a lost commit (A9), tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Barrier

import psycopg
import pytest
from histories import CONVERSATION, SCOPE, Worker, lines, made_up_job
from kept_processes import wait_until
from pg_cuts import messages_of
from pg_ledgers import PgLedger, Session, ledger_on, with_parameters
from pg_proxy import Proxy

from compaction_ledger.domain.conversation import RunState
from compaction_ledger.domain.errors import Erased, LedgerBusy, StoreError, StoreUnavailable
from compaction_ledger.domain.takeover import NewThread
from compaction_ledger.infrastructure.postgres import migrating
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Cursor, Database


@pytest.fixture
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """A ledger on the server that all tests share."""
    with ledger_on(pg_server) as one:
        yield one


@pytest.fixture
def proxy(ledger: PgLedger) -> Iterator[Proxy]:
    """A proxy before its server."""
    with Proxy(ledger.url) as one:
        yield one


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is refused a connection tries again soon."""
    monkeypatch.setattr(
        "compaction_ledger.infrastructure.postgres.connections.RECONNECT_SECONDS", 0.1
    )


ALL = pytest.param(1, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(900)])
SOME_AND_ALL = pytest.mark.parametrize("every", [pytest.param(13, id="some"), ALL])
FEW_AND_ALL = pytest.mark.parametrize(
    "every", [pytest.param(83, id="few"), pytest.param(3, id="many", marks=ALL.marks)]
)

# --- transcripts --------------------------------------------------------------------------------


class Writer:
    """Changes a conversation in each way that there is, and keeps book of what it must be."""

    def __init__(self, session: Session) -> None:
        self.store = session.parts.transcripts
        self.texts: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.others: list[str] = []
        self.changes = 0
        self._numbers = count()

    def append(self) -> None:
        messages, runs = lines(1, next(self._numbers))
        self.store.append(SCOPE, CONVERSATION, messages, runs)
        self.texts |= {message.id: message.text for message in messages}
        self.states |= {run.id: run.state for run in runs}
        self.changes += 1

    def revise(self) -> None:
        name, text = next(iter(self.texts)), f"text {next(self._numbers)}"
        self.store.revise(SCOPE, CONVERSATION, name, text)
        self.texts[name] = text
        self.changes += 1

    def delete(self) -> None:
        name = list(self.texts)[-1]
        self.store.delete(SCOPE, CONVERSATION, name)
        del self.texts[name]
        self.changes += 1

    def set_run(self) -> None:
        name = next(iter(self.states))
        state: RunState = "partial" if self.states[name] == "completed" else "completed"
        self.store.set_run(SCOPE, CONVERSATION, name, state)
        self.states[name] = state
        self.changes += 1

    def take_over(self) -> None:
        """A conversation that is not there; done twice, it would be refused."""
        name = f"other-{next(self._numbers)}"
        self.store.take_over(SCOPE, [NewThread(name, *lines(1))])
        self.others.append(name)

    def check(self, session: Session) -> None:
        """It is what it must be, and each change was made once."""
        store = session.parts.transcripts
        found = store.conversation(SCOPE, CONVERSATION)
        assert {message.id: message.text for message in found.messages} == self.texts
        assert {run.id: run.state for run in found.runs.values()} == self.states
        assert str(store.revision(SCOPE, CONVERSATION)).endswith(f".{self.changes}")
        assert {name for _, name in store.conversations()} == {CONVERSATION, *self.others}
        for name in self.others:
            assert str(store.revision(SCOPE, name)).endswith(".1")


@SOME_AND_ALL
@pytest.mark.parametrize("change", ["append", "revise", "delete", "set_run", "take_over"])
def test_a_change_of_a_transcript_cut_at_any_message_is_made_once(
    ledger: PgLedger, proxy: Proxy, change: str, every: int
) -> None:
    session = ledger.open(proxy.url, pool_size=1)
    writer = Writer(session)
    for _ in range(40):
        writer.append()
    act: Callable[[], None] = getattr(writer, change)
    for _ in range(5):  # whatever is prepared by and by is prepared
        act()
    cuts = list(messages_of(proxy, act).cuts())
    assert len(cuts) > 30
    for cut in cuts[::every]:
        fault = cut.set_up(proxy)
        act()
        fault.wait()
    writer.check(ledger.open())


# --- read models --------------------------------------------------------------------------------


def grow(session: Session, number: int) -> None:
    """Three more events."""
    Worker(session.parts, made_up_job(10 * number), f"w{number}").complete()


@SOME_AND_ALL
def test_following_cut_at_any_message_applies_each_event_once(
    ledger: PgLedger, proxy: Proxy, every: int
) -> None:
    """P2; and a batch that was stored without an answer is not applied again."""
    numbers = count()
    direct, follower = ledger.open(), ledger.open(proxy.url, pool_size=1)

    def act() -> None:
        grow(direct, next(numbers))
        assert follower.ledger.catch_up() == direct.log.size()

    for _ in range(5):
        act()
    cuts = list(messages_of(proxy, act).cuts())
    assert len(cuts) > 50
    for cut in cuts[::every]:
        fault = cut.set_up(proxy)
        act()
        fault.wait()
    ledger.check()


@FEW_AND_ALL
def test_a_rebuild_cut_at_any_message_is_done(ledger: PgLedger, proxy: Proxy, every: int) -> None:
    direct, session = ledger.open(), ledger.open(proxy.url, pool_size=1)
    for number in range(5):
        grow(direct, number)
    session.ledger.catch_up()
    rows = session.parts.read_models.records()
    for _ in range(3):
        session.ledger.rebuild()
    for cut in list(messages_of(proxy, session.ledger.rebuild).cuts())[::every]:
        fault = cut.set_up(proxy)
        session.ledger.rebuild()
        fault.wait()
        assert direct.parts.read_models.records() == rows
    session.ledger.rebuild()
    ((left,),) = ledger.execute("SELECT count(*) FROM {read_models}.generations")
    assert left == 1  # none of those that were begun twice stays behind
    ledger.check()


# --- what migrates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "every",
    [pytest.param(83, id="few"), pytest.param(4, id="many", marks=ALL.marks)],
)
def test_making_a_ledger_cut_at_any_message_is_done(pg_server: str, every: int) -> None:
    """Who opens it is told at once that there is no connection, where that was the first one."""
    with Proxy(pg_server) as proxy:

        def act() -> None:
            with ledger_on(pg_server, made=False) as one:
                database = Database(parse_address(one.at(proxy.url)), pool_size=1)
                try:
                    migrating.prepare(database, create=True)
                except StoreUnavailable:
                    migrating.prepare(database, create=True)
                database.close()
                grow(one.open(), 1)
                one.check()

        act()
        cuts = list(messages_of(proxy, act).cuts())
        for cut in cuts[::every]:
            fault = cut.set_up(proxy)
            act()
            fault.wait()


# --- what became of a commit --------------------------------------------------------------------


@pytest.fixture
def table(ledger: PgLedger) -> PgLedger:
    """The ledger, and beside it a table of notes."""
    ledger.execute("CREATE TABLE {schema}.notes (text text)")
    return ledger


def notes(ledger: PgLedger) -> list[str]:
    """What is stored."""
    return sorted(str(text) for (text,) in ledger.execute("SELECT text FROM {schema}.notes"))


def swallow(proxy: Proxy) -> None:
    """What is connected now gets no more through, and neither side hears of the other any more."""
    for link in proxy._links:
        link.hole = True


@pytest.mark.slow
def test_a_session_that_waits_for_its_lost_client_is_ended(table: PgLedger, proxy: Proxy) -> None:
    """The COMMIT never reached the server, which holds all locks and waits: for us, who are gone."""
    database = table.open(proxy.url).database
    note = database.sql("INSERT INTO {schema}.notes VALUES ('mine')")
    tries = count()

    def work(cursor: Cursor) -> str:
        cursor.execute(note)
        number = next(tries)
        if number == 0:
            swallow(proxy)
        return f"try {number}"

    assert database.run(work, commit=True, answer_seconds=0.3) == "try 1"
    assert notes(table) == ["mine"]


@pytest.mark.slow
def test_a_commit_that_takes_its_time_is_waited_for(table: PgLedger, proxy: Proxy) -> None:
    """The client is cut off while the server is about to commit."""
    table.execute(
        "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  PERFORM pg_sleep(1.3); RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {schema}.notes"
        "  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.dawdle()"
    )
    database = table.open(proxy.url).database
    note = database.sql("INSERT INTO {schema}.notes VALUES ('mine')")
    tries = count()

    def work(cursor: Cursor) -> str:
        cursor.execute(note)
        return f"try {next(tries)}"

    fault = proxy.cut_after_forwarding("Q", containing=b"COMMIT", at_once=True)
    assert database.run(work, commit=True) == "try 0"
    fault.wait()
    assert notes(table) == ["mine"]


@pytest.mark.slow
def test_where_it_cannot_be_looked_up_it_is_said_that_nothing_is_known(
    table: PgLedger, proxy: Proxy
) -> None:
    database = table.open(proxy.url, patience=0.5).database
    note = database.sql("INSERT INTO {schema}.notes VALUES ('mine')")

    def work(cursor: Cursor) -> None:
        cursor.execute(note)
        proxy.refuse()
        proxy.cut_after_forwarding("Q", containing=b"COMMIT")

    with pytest.raises(StoreUnavailable, match="not known whether it was stored"):
        database.run(work, commit=True)
    assert notes(table) == ["mine"]


def test_marks_are_one_row_for_each_connection_and_old_ones_go(table: PgLedger) -> None:
    database = table.open(pool_size=1).database
    for _ in range(5):
        database.run(lambda cursor: cursor.execute("SELECT"), commit=True)
    marks = "SELECT number FROM {schema}.last_commits ORDER BY number"
    assert table.execute(marks) == [(5,)]
    table.execute("UPDATE {schema}.last_commits SET at = at - interval '8 days'")
    other = table.open(pool_size=1).database
    other.run(lambda cursor: cursor.execute("SELECT"), commit=True)
    assert table.execute(marks) == [(1,)]
    database.run(lambda cursor: cursor.execute("SELECT"), commit=True)
    assert table.execute(marks) == [(1,), (6,)]


# --- conflicts ----------------------------------------------------------------------------------


def test_a_deadlock_is_broken_and_both_are_done(table: PgLedger) -> None:
    """Provoked for real: each has one row, and asks for the other's."""
    table.execute("INSERT INTO {schema}.notes VALUES ('a'), ('b')")
    database = table.open().database
    change = database.sql("UPDATE {schema}.notes SET text = text || %s WHERE text LIKE %s")
    both_have_one = Barrier(2)
    tries = count()

    def work(cursor: Cursor, mine: str, first: str, second: str) -> None:
        number = next(tries)
        cursor.execute("SET LOCAL deadlock_timeout = '50ms'")
        cursor.execute(change, (mine, f"{first}%"))
        if number < 2:
            both_have_one.wait(10)
        cursor.execute(change, (mine, f"{second}%"))

    with ThreadPoolExecutor(2) as pool:
        doing = [
            pool.submit(database.run, partial(work, mine=mine, first=x, second=y), commit=True)
            for mine, x, y in (("1", "a", "b"), ("2", "b", "a"))
        ]
        for each in doing:
            each.result()
    assert next(tries) == 3  # two tries, and one more
    assert [sorted(text) for text in notes(table)] == [["1", "2", "a"], ["1", "2", "b"]]


def test_a_serialization_failure_is_tried_again(table: PgLedger) -> None:
    """Provoked for real: the row has changed since this transaction's snapshot."""
    table.execute("INSERT INTO {schema}.notes VALUES ('0')")
    database = table.open().database
    look, change = (
        database.sql("SELECT text FROM {schema}.notes"),
        database.sql("UPDATE {schema}.notes SET text = (text::int + 1)::text"),
    )
    tries = count()

    def work(cursor: Cursor) -> None:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        cursor.execute(look)
        if next(tries) == 0:
            table.execute(change.decode())
        cursor.execute(change)

    database.run(work, commit=True, repeatable=True)
    assert next(tries) == 2
    assert notes(table) == ["2"]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_appends_of_many_at_once_where_the_database_isolates_more_than_need_be(
    ledger: PgLedger, level: str
) -> None:
    """Each that waited for the head fails then, and is tried again: slower, and no different."""
    url = with_parameters(
        ledger.url, options="-c default_transaction_isolation=" + level.replace(" ", "\\ ")
    )
    session = ledger.open(url)
    with ThreadPoolExecutor(4) as pool:
        growing = [pool.submit(grow, session, number) for number in range(20)]
        for each in growing:
            each.result()
    assert len(ledger.check()) == 60


def test_who_is_in_the_way_for_too_long_is_told_of(table: PgLedger) -> None:
    """And nothing of it is stored."""
    table.execute("INSERT INTO {schema}.notes VALUES ('held')")
    database = table.open().database
    change = database.sql("UPDATE {schema}.notes SET text = 'changed'")

    def work(cursor: Cursor) -> None:
        cursor.execute("SET LOCAL lock_timeout = '100ms'")
        cursor.execute(change)

    with psycopg.connect(table.address.conninfo) as other:
        other.execute(database.sql("SELECT text FROM {schema}.notes FOR UPDATE"))
        with pytest.raises(LedgerBusy, match="held by others"):
            database.run(work, commit=True)
        other.rollback()
    assert notes(table) == ["held"]
    database.run(work, commit=True)
    assert notes(table) == ["changed"]


@pytest.mark.parametrize("knows", ["who stands for it", "nobody"])
def test_whose_name_is_forgotten_between_two_statements_was_erased(
    ledger: PgLedger, knows: str
) -> None:
    """Who is given a key waits for the row of the conversation, and then there is none (S3)."""
    session = ledger.open()
    reference = session.log.subject_for(SCOPE, CONVERSATION).reference
    given = reference if knows == "who stands for it" else "0" * 32
    act = session.database.sql

    def is_waiting() -> bool:
        words = f'"{ledger.address.schema}".subject_with_key'
        asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ %s"
        return bool(ledger.execute(asked, words))

    with (
        psycopg.connect(ledger.address.conninfo) as erasing,
        ThreadPoolExecutor(1) as pool,
    ):
        lock = act("SELECT 1 FROM {schema}.subjects WHERE reference = %s FOR UPDATE")
        erasing.execute(lock, (reference,))
        asking = pool.submit(session.log.sealed.subject, SCOPE, CONVERSATION, given, "key")
        try:
            wait_until(is_waiting, 10)
            erasing.execute(act("SELECT {schema}.mark_erased(%s)"), (reference,))
            erasing.execute(act("SELECT {schema}.forget_name(%s)"), (reference,))
            erasing.commit()
        finally:
            erasing.rollback()  # so that nobody waits for ever
        with pytest.raises(Erased):
            asking.result(30)
    assert {one.conversation for one in session.log.sealed.subjects().values()} == {reference}


def test_a_statement_that_failed_and_was_passed_over_is_no_commit(table: PgLedger) -> None:
    database = table.open().database
    note = database.sql("INSERT INTO {schema}.notes VALUES ('mine')")

    def work(cursor: Cursor) -> None:
        cursor.execute(note)
        with suppress(psycopg.errors.DivisionByZero):
            cursor.execute("SELECT 1 / 0")

    with pytest.raises(StoreError, match="ROLLBACK"):
        database.run(work, commit=True)
    assert notes(table) == []
