"""Projectors on PostgreSQL that are killed, stopped, cut off, or lose their server (P2, P3)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, cast
from urllib.parse import urlsplit

import psycopg
import pytest
from backends import PostgresBackend, everyday_database
from histories import CONVERSATION, SCOPE, Worker, key_of, made_up_job
from pg_bouncer import running_bouncer
from pg_cuts import messages_of
from pg_ledgers import PgLedger, ledger_on, with_parameters
from pg_proxy import Proxy
from pg_servers import Server
from processes import Process, kill_all, output, running, tell, wait_for, worker
from read_model_tables import tables_of_summaries
from scenarios import claimed

from compaction_ledger.composition import Parts
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.projections.postgres import PostgresReadModels, PostgresStore

pytestmark = pytest.mark.slow

RANGES = 120  # so many new rows are copied in
STEPS = ["rows_at", "_copy", "advance"]
"""Where a projector stands still: it has the generation, it copies rows in, it is about to commit."""


@pytest.fixture
def pg_store(tmp_path: Path) -> Iterator[PostgresBackend]:
    """A ledger on the server that all tests share."""
    backend = PostgresBackend(tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """The same, to be reached through a proxy."""
    with ledger_on(pg_server) as one:
        yield one


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is refused a connection tries again soon."""
    monkeypatch.setattr(
        "compaction_ledger.infrastructure.postgres.connections.RECONNECT_SECONDS", 0.1
    )


def claim_ranges(log: Log, ranges: int = RANGES, start: int = 0) -> None:
    """One fact for each of so many ranges."""
    for number in range(start, start + ranges):
        job = made_up_job(10 * number)
        log.append(key_of(job), EMPTY, [claimed(f"c{number}", job=job)])


def folded(log: Log) -> dict[str, list[tuple[object, ...]]]:
    """What the log implies."""
    fresh = MemoryReadModels(DEFAULT_REGISTRY)
    fresh.catch_up(log)
    return fresh.records()


# --- killed and stopped -------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_a_projector_that_is_killed_within_a_batch_is_in_nobodys_way(
    pg_store: PostgresBackend, step: str
) -> None:
    parts = pg_store.open()
    claim_ranges(parts.context.log)
    with running("stand_still", pg_store.url, step) as projector:
        wait_for(projector, "held")
    began = time.monotonic()
    assert parts.read_models.rebuild(parts.context.log) == RANGES
    assert time.monotonic() - began < 20
    assert parts.read_models.records() == folded(parts.context.log)
    assert len(tables_of_summaries(pg_store)) == 1


@pytest.mark.parametrize(
    "step",
    ["_copy", *(pytest.param(step, marks=pytest.mark.slow) for step in ("rows_at", "advance"))],
)
def test_a_projector_that_stands_still_within_a_batch_loses_it_to_the_others(
    pg_store: PostgresBackend, step: str
) -> None:
    """Each event is applied once, also when it comes back and would go on."""
    parts = pg_store.open()
    claim_ranges(parts.context.log)
    other = impatient(pg_store)
    with running("stand_still", pg_store.url, step) as projector:
        wait_for(projector, "held")
        projector.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert other.rebuild(parts.context.log) == RANGES
        assert time.monotonic() - began < 25
        projector.send_signal(signal.SIGCONT)
        tell(projector)
        assert wait_for(projector, "done") == [str(RANGES)]
    assert parts.read_models.records() == folded(parts.context.log)
    assert len(tables_of_summaries(pg_store)) == 1


def test_a_follower_does_not_queue_behind_one_that_stands_still(pg_store: PostgresBackend) -> None:
    """It comes back without what the other holds; the next one finds that the other is gone."""
    parts = pg_store.open()
    claim_ranges(parts.context.log)
    hasty, other = impatient(pg_store, patience=0.3, hold_seconds=60), impatient(pg_store)
    database = pg_store.database()
    with psycopg.connect(database.address.conninfo) as holder:
        lock = "SELECT FROM {read_models}.generations WHERE active FOR UPDATE"
        holder.execute(database.sql(lock))
        began = time.monotonic()
        assert hasty.catch_up(parts.context.log) == 0
        assert 0.3 <= time.monotonic() - began < 20
        assert other.catch_up(parts.context.log) == RANGES
        with suppress(psycopg.OperationalError):  # the server has ended its session
            holder.execute("SELECT 1")
            pytest.fail("it still holds the generation")
    assert hasty.records() == folded(parts.context.log)


