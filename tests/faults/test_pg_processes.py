"""Processes on PostgreSQL that are killed at every step, stopped, forked, or started all at once."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest
from backends import START, DatabaseClock
from histories import CONVERSATION, LEASE, SCOPE, Worker, key_of, made_up_job
from pg_bouncer import running_bouncer
from pg_ledgers import PgLedger, ledger_on
from pg_proxy import Fault, Proxy
from pg_tasks import running
from processes import Process, output, tell, wait_for

from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    LeaseExpired,
    NotTheHolder,
)

pytestmark = pytest.mark.slow

JOB = made_up_job()
SECOND = 1_000_000


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


# --- kill -9 at every step ----------------------------------------------------------------------


def before(step: bytes) -> Callable[[Proxy], Fault]:
    """The step's event does not reach the server."""
    return lambda proxy: proxy.cut_before("B", containing=step, then="silence")


def after(index: int) -> Callable[[Proxy], Fault]:
    """The event with this index is stored, and the worker does not hear of it."""
    answer = b"\x00\x00\x00\x01%d" % index
    return lambda proxy: proxy.cut_before_reply("D", containing=answer, then="silence")


SLOW = pytest.mark.slow
STEPS = [
    pytest.param(before(b"RangeClaimed@1"), 0, id="before the claim", marks=SLOW),
    pytest.param(after(0), 1, id="after the claim"),
    pytest.param(before(b"AttemptStarted@1"), 1, id="before the start", marks=SLOW),
    pytest.param(after(1), 2, id="after the start"),
    pytest.param(before(b"RangeCompleted@1"), 2, id="before the finish", marks=SLOW),
    pytest.param(after(2), 3, id="after the finish"),
]


@pytest.mark.parametrize(("moment", "stored"), STEPS)
def test_what_a_killed_worker_held_is_taken_over_after_its_lease(
    ledger: PgLedger, proxy: Proxy, moment: Callable[[Proxy], Fault], stored: int
) -> None:
    clock = DatabaseClock(ledger.address)
    session = ledger.open()
    other = Worker(session.parts, JOB, "other")
    with running("complete", proxy.url) as killed:
        wait_for(killed, "ready")
        fault = moment(proxy)
        tell(killed)
        fault.wait()
    assert session.log.size() == stored
    end = START + LEASE
    if 0 < stored < 3:
        with pytest.raises(AlreadyClaimed) as refusal:
            other.claim()
        assert refusal.value.holder == "held"
        end = refusal.value.expires_at
        assert START + LEASE <= end < START + LEASE + SECOND
        clock.now = end - 1
        with pytest.raises(AlreadyClaimed):
            other.claim()
    clock.now = end
    if stored == 3:
        with pytest.raises(AlreadyCompleted):
            other.claim()
    else:
        other.claim()
        attempts = session.log.load(key_of(JOB)).attempts.get(JOB.identity, 0)
        assert attempts == (stored == 2)  # A6
        other.start()
        other.finish()
    ledger.check()


FEW_AND_ALL = pytest.mark.parametrize(
    "few", [pytest.param(True, id="few"), pytest.param(False, id="all", marks=SLOW)]
)


