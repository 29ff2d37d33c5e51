"""Appends whose connection is lost (A9): cut at every message, with a straggler at the server, or silent."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Timer

import pytest
from histories import SCOPE, Worker, key_of, made_up_job
from kept_processes import wait_until
from pg_cuts import messages_of
from pg_ledgers import PgLedger, Session, are_once, ledger_on, with_parameters
from pg_proxy import Proxy
from scenarios import CURRENT, MODEL, claimed, make_pairs, released

from compaction_ledger.domain.errors import DiskFull, LedgerBusy, LedgerError, StoreUnavailable
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.identity import job_for
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.range_stream import EMPTY

Told = list[tuple[int, RangeFact]]


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


class Appender:
    """Appends new facts, each to a stream of its own, and notes what it is told."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.told: Told = []
        self._numbers = count()

    def append(self, facts: int = 1) -> None:
        """Append so many facts at once."""
        number = next(self._numbers)
        job = made_up_job(10 * number)
        new: list[RangeFact] = [claimed(f"c{number}", job=job)]
        if facts > 1:
            new.append(released(f"c{number}", job=job))
        self._append(key_of(job), new)

    def begin_a_conversation(self) -> None:
        """Append the first fact of a conversation that the log does not know."""
        number = next(self._numbers)
        job = job_for(SCOPE, f"new-{number}", make_pairs(10), MODEL, CURRENT)
        self._append(key_of(job), [claimed(f"c{number}", job=job)])

    def _append(self, key: RangeKey, facts: list[RangeFact]) -> None:
        indices = self.session.log.append(key, EMPTY, facts)
        self.told += zip(indices, facts, strict=True)


# --- cut at any message -------------------------------------------------------------------------


def one(appender: Appender) -> None:
    appender.append()


def two_at_once(appender: Appender) -> None:
    appender.append(2)


def first_of_a_conversation(appender: Appender) -> None:
    appender.begin_a_conversation()


def over_a_new_connection(appender: Appender) -> None:
    appender.session.database._pools.get().drain()
    appender.append()


def unprepared(appender: Appender) -> None:
    """As through a pooler in transaction mode."""
    with appender.session.database._connection(10) as connection:
        connection.prepare_threshold = None
    appender.append()


