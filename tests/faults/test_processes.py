"""Several processes on one file: competition, kill -9 at every step, take-over, a paused worker."""

from __future__ import annotations

import hashlib
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from backends import SECOND, START, SQLiteBackend
from histories import (
    CONVERSATION,
    LEASE,
    SCOPE,
    TRUNCATED,
    Worker,
    fill,
    key_of,
    made_up_job,
    present_job,
)
from kept_processes import wait_until
from processes import Process, kill_all, output, running, tell, wait_for, worker

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    Exhausted,
    LeaseExpired,
    NotTheHolder,
    Refused,
)
from compaction_ledger.domain.events import (
    AttemptStarted,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
)
from compaction_ledger.infrastructure.event_store.codec import encode
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

JOB = made_up_job()


def journaled(folder: Path) -> list[tuple[int, str]]:
    """What the workers knew to be stored: index and digest. A line cut by a kill says nothing."""
    known: list[tuple[int, str]] = []
    for journal in folder.glob("*.journal"):
        for line in journal.read_text(encoding="ascii").splitlines(keepends=True):
            if line.endswith("\n"):
                index, digest = line.split()
                known.append((int(index), digest))
    return known


def everything_holds(parts: Parts) -> None:
    """What must be so whatever was killed: dense, sealed, projected, and A2, A3 per identity."""
    ledger = Ledger(parts, Settings())
    entries = list(ledger.events())
    assert [entry.index for entry in entries] == list(range(ledger.size()))
    completions = Counter(e.fact.identity for e in entries if isinstance(e.fact, RangeCompleted))
    started = Counter(e.fact.identity for e in entries if isinstance(e.fact, AttemptStarted))
    assert set(completions.values()) <= {1}
    assert set(started.values()) <= {1, 2}
    ledger.catch_up()
    verification = ledger.verify()
    assert (verification.findings, verification.lag) == ((), 0)
    fresh = MemoryReadModels(parts.context.registry)
    fresh.catch_up(parts.context.log)
    assert parts.read_models.records() == fresh.records()


# --- competition --------------------------------------------------------------------------------


class Competition:
    """Processes on the same ranges; some are killed at random, and others take their place."""

    def __init__(self, store: SQLiteBackend, seed: int) -> None:
        self.store = store
        self.seed = seed
        self.started: list[Process] = []
        store.open()  # the file is there before the race (another test races for that)

    def another(self, rounds: int) -> Process:
        number = len(self.started) + 1
        process = worker(
            "compete",
            self.store.path,
            f"p{number}",
            str(self.store.folder / f"{number}.journal"),
            self.seed * 1_000 + number,
            rounds,
            RANGES,
            30_000,  # microseconds of lease: what is forgotten is soon taken over
        )
        self.started.append(process)
        return process

    def run(self, *, workers: int, rounds: int, kills: int) -> None:
        chance = random.Random(self.seed)
        try:
            lasting = [self.another(rounds) for _ in range(workers)]
            for _ in range(kills):
                victim = self.another(1_000_000)
                wait_for(victim, "working")
                time.sleep(chance.uniform(0.0, 0.3))
                kill_all([victim])
            for process in lasting:
                assert output(process).split() == ["working", "done"]
        finally:
            kill_all(self.started)

    def check(self) -> None:
        parts = self.store.open()
        everything_holds(parts)
        facts = [entry.fact for entry in Ledger(parts, Settings()).events()]
        digests = [hashlib.sha256(encode(fact)).hexdigest() for fact in facts]
        known = journaled(self.store.folder)
        assert len(known) > 50
        assert len({index for index, _ in known}) == len(known)  # each acknowledged append once
        assert [index for index, digest in known if digests[index] != digest] == []
        kinds = Counter(type(fact).__name__ for fact in facts)
        assert min(kinds[name] for name in ("RangeCompleted", "ClaimReleased", "AttemptFailed")) > 3


RANGES = 40


@pytest.mark.slow
def test_processes_compete_and_some_are_killed(store: SQLiteBackend) -> None:
    competition = Competition(store, seed=1)
    competition.run(workers=5, rounds=40, kills=3)
    competition.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_processes_compete_and_many_are_killed(store: SQLiteBackend, seed: int) -> None:
    competition = Competition(store, seed)
    competition.run(workers=8, rounds=80, kills=15)
    competition.check()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_processes_open_an_empty_path_at_once(store: SQLiteBackend, processes: int) -> None:
    opening = [worker("open_first", store.path) for _ in range(processes)]
    try:
        for process in opening:
            wait_for(process, "ready")
        for process in opening:
            tell(process)
        assert [output(process).split() for process in opening] == [
            ["opened", "0", "0"]
        ] * processes
    finally:
        kill_all(opening)
    parts = store.open()
    assert len(parts.transcripts.conversation(SCOPE, CONVERSATION).messages) == processes
    everything_holds(parts)


