"""Processes that have the same run of an agent open, prepare and compact it, and are killed at any moment
(A1 to A5, A8, T8, T10, T11).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from disks import small_disk
from pg_ledgers import ledger_on
from processes import Process, kill_all, tell, wait_for
from window_runs import PLACE, growing
from window_tasks import BUDGET, WORDS, opened, worker

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import DiskFull
from compaction_ledger.domain.window.events import (
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkCompleted,
    PinAccepted,
)
from compaction_ledger.domain.window.keys import WindowKey

KEY = WindowKey(*PLACE)


@dataclass(frozen=True, slots=True)
class Load:
    processes: int
    turns: int
    kills: int
    seed: int


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A ledger that exists."""
    if request.param == "postgres":
        with ledger_on(request.getfixturevalue("pg_server")) as made:
            yield made.url
        return
    path = str(tmp_path / "run.db")
    Ledger.open(path).close()
    yield path


@pytest.mark.slow
@pytest.mark.parametrize(
    "load",
    [
        pytest.param(Load(2, 12, 1, 1), id="few"),
        pytest.param(Load(5, 40, 8, 2), id="many", marks=pytest.mark.slow),
        pytest.param(Load(4, 40, 16, 3), id="often-killed", marks=pytest.mark.slow),
    ],
)
def test_processes_that_are_killed_leave_a_run_that_holds(place: str, load: Load) -> None:
    digests = worked(place, load)
    assert len(digests) == 1  # T10: every process comes to the same request, byte for byte
    messages = list(growing(load.turns, WORDS))[-1]
    with Ledger.open(place) as ledger:
        log = ledger._parts.context.log
        facts = [entry.fact for entry in log.history(KEY)]
        completed = Counter(f.identity for f in facts if isinstance(f, ChunkCompleted))
        attempts = Counter(f.identity for f in facts if isinstance(f, ChunkAttemptStarted))
        pins = Counter((f.message, f.quote) for f in facts if isinstance(f, PinAccepted))
        assert completed
        assert set(completed.values()) == {1}  # A1, A2
        assert max(attempts.values()) <= 2  # A3
        assert set(pins.values()) == {1}
        assert {quote for _, quote in pins} >= {
            w.strip() for n, w in WORDS.items() if n < load.turns
        }
        chunks = log.load_window(KEY).chunks
        assert chunks[0].first == 1  # T8, T11: from the head on, without a gap
        assert all(one.last + 1 == other.first for one, other in pairwise(chunks))
        jobs = [fact.job for fact in facts if isinstance(fact, ChunkClaimed)]
        assert all(messages[job.last + 1]["role"] == "user" for job in jobs)  # T4
        originals = ledger._parts.originals.read(KEY)
        assert [original.position for original in originals] == list(range(len(messages)))
        prepared = opened(ledger, 0).prepare(messages)
        assert prepared.rejected == ()
        assert prepared.tokens <= BUDGET.limit
        assert {prepared.manifest.request_digest} == digests


def worked(place: str, load: Load) -> set[str]:
    """Let processes work and kill some; the digests of the requests that all that are left come to."""
    chance = random.Random(load.seed)
    processes = [worker(place, n, load.turns) for n in range(load.processes)]
    started = load.processes
    try:
        for process in processes:
            wait_for(process, "begun")
        for _ in range(load.kills):
            time.sleep(chance.random() * 0.4)
            victim = chance.randrange(len(processes))
            kill_all([processes[victim]])
            processes[victim] = worker(place, started, load.turns)
            started += 1
            if chance.random() < 0.5:
                wait_for(processes[victim], "begun")
        for process in processes:
            wait_for(process, "worked")
        return {asked(process) for process in processes}
    finally:
        kill_all(processes)


def asked(process: Process) -> str:
    tell(process)
    (digest, _) = wait_for(process, "request")
    return digest


@pytest.mark.slow
def test_a_full_disk_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    """T2, A11: requests go as they are, nothing is half recorded, and only room was missing."""
    lists = list(growing(90, WORDS))
    with small_disk(tmp_path / "small", 1_000) as folder:
        filler = folder / "filler"
        with Ledger.open(folder / "run.db") as ledger:
            window = opened(ledger, 0)
            call = window.wrap(lambda messages: messages)
            for messages in lists[:40]:
                call(messages=messages)
            with suppress(OSError), filler.open("wb") as file:
                for _ in range(1_000):
                    file.write(b"x" * 1_024)
                    file.flush()
            refused: list[DiskFull] = []
            for messages in lists[40:]:
                try:
                    window.prepare(messages)
                except DiskFull as error:
                    refused.append(error)
            assert refused
            assert call(messages=lists[-1]) is lists[-1]
            filler.unlink()
            prepared = window.prepare(lists[-1])
            assert prepared.tokens <= BUDGET.limit
            kept = ledger._parts.originals.read(KEY)
            assert [original.position for original in kept] == list(range(len(lists[-1])))
            said = {w.strip() for n, w in WORDS.items() if n < 90}
            assert {pin.quote for pin in window.pins()} >= said  # T9
