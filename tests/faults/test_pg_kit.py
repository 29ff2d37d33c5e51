"""The tools of the tests on PostgreSQL do what they say: seen by psycopg alone, without the ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from kept_processes import alive, wait_until
from pg_bouncer import bouncer_version, running_bouncer
from pg_clocks import server_with_clock, wrong_clock
from pg_disks import server_on_small_disk
from pg_proxy import Proxy
from pg_servers import (
    IN_ENGLISH,
    Server,
    Wanted,
    drop_schemas,
    everyday_server,
    fresh_schema,
    installed_binaries,
    running_server,
    worker_database,
)
from psycopg import errors

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"
INSERT = "INSERT INTO note VALUES (%s)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that keeps what is committed, with a table."""
    with running_server() as one:
        one.execute("CREATE TABLE note (text text)")
        yield one


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before the server."""
    with Proxy(server.url(application_name="proxied")) as one:
        yield one


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection]:
    """A connection with each statement its own transaction; broken ones are closed without a word."""
    connection = psycopg.connect(url, autocommit=True)
    try:
        yield connection
    finally:
        connection.close()


def stored(server: Server, text: str) -> bool:
    """Whether there is a row with the text."""
    return bool(server.execute("SELECT 1 FROM note WHERE text = %s", text))


def insert_and_commit(connection: psycopg.Connection, text: str) -> None:
    """Store a row."""
    connection.execute(INSERT, [text])
    connection.commit()


@contextmanager
def in_background(act: Callable[[], object]) -> Iterator[Future[object]]:
    """Something that may wait for long."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(act)


def waits(future: Future[object], seconds: float = 0.3) -> bool:
    """Whether it is still not done after a while."""
    time.sleep(seconds)
    return not future.done()


# --- servers ------------------------------------------------------------------------------------


def test_a_killed_server_recovers_what_was_committed_and_no_more(server: Server) -> None:
    server.execute(INSERT, "before the kill")
    with psycopg.connect(server.url()) as open_one:
        open_one.execute(INSERT, ["not committed"])
        backends = server.backend_pids()
        server.kill()
        assert not any(map(alive, [server.pid, *backends]))
        with pytest.raises(psycopg.OperationalError) as caught:
            open_one.execute("SELECT 1")
        assert caught.value.sqlstate is None  # nobody lived to say a word
        open_one.close()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        server.execute("SELECT 1")
    server.start()
    assert stored(server, "before the kill")
    assert not stored(server, "not committed")
    assert "automatic recovery in progress" in server.log_text()


def test_a_server_that_loses_one_process_restarts_all(server: Server) -> None:
    with connected(server.url()) as one, connected(server.url()) as other:
        os.kill(one.info.backend_pid, signal.SIGKILL)
        for connection in (one, other):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT pg_sleep(60)")
    server.wait_until_connectable()
    assert server.execute("SELECT 1") == [(1,)]


def test_a_server_stops_in_each_mode_and_starts_again(server: Server) -> None:
    for mode in ("smart", "fast", "immediate"):
        server.stop(mode)
        assert not server.alive()
        server.start()
    first = server.pid
    server.restart()
    assert server.pid != first
    assert server.execute("SHOW fsync") == [("on",)]


def test_settings_are_given_at_the_start_or_later(server: Server) -> None:
    server.stop()
    server.start({"statement_timeout": "1234"})
    assert server.execute("SHOW statement_timeout") == [("1234ms",)]
    server.restart()
    server.configure({"idle_session_timeout": "77s", "cluster_name": "it's"})
    server.reload()
    wait_until(lambda: server.execute("SHOW idle_session_timeout") == [("77s",)])
    server.configure({"idle_session_timeout": "0"})
    server.restart()
    assert server.execute("SHOW cluster_name") == [("it's",)]


def test_backends_are_told_apart_by_name(server: Server) -> None:
    with connected(server.url(application_name="a")) as a, connected(server.socket_url()) as b:
        assert server.backend_pids("a") == [a.info.backend_pid]
        assert set(server.backend_pids()) >= {a.info.backend_pid, b.info.backend_pid}


def test_a_server_may_sort_as_a_language_does() -> None:
    programs = installed_binaries()
    if programs is None:
        pytest.skip("needs PostgreSQL as the system has it: the package's has no languages")
    wanted = Wanted(programs=programs, initdb=IN_ENGLISH, durable=False)
    with running_server(wanted) as server:
        rows = server.execute("SELECT * FROM (VALUES ('a'), ('B'), ('c')) AS t(x) ORDER BY x")
        assert [x for (x,) in rows] == ["a", "B", "c"]
        assert server.execute("SHOW fsync") == [("off",)]