def impatient(
    store: PostgresBackend, patience: float = 30, hold_seconds: float = 0.5
) -> PostgresReadModels:
    """Read models that soon end what stands in their way."""
    return PostgresReadModels(
        store.database(), DEFAULT_REGISTRY, patience=patience, hold_seconds=hold_seconds
    )


def test_projectors_that_are_killed_again_and_again_apply_each_fact_once(
    pg_store: PostgresBackend,
) -> None:
    parts = pg_store.open()
    projectors: list[Process] = []
    try:
        for turn in range(6):
            projectors += [worker("follow", pg_store.url, 10_000) for _ in range(2)]
            claim_ranges(parts.context.log, 40, start=40 * turn)
            kill_all([projectors.pop(0)])
    finally:
        kill_all(projectors)
    assert parts.read_models.catch_up(parts.context.log) == 240
    assert parts.read_models.records() == folded(parts.context.log)


# --- many at once -------------------------------------------------------------------------------


def test_projectors_in_threads_and_processes_follow_a_writer(pg_store: PostgresBackend) -> None:
    writer = pg_store.open()
    sessions = [pg_store.open() for _ in range(4)]
    total = 3 * RANGES
    done = Event()

    def follow(session: Parts) -> None:
        while not done.is_set() or session.read_models.position() < total:
            session.read_models.catch_up(session.context.log)

    others = [worker("follow", pg_store.url, total) for _ in range(2)]
    try:
        with ThreadPoolExecutor(4) as pool:
            following = [pool.submit(follow, session) for session in sessions]
            for number in range(RANGES):
                Worker(writer, made_up_job(10 * number), f"w{number}").complete()
            done.set()
            for future in following:
                future.result()
        for process in others:
            output(process)
    finally:
        kill_all(others)
    assert writer.read_models.position() == total
    assert writer.read_models.records() == folded(writer.context.log)


def test_readers_see_all_rows_while_tables_are_switched_and_dropped(
    pg_store: PostgresBackend,
) -> None:
    parts = pg_store.open()
    claim_ranges(parts.context.log)
    parts.read_models.catch_up(parts.context.log)
    wanted = parts.read_models.snapshot()
    summaries = list(parts.read_models.summaries(SCOPE, CONVERSATION))
    over = Event()

    times = [0] * 4

    def read(number: int, models: PostgresReadModels) -> None:
        while not over.is_set():
            assert list(models.summaries(SCOPE, CONVERSATION)) == summaries
            assert models.position() == RANGES
            assert len(models.ranges()) == RANGES
            if not times[number] % 5:
                assert models.snapshot() == wanted
            times[number] += 1

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, number, impatient(pg_store)) for number in range(4)]
        ends = time.monotonic() + 60
        rebuilt = 0
        while rebuilt < 12 or min(times) < 12:
            if time.monotonic() > ends or any(future.done() for future in reading):
                break
            parts.read_models.rebuild(parts.context.log)
            rebuilt += 1
        over.set()
        for future in reading:
            future.result()
    assert min(times) > 5
    assert rebuilt > 3
    assert [at.active for at in parts.read_models.progress()] == [True]


