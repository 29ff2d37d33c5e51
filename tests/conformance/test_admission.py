"""The bound on attempts at once (D1, D2): the local one, the shared one, and both behind each other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Barrier
from typing import Any

import pytest
from admission_checks import forbid_more_slots_than, original_clock
from backends import PostgresBackend
from histories import CONVERSATION, SCOPE, lines
from kept_processes import wait_until

from compaction_ledger import ExtractiveSummarizer, Ledger, composition, postgres_parts
from compaction_ledger.domain.errors import (
    InvalidId,
    InvalidSetting,
    LedgerError,
    StoreError,
    StoreUnavailable,
)
from compaction_ledger.domain.ports import Admission
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.admission.both import BothAdmission
from compaction_ledger.infrastructure.admission.local import LocalAdmission
from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database, Lost
from compaction_ledger.settings import Settings

Leave = Callable[[], None]
Make = Callable[[int], Admission]
LEASE, TICKET = 60, 10
"""Seconds, as they are by default."""


@dataclass
class Shared:
    """A database, and processes (as it were) that share its slots. Their clock is set by the test."""

    store: PostgresBackend
    opened: list[SharedAdmission] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = self.store.database()
        self.advance = self.store.clock.advance

    def process(self, limit: int = 1, holder: str = "worker", **values: Any) -> SharedAdmission:
        """One more process."""
        admission = SharedAdmission(self.database, limit, holder, **values)
        self.opened.append(admission)
        return admission

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query says."""
        return self.database.call(self.database.sql(query))

    def close(self) -> None:
        for admission in self.opened:
            admission.close()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    store = PostgresBackend(tmp_path)
    shared = Shared(store)
    yield shared
    shared.close()
    store.close()


@pytest.fixture(params=["local", "shared", "both, local binds", "both, shared binds"])
def make(request: pytest.FixtureRequest) -> Make:
    """What makes an admission with a bound, of each kind."""
    if request.param == "local":
        return LocalAdmission
    shared: Shared = request.getfixturevalue("shared")
    if request.param == "shared":
        return shared.process
    if request.param == "both, local binds":
        return lambda limit: BothAdmission(LocalAdmission(limit), shared.process(100))
    return lambda limit: BothAdmission(LocalAdmission(100), shared.process(limit))


def taken(admission: Admission) -> Leave:
    """Take a slot that must be free."""
    leave = admission.admit()
    assert leave is not None
    return leave


# --- the port ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_given_all_slots_taken_when_admitted_then_not_now(make: Make) -> None:
    admission = make(2)
    first = taken(admission)
    taken(admission)

    assert admission.admit() is None
    assert admission.admit() is None
    first()
    taken(admission)
    assert admission.admit() is None


def test_given_a_slot_given_back_twice_when_admitted_then_the_bound_still_holds(make: Make) -> None:
    admission = make(2)
    first = taken(admission)
    taken(admission)

    first()
    first()

    taken(admission)
    first()
    assert admission.admit() is None


def test_given_many_threads_when_they_rush_then_the_bound_holds_and_all_comes_back(
    make: Make,
) -> None:
    admission = make(3)
    start, lock = Barrier(8), threading.Lock()
    inside, most, grants = [0], [0], [0]

    def rush(_: int) -> None:
        start.wait(20)
        for _ in range(40):
            leave = admission.admit()
            if leave is None:
                continue
            with lock:
                inside[0] += 1
                grants[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0)
            with lock:
                inside[0] -= 1
            leave()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(rush, range(8)))

    assert 0 < most[0] <= 3
    assert grants[0] > 0
    again = [taken(admission) for _ in range(3)]
    assert admission.admit() is None
    assert len(again) == 3


@pytest.mark.parametrize("limit", [0, -1])
def test_given_no_slot_at_all_when_made_then_it_is_refused(make: Make, limit: int) -> None:
    with pytest.raises(InvalidSetting, match="admission limit"):
        make(limit)


# --- both ----------------------------------------------------------------------------------------------


