"""What the processes of ``processes`` do. Run as a script: task, ledger, arguments as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from eventsourcing.persistence import StoredEvent
from histories import CONVERSATION, LEASE, SCOPE, TRUNCATED, UNAVAILABLE, Worker, made_up_job
from pg_competition import supervise
from pg_followers import follow_and_compare, rebuild_slowly
from scenarios import good

from compaction_ledger import (
    Answer,
    Ledger,
    LedgerError,
    ModelIdentity,
    NewMessage,
    NewRun,
    Refused,
    SummaryRequest,
    composition,
)
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.event_store.codec import encode
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database
from compaction_ledger.infrastructure.sqlite.database import open_database
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.range_session import Outcome


def say(*words: object) -> None:
    """Say a line to the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Until the test says something."""
    sys.stdin.readline()


@contextmanager
def opened(path: Path, clock: Callable[[], int] = composition.system_clock) -> Iterator[Parts]:
    """A session on the ledger, by a clock of the test's choice."""
    parts = composition.open_sqlite(
        path, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings(), clock=clock
    )
    yield parts
    parts.close()


def append(path: Path, name: str, count: int) -> None:
    """Append messages to one conversation, one by one."""
    with Ledger.open(path) as ledger:
        for n in range(count):
            message = f"{name}-{n}"
            lines = [NewMessage(message, message, "user", message)]
            ledger.transcripts.append(SCOPE, CONVERSATION, lines, [NewRun(message)])


def follow(path: Path, size: int) -> None:
    """Catch up until so many facts are reflected."""
    with Ledger.open(path) as ledger:
        while ledger.catch_up() < size:
            pass


def rebuild(path: Path, batch: int) -> None:
    """Rebuild in batches of so many facts, and wait after each."""
    from compaction_ledger.projections import postgres, sqlite  # noqa: PLC0415 - an extra

    postgres.PostgresStore.rebuild_batch = sqlite.SQLiteStore.rebuild_batch = batch

    def told(done: int, total: int) -> None:
        say("progress", done, total)
        wait()

    with Ledger.open(path) as ledger:
        ledger.rebuild(told)


def stand_still(url: str, step: str) -> None:
    """Rebuild on PostgreSQL, and stand still within the transaction of the first batch."""
    from compaction_ledger.projections import postgres  # noqa: PLC0415 - an extra

    session: Any = postgres.PostgresSession
    taken = getattr(session, step)

    def held(self: Any, *arguments: Any) -> Any:
        setattr(session, step, taken)
        if step == "_copy":
            with self._cursor.copy(self._sql(postgres._copy_into(*arguments[:2]))):
                say("held")
                wait()
        else:
            say("held")
            wait()
        return taken(self, *arguments)

    setattr(session, step, held)
    with Ledger.open(url) as ledger:
        say("done", ledger.rebuild())


def open_first(path: Path) -> None:
    """Open (and make) the ledger when told to."""
    say("ready")
    wait()
    with Ledger.open(path) as ledger:
        say("opened", ledger.size(), ledger.catch_up())
        ledger.transcripts.append(SCOPE, CONVERSATION, [NewMessage(uuid4().hex, "r", "user", "t")])


def open_once(path: Path) -> None:
    """Open the ledger and append a line; say which error there was."""
    try:
        with Ledger.open(path) as ledger:
            message = NewMessage(uuid4().hex, "r", "user", "t")
            ledger.transcripts.append(SCOPE, CONVERSATION, [message])
    except LedgerError as error:
        say("error", type(error).__name__)
    else:
        say("fine")


def open_as(path: Path, user: int) -> None:
    """Open the ledger as somebody else."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    open_once(path)


def fill_limited(path: Path, size: int) -> None:
    """Append until no file may grow any more; say the error, and how much was stored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    stored = 0
    with Ledger.open(path) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            while True:
                message = NewMessage("m", "r", "user", "x" * 200_000)
                ledger.transcripts.append(SCOPE, f"c{stored}", [message])
                stored += 1
        except StoreError as error:
            say(type(error).__name__, stored)


def hold(path: Path, now: int, steps: int) -> None:
    """Claim, start, finish a range: so many of these steps, and then wait."""
    with opened(path, lambda: now) as parts:
        one = Worker(parts, made_up_job(), "held")
        for step in (one.claim, one.start, one.finish)[:steps]:
            step()
        say("held")
        wait()


def finish_late(path: Path, lease: int) -> None:
    """Claim and start by the machine's clock, wait, and come back with a perfect summary."""
    with opened(path) as parts:
        one = Worker(parts, made_up_job(), "paused")
        one.claim(lease)
        one.start(1, lease)
        say("started")
        wait()
        try:
            one.finish()
        except Refused as refusal:
            say("refused", refusal.code)
        else:
            say("accepted")


def compact_when_told(path: Path, lease: float) -> None:
    """Compact, with a model that answers when it is told to; say what became of the first range."""

    class Slow:
        model = ModelIdentity.of("example.org", "slow")

        def summarize(self, request: SummaryRequest) -> Answer:
            say("asked", request.replies[0].message_id)
            wait()
            return good()

    with Ledger.open(path, settings=Settings(lease_seconds=lease)) as ledger:
        report = ledger.compact(CONVERSATION, scope=SCOPE, summarizer=Slow())
        say("result", report.outcomes[0].result)


