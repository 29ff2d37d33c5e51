"""Dispatch by Procrastinate: a job is a hint, and twice, too late or never does no harm (A1, A8, W3)."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import dispatching
import psycopg
import pytest
from backends import everyday_database
from histories import lines
from pg_servers import drop_schemas, fresh_schema
from psycopg import sql

from compaction_ledger import InvalidSetting, Ledger
from compaction_ledger.dispatch import (
    LOOK,
    QUEUE,
    Dispatcher,
    add_looks,
    app_on,
    dispatcher,
    free_stalled,
    install,
    run_procrastinate_worker,
)
from compaction_ledger.domain.errors import (
    InvalidId,
    LedgerBusy,
    StoreError,
    StoreUnavailable,
)
from compaction_ledger.domain.events import RangeCompleted
from compaction_ledger.infrastructure.dispatch.procrastinate import RESCUE, lock_of
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.serving import Pace
from compaction_ledger.usecases.looking import Looked

SCOPE = "acme"
UNTIL_IDLE = Pace(threads=2, poll=0.1, drain=5.0, until_idle=True)


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of a ledger to be."""
    url = everyday_database()
    with fresh_schema(url) as schema:
        yield f"{url}{'&' if '?' in url else '?'}schema={schema}"


@pytest.fixture
def schema(place: str) -> Iterator[str]:
    """A schema with Procrastinate's tables, beside those of the ledger."""
    name = f"{parse_address(place).schema}_jobs"
    assert install(place, schema=name)
    assert not install(place, schema=name)
    yield name
    drop_schemas(everyday_database(), name)


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    with Ledger.open(
        place, settings=dispatching.settings(), summarizer=dispatching.Slow()
    ) as opened:
        yield opened


@pytest.fixture
def jobs(place: str, schema: str) -> Iterator[Dispatcher]:
    with dispatcher(place, schema=schema) as opened:
        yield opened