OWNER = """
import sys, time
from pg_servers import everyday_server, running_server
with running_server() as own, everyday_server():
    print(own.pid, own.folder, flush=True)
    time.sleep(600)
"""


def test_no_server_outlives_who_started_it() -> None:
    environment = {**os.environ, "PYTEST_XDIST_TESTRUNUID": f"kit-{os.getpid()}"}
    environment.pop("COMPACTION_LEDGER_TEST_POSTGRES", None)
    everyday = Path(f"/tmp/ledger-pg-everyday-kit-{os.getpid()}")
    with helper("-c", OWNER, environment=environment) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert alive(int(pid))
        assert everyday.exists()
        owner.kill()
    wait_until(lambda: not (alive(int(pid)) or Path(folder).exists() or everyday.exists()))


CONFTEST = "from pg_fixtures import pg_schema, pg_server\n"
SHARING = """
import psycopg, pytest

@pytest.mark.parametrize("number", range(6))
def test_it(pg_server, pg_schema, number):
    with psycopg.connect(pg_server) as connection:
        connection.execute(f"CREATE SCHEMA {pg_schema}")
        connection.execute(f"CREATE TABLE {pg_schema}.t (n int)")
        start = connection.execute("SELECT pg_postmaster_start_time()").fetchone()
        schemas = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname ~ '^t_'").fetchall()
        database = connection.info.dbname
    with open("seen", "a") as file:
        file.write(f"{start[0]!r}|{database}|{len(schemas)}\\n")
"""