@FEW_AND_ALL
@pytest.mark.parametrize("task", [pytest.param("follow", marks=SLOW), "rebuild"])
def test_a_projector_killed_at_any_step_leaves_what_another_makes_right(
    ledger: PgLedger, proxy: Proxy, task: str, few: bool
) -> None:
    """At each answer that it waits for: the server has done what it was asked, and it hears nothing of it."""
    session = ledger.open()

    def begun() -> AbstractContextManager[Process]:
        number = session.log.size()
        Worker(session.parts, made_up_job(10 * number), f"w{number}").complete()
        return running(task, proxy.url)

    with begun() as process:
        wait_for(process, "ready")
        proxy.reset_counters()
        tell(process)
        wait_for(process, "done")
        steps = [(kind, nth) for kind in "QS" for nth in range(proxy.client_messages[kind])]
    assert len(steps) > 4
    for kind, nth in steps[1 :: len(steps) // 2] if few else steps:
        with begun() as killed:
            wait_for(killed, "ready")
            fault = proxy.cut_after_forwarding(kind, nth + 1, then="silence")
            tell(killed)
            fault.wait()
        ledger.check()


def test_a_worker_that_is_stopped_in_mid_append_holds_nobody_up(ledger: PgLedger) -> None:
    chance = random.Random(1)
    session = ledger.open()
    slowest = 0.0
    with running("keep_appending", ledger.url) as stopped:
        wait_for(stopped, "appending")
        for number in range(20):
            time.sleep(chance.uniform(0, 0.02))
            stopped.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            Worker(session.parts, made_up_job(10 * (10**6 + number)), f"w{number}").claim()
            slowest = max(slowest, time.monotonic() - begun)
            stopped.send_signal(signal.SIGCONT)
    assert slowest < 5
    assert len(ledger.check()) > 20


# --- stopped past the lease ---------------------------------------------------------------------


@pytest.mark.parametrize("taken_over", [True, False])
def test_a_worker_stopped_past_its_lease_is_refused(ledger: PgLedger, taken_over: bool) -> None:
    session = ledger.open()
    with running("finish_late", ledger.url, SECOND // 2) as stopped:
        wait_for(stopped, "started")
        stopped.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        if taken_over:
            Worker(session.parts, JOB, "other").complete()
        tell(stopped)
        stopped.send_signal(signal.SIGCONT)
        code = (NotTheHolder if taken_over else LeaseExpired).code
        assert wait_for(stopped, "refused") == [code]
    state = session.log.load(key_of(JOB))
    completions = [completion.by for completion in state.completions.values()]
    assert completions == (["other-claim"] if taken_over else [])
    assert dict(state.open) == {}
    ledger.check()


# --- started all at once ------------------------------------------------------------------------


def open_together(ledger: PgLedger, url: str, kill: int = 0, seconds: float = 0) -> None:
    """Ten processes open a database without tables; all come through, but for those that are killed."""
    with running("open_together", url, 10, kill, seconds) as opening:
        said = output(opening).split()
    lived = said.count("0")
    assert lived + said.count(str(int(signal.SIGKILL))) == 10
    assert lived >= 10 - kill
    session = ledger.open()
    if lived:
        found = session.parts.transcripts.conversation(SCOPE, CONVERSATION).messages
        assert lived <= len(found) <= 10
    assert ledger.execute("SELECT count(*) FROM {schema}.log_head") == [(1,)]
    versions = ledger.execute("SELECT version FROM {schema}.schema_migrations ORDER BY version")
    assert [version for (version,) in versions] == list(range(1, len(versions) + 1))
    assert len(ledger.check()) >= lived  # one origin, among others


def test_ten_processes_open_an_empty_database_at_once(pg_server: str) -> None:
    with ledger_on(pg_server, made=False) as ledger:
        open_together(ledger, ledger.url)


@pytest.mark.slow
def test_ten_processes_open_an_empty_database_at_once_through_a_pooler(pg_server: str) -> None:
    with (
        running_bouncer(pg_server, pool_size=3) as bouncer,
        ledger_on(pg_server, made=False) as ledger,
    ):
        open_together(ledger, ledger.at(bouncer.url(database_of(pg_server))))


def database_of(url: str) -> str:
    """The name of the database that a URL names."""
    return urlsplit(url).path.lstrip("/")


@pytest.mark.slow
def test_ten_processes_open_an_empty_database_and_some_are_killed(pg_server: str) -> None:
    for tenths in range(20):
        with ledger_on(pg_server, made=False) as ledger:
            open_together(ledger, ledger.url, kill=5, seconds=tenths / 50)


def test_who_is_killed_in_mid_migration_leaves_nothing_behind(pg_server: str) -> None:
    """It holds the lock of those who migrate until the server notices that it is gone."""
    with Proxy(pg_server) as proxy, ledger_on(pg_server, made=False) as ledger:
        with running("open_first", ledger.at(proxy.url)) as killed:
            wait_for(killed, "ready")
            making = b'CREATE TABLE "%b".stored_events' % ledger.address.schema.encode()
            fault = proxy.cut_after_forwarding("Q", containing=making, then="silence")
            tell(killed)
            fault.wait()
            with running("open_first", ledger.url) as other:
                wait_for(other, "ready")
                tell(other)
                wait_for(other, "opened")
        ledger.check()


# --- forked -------------------------------------------------------------------------------------


def test_a_forked_process_has_connections_of_its_own(ledger: PgLedger) -> None:
    with running("fork", ledger.url) as process:
        assert wait_for(process, "child") == ["6"]
        tell(process)
        assert wait_for(process, "parent") == ["6"]
        assert wait_for(process, "status") == ["0"]
        assert wait_for(process, "end") == ["12"]
        assert output(process) == ""
    assert len(ledger.check()) == 12