def in_transaction(path: Path) -> None:
    """Seal an event, and wait before the commit."""
    database = open_database(path)
    recorder = SealedSQLiteRecorder(database, composition.system_clock)
    events = [StoredEvent(uuid4(), 1, "RangeClaimed@1", b"{}")]
    with database.transaction(commit=True) as cursor:
        recorder._seal(cursor, events, "5" * 32)
        say("open")
        wait()


def compete(
    path: Path, name: str, journal: str, seed: int, rounds: int, ranges: int, lease: int
) -> None:
    """Work on random ranges like any worker; keep a durable journal of what was acknowledged."""
    chance = random.Random(seed)
    with opened(path) as parts, Path(journal).open("a", encoding="ascii") as file:

        def acknowledged(outcome: Outcome) -> None:
            for index, fact in zip(outcome.indices, outcome.facts, strict=True):
                digest = hashlib.sha256(encode(fact)).hexdigest()
                file.write(f"{index} {digest}\n")
            file.flush()
            os.fsync(file.fileno())

        say("working")
        for number in range(rounds):
            job = made_up_job(10 * chance.randrange(ranges))
            one = Worker(parts, job, f"{name}-{number}")
            try:
                acknowledged(one.claim(lease))
                if chance.random() < 0.2:
                    acknowledged(one.release())
                    continue
                acknowledged(one.start(1, LEASE if chance.random() < 0.5 else lease))
                if chance.random() < 0.2:
                    continue  # forgotten: somebody will take it over
                answer = chance.choice((good(f"By {name}."), TRUNCATED, UNAVAILABLE))
                acknowledged(one.finish(answer))
            except Refused:
                continue
            if chance.random() < 0.3:
                parts.read_models.catch_up(parts.context.log)
    say("done")


def compete_on_postgres(
    path: Path, url: str, seed: int, at_once: int, rounds: int, rounds_a_kill: int
) -> None:
    """Fork processes off that work on random ranges; their journals come to lie in the folder ``path``."""
    supervise(path, url, seed, at_once, rounds, rounds_a_kill)


def follow_on_postgres(path: Path, url: str) -> None:
    """Follow the log until there is a file at ``path``; compare each time."""
    follow_and_compare(path, url, say)


def rebuild_on_postgres(_path: Path, url: str, batch: int, pause: float) -> None:
    """Rebuild in batches of a size, and pause behind each."""
    rebuild_slowly(url, batch, pause, say)


def share_slots(path: Path, url: str, limit: int, lease: float, seed: int) -> None:
    """Take slots of a database and give them back, until there is a file at ``path``."""
    chance = random.Random(seed)
    database = Database(parse_address(url))
    admission = SharedAdmission(database, limit, f"p{seed}", lease, ticket_seconds=1)
    say("working")
    while not path.exists():
        leave = admission.admit()
        if leave is not None:
            time.sleep(
                lease if chance.random() < 0.1 else 0.02 * chance.random()
            )  # some are renewed
            leave()
        time.sleep(chance.uniform(0, 0.02))
    admission.close()
    database.close()


def hold_slots(path: Path, url: str, limit: int, lease: float) -> None:
    """Take all the slots of a database, and hold them for ever."""
    admission = SharedAdmission(Database(parse_address(url)), limit, "holder", lease)
    leaves = [admission.admit() for _ in range(limit)]
    say("holding", sum(leave is not None for leave in leaves))
    wait()


def fork(path: Path, within_a_call: bool) -> None:
    """Fork with a ledger open, and go on in both processes. The child ends first, as any process ends."""
    with opened(path) as parts:
        Worker(parts, made_up_job(0), "before").complete()
        parts.read_models.catch_up(parts.context.log)
        database = parts.context.log.sealed.datastore  # type: ignore[attr-defined]
        call = database.transaction(commit=False)
        if within_a_call:
            call.__enter__().execute("SELECT count(*) FROM stored_events")
        gone, parent = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(parent)
            if within_a_call:
                try:
                    call.__exit__(None, None, None)
                except StoreError as error:
                    say("refused", error)
            Worker(parts, made_up_job(10), "child").complete()
            parts.read_models.catch_up(parts.context.log)
            say("child", parts.context.log.size(), _locks(path))
            os.read(gone, 1)  # until the parent closes its end
            sys.exit(0)
        wait()
        say("parent", parts.context.log.size(), parts.read_models.position())
        Worker(parts, made_up_job(20), "after").complete()
        os.close(parent)
        say("status", os.waitpid(child, 0)[1])
        if within_a_call:
            call.__exit__(None, None, None)
        parts.read_models.catch_up(parts.context.log)
        say("end", parts.context.log.size(), parts.read_models.position())


def _locks(path: Path) -> int:
    """How many locks this process itself holds on the ledger's files."""
    files = {path.with_name(path.name + end).stat().st_ino for end in ("", "-shm")}
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(
        int(words[4]) == os.getpid() and int(words[5].rpartition(":")[2]) in files
        for words in held
        if words[1] != "->"
    )


TASKS = (
    fork,
    append,
    follow,
    rebuild,
    stand_still,
    open_first,
    open_once,
    open_as,
    fill_limited,
    hold,
    finish_late,
    compact_when_told,
    in_transaction,
    compete,
    compete_on_postgres,
    follow_on_postgres,
    rebuild_on_postgres,
    share_slots,
    hold_slots,
)


def main() -> None:
    """Do the task that the command line names."""
    task, path, arguments = sys.argv[1:]
    place: Any = path if "://" in path else Path(path)
    {known.__name__: known for known in TASKS}[task](place, *json.loads(arguments))


if __name__ == "__main__":
    main()