@pytest.fixture
def ask(place: str, schema: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Ask Procrastinate's tables."""
    conninfo = parse_address(place).conninfo
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))

        def execute(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield execute


WAITING = "SELECT args->>'conversation', priority FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id"


def fill(ledger: Ledger, name: str, pairs: int = 40) -> None:
    ledger.transcripts.append(SCOPE, name, *lines(pairs))


def done(ledger: Ledger) -> int:
    ledger.catch_up()
    return ledger.status().ranges.get("done", 0)


def completions(ledger: Ledger) -> Counter[str]:
    return Counter(
        entry.stream for entry in ledger.events() if isinstance(entry.fact, RangeCompleted)
    )


# --- deferring --------------------------------------------------------------------------------------


def test_a_conversation_waits_at_most_once_for_now_and_once_for_later(
    jobs: Dispatcher, ask: Callable[..., list[tuple[Any, ...]]]
) -> None:
    assert jobs.defer(SCOPE, "later", in_seconds=60)
    assert not jobs.defer(SCOPE, "later", in_seconds=5)
    assert jobs.defer(SCOPE, "later")  # for now, though it waits for later
    assert not jobs.defer(SCOPE, "later")
    assert jobs.defer(SCOPE, "c" * 512)  # names of any length
    assert jobs.defer("other", "later")
    assert ask(WAITING) == [("later", -1), ("later", 0), ("c" * 512, 0), ("later", 0)]
    [(args,)] = ask("SELECT args FROM procrastinate_jobs ORDER BY id LIMIT 1")
    assert args == {"scope": SCOPE, "conversation": "later"}  # and nothing else


def test_a_job_comes_with_the_transaction_of_the_host(
    jobs: Dispatcher, place: str, schema: str, ask: Callable[..., list[tuple[Any, ...]]]
) -> None:
    conninfo = parse_address(place).conninfo
    jobs.defer(SCOPE, "there")
    with psycopg.connect(conninfo, options=f"-c search_path={schema}") as connection:
        assert not jobs.defer(SCOPE, "there", connection=connection)
        assert jobs.defer(SCOPE, "new", connection=connection)
        assert ask(WAITING) == [("there", 0)]
        connection.commit()
        assert ask(WAITING) == [("there", 0), ("new", 0)]
        assert jobs.defer(SCOPE, "undone", connection=connection)
        connection.rollback()
    with psycopg.connect(
        conninfo, options=f"-c search_path={schema}", autocommit=True
    ) as connection:
        assert jobs.defer(SCOPE, "alone", connection=connection)
    assert [name for name, _ in ask(WAITING)] == ["there", "new", "alone"]


def test_deferring_in_asyncio(
    place: str, schema: str, ask: Callable[..., list[tuple[Any, ...]]]
) -> None:
    async def defer() -> list[bool]:
        app = app_on(place, schema)
        async with app.open_async():
            jobs = dispatcher(app)
            first = [await jobs.defer_async(SCOPE, "c") for _ in range(2)]
            connection = await psycopg.AsyncConnection.connect(
                parse_address(place).conninfo, options=f"-c search_path={schema}"
            )
            async with connection:
                second = [
                    await jobs.defer_async(SCOPE, name, connection=connection)
                    for name in ("c", "d")
                ]
                await connection.rollback()
        return [*first, *second]

    assert asyncio.run(defer()) == [True, False, False, True]
    assert ask(WAITING) == [("c", 0)]


def test_what_is_no_id_or_schema_is_refused(jobs: Dispatcher, place: str) -> None:
    with pytest.raises(InvalidId):
        jobs.defer("", "c")
    with pytest.raises(InvalidId):
        jobs.defer(SCOPE, "c\0")
    with pytest.raises(InvalidSetting):
        app_on(place, "no name; --")


def test_what_is_no_connection_string_is_refused_without_its_password() -> None:
    """S4: libpq names the word that it stumbles over, which may be half of a password."""
    for make in (app_on, install):
        with pytest.raises(InvalidSetting) as refusal:
            make("host=127.0.0.1 password=two hushed")
        said = traceback.TracebackException.from_exception(refusal.value).format_exception_only()
        assert "hushed" not in "".join(said)
        assert refusal.value.__suppress_context__


def test_a_queue_that_is_not_there_is_a_store_that_cannot_do_it(place: str) -> None:
    with dispatcher(place, schema="nowhere") as jobs, pytest.raises(StoreError):
        jobs.defer(SCOPE, "c")


# --- looking ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jobs_are_done_and_come_again_until_nothing_is_due(
    ledger: Ledger,
    jobs: Dispatcher,
    place: str,
    schema: str,
    ask: Callable[..., list[tuple[Any, ...]]],
) -> None:
    fill(ledger, "long", 120)
    fill(ledger, "short", 40)
    for name in ("long", "short", "unknown"):
        jobs.defer(SCOPE, name)
    run_procrastinate_worker(ledger, app_on(place, schema), pace=UNTIL_IDLE)
    assert done(ledger) == 12
    assert ask("SELECT count(*) FROM procrastinate_jobs WHERE task_name = %s", LOOK) == [(0,)]


