"""Clocks that are wrong or jump, and a clock that is read behind the lock (A4, A5)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread

import pytest
from backends import START, DatabaseClock
from histories import LEASE, TRUNCATED, Worker, key_of, made_up_job
from kept_processes import wait_until
from pg_clocks import WrongClock, server_with_clock, wrong_clock
from pg_ledgers import PgLedger, Session, ledger_on
from pg_tasks import started
from processes import kill_all, output

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import AlreadyClaimed, LeaseExpired, NotTheHolder, Refused
from compaction_ledger.domain.events import AttemptFailed, ClaimReleased
from compaction_ledger.usecases.range_session import Outcome

JOB = made_up_job()
SECOND = 1_000_000
HOUR = 3_600
DAY = 24 * HOUR


@pytest.fixture
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """A ledger on the server that all tests share."""
    with ledger_on(pg_server) as one:
        yield one


# --- the clock is read after the lock -----------------------------------------------------------


@dataclass
class Waiting:
    """A ledger whose clock is ours, and a worker's step that waits for the head."""

    ledger: PgLedger
    clock: DatabaseClock
    session: Session

    def step(self, do: Callable[[], Outcome], now: int) -> Outcome:
        """Have it wait for the head while it comes to be ``now``; what comes of it."""
        with ThreadPoolExecutor(1) as pool:
            with self.ledger.holding_the_head():
                doing = pool.submit(do)
                wait_until(lambda: len(self.ledger.waiting_for_the_head()) == 1)
                self.clock.now = now
            return doing.result()


@pytest.fixture
def waiting(ledger: PgLedger) -> Waiting:
    """The ledger, at the beginning of the time."""
    return Waiting(ledger, DatabaseClock(ledger.address), ledger.open())


def test_a_finish_that_waited_beyond_its_lease_is_late(waiting: Waiting) -> None:
    """Decided in time, its turn came too late: it is refused, and the expiry recorded."""
    holder = Worker(waiting.session.parts, JOB, "holder")
    holder.claim()
    holder.start()
    with pytest.raises(LeaseExpired):
        waiting.step(holder.finish, START + LEASE)
    *_, failed, released = [entry.fact for entry in waiting.ledger.check()]
    assert isinstance(failed, AttemptFailed)
    assert isinstance(released, ClaimReleased)
    assert (failed.failure, released.reason) == ("lease_expired", "expired")


def test_a_finish_that_waited_within_its_lease_is_accepted(waiting: Waiting) -> None:
    holder = Worker(waiting.session.parts, JOB, "holder")
    holder.claim()
    holder.start()
    assert waiting.step(holder.finish, START + LEASE - 1).indices == [2]
    assert waiting.ledger.check()[-1].recorded_at == START + LEASE - 1


def test_a_start_that_waited_beyond_its_lease_costs_no_attempt(waiting: Waiting) -> None:
    holder = Worker(waiting.session.parts, JOB, "holder")
    holder.claim()
    with pytest.raises(LeaseExpired):
        waiting.step(holder.start, START + LEASE)
    assert waiting.session.log.load(key_of(JOB)).attempts == {}  # A6
    waiting.ledger.check()


def test_a_take_over_is_judged_by_the_clock_behind_the_lock(waiting: Waiting) -> None:
    """The clock is set back while it waits: the lease that seemed to be over is not."""
    Worker(waiting.session.parts, JOB, "holder").claim()
    waiting.clock.now = START + LEASE
    other = Worker(waiting.ledger.open().parts, JOB, "other")
    with pytest.raises(AlreadyClaimed):
        waiting.step(other.claim, START + LEASE - 1)
    assert len(waiting.ledger.check()) == 1
    waiting.clock.now = START + LEASE
    other.claim()
    assert len(waiting.ledger.check()) == 3


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_behind_a_reading_that_is_carried_on(
    ledger: PgLedger, jump: int
) -> None:
    """A session asks for the time once a second; what it stores is judged by the database's own."""
    clock = DatabaseClock(ledger.address)
    with Ledger.open(ledger.url) as open_one:
        holder = Worker(open_one._parts, JOB, "holder")
        other = Worker(ledger.open().parts, JOB, "other")
        holder.claim()
        holder.start()
        clock.now = START + jump * SECOND
        if jump > 0:
            with pytest.raises(LeaseExpired):
                holder.finish()
            other.claim()
        else:
            with pytest.raises(AlreadyClaimed):
                other.claim()
            holder.finish()
    ledger.check()