# --- kill -9 at every step ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "attempts"), [(1, 0), (2, 1)], ids=["after the claim", "after the start"]
)
def test_what_a_killed_worker_held_is_taken_over_after_its_lease(
    store: SQLiteBackend, steps: int, attempts: int
) -> None:
    with running("hold", store.path, START, steps) as killed:
        wait_for(killed, "held")
    parts = store.open()
    other = Worker(parts, JOB, "other")
    with pytest.raises(AlreadyClaimed) as refusal:
        other.claim()
    assert (refusal.value.holder, refusal.value.expires_at) == ("held", START + LEASE)
    store.clock.now = START + LEASE - 1
    with pytest.raises(AlreadyClaimed):
        other.claim()
    store.clock.now = START + LEASE
    other.claim()
    assert parts.context.log.load(key_of(JOB)).attempts.get(JOB.identity, 0) == attempts  # A6
    other.start()
    other.finish()
    everything_holds(parts)


@pytest.mark.slow
def test_what_a_killed_worker_finished_stays_finished(store: SQLiteBackend) -> None:
    with running("hold", store.path, START, 3) as killed:
        wait_for(killed, "held")
    parts = store.open()
    store.clock.now = START + 10 * LEASE
    with pytest.raises(AlreadyCompleted):
        Worker(parts, JOB, "other").claim()
    everything_holds(parts)


@pytest.mark.slow
def test_two_killed_attempts_exhaust_the_identity(store: SQLiteBackend) -> None:
    now = START
    with running("hold", store.path, now, 2) as killed:
        wait_for(killed, "held")
    store.clock.now = now + LEASE
    parts = store.open()
    second = Worker(parts, JOB, "second")
    second.claim()
    second.start()  # and is never heard of again
    store.clock.now += LEASE
    with pytest.raises(Exhausted):
        Worker(parts, JOB, "third").claim()
    assert (
        parts.context.log.load(key_of(JOB)).open == {}
    )  # both ends are recorded all the same (A5)
    everything_holds(parts)


@pytest.mark.slow
def test_a_process_killed_within_a_transaction_leaves_nothing(store: SQLiteBackend) -> None:
    parts = store.open()
    Worker(parts, made_up_job(10), "before").complete()
    with running("in_transaction", store.path) as killed:
        wait_for(killed, "open")
    begun = time.monotonic()
    assert Worker(parts, JOB, "after").claim().indices == [3]
    assert time.monotonic() - begun < 25  # the dead process's lock is gone
    assert parts.context.log.size() == 4
    everything_holds(parts)


@pytest.mark.slow
def test_a_writer_waits_for_a_transaction_of_another_process(store: SQLiteBackend) -> None:
    parts = store.open()
    with running("in_transaction", store.path) as other:
        wait_for(other, "open")
        assert parts.context.log.size() == 0  # readers do not wait
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(Worker(parts, JOB).claim)
            time.sleep(0.2)
            assert not waiting.done()
            tell(other)
            assert output(other) == ""
            assert waiting.result().indices == [1]


# --- stopped and continued ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_paused_past_its_lease_is_refused(store: SQLiteBackend) -> None:
    store.clock.now = time.time_ns() // 1_000
    parts = store.open()
    with running("finish_late", store.path, 60 * SECOND) as paused:
        wait_for(paused, "started")
        paused.send_signal(signal.SIGSTOP)
        store.clock.now = time.time_ns() // 1_000 + 60 * SECOND
        other = Worker(parts, JOB, "other")
        other.claim()
        other.start()
        other.finish()
        tell(paused)
        paused.send_signal(signal.SIGCONT)
        assert wait_for(paused, "refused") == [NotTheHolder.code]
    completions = parts.context.log.load(key_of(JOB)).completions
    assert [completion.by for completion in completions.values()] == ["other-claim"]
    everything_holds(parts)


