"""Many processes on one ledger in PostgreSQL, of which one is killed now and then; and the checks behind it.

:func:`supervise` is a process that forks the others off: so each begins within milliseconds. A test runs it,
does to the server what it likes meanwhile, and then has everything checked.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claim_register import ClaimRegister
from journals import Entry, Journal, read_journals
from linearizability import TooMuch, by_places, search
from log_audit import (
    Stored,
    as_asked_and_told,
    as_recorded,
    check_acknowledged,
    check_ends,
    check_log,
    check_times,
    settle,
)
from pg_competitor import Competitor, effect
from pg_ledgers import PgLedger
from processes import kill_all, worker
from scenarios import POLICY

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.infrastructure.event_store.codec import encode
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

AT_ONCE = 16


def open_ledger(url: str) -> Parts:
    """The ledger as anybody opens it."""
    return composition.open_postgres(
        url, policy=POLICY, registry=DEFAULT_REGISTRY, settings=Settings()
    )


def open_patiently(url: str, seconds: float = 60) -> Parts:
    """As whatever starts a service again: where there is no server, an opening fails at once."""
    end = time.monotonic() + seconds
    while True:
        try:
            return open_ledger(url)
        except StoreUnavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


# --- the processes ------------------------------------------------------------------------------


def supervise(
    folder: Path, url: str, seed: int, at_once: int, rounds: int, rounds_a_kill: int
) -> None:
    """Keep so many competitors at work, and kill (-9) one of them behind so many rounds, more or less.

    It ends when so many rounds are over, or there is a file ``end`` in ``folder``, where the journals come to
    lie. Says ``rounds`` and how many are over, again and again.
    """
    supervisor = _Supervisor(folder, url, seed)
    try:
        supervisor.run(at_once, rounds, rounds_a_kill)
    finally:
        supervisor.kill_all()


class _Supervisor:
    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self._folder = folder
        self._url = url
        self._seed = seed
        self._chance = random.Random(seed)
        self._children: dict[int, str] = {}
        self._number = 0
        self._stop = mmap.mmap(-1, 1)  # shared with all that are forked off
        self._ended, self._ends = os.pipe()

    def run(self, at_once: int, rounds: int, rounds_a_kill: int) -> None:
        for _ in range(at_once):
            self._another()
        done = death = 0
        while done < rounds and not (self._folder / "end").exists():
            done += self._rounds(0.2)
            _say("rounds", done)
            if done > death:
                if death:
                    time.sleep(self._chance.uniform(0, 0.02))
                    self._kill(self._chance.choice(list(self._children)))
                    self._another()
                death = done + self._chance.randint(1, 2 * rounds_a_kill)
            self._check_that_none_died()
        self._stop[0] = 1
        for pid in list(self._children):
            self._take_in(*os.waitpid(pid, 0))
        _say("done", done + self._rounds(0))

    def kill_all(self) -> None:
        """Whatever still runs."""
        for pid in list(self._children):
            self._kill(pid)

    def _another(self) -> None:
        self._number += 1
        name, seed = f"p{self._number}", self._seed * 10_000 + self._number
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._children[pid] = name
            return
        status = 1
        try:
            self._compete(name, seed, parent)
            status = 0
        except BaseException:  # noqa: BLE001 - nobody above may see it, who is another process
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _compete(self, name: str, seed: int, parent: int) -> None:
        path = self._folder / f"{name}.journal"
        with path.open("w", encoding="ascii") as file:
            parts = open_patiently(self._url)
            Competitor(name, parts, Journal(file), random.Random(seed)).work(
                lambda: not self._stop[0] and os.getppid() == parent,
                lambda: os.write(self._ends, b"."),
            )
            parts.close()

    def _rounds(self, seconds: float) -> int:
        """How many rounds ended; none within so many seconds is none."""
        if not select.select([self._ended], [], [], seconds)[0]:
            return 0
        return len(os.read(self._ended, 1 << 16))

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        _say("killed", self._children.pop(pid))

    def _check_that_none_died(self) -> None:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            self._take_in(pid, status)
            raise AssertionError("a process came to an end by itself")

    def _take_in(self, pid: int, status: int) -> None:
        name = self._children.pop(pid)
        assert status == 0, f"{name} ended with {status}"


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


# --- the test's side ----------------------------------------------------------------------------


@dataclass
class Figures:
    """What there was in a run."""

    seconds: float = 0.0
    rounds: int = 0
    commands: int = 0
    unanswered: int = 0
    events: int = 0
    acknowledged: int = 0
    beaten: int = 0
    found: int = 0
    kills: int = 0
    backends_ended: int = 0
    crashes: int = 0
    ends: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    sources: int = 0
    searched: int = 0

    def __str__(self) -> str:
        refused = ", ".join(f"{code} {count}" for code, count in self.refusals.most_common())
        return (
            f"{self.rounds} rounds in {self.seconds:.1f} s, {self.kills} processes killed, "
            f"{self.backends_ended} backends ended, {self.crashes} crashes of the server;\n"
            f"{self.commands} commands, {self.unanswered} of them unanswered, {self.beaten} times beaten "
            f"to it, {self.found} found done by another; "
            f"{self.events} events, {self.acknowledged} of them acknowledged;\n"
            f"identities: {self.ends['completed']} completed, {self.ends['exhausted']} exhausted; "
            f"refused: {refused};\n"
            f"{self.sources} sources linearizable by the log, {self.searched} of them also by search"
        )


@dataclass
class Competition:
    """A run on one ledger. ``url`` is the way that the processes take to it."""

    ledger: PgLedger
    folder: Path
    url: str
    figures: Figures = field(default_factory=Figures)

    def run(
        self,
        seed: int,
        *,
        rounds: int,
        rounds_a_kill: int,
        at_once: int = AT_ONCE,
        meanwhile: Callable[[int], None] = lambda _rounds: None,
    ) -> None:
        """Let them compete; ``meanwhile`` is told again and again how many rounds are over."""
        begun = time.monotonic()
        process = worker(
            "compete_on_postgres", self.folder, self.url, seed, at_once, rounds, rounds_a_kill
        )
        assert process.stdout
        try:
            for line in process.stdout:
                word, value = line.split()
                if word == "rounds":
                    meanwhile(int(value))
                elif word == "killed":
                    self.figures.kills += 1
                else:
                    self.figures.rounds += int(value)
            _, err = process.communicate()
            assert (process.returncode, err) == (0, ""), err
        finally:
            kill_all([process])
        self.figures.seconds += time.monotonic() - begun

    def end_backends(self, count: int) -> None:
        """Have the server end the processes behind some connections, whoever has those."""
        rows = self.ledger.execute(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() ORDER BY random() LIMIT %s) AS found",
            count,
        )
        self.figures.backends_ended += len(rows)

    def kill_backend(self) -> None:
        """Kill (-9) a server process behind a connection: then the server ends them all, and recovers."""
        rows = self.ledger.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
        )
        os.kill(int(str(rows[0][0])), signal.SIGKILL)
        self.figures.crashes += 1

    def check(self) -> Figures:
        """Complete what is not done yet, and check everything. Returns the figures, and prints them."""
        parts = open_ledger(self.ledger.url)
        try:
            self._complete(parts)
            entries, self.figures.found = settle(read_journals(self.folder))
            stored = self._stored(parts)
            check_log(stored)
            self.figures.acknowledged = check_acknowledged(stored, entries)
            self.figures.ends = check_ends(stored, {entry.about.identity for entry in entries})
            check_times(entries)
            check_read_models(parts)
        finally:
            parts.close()
        self._check_claims(entries, stored)
        self._count(entries, stored)
        print(f"\n{self.figures}")  # noqa: T201 - for whoever runs the test with -s
        return self.figures

    def _complete(self, parts: Parts) -> None:
        jobs = {(entry.about.from_pair, entry.about.number) for entry in read_journals(self.folder)}
        with (self.folder / "last.journal").open("w", encoding="ascii") as file:
            last = Competitor("last", parts, Journal(file), random.Random(0))
            for from_pair, number in sorted(jobs):
                last.complete(from_pair, number)

    def _stored(self, parts: Parts) -> list[Stored]:
        """The log, with the digests of its facts: what lies in the table is encrypted."""
        stored: list[Stored] = []
        for entry in Ledger(parts, Settings()).events():
            fact = entry.fact
            assert isinstance(fact, RangeFact)
            digest = hashlib.sha256(encode(fact)).hexdigest()
            stored.append(Stored(entry.index, entry.recorded_at, digest, fact, effect(fact)))
        return stored

    def _check_claims(self, entries: Sequence[Entry], stored: Sequence[Stored]) -> None:
        """The claims on each source are linearizable: by the log, and by the journals alone."""
        for history in as_recorded(entries, stored).values():
            by_places(history, ClaimRegister())
            self.figures.sources += 1
        for history in as_asked_and_told(entries).values():
            try:
                search(history, ClaimRegister())
            except TooMuch:
                continue
            self.figures.searched += 1

    def _count(self, entries: Sequence[Entry], stored: Sequence[Stored]) -> None:
        self.figures.commands = len(entries)
        self.figures.unanswered = sum(entry.told is None for entry in entries)
        self.figures.events = len(stored)
        self.figures.beaten = sum(entry.answer.beaten for entry in entries if entry.answer)
        self.figures.refusals = Counter(
            str(entry.told.refusal[0]) for entry in entries if entry.told and entry.told.refusal
        )


def check_read_models(parts: Parts) -> None:
    """The seal holds, and the rows are what a fold from zero makes of the log (P2)."""
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    verification = ledger.verify()
    assert (verification.findings, verification.lag) == ((), 0)
    fresh = MemoryReadModels(parts.context.registry)
    fresh.catch_up(parts.context.log)
    assert parts.read_models.records() == fresh.records()