# --- wrong clocks -------------------------------------------------------------------------------


@contextmanager
def jumping(clock: WrongClock, hours: int) -> Iterator[None]:
    """The clock is set anew many times a second, by at most so many hours ahead or behind."""
    chance, over = random.Random(hours), Event()

    def jump() -> None:
        while not over.wait(0.02):
            clock.set(chance.uniform(-hours, hours) * HOUR)

    thread = Thread(target=jump)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def compete(environments: Sequence[Mapping[str, str]], ledger: PgLedger, rounds: int) -> None:
    """Processes work on a few ranges, each in surroundings of its own, with leases that are soon over."""
    workers = [
        started("compete", ledger.url, f"w{n}", n, rounds, 60, 300_000, environment=environment)
        for n, environment in enumerate(environments)
    ]
    try:
        for each in workers:
            assert output(each).split() == ["working", "done"]
    finally:
        kill_all(workers)


@pytest.mark.slow
def test_workers_whose_clocks_are_hours_apart_and_jump(ledger: PgLedger) -> None:
    """Nobody asks them: leases are of the database's time."""
    with ExitStack() as stack:
        clocks = [stack.enter_context(wrong_clock(hours * HOUR)) for hours in (-2, 0, 2)]
        stack.enter_context(jumping(clocks[1], hours=3))
        compete([clock.environment for clock in clocks], ledger, rounds=100)
    kinds = Counter(type(entry.fact).__name__ for entry in ledger.check())
    assert kinds["RangeCompleted"] > 10


@pytest.fixture(scope="module")
def wrong() -> Iterator[tuple[PgLedger, WrongClock]]:
    """A ledger on a server whose clock is set while it runs."""
    with server_with_clock() as (server, clock), ledger_on(server.url()) as ledger:
        yield ledger, clock


@pytest.mark.slow
def test_a_servers_clock_that_jumps_while_a_claim_is_open(
    wrong: tuple[PgLedger, WrongClock],
) -> None:
    """Ahead, the lease is over, and its holder late; back again, the next one's seems to last for ever."""
    ledger, clock = wrong
    session = ledger.open()
    holder, other, third = (Worker(session.parts, JOB, name) for name in ("a", "b", "c"))
    holder.claim()
    holder.start()
    clock.set(2 * HOUR)
    other.claim()
    with pytest.raises(NotTheHolder):
        holder.finish()
    clock.set(0)
    with pytest.raises(AlreadyClaimed):
        third.claim()
    other.start()
    other.finish()
    clock.set(4 * HOUR)
    with pytest.raises(NotTheHolder):
        holder.finish()
    clock.set(0)
    ledger.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "rounds"), [(4, 60), pytest.param(8, 1_000, marks=pytest.mark.slow)]
)
def test_a_servers_clock_that_jumps_all_the_while(
    wrong: tuple[PgLedger, WrongClock], threads: int, rounds: int
) -> None:
    """Never two completions, a third attempt, or a late holder that is accepted, by what is sealed."""
    ledger, clock = wrong
    carrying = ledger.stack.enter_context(Ledger.open(ledger.url))  # the time, for a second
    sessions = [ledger.open().parts, carrying._parts]

    def work(number: int) -> None:
        chance = random.Random(number)
        for step in range(rounds):
            job = made_up_job(10 * chance.randrange(100, 130))
            one = Worker(sessions[number % 2], job, f"w{number}-{step}-{threads}")
            with suppress(Refused):
                one.claim(HOUR * SECOND)
                one.start(1, HOUR * SECOND)
                one.finish(chance.choice((None, TRUNCATED)))

    with jumping(clock, hours=3), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    clock.set(0)
    kinds = Counter(type(entry.fact).__name__ for entry in ledger.check())
    assert kinds["RangeCompleted"] > 4
    assert kinds["ClaimReleased"] > 2