@pytest.mark.slow
def test_a_worker_paused_past_its_lease_is_refused_though_nobody_took_over(
    store: SQLiteBackend,
) -> None:
    parts = store.open()
    with running("finish_late", store.path, 2 * SECOND) as paused:
        wait_for(paused, "started")
        paused.send_signal(signal.SIGSTOP)
        wait_until(lambda: lease_is_over(parts))
        tell(paused)
        paused.send_signal(signal.SIGCONT)
        assert wait_for(paused, "refused") == [LeaseExpired.code]
    state = parts.context.log.load(key_of(JOB))
    assert (dict(state.completions), dict(state.open)) == ({}, {})
    assert [ended.result for ended in state.ended.values()] == ["lease_expired"]
    everything_holds(parts)


@pytest.mark.slow
def test_a_worker_that_renews_is_refused_too_once_it_was_paused_past_its_lease(
    store: SQLiteBackend,
) -> None:
    parts = store.open()
    fill(parts)
    with running("compact_when_told", store.path, 3.0) as paused:
        wait_for(paused, "asked")
        wait_until(lambda: names(parts).count("ClaimRenewed") == 4)
        paused.send_signal(signal.SIGSTOP)
        renewed = parts.context.log.size()
        wait_until(lambda: lease_is_over(parts))
        assert parts.context.log.size() == renewed
        tell(paused)
        paused.send_signal(signal.SIGCONT)
        assert wait_for(paused, "result") == ["refused"]
    assert {"AttemptFailed", "ClaimReleased"} <= set(names(parts))
    assert "RangeCompleted" not in names(parts)
    everything_holds(parts)


@pytest.mark.slow
def test_a_killed_worker_renews_nothing_any_more(store: SQLiteBackend) -> None:
    parts = store.open()
    fill(parts)
    with running("compact_when_told", store.path, 3.0) as killed:
        wait_for(killed, "asked")
        wait_until(lambda: "ClaimRenewed" in names(parts))
        kill_all([killed])
    renewed = parts.context.log.size()
    time.sleep(1.1)  # it would be renewed each second
    assert parts.context.log.size() == renewed
    store.clock.now = time.time_ns() // 1_000 + 3 * SECOND
    other = Worker(store.open(), present_job(parts), "other")
    other.claim()
    other.start()
    other.finish()
    everything_holds(parts)


def lease_is_over(parts: Parts) -> bool:
    """By this machine's clock, which the worker goes by."""
    facts = [entry.fact for entry in parts.context.log.read(0, 10**6)]
    claims = [one for one in facts if isinstance(one, RangeClaimed | AttemptStarted | ClaimRenewed)]
    return time.time_ns() // 1_000 > claims[-1].expires_at


def names(parts: Parts) -> list[str]:
    return [type(entry.fact).__name__ for entry in parts.context.log.read(0, 10**6)]


# --- clocks that jump (A5) ----------------------------------------------------------------------

DAY = 86_400 * SECOND


@pytest.mark.parametrize("seed", range(8))
def test_jumping_clocks_never_make_two_completions_or_a_third_attempt(
    store: SQLiteBackend, seed: int
) -> None:
    chance = random.Random(seed)
    parts = store.open()
    workers = [Worker(store.open(), JOB, f"w{number}") for number in range(4)]
    for step in range(120):
        store.clock.now = START + chance.randint(-3 * DAY, 3 * DAY)
        one = chance.choice(workers)
        action = chance.choice((one.claim, one.start, one.renew, one.finish, one.release))
        with suppress(Refused):
            if action == one.claim:
                one.claim_id = f"claim-{step}"
                one.claim()
            elif action == one.finish:
                one.finish(chance.choice((None, TRUNCATED)))
            else:
                action()
    everything_holds(parts)


# --- processes that fork with a ledger open -----------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="locks can be looked at on Linux only")
@pytest.mark.parametrize("within_a_call", [False, True])
def test_a_forked_process_has_connections_of_its_own(tmp_path: Path, within_a_call: bool) -> None:
    """SQLite keeps its locks by process: with an inherited connection the child would have none."""
    store = SQLiteBackend(tmp_path)
    store.open()
    store.close()
    with running("fork", store.path, within_a_call) as process:
        if within_a_call:
            assert "forked" in wait_for(process, "refused")
        size, locks = map(int, wait_for(process, "child"))
        assert size == 6
        assert within_a_call or locks > 0
        tell(process)
        assert wait_for(process, "parent") == ["6", "6"]
        assert wait_for(process, "status") == ["0"]
        assert wait_for(process, "end") == ["9", "9"]
        assert output(process) == ""
    assert Ledger(store.open(), Settings()).verify().ok
    store.close()
