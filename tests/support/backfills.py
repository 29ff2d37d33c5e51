"""Backfills as processes of their own, to be killed and begun again, and what must hold when they are done.

Run as a script: ledger, archive, whether it goes slowly.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archives import Archive

from compaction_ledger import Ledger, Settings
from compaction_ledger.cli.backfill.running import ArchivePlace, Backfill
from compaction_ledger.cli.backfill.telling import Teller
from compaction_ledger.composition import past_read_models
from compaction_ledger.domain.events import RangeCompleted
from compaction_ledger.serving import Pace
from compaction_ledger.usecases import archiving

Process = subprocess.Popen[str]
LEASE_SECONDS = 2.0
THREADS = 2


def start(place: str, folder: Path, *, slowly: bool = False) -> Process:
    """Start a backfill whose claims are over soon when it is killed. ``slowly``: in batches of one."""
    support = Path(__file__).parent
    places = os.pathsep.join((str(support), os.environ.get("PYTHONPATH", "")))
    words = (place, str(folder), str(int(slowly)))
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(support / "backfills.py"), *words],
        env={**os.environ, "PYTHONPATH": places},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(place: str, folder: Path, *, slowly: bool = False) -> Iterator[Process]:
    """A backfill that is killed in the end, if it still runs."""
    process = start(place, folder, slowly=slowly)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def kill(process: Process) -> None:
    """Kill a process in the midst of what it does: it must not have ended by itself."""
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()


def wait_until(true: Callable[[], bool], process: Process, seconds: float) -> None:
    """Wait for something, while a process goes on that is to bring it about."""
    until = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def check(ledger: Ledger, archive: Archive) -> None:
    """Everything is there, every range completed once, and the rows are what the log says (A2, P2)."""
    ledger.catch_up()
    found = Counter(scope for scope, _ in ledger.conversations())
    assert found.total() == archive.conversations
    completed: Counter[tuple[str, str, int]] = Counter()
    ranges: dict[str, tuple[str, str, int]] = {}
    for entry in ledger.events():
        if isinstance(entry.fact, RangeCompleted):
            completed[ranges[entry.stream]] += 1
        elif entry.stream not in ranges and (key := ledger.range_of(entry)) is not None:
            ranges[entry.stream] = (key.scope, key.conversation, key.from_pair)
    assert len(completed) == archive.ranges
    assert set(completed.values()) == {1}
    assert ledger.status().ranges == {"done": archive.ranges}
    expected = past_read_models(ledger.registry, ledger.size())
    expected.catch_up(ledger._parts.context.log)
    assert ledger._parts.read_models.records() == expected.records()
    assert ledger.verify().ok


def main(place: str, folder: str, slowly: str) -> None:
    """Backfill."""
    if slowly == "1":
        archiving.BATCH_CONVERSATIONS = 1
    settings = Settings(lease_seconds=LEASE_SECONDS, attempts_at_once=THREADS)
    archive = ArchivePlace((Path(folder),), None, "file", "")
    pace = Pace(threads=THREADS, poll=0.2, ranges=20)
    with Ledger.open(place, settings=settings) as ledger:
        document = Backfill(ledger, archive, Teller(), pace).run()
    sys.stdout.write(document.model_dump_json() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