def test_what_cannot_be_done_now_comes_again_later(
    ledger: Ledger,
    jobs: Dispatcher,
    place: str,
    schema: str,
    ask: Callable[..., list[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(conversation: str, **_: Any) -> Looked:
        if conversation == "store":
            raise LedgerBusy("held by others")
        if conversation == "setting":
            raise InvalidSetting("no such model")
        return Looked((), 90.0)

    monkeypatch.setattr(ledger, "look", look)
    for name in ("store", "held back", "setting"):
        jobs.defer(SCOPE, name)
    run_procrastinate_worker(ledger, app_on(place, schema), pace=UNTIL_IDLE)
    waiting = ask(
        "SELECT args->>'conversation', extract(epoch FROM scheduled_at - now()) "
        "FROM procrastinate_jobs WHERE status = 'todo' AND task_name = %s ORDER BY id",
        LOOK,
    )
    assert sorted(name for name, _ in waiting) == ["held back", "store"]
    seconds = dict(waiting)
    assert 80 < seconds["held back"] <= 90
    assert 20 < seconds["store"] <= 30
    assert ask("SELECT args->>'conversation' FROM procrastinate_jobs WHERE status = 'failed'") == [
        ("setting",)
    ]


@pytest.mark.slow
def test_a_look_says_when_to_come_again(ledger: Ledger) -> None:
    fill(ledger, "c", 90)
    first = ledger.look("c", scope=SCOPE, at_most=4)
    assert ([one.result for one in first.outcomes], first.again_in) == (["completed"] * 4, 0.0)
    rest = ledger.look("c", scope=SCOPE)
    assert (len(rest.outcomes), rest.again_in) == (3, None)
    assert ledger.look("c", scope=SCOPE) == ((), None)


@pytest.mark.slow
def test_a_look_that_is_not_admitted_waits(ledger: Ledger) -> None:
    fill(ledger, "c")
    leaves = [ledger._parts.admission.admit() for _ in range(2)]
    looked = ledger.look("c", scope=SCOPE)
    assert [one.result for one in looked.outcomes] == ["not_admitted"]
    assert looked.again_in is not None
    assert 1 <= looked.again_in < 5
    for leave in leaves:
        assert leave is not None
        leave()
    assert ledger.look("c", scope=SCOPE).again_in is None


# --- what a dead worker leaves behind ---------------------------------------------------------------


@pytest.mark.slow
def test_the_looks_of_the_dead_are_done_by_others(
    ledger: Ledger,
    jobs: Dispatcher,
    place: str,
    schema: str,
    ask: Callable[..., list[tuple[Any, ...]]],
) -> None:
    for name in ("alone", "noticed again"):
        fill(ledger, name)
        jobs.defer(SCOPE, name)
    jobs.app.configure_task(RESCUE, queue=QUEUE).defer(timestamp=0)
    ask("UPDATE procrastinate_jobs SET status = 'doing'")  # by a worker that is not there any more
    jobs.defer(SCOPE, "noticed again")
    app = app_on(place, schema)
    add_looks(app, ledger)

    async def free() -> int:
        async with app.open_async():
            return await free_stalled(app)

    assert asyncio.run(free()) == 3
    assert asyncio.run(free()) == 0
    assert sorted(ask(WAITING)) == [("alone", 0), ("noticed again", 0)]
    run_procrastinate_worker(ledger, app_on(place, schema), pace=UNTIL_IDLE)
    assert done(ledger) == 4


def test_a_worker_whose_queue_goes_away_says_so(ledger: Ledger, place: str, schema: str) -> None:
    drop_schemas(everyday_database(), schema)
    with pytest.raises(StoreUnavailable):
        run_procrastinate_worker(ledger, app_on(place, schema), pace=UNTIL_IDLE)


# --- all together -----------------------------------------------------------------------------------


@pytest.mark.slow  # the tests above are of the same parts, one at a time
def test_two_of_them_and_one_of_ours_with_one_killed(
    ledger: Ledger,
    jobs: Dispatcher,
    place: str,
    schema: str,
    ask: Callable[..., list[tuple[Any, ...]]],
) -> None:
    """Jobs twice, jobs lost, jobs that were done long ago: each range has one completion."""
    names = [f"c{number}" for number in range(12)]
    for name in names:
        fill(ledger, name, 70)
    started = [dispatching.start("procrastinate", place, schema) for _ in range(2)]
    try:
        for name in names[:8]:  # of the others nobody says anything: ours finds them
            jobs.defer(SCOPE, name)
            jobs.defer(SCOPE, name)
        _wait(lambda: done(ledger) >= 6)
        killed = started[0]
        # A machine that is busy elsewhere may let them end before it looks.
        _wait(lambda: ledger.status().ranges.get("running", 0) > 0 or done(ledger) == 40)
        killed.kill()
        killed.communicate()
        started.append(dispatching.start("native", place, schema))
        for name in names[:4]:
            jobs.defer(SCOPE, name)  # stale, most of them
        _wait(lambda: done(ledger) == 60)
        for process in started[1:]:
            process.send_signal(signal.SIGTERM)
        for process in started[1:]:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
    finally:
        for process in started:
            process.kill()
    found = completions(ledger)
    assert (len(found), set(found.values())) == (60, {1})
    assert ledger.status().ranges == {"done": 60}
    assert ledger.verify().ok
    held = ask(
        "SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND task_name = %s", LOOK
    )
    assert {lock for (lock,) in held} <= {lock_of(SCOPE, name) for name in names}


def _wait(true: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