@pytest.mark.slow  # a run of its own; every everyday run shares its server
def test_processes_of_a_run_share_the_everyday_server(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_sharing.py").write_text(SHARING)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = ["-m", "pytest", "-q", "-W", "error", "-p", "xdist", "-n", "2"]
    with helper(*words, environment=environment, folder=tmp_path) as run:
        said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    seen = [line.split("|") for line in (tmp_path / "seen").read_text().splitlines()]
    servers, databases, schemas = map(set, zip(*seen, strict=True))
    assert len(servers) == 1
    assert len(databases) == 2
    assert schemas == {"1"}


@contextmanager
def helper(
    *words: str, environment: dict[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A Python process that knows the tests' helpers; killed in the end, if it still runs."""
    places = os.pathsep.join((str(SUPPORT), os.environ.get("PYTHONPATH", "")))
    with subprocess.Popen(
        [sys.executable, *words],
        env={**environment, "PYTHONPATH": places},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_schemas_and_databases_of_tests_are_dropped(server: Server) -> None:
    with worker_database(server.url()) as database:
        with fresh_schema(database) as name, connected(database) as connection:
            for schema in (name, f"{name}_read_models"):
                connection.execute(f"CREATE SCHEMA {schema}".encode())
                connection.execute(f"CREATE TABLE {schema}.t (n int)".encode())
        with connected(database) as connection:
            left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^t_'")
            assert left.fetchall() == []
        drop_schemas(database, name)
    assert server.execute("SELECT 1 FROM pg_database WHERE datname ~ '^ledger_'") == []


def test_a_server_that_runs_already_may_be_the_everyday_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTION_LEDGER_TEST_POSTGRES", server.url())
    with everyday_server() as url:
        assert url == server.url()


# --- the proxy: nothing amiss -------------------------------------------------------------------


def test_the_proxy_carries_everything(server: Server, proxy: Proxy) -> None:
    big = "x" * 3_000_000
    with connected(proxy.url) as connection:
        assert connection.execute("SELECT %s::text", [big]).fetchone() == (big,)
        with connection.cursor().copy("COPY note FROM STDIN") as copy:
            for number in range(1_000):
                copy.write_row([f"copied {number}"])
        with connection.pipeline():
            for number in range(100):
                connection.execute(INSERT, [f"piped {number}"])
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with in_background(lambda: connection.execute("SELECT pg_sleep(60)")) as sleeping:
            wait_until(lambda: "pg_sleep" in str(server.execute(ACTIVE)))
            connection.cancel_safe()
            with pytest.raises(errors.QueryCanceled):
                sleeping.result()
        proxy.wait_for_connections(1)
    proxy.wait_for_connections(0)
    assert proxy.client_messages["cancel"] == 1
    assert proxy.client_messages["startup"] == 1
    assert proxy.accepted == 2
    assert proxy.client_messages["d"] >= 1
    assert proxy.server_messages["E"] == 2
    assert stored(server, "copied 999")
    assert stored(server, "piped 99")


ACTIVE = (
    "SELECT query FROM pg_stat_activity WHERE application_name = 'proxied' AND state = 'active'"
)


def test_the_proxy_counts_round_trips(proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        proxy.reset_counters()
        connection.execute("SELECT %s", ["a"])
        assert proxy.round_trips() == 1
        with connection.transaction():
            connection.execute("SELECT %s", ["a"])
        assert proxy.round_trips() == 4
        with connection.pipeline():
            connection.execute("SELECT %s", ["a"])
            connection.execute("SELECT %s", ["b"])
        assert proxy.round_trips() == 5


# --- the proxy: faults at one message -----------------------------------------------------------


def test_cut_before_a_commit_nothing_is_stored(server: Server, proxy: Proxy) -> None:
    fault = proxy.cut_before("Q", containing=b"COMMIT")
    with connected(proxy.url) as connection:
        with pytest.raises(psycopg.OperationalError), connection.transaction():
            connection.execute(INSERT, ["cut before"])
        fault.wait()
    wait_until(lambda: server.backend_pids("proxied") == [])
    assert not stored(server, "cut before")


@pytest.mark.parametrize(("kind", "containing"), [("S", b""), ("Q", b"COMMIT")])
def test_cut_after_forwarding_it_is_stored_though_the_client_got_an_error(
    server: Server, proxy: Proxy, kind: str, containing: bytes
) -> None:
    text = f"cut after {kind}"
    with connected(proxy.url) as connection:
        connection.autocommit = kind == "S"
        fault = proxy.cut_after_forwarding(kind, containing=containing)
        with pytest.raises(psycopg.OperationalError):
            insert_and_commit(connection, text)
        assert fault.fired.is_set()
        assert stored(server, text)


def test_cut_at_once_the_server_finishes_alone(server: Server, proxy: Proxy) -> None:
    with connected(server.url()) as holder, connected(proxy.url) as connection:
        holder.execute("SELECT pg_advisory_lock(1)")
        fault = proxy.cut_after_forwarding("S", at_once=True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("INSERT INTO note SELECT 'slow' FROM pg_advisory_lock(%s)", [1])
        assert not stored(server, "slow")
        holder.execute("SELECT pg_advisory_unlock(1)")
        fault.wait()
        assert stored(server, "slow")


def test_an_execute_without_its_sync_is_undone(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        proxy.cut_after_forwarding("E")
        with pytest.raises(psycopg.OperationalError):
            connection.execute(INSERT, ["no sync"])
    wait_until(lambda: server.backend_pids("proxied") == [])
    assert not stored(server, "no sync")


def test_a_message_cut_in_the_middle_does_nothing(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        fault = proxy.cut_within("B", containing=b"torn")
        with pytest.raises(psycopg.OperationalError):
            connection.execute(INSERT, ["torn"])
        fault.wait()
    wait_until(lambda: server.backend_pids("proxied") == [])
    assert not stored(server, "torn")


def test_the_answer_is_lost_and_the_client_waits(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        fault = proxy.cut_after_forwarding("S", then="silence")
        with in_background(lambda: connection.execute(INSERT, ["silent"])) as inserting:
            fault.wait()
            assert stored(server, "silent")
            assert waits(inserting)
            proxy.cut_all()
            with pytest.raises(psycopg.OperationalError):
                inserting.result()


def test_the_nth_message_from_now_on_is_meant(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as first, connected(proxy.url) as second:
        first.execute(INSERT, ["row 1"])
        proxy.cut_before("S", 3)
        first.execute(INSERT, ["row 2"])
        second.execute(INSERT, ["row 3"])
        with pytest.raises(psycopg.OperationalError):
            first.execute(INSERT, ["row 4"])
        second.execute(INSERT, ["row 5"])
    found = server.execute("SELECT text FROM note WHERE text ~ '^row' ORDER BY text")
    assert [text for (text,) in found] == ["row 1", "row 2", "row 3", "row 5"]


@pytest.mark.parametrize("kind", ["2", "C", "Z"])
def test_an_answer_does_not_arrive(server: Server, proxy: Proxy, kind: str) -> None:
    with connected(proxy.url) as connection:
        proxy.cut_before_reply(kind)
        with pytest.raises(psycopg.OperationalError):
            connection.execute(INSERT, [f"reply {kind}"])
        assert stored(server, f"reply {kind}")


def test_a_connection_is_cut_as_it_begins(proxy: Proxy) -> None:
    for fault in (proxy.cut_before, proxy.cut_after_forwarding):
        fault("startup")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url)
    proxy.cut_before_reply("R")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.url)
    with connected(proxy.url):
        pass


def test_a_server_that_goes_is_passed_on(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        fault = proxy.cut_after_forwarding("S")
        with in_background(lambda: connection.execute("SELECT pg_sleep(%s)", [60])) as sleeping:
            wait_until(lambda: "pg_sleep" in str(server.execute(ACTIVE)))
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'proxied'"
            )
            with pytest.raises(psycopg.OperationalError):
                sleeping.result()
        fault.wait()


# --- the proxy: faults from now on --------------------------------------------------------------


def test_a_black_hole_swallows_all_and_closes_nothing(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        connection.autocommit = False
        connection.execute(INSERT, ["in the hole"])
        proxy.black_hole()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(proxy.url, connect_timeout=2)
        with in_background(connection.commit) as committing:
            assert waits(committing)
            assert len(server.backend_pids("proxied")) == 1
            proxy.heal()
            with pytest.raises(psycopg.OperationalError):
                committing.result()
    assert not stored(server, "in the hole")
    with connected(proxy.url) as connection:
        connection.execute("SELECT 1")


def test_in_a_black_hole_the_server_does_not_hear_that_the_client_left(
    server: Server, proxy: Proxy
) -> None:
    with connected(proxy.url):
        proxy.black_hole()
    proxy.wait_for_connections(0)
    assert len(server.backend_pids("proxied")) == 1
    proxy.heal()
    wait_until(lambda: server.backend_pids("proxied") == [])


def test_half_open_the_server_has_left_and_the_client_does_not_know(
    server: Server, proxy: Proxy
) -> None:
    with connected(proxy.url) as connection:
        proxy.half_open()
        wait_until(lambda: server.backend_pids("proxied") == [])
        with in_background(lambda: connection.execute("SELECT 1")) as asking:
            assert waits(asking)
            with connected(proxy.url) as another:
                another.execute("SELECT 1")
            proxy.cut_all()
            with pytest.raises(psycopg.OperationalError):
                asking.result()


def test_what_is_frozen_goes_on_when_it_thaws(server: Server, proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        proxy.freeze()
        with in_background(lambda: connection.execute(INSERT, ["thawed"])) as inserting:
            assert waits(inserting)
            assert not stored(server, "thawed")
            proxy.thaw()
            inserting.result()
    assert stored(server, "thawed")


def test_what_is_delayed_comes_late(proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        proxy.delay(0.2)
        start = time.monotonic()
        connection.execute("SELECT 1")
        assert time.monotonic() - start >= 0.4
        proxy.delay(0)


def test_who_is_refused_is_refused_and_who_is_connected_stays(proxy: Proxy) -> None:
    with connected(proxy.url) as connection:
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url)
        connection.execute("SELECT 1")
        proxy.welcome()
        with connected(proxy.url) as another:
            another.execute("SELECT 1")


def test_without_its_server_the_proxy_closes(server: Server, proxy: Proxy) -> None:
    server.stop()
    try:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url)
    finally:
        server.start()
    with connected(proxy.url) as connection:
        connection.execute("SELECT 1")


# --- PgBouncer ----------------------------------------------------------------------------------


def test_a_bouncer_hands_on_connections_between_transactions(server: Server) -> None:
    pid = "SELECT pg_backend_pid()"
    with (
        running_bouncer(server.url(), pool_size=2) as bouncer,
        connected(bouncer.url()) as one,
        connected(bouncer.url()) as two,
        connected(bouncer.url()) as three,
    ):
        with one.transaction():
            first = one.execute(pid).fetchone()
            two.execute("BEGIN")
            second = two.execute(pid).fetchone()
            with in_background(lambda: three.execute(pid).fetchone()) as waiting:
                assert waits(waiting)
                (pool,) = [row for row in bouncer.show() if row["database"] == "postgres"]
                assert (pool["cl_active"], pool["cl_waiting"]) == (2, 1)
                two.execute("COMMIT")
                third = waiting.result()
        assert first != second
        assert third == second


def test_a_strict_bouncer_knows_no_prepared_statements(server: Server) -> None:
    with (
        running_bouncer(server.url(), pool_size=1) as bouncer,
        connected(bouncer.url()) as one,
        connected(bouncer.url()) as two,
    ):
        one.execute("SELECT %s::int", [1], prepare=True)
        with pytest.raises(errors.DuplicatePreparedStatement):
            two.execute("SELECT %s::int + 1", [1], prepare=True)


def test_a_newer_bouncer_keeps_prepared_statements(server: Server) -> None:
    if bouncer_version() < (1, 21):
        pytest.skip("needs PgBouncer 1.21 or newer")
    with (
        running_bouncer(server.url(), pool_size=1, max_prepared_statements=10) as bouncer,
        connected(bouncer.url()) as one,
        connected(bouncer.url()) as two,
    ):
        one.execute("SELECT %s::int", [1], prepare=True)
        two.execute("SELECT %s::int + 1", [1], prepare=True)


# --- small disks --------------------------------------------------------------------------------

FILL = "INSERT INTO note SELECT string_agg(md5(n::text), '') FROM generate_series(1, 5000) AS t(n)"


def write_much(server: Server, done: list[int]) -> None:
    """Write a hundred megabytes, and keep a record of what was committed."""
    for number in range(1_000):
        server.execute(FILL)
        done.append(number)


def test_a_full_disk_is_told_and_the_server_lives() -> None:
    with server_on_small_disk() as (server, disk):
        server.execute("CREATE TABLE note (text text)")
        disk.fill()
        with pytest.raises(errors.DiskFull) as caught:
            write_much(server, [])
        assert caught.value.sqlstate == "53100"
        assert server.execute("SELECT 1") == [(1,)]
        disk.free()
        server.execute(FILL)


def test_with_no_room_for_its_log_the_server_stops_and_loses_nothing() -> None:
    with server_on_small_disk("wal", 24 * 1_024) as (server, disk):
        server.execute("CREATE TABLE note (text text)")
        disk.fill()
        done: list[int] = []
        with pytest.raises(psycopg.OperationalError):
            write_much(server, done)
        wait_until(lambda: not server.alive())
        assert "PANIC" in server.log_text()
        disk.free()
        server.start()
        assert server.execute("SELECT count(*) FROM note") == [(len(done),)]


# --- wrong clocks -------------------------------------------------------------------------------


def ahead(server: Server) -> float:
    """By how much the server's clock is ahead of this machine's."""
    ((now,),) = server.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
    return float(now) - time.time()


def test_a_server_goes_by_a_clock_that_jumps_while_it_runs() -> None:
    with server_with_clock() as (server, clock):
        assert ahead(server) == pytest.approx(0, abs=60)
        with connected(server.url()) as connection, connection.transaction():
            clock.set(7_200)
            jumped = "SELECT extract(epoch FROM clock_timestamp() - now())::float8"
            assert connection.execute(jumped).fetchall() == [(pytest.approx(7_200, abs=60),)]
        assert ahead(server) == pytest.approx(7_200, abs=60)
        clock.set(-3_600)
        assert ahead(server) == pytest.approx(-3_600, abs=60)
        start = time.monotonic()
        server.execute("SELECT pg_sleep(0.2)")
        assert 0.2 <= time.monotonic() - start < 60


def test_a_killed_server_keeps_its_wrong_clock() -> None:
    with server_with_clock(86_400) as (server, _):
        server.kill()
        server.start()
        assert ahead(server) == pytest.approx(86_400, abs=60)


ASK = """
import sys, threading, time
print(time.time(), flush=True)
sys.stdin.readline()
start = time.monotonic()
threading.Event().wait(0.1)
print(time.time(), time.monotonic() - start, flush=True)
"""


def test_a_process_goes_by_a_clock_of_its_own() -> None:
    with wrong_clock(3_600) as clock:
        process = subprocess.Popen(
            [sys.executable, "-c", ASK],
            env={**os.environ, **clock.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert float(process.stdout.readline()) == pytest.approx(time.time() + 3_600, abs=60)
            clock.set(-600)
            process.stdin.write("go\n")
            process.stdin.flush()
            now, waited = map(float, process.stdout.readline().split())
            assert now == pytest.approx(time.time() - 600, abs=60)
            assert 0.09 <= waited < 60