ACTS = [
    pytest.param(one, 1),
    pytest.param(two_at_once, 1),
    pytest.param(unprepared, 1),
    pytest.param(first_of_a_conversation, 1),
    pytest.param(over_a_new_connection, 5),
    pytest.param(over_a_new_connection, 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("act", "every"), ACTS)
def test_an_append_cut_at_any_message_is_stored_once(
    ledger: PgLedger, proxy: Proxy, act: Callable[[Appender], None], every: int
) -> None:
    appender = Appender(ledger.open(proxy.url, pool_size=1))
    for _ in range(3):  # whatever is prepared by and by is prepared
        act(appender)
    cuts = list(messages_of(proxy, lambda: act(appender)).cuts())
    assert len(cuts) > 20
    for cut in cuts[::every]:
        fault = cut.set_up(proxy)
        before = len(appender.told)
        act(appender)
        fault.wait()
        assert len(appender.told) > before, cut
        for _ in range(2):
            act(appender)
    entries = ledger.check()
    are_once(entries, appender.told)
    assert len(entries) == len(appender.told)


@pytest.mark.slow
@pytest.mark.parametrize("act", [one, two_at_once])
@pytest.mark.parametrize(
    ("state", "error"), [("53100", DiskFull), ("40001", None), ("57014", LedgerBusy)]
)
def test_what_goes_wrong_at_the_commit_itself_is_seen(
    ledger: PgLedger, act: Callable[[Appender], None], state: str, error: type[LedgerError] | None
) -> None:
    """The server answers with the rows first, and then with the error of the commit."""
    ledger.execute(
        "CREATE SEQUENCE {schema}.failed;"
        "CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f"  IF nextval('{{schema}}.failed') = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '{state}';"
        "  END IF; RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON {schema}.stored_events"
        "  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.fail()"
    )
    appender = Appender(ledger.open())
    if error is not None:
        with pytest.raises(error):
            act(appender)
        assert appender.session.log.size() == 0
    act(appender)
    entries = ledger.check()
    are_once(entries, appender.told)
    assert len(entries) == len(appender.told)


# --- the copy that was sent first still waits ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("act", [one, two_at_once])
def test_of_a_straggler_and_its_retry_one_is_stored(
    ledger: PgLedger, proxy: Proxy, act: Callable[[Appender], None]
) -> None:
    """The first answer is lost while the first copy waits for the head; the second comes to wait, too."""
    appender = Appender(ledger.open(proxy.url, pool_size=1))
    act(appender)
    with ThreadPoolExecutor(1) as pool:
        with ledger.holding_the_head():
            proxy.cut_after_forwarding("S", at_once=True)
            appending = pool.submit(act, appender)
            wait_until(lambda: len(ledger.waiting_for_the_head()) == 2)
            assert not appending.done()
        appending.result()
    entries = ledger.check()
    are_once(entries, appender.told)
    assert len(entries) == len(appender.told) == 2 * len(appender.told[::2])


@pytest.mark.slow
def test_a_straggler_is_stored_after_patience_ended_and_the_command_finds_it(
    ledger: PgLedger, proxy: Proxy
) -> None:
    session = ledger.open(proxy.url, pool_size=1, patience=0.2)
    workers = [Worker(session.parts, made_up_job(10 * number)) for number in range(6)]
    for each in workers[:4]:  # until all is prepared
        each.claim()
    answers = messages_of(proxy, workers[4].claim).requests["S"]  # the last is that to the append
    worker = workers[5]
    with ledger.holding_the_head():
        proxy.cut_after_forwarding("S", answers, at_once=True)
        proxy.refuse()
        with ThreadPoolExecutor(1) as pool:
            claiming = pool.submit(worker.claim)
            wait_until(lambda: len(ledger.waiting_for_the_head()) == 1)
            proxy.refuse()
            with pytest.raises(StoreUnavailable, match="not known whether it was stored"):
                claiming.result()
    proxy.welcome()
    looking = ledger.open()
    wait_until(lambda: looking.log.size() == 6)
    outcome = worker.claim()
    assert (outcome.already, outcome.indices) == (True, ())
    worker.start()
    worker.finish()
    assert len(ledger.check()) == 8


def test_a_second_copy_that_fails_says_nothing_of_the_first(ledger: PgLedger, proxy: Proxy) -> None:
    """ "The disk is full, nothing was stored" would be false: the first copy was stored."""
    appender = Appender(ledger.open(proxy.url))
    ledger.execute(
        "CREATE SEQUENCE {schema}.copies;"
        "CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  IF nextval('{schema}.copies') = 2 THEN RAISE EXCEPTION 'no' USING ERRCODE = '53100';"
        "  END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER fails BEFORE INSERT ON {schema}.stored_events"
        "  FOR EACH ROW EXECUTE FUNCTION {schema}.fail()"
    )
    proxy.cut_before_reply("D", containing=b"\x00\x010\x00")  # the answer: index 0, and a time
    with pytest.raises(StoreUnavailable, match="not known whether it was stored"):
        appender.append()
    assert len(ledger.check()) == 1


@pytest.mark.slow
def test_a_stopped_server_process_holds_up_its_copy_and_no_more(
    ledger: PgLedger, proxy: Proxy
) -> None:
    """It is the next in the queue for the head: those behind it wait until it goes on."""
    appender = Appender(ledger.open(proxy.url, pool_size=1))
    appender.append()
    with ThreadPoolExecutor(1) as pool:
        with ledger.holding_the_head():
            proxy.cut_after_forwarding("S", at_once=True)
            appending = pool.submit(appender.append)
            wait_until(lambda: len(ledger.waiting_for_the_head()) == 2)
            first, _ = ledger.waiting_for_the_head()
            os.kill(first, signal.SIGSTOP)
        try:
            time.sleep(0.3)
            assert not appending.done()
        finally:
            os.kill(first, signal.SIGCONT)
        appending.result()
    entries = ledger.check()
    are_once(entries, appender.told)
    assert len(entries) == 2


# --- others have the head -----------------------------------------------------------------------


@pytest.mark.slow
def test_who_waits_for_the_head_for_too_long_is_told_and_nothing_is_stored(
    ledger: PgLedger,
) -> None:
    """The second in the queue waits twice: for its turn, and for who has the head. Both are told the same."""
    session = ledger.open()
    with ThreadPoolExecutor(2) as pool, ledger.holding_the_head():
        appending = [pool.submit(Appender(session).append) for _ in range(2)]
        for each in appending:
            with pytest.raises(LedgerBusy, match="held by others"):
                each.result()
    assert ledger.check() == []


# --- no answer ----------------------------------------------------------------------------------

SHORT = 0.5


@pytest.fixture
def short_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is waited for half a second."""
    module = "compaction_ledger.infrastructure.postgres"
    monkeypatch.setattr(f"{module}.connections.LedgerConnection.answer_seconds", SHORT)
    monkeypatch.setattr(f"{module}.database.ANSWER_SECONDS", SHORT)


Silence = Callable[[Proxy], object]


def black_hole_for_a_while(proxy: Proxy) -> None:
    """All is swallowed, on new connections, too; after a while new ones get through."""
    proxy.black_hole()
    Timer(1.0, proxy.heal).start()


def frozen_for_a_while(proxy: Proxy) -> None:
    """What was sent arrives late, when it has long been sent again."""
    proxy.freeze()
    Timer(1.0, proxy.thaw).start()


SILENCES: dict[str, Silence] = {
    "black hole": black_hole_for_a_while,
    "frozen": frozen_for_a_while,
    "half open": lambda proxy: proxy.half_open(),
    "silent before it is asked": lambda proxy: proxy.cut_before("B", then="silence"),
    "silent after it did": lambda proxy: proxy.cut_after_forwarding("S", then="silence"),
    "silent behind the rows": lambda proxy: proxy.cut_before_reply("C", then="silence"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("short_of_patience")
@pytest.mark.parametrize("silence", SILENCES)
@pytest.mark.parametrize("act", [one, two_at_once])
def test_where_no_answer_comes_it_is_asked_again_over_another_connection(
    ledger: PgLedger, proxy: Proxy, act: Callable[[Appender], None], silence: str
) -> None:
    appender = Appender(ledger.open(proxy.url))
    act(appender)
    SILENCES[silence](proxy)
    begun = time.monotonic()
    act(appender)
    assert SHORT <= time.monotonic() - begun < 10
    entries = ledger.check()
    are_once(entries, appender.told)
    assert len(entries) == len(appender.told)


@pytest.mark.slow
@pytest.mark.usefixtures("short_of_patience")
def test_where_no_answer_comes_at_all_it_is_said_that_nothing_is_known(
    ledger: PgLedger, proxy: Proxy
) -> None:
    """Bounded waiting; and then the truth can be read."""
    session = ledger.open(with_parameters(proxy.url, connect_timeout="2"), patience=1)
    appender = Appender(session)
    appender.append()
    proxy.black_hole()
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match="not known whether it was stored"):
        appender.append()
    assert time.monotonic() - begun < 6
    proxy.heal()
    assert session.log.size() == 1
    appender.append()
    are_once(ledger.check(), appender.told)


@pytest.mark.slow
def test_as_soon_as_the_server_is_back_it_goes_on(ledger: PgLedger, proxy: Proxy) -> None:
    """However long it was away: nobody waits out a pause that grew with each attempt."""
    session = ledger.open(proxy.url, patience=0.4)
    appender = Appender(session)
    appender.append()
    proxy.refuse()
    proxy.cut_all()
    end = time.monotonic() + 3.3
    while time.monotonic() < end:
        with pytest.raises(StoreUnavailable, match="refused"):
            session.log.size()
    proxy.welcome()
    appender.append()
    are_once(ledger.check(), appender.told)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="an option of Linux")
def test_the_system_is_asked_to_look_whether_the_other_side_is_there(ledger: PgLedger) -> None:
    """A loop-back interface loses nothing, so of this only the setting can be seen."""
    session = ledger.open(with_parameters(ledger.url, tcp_user_timeout="7000"))
    with (
        session.database._connection(1) as connection,
        socket.socket(fileno=os.dup(connection.fileno())) as plug,
    ):
        options = [
            plug.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
            plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
            plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
        ]
    assert options == [1, 10, 5, 3, 7_000]
