"""The work list on PostgreSQL: many takers at once, answers that are lost, and what it costs (A8, A9)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from backends import PostgresBackend
from histories import fill

from compaction_ledger.composition import Parts
from compaction_ledger.domain.ports import WorkList
from compaction_ledger.domain.work import Backlog, WorkItem
from compaction_ledger.infrastructure.postgres.database import Database, Lost, Statement, Values

TAKERS = 12
LEASE = 300.0


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[PostgresBackend]:
    store = PostgresBackend(tmp_path)
    yield store
    store.close()


@pytest.fixture
def sessions(backend: PostgresBackend) -> list[Parts]:
    """As many sessions as takers, each with connections of its own."""
    return [backend.open() for _ in range(TAKERS)]


class Held:
    """Who holds what, as the takers know it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: set[tuple[str, str]] = set()
        self.twice: list[tuple[str, str]] = []
        self.served: list[tuple[str, str]] = []

    def take(self, items: Sequence[WorkItem]) -> None:
        with self._lock:
            for item in items:
                place = (item.scope, item.conversation)
                if place in self._held:
                    self.twice.append(place)
                self._held.add(place)
                self.served.append(place)

    def leave(self, item: WorkItem) -> None:
        """Before it is noted: as soon as it is, another may have it."""
        with self._lock:
            self._held.discard((item.scope, item.conversation))


def all_at_once(tasks: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(tasks)) as threads:
        for done in [threads.submit(task) for task in tasks]:
            done.result()


@pytest.mark.slow
def test_nothing_is_taken_twice_at_once(backend: PostgresBackend, sessions: list[Parts]) -> None:
    """While others notice, discover, look again and go away without a word."""
    places = [(f"s{n % 5}", f"c{n}") for n in range(400)]
    for n in range(50):
        fill(sessions[0], 0, f"embedded-{n}")
    held, forgotten = Held(), Counter[str]()

    def taker(number: int) -> Callable[[], None]:
        def work() -> None:
            chance, mine = random.Random(number), sessions[number].work
            in_vain = 0
            while in_vain < 5:
                if chance.random() < 0.1:
                    mine.notice(chance.sample(places, 20))
                if chance.random() < 0.05:
                    mine.discover(sessions[number].transcripts)
                items = mine.take(f"w{number}", chance.randrange(1, 6), LEASE)
                held.take(items)
                in_vain = 0 if items else in_vain + 1
                for item in items:
                    if chance.random() < 0.1:
                        forgotten[item.conversation] += 1
                        continue  # the taker has died
                    held.leave(item)
                    again = backend.clock.now if chance.random() < 0.3 else None
                    mine.looked(item, again, "1")

        return work

    sessions[0].work.notice(places)
    all_at_once([taker(number) for number in range(TAKERS)])
    assert held.twice == []
    assert {place for place in places if place not in held.served} == set()
    assert sessions[0].work.backlog() == Backlog(leased=len(forgotten))
    backend.clock.advance(LEASE)
    again = sessions[0].work.take("w", 1_000, LEASE)
    assert sorted(item.conversation for item in again) == sorted(forgotten)


@pytest.mark.slow
def test_the_small_ones_are_served_in_the_first_rounds(sessions: list[Parts]) -> None:
    sizes = {"huge": 10_000, "ten": 10, "one": 1}
    for scope, count in sizes.items():
        sessions[0].work.notice([(scope, f"c{n}") for n in range(count)])
    held = Held()

    def taker(work: WorkList) -> Callable[[], None]:
        def take() -> None:
            for _ in range(5):
                held.take(work.take("w", 1, LEASE))

        return take

    all_at_once([taker(parts.work) for parts in sessions])
    served = Counter(scope for scope, _ in held.served)
    assert served == {"huge": 5 * TAKERS - 11, "ten": 10, "one": 1}
    assert held.twice == []
    # Each round is one of each scope, and takers overtake each other by no more than there are of them.
    assert "one" in [scope for scope, _ in held.served[: 3 + TAKERS]]
    rest: list[WorkItem] = []
    while items := sessions[0].work.take("w", 2_000, LEASE):
        rest += items
    assert len({item.conversation for item in rest}) == len(rest) == 10_011 - 5 * TAKERS


