"""The shared bound on attempts (D1) under processes that are killed or stopped, and through a pooler."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
from admission_checks import forbid_more_slots_than, holders, keep_grants
from backends import everyday_database
from kept_processes import wait_until
from pg_bouncer import running_bouncer
from pg_servers import fresh_schema
from processes import Process, kill_all, output, running, tell, wait_for, worker

from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database
from compaction_ledger.infrastructure.postgres.migrating import migrate

pytestmark = pytest.mark.slow

LIMIT, LEASE = 3, 2.4
SOON = LEASE + 15  # so much more is for a machine that is busy


@pytest.fixture
def url() -> Iterator[str]:
    """A ledger's address on the everyday server."""
    server = everyday_database()
    with fresh_schema(server) as schema:
        yield f"{server}{'&' if '?' in server else '?'}schema={schema}"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The ledger, in which it is an error to have more slots than the bound."""
    database = Database(parse_address(url))
    migrate(database)
    forbid_more_slots_than(database, LIMIT)
    keep_grants(database)
    yield database
    database.close()


@pytest.fixture
def watcher(database: Database) -> Iterator[SharedAdmission]:
    """What looks on."""
    admission = SharedAdmission(database, LIMIT, "watcher", LEASE)
    yield admission
    admission.close()


@pytest.mark.parametrize(
    ("processes", "kills"), [(5, 4), pytest.param(8, 10, marks=pytest.mark.slow)]
)
def test_given_processes_that_are_killed_when_others_go_on_then_the_bound_holds_and_slots_come_back(
    url: str,
    database: Database,
    watcher: SharedAdmission,
    tmp_path: Path,
    processes: int,
    kills: int,
) -> None:
    chance, stop = Random(5), tmp_path / "stop"
    started: list[Process] = []

    def start() -> Process:
        started.append(worker("share_slots", stop, url, LIMIT, LEASE, len(started)))
        return started[-1]

    def all_had_a_turn() -> bool:
        return {f"p{started.index(process)}" for process in workers} <= holders(database)

    try:
        workers = [start() for _ in range(processes)]
        for process in workers:
            wait_for(process, "working")
        for _ in range(kills):
            assert max(_in_use(watcher) for _ in range(chance.randrange(5, 20))) <= LIMIT
            victim = chance.randrange(processes)
            workers[victim].kill()
            workers[victim] = start()
        wait_until(all_had_a_turn, 60, "each to have been given a slot")
        for process in workers[: processes // 2]:
            process.kill()
        stop.touch()
        for process in workers[processes // 2 :]:
            output(process)
    finally:
        kill_all(started)

    # What the dead held is free when its lease is over.
    wait_until(lambda: watcher.in_use() == 0, SOON, "all slots to come back")
    wait_until(lambda: watcher.waiting() == 0, SOON, "the tickets of the dead to be dropped")
    leaves = [watcher.admit() for _ in range(LIMIT)]
    assert None not in leaves
    assert watcher.admit() is None


def test_given_a_holder_killed_when_its_lease_runs_then_nobody_is_admitted_before_its_end(
    url: str, database: Database, watcher: SharedAdmission, tmp_path: Path
) -> None:
    with running("hold_slots", tmp_path, url, LIMIT, LEASE) as holder:
        assert wait_for(holder, "holding") == [str(LIMIT)]
        time.sleep(2 * LEASE)  # it lives, and renews
        assert watcher.in_use() == LIMIT
        assert watcher.admit() is None
        holder.kill()
        holder.wait(SOON)
        ((ends,),) = database.call(
            database.sql("SELECT min(renewed_at + lease) FROM {schema}.admission_slots")
        )

        wait_until(lambda: watcher.admit() is not None, SOON, "a slot to be free")
        ((now,),) = database.call(database.sql("SELECT {schema}.store_clock()"))
        assert now >= ends


def test_given_a_holder_stopped_past_its_lease_when_it_goes_on_then_it_harms_nobody(
    url: str, watcher: SharedAdmission, tmp_path: Path
) -> None:
    with running("hold_slots", tmp_path, url, LIMIT, LEASE) as holder:
        wait_for(holder, "holding")
        holder.send_signal(signal.SIGSTOP)
        wait_until(lambda: watcher.in_use() == 0, SOON, "the leases to be over")
        leaves = [watcher.admit() for _ in range(LIMIT - 1)]
        assert None not in leaves
        holder.send_signal(signal.SIGCONT)
        time.sleep(LEASE)  # it renews, or tries to: its three rows went with our first

        assert watcher.in_use() == LIMIT - 1
        tell(holder)
        output(holder)
        assert watcher.in_use() == LIMIT - 1


def test_given_a_pooler_in_transaction_mode_when_processes_share_and_die_then_the_bound_holds(
    url: str, database: Database, watcher: SharedAdmission, tmp_path: Path
) -> None:
    """The statements that a connection has prepared are unknown behind the pooler, too."""
    schema = url.rpartition("=")[2]
    with running_bouncer(everyday_database(), pool_size=2) as bouncer:
        through = f"{bouncer.url(urlsplit(url).path[1:])}?schema={schema}"
        stop = tmp_path / "stop"
        workers = [worker("share_slots", stop, through, LIMIT, LEASE, n) for n in range(5)]
        try:
            for process in workers[:2]:
                wait_for(process, "working")
                assert _in_use(watcher) <= LIMIT
                process.kill()
            wait_until(lambda: holders(database) >= {"p2", "p3", "p4"}, 60, "each to have a turn")
            stop.touch()
            for process in workers[2:]:
                output(process)
        finally:
            kill_all(workers)

    wait_until(lambda: watcher.in_use() == 0, SOON, "all slots to come back")


def _in_use(watcher: SharedAdmission) -> int:
    time.sleep(0.01)
    return watcher.in_use()
