"""Sixteen processes on eight ranges of a ledger in PostgreSQL, and what may happen to them and to the server.

How many rounds there were, and what came of them, is printed (``pytest -s``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pg_bouncer import running_bouncer
from pg_competition import Competition
from pg_ledgers import PgLedger, ledger_on
from pg_servers import running_server
from processes import output, running, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(pg_server: str) -> Iterator[PgLedger]:
    """A ledger on the server that all tests share."""
    with ledger_on(pg_server) as one:
        yield one


class Events:
    """What is to happen when so many rounds are over; each once."""

    def __init__(self, events: Mapping[int, Callable[[], object]]) -> None:
        self._left = sorted(events.items())

    def __call__(self, rounds: int) -> None:
        while self._left and self._left[0][0] <= rounds:
            self._left.pop(0)[1]()

    @property
    def all_happened(self) -> bool:
        """Whether none is left."""
        return not self._left


def test_processes_compete_and_some_are_killed(ledger: PgLedger, tmp_path: Path) -> None:
    competition = Competition(ledger, tmp_path, ledger.url)
    events = Events({30: lambda: competition.end_backends(3)})
    competition.run(1, rounds=100, rounds_a_kill=20, meanwhile=events)
    figures = competition.check()
    assert events.all_happened
    assert figures.kills
    assert figures.backends_ended == 3
    assert figures.rounds >= 100
    assert figures.ends["completed"] > 5
    assert figures.acknowledged > 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_are_killed_backends_end_and_the_server_crashes(tmp_path: Path) -> None:
    with running_server() as server, ledger_on(server.url()) as ledger:
        competition = Competition(ledger, tmp_path, ledger.url)

        def crash() -> None:
            server.kill()
            server.start()
            competition.figures.crashes += 1

        ends = {rounds: lambda: competition.end_backends(3) for rounds in range(60, 1_500, 100)}
        events = Events({**ends, 500: competition.kill_backend, 1_000: crash})
        competition.run(2, rounds=1_500, rounds_a_kill=25, meanwhile=events)
        figures = competition.check()
    assert events.all_happened
    assert figures.kills > 30
    assert (figures.backends_ended, figures.crashes) == (45, 2)
    assert figures.rounds >= 1_500
    assert figures.ends["completed"] > 50
    assert figures.acknowledged > 1_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_are_killed_and_backends_end_behind_a_pooler(tmp_path: Path) -> None:
    with (
        running_server() as server,
        running_bouncer(server.url(), pool_size=8) as bouncer,
        ledger_on(server.url()) as ledger,
    ):
        competition = Competition(ledger, tmp_path, ledger.at(bouncer.url()))
        ends = {rounds: lambda: competition.end_backends(2) for rounds in range(50, 600, 100)}
        events = Events(ends)
        competition.run(3, rounds=700, rounds_a_kill=25, meanwhile=events)
        figures = competition.check()
    assert events.all_happened
    assert figures.kills > 15
    assert figures.backends_ended == 12
    assert figures.ends["completed"] > 25


# --- rebuilding under writes (P3) ---------------------------------------------------------------

BATCH = 25


def serving(ledger: PgLedger) -> int:
    """The number of the rows that serve."""
    ((number,),) = ledger.execute("SELECT generation FROM {read_models}.generations WHERE active")
    return int(str(number))


def rebuild_and_die(ledger: PgLedger, path: Path) -> None:
    """Begin to rebuild, and be killed halfway: what served before serves on."""
    before = serving(ledger)
    with running("rebuild_on_postgres", path, ledger.url, BATCH, 0.1) as rebuilding:
        done, total = map(int, wait_for(rebuilding, "progress"))
    assert 0 < done < total
    assert serving(ledger) == before


def rebuild(ledger: PgLedger, path: Path) -> None:
    """Rebuild to the end, while the log grows."""
    before = serving(ledger)
    with running("rebuild_on_postgres", path, ledger.url, BATCH, 0.02) as rebuilding:
        (size,) = map(int, wait_for(rebuilding, "began"))
        (position,) = map(int, wait_for(rebuilding, "ended"))
        assert output(rebuilding) == ""
    assert position > size > 2 * BATCH
    assert serving(ledger) > before


def rebuild_under_writes(ledger: PgLedger, folder: Path, each: int) -> None:
    """Two rebuilds by two processes and one that is killed, with so many rounds in between.

    While three processes write, of which some are killed, and one follows.
    """
    end = folder / "end"
    competition = Competition(ledger, folder, ledger.url)
    events = Events(
        {
            2 * each: lambda: rebuild_and_die(ledger, folder),
            3 * each: lambda: rebuild(ledger, folder),
            4 * each: lambda: rebuild(ledger, folder),
            5 * each: end.touch,
        }
    )
    with running("follow_on_postgres", end, ledger.url) as follower:
        wait_for(follower, "following")
        competition.run(4, rounds=10**6, rounds_a_kill=each, at_once=3, meanwhile=events)
        compared, position = map(int, wait_for(follower, "compared"))
        assert output(follower) == ""
    assert events.all_happened
    assert compared > 5
    assert position > 4 * BATCH
    competition.check()  # every row of each table (P2)
    assert ledger.execute("SELECT count(*) FROM {read_models}.generations") == [(1,)]
    tables = ledger.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ '^summaries_[0-9]'",
        ledger.address.read_models_schema,
    )
    assert tables == [(f"summaries_{serving(ledger)}",)]  # nothing is left of those before


@pytest.mark.slow  # conformance/test_read_models.py has shorter ones
def test_rebuilds_under_writes_are_a_fold_from_zero(ledger: PgLedger, tmp_path: Path) -> None:
    rebuild_under_writes(ledger, tmp_path, 20)


@pytest.mark.slow
def test_rebuilds_under_many_writes_are_a_fold_from_zero(tmp_path: Path) -> None:
    with running_server() as server, ledger_on(server.url()) as ledger:
        rebuild_under_writes(ledger, tmp_path, 80)
