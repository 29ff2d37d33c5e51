"""Hints end a pause early, and nothing else: whatever becomes of who listens, polling goes on (L2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from backends import PostgresBackend
from kept_processes import wait_until

from compaction_ledger import Ledger, NewMessage, NewRun, SignalStop
from compaction_ledger.infrastructure.postgres import hints
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.hints import HintListener, HintSender, channel_of
from compaction_ledger.serving import Listener, Pace
from compaction_ledger.usecases.claiming import RangeOutcome


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(tmp_path)
    yield backend
    backend.close()


class Heard:
    """Whether a hint was heard."""

    def __init__(self) -> None:
        self._event = Event()
        self.set = self._event.set

    def wait(self, seconds: float) -> bool:
        """Until one is heard, and no longer than so."""
        heard = self._event.wait(seconds)
        self._event.clear()
        return heard


@pytest.fixture
def listener(store: PostgresBackend) -> Iterator[Heard]:
    heard = Heard()
    with HintListener(parse_address(store.url), heard.set):
        assert heard.wait(30)  # that it listens now
        yield heard


def listening_pids(store: PostgresBackend) -> list[int]:
    """The server processes that listen for hints of this ledger."""
    channel = channel_of(parse_address(store.url))
    rows = store.database().call(
        "SELECT pid FROM pg_stat_activity WHERE query = %s", (f'LISTEN "{channel}"',)
    )
    return [pid for (pid,) in rows]


@pytest.mark.slow
def test_a_hint_ends_the_pause(store: PostgresBackend, listener: Heard) -> None:
    assert not listener.wait(0.05)
    HintSender(store.database()).send()
    began = time.monotonic()
    assert listener.wait(30)
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_hints_of_another_ledger_are_not_ours(
    store: PostgresBackend, listener: Heard, tmp_path: Path
) -> None:
    other = PostgresBackend(tmp_path)
    try:
        HintSender(other.database()).send()
        assert not listener.wait(1)
    finally:
        other.close()


@pytest.mark.slow
def test_many_hints_are_few_notifications(store: PostgresBackend) -> None:
    address = parse_address(store.url)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f'LISTEN "{channel_of(address)}"'.encode())
        sender = HintSender(store.database())
        began = time.monotonic()
        for _ in range(200):
            sender.send()
        most = 2 + (time.monotonic() - began) / hints.SECONDS_BETWEEN
        assert 1 <= len(list(connection.notifies(timeout=0.5))) <= most


@pytest.mark.slow
def test_a_listening_connection_that_is_killed_is_made_anew(
    store: PostgresBackend, listener: Heard
) -> None:
    (pid,) = listening_pids(store)
    store.database().call("SELECT pg_terminate_backend(%s)", (pid,))
    wait_until(lambda: bool(set(listening_pids(store)) - {pid}))
    assert listener.wait(30)  # once for what may have been missed
    HintSender(store.database()).send()
    assert listener.wait(30)


def test_a_sender_without_a_store_is_no_error(store: PostgresBackend) -> None:
    database = store.database()
    database.close()
    HintSender(database).send()


@pytest.mark.slow
def test_who_waits_for_work_is_woken_by_what_another_process_notices(
    store: PostgresBackend,
) -> None:
    with Ledger.open(store.url) as worker, Ledger.open(store.url) as host:
        stop, done = SignalStop(), Event()

        class Told(Listener):
            def range_done(self, scope: str, conversation: str, outcome: RangeOutcome) -> None:
                done.set()

        pace = Pace(threads=1, poll=3_600, discover=3_600)
        thread = Thread(target=lambda: worker.work(stop=stop, pace=pace, listener=Told()))
        thread.start()
        try:
            wait_until(lambda: bool(listening_pids(store)))
            time.sleep(4)  # by now the thread waits for seconds, and soon for an hour
            for n in range(30):
                lines = [
                    NewMessage(f"u{n}", f"r{n}", "user", "What does it cost?"),
                    NewMessage(f"a{n}", f"r{n}", "assistant", f"It costs {n} EUR. That is all."),
                ]
                host.transcripts.append("s", "c", lines, [NewRun(f"r{n}")])
            host.notice([("s", "c")])
            assert done.wait(60)
        finally:
            stop.request()
            thread.join()