def test_a_reader_that_takes_its_time_holds_up_nobody(
    pg_store: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the rows that it began with, whose tables are dropped when it has let go of them."""
    monkeypatch.setattr("compaction_ledger.projections.postgres.CLEANING_PATIENCE", 0.2)
    parts, other = pg_store.open(), pg_store.open()
    claim_ranges(parts.context.log)
    parts.read_models.catch_up(parts.context.log)
    database = pg_store.database()
    with psycopg.connect(database.address.conninfo) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        (table,) = tables_of_summaries(pg_store)
        question = database.sql(f"SELECT count(*) FROM {{read_models}}.{table}")
        assert reader.execute(question).fetchone() == (RANGES,)
        began = time.monotonic()
        parts.read_models.rebuild(parts.context.log)
        assert len(other.read_models.ranges()) == RANGES
        assert time.monotonic() - began < 20
        assert table in tables_of_summaries(pg_store)
        assert reader.execute(question).fetchone() == (RANGES,)
    parts.read_models.rebuild(parts.context.log)
    assert len(tables_of_summaries(pg_store)) == 1


# --- connections and servers that go ------------------------------------------------------------

Act = Callable[[Log, Log, PostgresReadModels, Iterator[int]], object]


def catching_up(ours: Log, theirs: Log, models: PostgresReadModels, numbers: Iterator[int]) -> None:
    """Follow three facts, which another session appended."""
    claim_ranges(theirs, 3, start=3 * next(numbers))
    models.catch_up(ours)


def rebuilding(ours: Log, theirs: Log, models: PostgresReadModels, numbers: Iterator[int]) -> None:
    """Build rows anew, enough of them to be copied in."""
    models.rebuild(ours)


@pytest.mark.parametrize(
    ("act", "every"),
    [
        (catching_up, 3),
        (rebuilding, 35),
        pytest.param(catching_up, 1, marks=pytest.mark.slow),
        pytest.param(rebuilding, 7, marks=pytest.mark.slow),
    ],
)
def test_a_projector_cut_off_at_any_message_applies_each_fact_once(
    ledger: PgLedger, act: Act, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The proxy waits for the whole answer to a copy, of which the server says the end when all is copied.
    monkeypatch.setattr(PostgresStore, "answer_seconds", 1.0)
    direct = ledger.open()
    claim_ranges(direct.log, 60)
    numbers = count(100)
    with Proxy(ledger.url) as proxy:
        session = ledger.open(proxy.url, pool_size=1)
        models = PostgresReadModels(session.database, DEFAULT_REGISTRY)

        def do() -> None:
            act(session.log, direct.log, models, numbers)

        for _ in range(3):  # whatever is prepared by and by is prepared
            do()
        found = list(messages_of(proxy, do).cuts())
        assert len(found) > 25
        cuts = found[::every]
        assert len(cuts) > 5
        happened = 0
        for cut in cuts:
            fault = cut.set_up(proxy)
            for _ in range(3):  # not each is as many messages as the one that was counted
                do()
                if fault.fired.is_set():
                    happened += 1
                    break
            assert models.position() == direct.log.size(), cut
        assert happened > 0.9 * len(cuts)
        assert models.records() == folded(direct.log)


def test_a_rebuild_goes_on_when_the_server_is_back(durable_server: Server) -> None:
    with ledger_on(durable_server.url()) as ledger:
        session = ledger.open(patience=60)
        claim_ranges(session.log)
        models = PostgresReadModels(session.database, DEFAULT_REGISTRY)
        assert models.catch_up(session.log) == RANGES

        class Crashing:
            """A log that the server dies under, once, when it has been read."""

            crashed = False

            def __getattr__(self, name: str) -> Any:
                return getattr(session.log, name)

            def read(self, *arguments: Any) -> Sequence[Recorded]:
                entries = session.log.read(*arguments)
                if not self.crashed:
                    self.crashed = True
                    durable_server.stop("immediate")
                    durable_server.start()
                return entries

        assert models.rebuild(cast(Any, Crashing())) == RANGES
        assert models.records() == folded(session.log)
        assert models.catch_up(session.log) == RANGES


def test_what_a_crash_took_of_the_rows_is_made_again(durable_server: Server) -> None:
    """Rows and position are lost together or not at all: they did not wait for the disk."""
    with ledger_on(durable_server.url()) as ledger:
        session = ledger.open(patience=60)
        models = PostgresReadModels(session.database, DEFAULT_REGISTRY)
        for turn in range(3):
            claim_ranges(session.log, 40, start=40 * turn)
            models.catch_up(session.log)
            durable_server.stop("immediate")
            durable_server.start()
            fresh = MemoryReadModels(DEFAULT_REGISTRY, stop=models.position())
            fresh.catch_up(session.log)
            assert models.records() == fresh.records()
            assert models.catch_up(session.log) == 40 * (turn + 1)
        assert models.records() == folded(session.log)


def test_projectors_behind_a_pooler_in_transaction_mode(pg_store: PostgresBackend) -> None:
    parts = pg_store.open()
    database = urlsplit(pg_store.url).path[1:]
    schema = pg_store.database().address.schema
    with running_bouncer(everyday_database(), pool_size=3) as bouncer:
        url = with_parameters(bouncer.url(database), schema=schema)
        with ThreadPoolExecutor(4) as pool:
            projecting = [pool.submit(project, url) for _ in range(4)]
            claim_ranges(parts.context.log)
            assert [future.result() for future in projecting] == [RANGES] * 4
    assert parts.read_models.records() == folded(parts.context.log)


def project(url: str) -> int:
    """Follow until all is applied, and rebuild meanwhile."""
    with closing(Ledger.open(url)) as ledger:
        while ledger.catch_up() < RANGES:
            ledger.rebuild()
        return ledger.position()
