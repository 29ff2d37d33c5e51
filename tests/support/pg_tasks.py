"""What single processes do on a ledger in PostgreSQL, to be killed, stopped and continued; and their start.

Run as a script: task, URL, arguments as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from histories import CONVERSATION, SCOPE, TRUNCATED, Worker, key_of, made_up_job
from processes import Process, kill_all
from scenarios import claimed

from compaction_ledger import Ledger, NewMessage, NewRun, Refused
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.range_stream import EMPTY

HERE = Path(__file__).parent


def started(
    task: str, url: str, *arguments: Any, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a process that does ``task`` on the ledger at ``url``."""
    places = os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", "")))
    return subprocess.Popen(
        [sys.executable, "-W", "error", __file__, task, url, json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": places, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(
    task: str, url: str, *arguments: Any, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """A process that is killed in the end, if it still runs."""
    process = started(task, url, *arguments, environment=environment)
    try:
        yield process
    finally:
        kill_all([process])


# --- what they do -------------------------------------------------------------------------------


def say(*words: object) -> None:
    """Say a line to the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Until the test says something."""
    sys.stdin.readline()


def open_first(url: str) -> None:
    """Open (and make) the ledger when told to, and store something of each kind."""
    say("ready")
    wait()
    _open_and_store(url)
    say("opened")


def open_together(url: str, count: int, kill: int, seconds: float) -> None:
    """Many processes open the ledger at the same moment; some of them are killed after so many seconds."""
    waiting, begin = os.pipe()
    children: list[int] = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            os.close(begin)
            os.read(waiting, 1)
            _open_and_store(url)
            os._exit(0)  # ten of them that tidy up would take most of the time
        children.append(child)
    os.close(begin)
    time.sleep(seconds)
    for child in children[:kill]:
        os.kill(child, signal.SIGKILL)
    say(*sorted(os.waitpid(child, 0)[1] for child in children))


def _open_and_store(url: str) -> None:
    with Ledger.open(url) as ledger:
        message = uuid4().hex
        lines = [NewMessage(message, message, "user", "text")]
        ledger.transcripts.append(SCOPE, CONVERSATION, lines, [NewRun(message)])
        job = made_up_job(10 * random.SystemRandom().randrange(10**6))
        Worker(ledger._parts, job, message).claim()
        ledger.catch_up()


def complete(url: str) -> None:
    """Claim, start and finish a range when told to."""
    with Ledger.open(url) as ledger:
        say("ready")
        wait()
        Worker(ledger._parts, made_up_job(), "held").complete()
        say("done")


def follow(url: str) -> None:
    """Bring the read models up to the log when told to."""
    with Ledger.open(url) as ledger:
        say("ready")
        wait()
        ledger.catch_up()
        say("done")


def rebuild(url: str) -> None:
    """Build the read models anew when told to."""
    with Ledger.open(url) as ledger:
        say("ready")
        wait()
        ledger.rebuild()
        say("done")


def finish_late(url: str, lease: int) -> None:
    """Claim and start, wait, and come back with a perfect summary."""
    with Ledger.open(url) as ledger:
        one = Worker(ledger._parts, made_up_job(), "paused")
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


def keep_appending(url: str) -> None:
    """Append one fact after the other, for ever."""
    with Ledger.open(url) as ledger:
        log = ledger._parts.context.log
        say("appending")
        number = 0
        while True:
            job = made_up_job(10 * number)
            fact: RangeFact = claimed(f"c{number}", job=job)
            log.append(key_of(job), EMPTY, [fact])
            number += 1


def compete(url: str, name: str, seed: int, rounds: int, ranges: int, lease: int) -> None:
    """Work on a few ranges that others work on, too; forget some, fail some."""
    chance = random.Random(seed)
    with Ledger.open(url) as ledger:
        say("working")
        for number in range(rounds):
            one = Worker(
                ledger._parts, made_up_job(10 * chance.randrange(ranges)), f"{name}-{number}"
            )
            with suppress(Refused):
                one.claim(lease)
                one.start(1, lease)
                if chance.random() < 0.7:
                    one.finish(TRUNCATED if chance.random() < 0.3 else None)
        say("done")


def fork(url: str) -> None:
    """Fork with a ledger open, and go on in both processes. The child ends first, as any process ends."""
    with Ledger.open(url) as ledger:
        parts = ledger._parts
        Worker(parts, made_up_job(0), "before").complete()
        ledger.catch_up()
        gone, parent = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(parent)
            Worker(parts, made_up_job(10), "child").complete()
            say("child", ledger.catch_up())
            os.read(gone, 1)  # until the parent closes its end
            sys.exit(0)
        wait()
        say("parent", ledger.catch_up())
        Worker(parts, made_up_job(20), "after").complete()
        os.close(parent)
        say("status", os.waitpid(child, 0)[1])
        Worker(parts, made_up_job(30), "last").complete()
        say("end", ledger.catch_up())


TASKS = (
    open_first,
    open_together,
    complete,
    follow,
    rebuild,
    finish_late,
    keep_appending,
    compete,
    fork,
)


def main() -> None:
    """Do the task that the command line names."""
    task, url, arguments = sys.argv[1:]
    {known.__name__: known for known in TASKS}[task](url, *json.loads(arguments))


if __name__ == "__main__":
    main()