@pytest.mark.slow
def test_who_notices_and_who_takes_never_wait_in_a_circle(sessions: list[Parts]) -> None:
    """All of them change the same few rows, in all orders."""
    places = [(f"s{n % 4}", f"c{n}") for n in range(40)]

    def task(number: int) -> Callable[[], None]:
        def work() -> None:
            chance, mine = random.Random(number), sessions[number].work
            for _ in range(40):
                mine.notice(chance.sample(places, 30))
                for item in mine.take("w", 10, LEASE):
                    mine.looked(item, None, None)

        return work

    all_at_once([task(number) for number in range(TAKERS)])
    ((deadlocks,),) = _database(sessions[0]).call(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert deadlocks == 0


def _database(parts: Parts) -> Database:
    assert parts.eraser is not None
    work: Any = parts.eraser.stores["work"]  # without its guard
    found = work._database
    assert isinstance(found, Database)
    return found


def test_a_lost_answer_loses_no_lease(
    backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = backend.open().work
    work.notice([("s", "a"), ("s", "b")])
    real, lost = Database.try_call, [True]

    def losing(
        self: Database, statement: Statement, parameters: Sequence[object] = ()
    ) -> list[Values]:
        rows = real(self, statement, parameters)
        if lost.pop() if lost else False:
            raise Lost(OSError("gone"))
        return rows

    monkeypatch.setattr(Database, "try_call", losing)
    items = work.take("w", 1, LEASE)
    assert [item.conversation for item in items] == ["a"]
    assert work.backlog() == Backlog(due=1, leased=1, oldest_due=0)
    work.looked(items[0], None, None)
    assert [item.conversation for item in work.take("w", 2, LEASE)] == ["b"]


def test_a_question_that_never_arrived_is_asked_again(
    backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = backend.open().work
    work.notice([("s", "a")])
    real, lost = Database.try_call, [True]

    def losing(
        self: Database, statement: Statement, parameters: Sequence[object] = ()
    ) -> list[Values]:
        if lost:
            lost.pop()
            raise Lost(OSError("gone"))
        return real(self, statement, parameters)

    monkeypatch.setattr(Database, "try_call", losing)
    assert [item.conversation for item in work.take("w", 1, LEASE)] == ["a"]


@pytest.mark.slow
def test_one_of_many_begins_a_period(sessions: list[Parts]) -> None:
    with ThreadPoolExecutor(TAKERS) as threads:
        found = list(
            threads.map(lambda parts: parts.work.discover(parts.transcripts, every=30), sessions)
        )
    assert found.count(None) == TAKERS - 1


@pytest.mark.slow
def test_what_rests_costs_nothing(backend: PostgresBackend) -> None:
    """Takers go by the indexes of what is due alone, whatever the planner believes."""
    parts = backend.open()
    work, database = parts.work, _database(parts)  # one connection, whose counts are seen by itself
    for page in range(5):
        work.notice([("s", f"{page}-{n}") for n in range(1_000)])
        for item in work.take("w", 1_000, LEASE):
            work.looked(item, None, "1")
    database.call(database.sql("ANALYZE {schema}.work_items"))
    scans = database.sql(
        "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = ('{schema}.work_items')::regclass"
    )
    database.call("SELECT pg_stat_force_next_flush()")
    before = database.call(scans)
    for n in range(20):
        work.notice([("s", f"0-{n}")])
        for item in work.take("w", 1, LEASE):
            work.looked(item, None, "1")
        assert work.take("w", 1, LEASE) == []
    database.call("SELECT pg_stat_force_next_flush()")
    assert database.call(scans) == before
