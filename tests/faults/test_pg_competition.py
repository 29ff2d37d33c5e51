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
    competition.run(1, rounds=100, kills=4, meanwhile=events)
    figures = competition.check()
    assert events.all_happened
    assert (figures.kills, figures.backends_ended) == (4, 3)
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
        competition.run(2, rounds=1_500, kills=60, meanwhile=events)
        figures = competition.check()
    assert events.all_happened
    assert (figures.kills, figures.backends_ended, figures.crashes) == (60, 45, 2)
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
        competition.run(3, rounds=700, kills=30, meanwhile=events)
        figures = competition.check()
    assert events.all_happened
    assert (figures.kills, figures.backends_ended) == (30, 12)
    assert figures.ends["completed"] > 25