class Failing:
    """An admission whose store cannot be asked."""

    def admit(self) -> Leave | None:
        raise StoreUnavailable("gone")


class Nothing:
    """An admission without a free slot, which counts how often it was asked."""

    asked = 0

    def admit(self) -> Leave | None:
        self.asked += 1
        return None


def test_given_the_shared_bound_says_not_now_when_admitted_then_the_local_slot_is_free() -> None:
    local = LocalAdmission(1)

    assert BothAdmission(local, Nothing()).admit() is None
    assert local.in_use == 0


def test_given_no_local_slot_when_admitted_then_the_shared_bound_is_not_asked() -> None:
    """Nobody takes a place in the queue that this process could not use."""
    local, behind = LocalAdmission(1), Nothing()
    taken(local)

    assert BothAdmission(local, behind).admit() is None
    assert behind.asked == 0


def test_given_the_shared_store_fails_when_admitted_then_it_is_raised_and_nothing_is_held() -> None:
    local = LocalAdmission(1)

    with pytest.raises(StoreUnavailable):
        BothAdmission(local, Failing()).admit()
    assert local.in_use == 0


def test_given_giving_back_fails_when_left_then_the_local_slot_is_free_all_the_same() -> None:
    class Stuck:
        def admit(self) -> Leave | None:
            def leave() -> None:
                raise OSError("no")

            return leave

    local = LocalAdmission(1)
    leave = taken(BothAdmission(local, Stuck()))

    with pytest.raises(OSError, match="no"):
        leave()
    assert local.in_use == 0


# --- leases --------------------------------------------------------------------------------------------


def test_given_a_holder_that_died_when_its_lease_is_over_then_the_slot_is_free(
    shared: Shared,
) -> None:
    dead, other = shared.process(lease_seconds=LEASE), shared.process()
    taken(dead)

    shared.advance(LEASE - 0.000_001)
    assert other.admit() is None
    assert other.in_use() == 1
    shared.advance(0.000_001)
    assert other.in_use() == 0
    taken(other)


@pytest.mark.slow
def test_given_a_living_holder_when_time_passes_then_its_slots_are_renewed_together(
    shared: Shared,
) -> None:
    living, other = shared.process(2, lease_seconds=0.3), shared.process(2)
    taken(living)
    taken(living)

    for _ in range(10):
        shared.advance(0.29)
        now = shared.store.clock.now
        wait_until(
            lambda now=now: (  # type: ignore[misc]
                shared.rows("SELECT renewed_at FROM {schema}.admission_slots") == [(now,), (now,)]
            )
        )
        assert other.admit() is None


def test_given_no_slot_held_when_looked_for_then_no_thread_renews(shared: Shared) -> None:
    def threads() -> int:
        return sum(thread.name == "compaction-ledger slots" for thread in threading.enumerate())

    wait_until(lambda: threads() == 0)
    admission = shared.process(2)
    first, second = taken(admission), taken(admission)
    assert threads() == 1
    first()
    time.sleep(0.05)
    assert threads() == 1
    second()
    wait_until(lambda: threads() == 0)
    taken(admission)
    assert threads() == 1
    admission.close()
    wait_until(lambda: threads() == 0)


def test_given_a_slot_lost_to_another_when_the_late_holder_leaves_then_the_others_stays(
    shared: Shared,
) -> None:
    """The attempt goes on: what it may do is decided by its claim (A4)."""
    late, other = shared.process(), shared.process()
    leave = taken(late)
    shared.advance(LEASE)
    taken(other)

    late._slots._settle()  # it comes back, and renews
    assert late._slots._held == set()
    leave()

    assert other.in_use() == 1
    assert late.admit() is None


def test_given_a_lease_over_and_nobody_came_when_renewed_then_it_goes_on(shared: Shared) -> None:
    late, other = shared.process(), shared.process()
    taken(late)
    shared.advance(2 * LEASE)
    assert other.in_use() == 0

    late._slots._settle()

    assert other.in_use() == 1
    assert other.admit() is None


def test_given_a_clock_set_back_when_asked_then_a_dead_holders_slot_is_over_after_its_lease(
    shared: Shared,
) -> None:
    dead, waiting, other = shared.process(), shared.process(), shared.process()
    taken(dead)
    assert waiting.admit() is None
    shared.advance(-7_200)

    assert other.admit() is None  # from now on they count anew
    assert shared.process().waiting() == 2
    shared.advance(TICKET)
    assert shared.process().waiting() == 0
    shared.advance(LEASE - TICKET)
    taken(other)


# --- faults of the store -------------------------------------------------------------------------------


def test_given_the_answer_is_lost_when_admitted_then_one_slot_is_taken(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Database.try_call
    lost = [2]

    def lose(database: Database, statement: Any, parameters: Sequence[Any]) -> Any:
        answer = asked(database, statement, parameters)
        if lost[0]:
            lost[0] -= 1
            raise Lost(StoreUnavailable("the connection went"))
        return answer

    admission = shared.process(2)
    monkeypatch.setattr(Database, "try_call", lose)
    leave = taken(admission)

    assert admission.in_use() == 1
    leave()
    assert admission.in_use() == 0


class Outage(list[Exception]):
    """What the database answers, from the first; as if nothing else could be had of it."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []
        """By which threads it was met."""


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    errors = Outage()
    asked = Database.try_call

    def fail(database: Database, statement: Any, parameters: Sequence[Any]) -> Any:
        if errors:
            errors.met.append(threading.current_thread().name)
            raise errors[0]
        return asked(database, statement, parameters)

    monkeypatch.setattr(Database, "try_call", fail)
    return errors


def test_given_the_store_cannot_be_asked_when_admitted_then_it_is_a_store_error(
    shared: Shared, outage: Outage
) -> None:
    admission = shared.process()
    outage.append(StoreUnavailable("gone"))

    for ask in (admission.admit, admission.in_use, admission.waiting):
        with pytest.raises(StoreError, match="gone"):
            ask()


@pytest.mark.slow
@pytest.mark.parametrize("error", [StoreUnavailable("gone"), Lost(StoreUnavailable("gone"))])
def test_given_an_outage_when_it_ends_then_slots_are_renewed_and_those_given_back_are_free(
    shared: Shared, outage: Outage, error: Exception
) -> None:
    admission = shared.process(3, lease_seconds=0.5)
    kept, given_back = taken(admission), taken(admission)
    outage.append(error)
    given_back()  # raises nothing: it must not stand in the way of what an attempt came to
    this = threading.current_thread().name
    wait_until(lambda: any(name != this for name in outage.met))  # the thread that renews meets it
    outage.clear()

    wait_until(lambda: admission.in_use() == 1)
    shared.advance(0.49)
    now = shared.store.clock.now
    wait_until(lambda: shared.rows("SELECT renewed_at FROM {schema}.admission_slots") == [(now,)])
    kept()
    assert admission.in_use() == 0


def test_given_an_outage_when_closed_then_it_is_no_error_and_the_lease_decides(
    shared: Shared, outage: Outage
) -> None:
    admission, other = shared.process(), shared.process()
    leave = taken(admission)
    outage.append(StoreUnavailable("gone"))
    admission.close()
    outage.clear()

    leave()
    assert other.admit() is None
    shared.advance(LEASE)
    taken(other)


def test_given_no_admission_table_when_admitted_then_it_is_named(shared: Shared) -> None:
    admission = shared.process()
    shared.rows("DELETE FROM {schema}.admission")

    with pytest.raises(LedgerError, match="damaged"):
        admission.admit()


# --- the queue -----------------------------------------------------------------------------------------


def test_given_a_queue_when_a_slot_is_given_back_then_it_goes_to_the_first(shared: Shared) -> None:
    holder, first, second, third = (shared.process() for _ in range(4))
    leave = taken(holder)
    for one in (first, second, third):
        assert one.admit() is None
        shared.advance(0.5)
    assert third.waiting() == 3
    leave()

    assert third.admit() is None
    assert second.admit() is None
    assert holder.admit() is None  # it stands at the end now
    leave = taken(first)
    assert second.admit() is None
    leave()
    assert third.admit() is None
    leave = taken(second)
    leave()
    leave = taken(third)
    leave()
    taken(holder)
    assert holder.waiting() == 0


def test_given_more_free_slots_than_those_who_wait_when_admitted_then_nobody_has_to_wait(
    shared: Shared,
) -> None:
    first, *others = (shared.process(3) for _ in range(4))
    leaves = [taken(first) for _ in range(3)]
    assert others[0].admit() is None
    for leave in leaves:
        leave()

    taken(others[1])
    taken(others[2])
    assert first.admit() is None  # the last free one is for who waits
    taken(others[0])


def test_given_a_ticket_not_asked_for_again_when_its_time_is_over_then_it_is_dropped(
    shared: Shared,
) -> None:
    holder, gone, next_one = (shared.process(ticket_seconds=TICKET) for _ in range(3))
    leave = taken(holder)
    assert gone.admit() is None
    shared.advance(1)
    assert next_one.admit() is None
    leave()
    shared.advance(TICKET - 1.000_001)
    assert next_one.admit() is None  # it is the other's turn

    shared.advance(0.000_001)
    taken(next_one)
    assert next_one.waiting() == 0


@pytest.mark.slow
def test_given_a_place_kept_by_asking_when_others_come_then_it_is_still_the_first(
    shared: Shared,
) -> None:
    holder, first, second = (shared.process() for _ in range(3))
    leave = taken(holder)
    for _ in range(20):
        for one in (first, second):
            assert one.admit() is None
        shared.advance(TICKET * 0.8)
        holder._slots._settle()
    leave()

    assert second.admit() is None
    taken(first)


def test_given_a_process_that_closes_when_it_waited_then_its_place_is_free(shared: Shared) -> None:
    holder, first, second = (shared.process() for _ in range(3))
    leave = taken(holder)
    assert first.admit() is None
    assert second.admit() is None
    leave()
    assert second.admit() is None

    first.close()

    taken(second)


def test_given_a_process_that_closes_when_it_held_slots_then_they_are_free(shared: Shared) -> None:
    admission, other = shared.process(2), shared.process(2)
    taken(admission)
    taken(admission)

    admission.close()

    assert other.in_use() == 0
    assert [taken(other) for _ in range(2)]


def test_given_threads_of_one_process_when_they_wait_then_they_stand_in_the_queue_once(
    shared: Shared,
) -> None:
    """And two processes of one name stand in it twice."""
    holder, other = shared.process(holder="same"), shared.process(holder="same")
    leave = taken(holder)
    for _ in range(3):
        assert holder.admit() is None
        assert other.admit() is None

    assert shared.rows("SELECT holder FROM {schema}.admission_tickets") == [("same",), ("same",)]
    leave()
    assert other.admit() is None
    taken(holder)


def test_given_an_eager_poller_when_nothing_has_changed_then_it_costs_no_write(
    shared: Shared,
) -> None:
    holder, eager = shared.process(), shared.process()
    leave = taken(holder)
    assert eager.admit() is None
    stored = "SELECT a.places, t.last_asked FROM {schema}.admission a, {schema}.admission_tickets t"
    before = shared.rows(stored)

    for _ in range(10):
        shared.advance(TICKET / 100)
        assert eager.admit() is None
    assert shared.rows(stored) == before
    shared.advance(0.000_001)
    assert eager.admit() is None
    assert shared.rows(stored) != before
    leave()
    taken(eager)


@pytest.mark.slow
def test_given_pollers_of_different_eagerness_when_they_compete_then_each_gets_its_share(
    shared: Shared,
) -> None:
    """Nobody starves (D2): 20 who ask every second to every eighth, for two slots."""
    random = Random(7)
    pollers, ticks = 20, 300
    processes = [shared.process(2, f"p{n}") for n in range(pollers)]
    leaves: list[Leave | None] = [None] * pollers
    until, asked_since = [0] * pollers, [0] * pollers
    grants, longest = [0] * pollers, [0] * pollers
    for now in range(ticks):
        shared.advance(1)
        for n in random.sample(range(pollers), pollers):
            if now < until[n]:
                continue
            leave = leaves[n]
            if leave is not None:
                leave()
                asked_since[n] = now
            leaves[n] = processes[n].admit()
            if leaves[n] is None:
                until[n] = now + 1 + n * 8 // pollers  # the eagerness
                continue
            grants[n] += 1
            longest[n] = max(longest[n], now - asked_since[n])
            until[n] = now + random.randint(2, 6)

    fair = sum(grants) / pollers
    assert fair > 4
    assert min(grants) >= fair / 2, grants
    # Ten turns on each slot, each as long as an attempt and the time until the next one asks.
    assert max(longest) <= pollers / 2 * (6 + 8), longest


@pytest.mark.slow
def test_given_pollers_in_threads_when_they_compete_then_each_gets_its_share(
    shared: Shared,
) -> None:
    original_clock(shared.database)
    forbid_more_slots_than(shared.database, 2)
    pollers = 20
    grants, longest = [0] * pollers, [0] * pollers
    enough, end = 10 * pollers, time.monotonic() + 60

    def poll(n: int) -> None:
        process, pause = shared.process(2), 0.001 * (1 + n * 4)
        since = sum(grants)
        while sum(grants) < enough and time.monotonic() < end:
            leave = process.admit()
            if leave is None:
                time.sleep(pause)
                continue
            grants[n] += 1
            longest[n] = max(longest[n], sum(grants) - since)
            time.sleep(0.002)
            leave()
            since = sum(grants)

    with ThreadPoolExecutor(pollers) as threads:
        list(threads.map(poll, range(pollers)))

    fair = sum(grants) / pollers
    assert fair >= 10
    assert min(grants) >= fair / 2, grants
    # In turns, not in seconds: a busy machine holds up all of them.
    assert max(longest) < 6 * pollers, longest


# --- limits that differ --------------------------------------------------------------------------------


def test_given_limits_that_differ_when_admitted_then_each_call_goes_by_its_own(
    shared: Shared,
) -> None:
    low, high = shared.process(2), shared.process(4)
    first = taken(low)
    taken(high)
    assert low.admit() is None
    shared.advance(TICKET)  # it does not wait any more

    taken(high)
    taken(high)
    assert high.admit() is None
    assert low.in_use() == 4
    first()
    assert low.admit() is None  # three are still more than two


def test_given_a_lower_limit_waits_when_the_higher_asks_then_it_is_not_let_past(
    shared: Shared,
) -> None:
    """Otherwise those with the lower limit would starve for as long as a deployment rolls."""
    low, high, higher = shared.process(1), shared.process(3), shared.process(3)
    leaves = [taken(high), taken(high)]
    assert low.admit() is None

    assert higher.admit() is None
    leaves.pop()()
    taken(higher)  # two are free for it, and one waits before it
    assert high.admit() is None
    leaves.pop()()
    assert low.admit() is None


# --- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"lease_seconds": 0}, "slot lease"),
        ({"lease_seconds": float("nan")}, "slot lease"),
        ({"lease_seconds": 86_401}, "slot lease"),
        ({"ticket_seconds": -1}, "ticket"),
    ],
)
def test_given_a_wrong_length_of_time_when_made_then_it_is_refused(
    shared: Shared, values: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidSetting, match=place):
        shared.process(**values)


@pytest.mark.parametrize("holder", ["", "a\x00b", "\ud800"])
def test_given_a_name_that_cannot_be_stored_when_made_then_it_is_refused(
    shared: Shared, holder: str
) -> None:
    with pytest.raises(InvalidId, match="holder"):
        shared.process(holder=holder)


def test_given_no_shared_bound_in_the_settings_when_opened_then_there_is_only_the_local_one(
    shared: Shared,
) -> None:
    settings = Settings()
    assert postgres_parts.shared_admission(shared.database, settings, "w") is None


def test_given_a_shared_bound_in_the_settings_when_made_then_it_goes_by_them(
    shared: Shared,
) -> None:
    settings = Settings(shared_attempts_at_once=1, slot_lease_seconds=5)
    admission = postgres_parts.shared_admission(shared.database, settings, "w")
    assert admission is not None
    shared.opened.append(admission)
    taken(admission)

    assert admission.admit() is None
    assert shared.rows("SELECT lease, holder FROM {schema}.admission_slots") == [(5_000_000, "w")]


def test_given_a_shared_bound_when_a_ledger_has_no_server_then_it_is_refused(
    tmp_path: Path,
) -> None:
    settings = Settings(shared_attempts_at_once=1)
    arguments: Any = {
        "policy": WindowPolicy(),
        "registry": DEFAULT_REGISTRY,
        "settings": settings,
    }

    with pytest.raises(InvalidSetting, match="shared_attempts_at_once: needs a ledger on Postgre"):
        composition.open_memory(**arguments)
    with pytest.raises(InvalidSetting, match="shared_attempts_at_once"):
        composition.open_sqlite(tmp_path / "ledger.db", **arguments)
    assert not (tmp_path / "ledger.db").exists()


def test_given_no_shared_slot_when_a_ledger_compacts_then_it_costs_nothing_and_closing_leaves_the_queue(
    shared: Shared,
) -> None:
    """D2: no failure, no event, no attempt."""
    leave = taken(shared.process())
    settings = Settings(shared_attempts_at_once=1)
    with Ledger.open(
        shared.store.url, summarizer=ExtractiveSummarizer(), settings=settings
    ) as ledger:
        ledger.transcripts.append(SCOPE, CONVERSATION, *lines(30))
        report = ledger.compact(CONVERSATION, scope=SCOPE)
        assert [outcome.result for outcome in report.outcomes] == ["not_admitted"]
        assert ledger.size() == 0
        assert shared.process().waiting() == 1
        leave()
        assert ledger.compact(CONVERSATION, scope=SCOPE).completed == 1
        assert shared.process().in_use() == 0
        taken(shared.process())
        ledger.transcripts.append(SCOPE, "another", *lines(30))
        assert ledger.compact("another", scope=SCOPE).completed == 0
        assert shared.process().waiting() == 1
    assert shared.process().waiting() == 0


# --- other surroundings --------------------------------------------------------------------------------


@pytest.mark.slow
def test_given_a_database_of_another_isolation_when_many_rush_then_the_bound_holds(
    shared: Shared,
) -> None:
    """Under REPEATABLE READ a function does not see what was committed while it waited for its lock."""
    original_clock(shared.database)
    forbid_more_slots_than(shared.database, 2)
    url = f"{shared.store.url}&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
    strict = Database(parse_address(url))
    assert strict.call("SHOW transaction_isolation") == [("repeatable read",)]
    processes = [SharedAdmission(strict, 2, "w") for _ in range(8)]

    def rush(process: SharedAdmission) -> None:
        for _ in range(10):
            while (leave := process.admit()) is None:
                pass
            leave()

    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(rush, processes))
        wait_until(lambda: processes[0].in_use() == 0)
    finally:
        for process in processes:
            process.close()
        strict.close()


# Newer versions of Python warn of it; the ledger is made to be forked with threads at work.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_given_a_fork_while_a_slot_is_held_when_the_child_goes_on_then_the_slot_is_the_parents(
    shared: Shared,
) -> None:
    admission = shared.process(2)
    leave = taken(admission)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        says = b"error"
        try:
            leave()
            own = admission.admit()
            says = f"{admission.in_use()} {len(admission._slots._held)}".encode()
            if own:
                own()
            admission.close()
        finally:
            os.write(tell, says)
            os._exit(0)
    os.close(tell)
    said = os.read(told, 100)
    os.close(told)
    os.waitpid(child, 0)

    assert said == b"2 1"
    assert admission.in_use() == 1
    leave()
    assert admission.in_use() == 0
