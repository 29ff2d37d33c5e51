"""``verify`` of a long log: its rate over merely reading and hashing the rows, and the memory it takes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import measures
from eventsourcing.persistence import StoredEvent
from timing import Work, median, ratio, side_by_side

from compaction_ledger import Ledger
from compaction_ledger.infrastructure.event_store.envelope import key_of
from compaction_ledger.infrastructure.event_store.sealing import seal
from compaction_ledger.infrastructure.keys.ring import KeyRing

Figures = dict[str, float]
EVENTS = 1_000_000
AT_ONCE = 10_000

_READ = (
    "SELECT idx, originator_id, originator_version, topic, state, envelope, leaf "
    "FROM stored_events ORDER BY idx"
)
_PEAK = """
import re
from pathlib import Path
from compaction_ledger import Ledger
with Ledger.open(Path({path!r}), read_only=True) as ledger:
    assert ledger.verify(seal_only=True).ok
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def verify_stream(folder: Path, events: int = EVENTS, rounds: int = 3) -> Figures:
    """``verify`` of a log of so many events, over the rate of reading its rows and hashing them.

    What is read and hashed is the same: every column, in the order of the index; the payload, and the
    envelope as a leaf. Both never wait, so it is the time of the processor that is compared. The peaks of
    memory are those of whole processes, for this log and a tenth of it.
    """
    long, short = folder / "long.db", folder / "short.db"
    long_log(folder, long, events)
    long_log(folder, short, events // 10)
    with Ledger.open(long, read_only=True) as ledger:
        works: dict[str, Work] = {
            "verify": partial(_verified, ledger),
            "floor": read_and_hash(long),
        }
        seconds = side_by_side(works, rounds, time.process_time)
    return {
        "verify_stream_over_floor": ratio(seconds, "floor", "verify"),
        "verify_stream_events_per_s": events / median(seconds["verify"]),
        "verify_stream_floor_events_per_s": events / median(seconds["floor"]),
        "verify_stream_peak_mib": peak(long),
        "verify_stream_peak_mib_of_a_tenth": peak(short),
    }


def _verified(ledger: Ledger) -> None:
    assert ledger.verify(seal_only=True).findings == ()


def read_and_hash(path: Path) -> Callable[[], None]:
    """Reading the same columns in the order of the index, two hashes a row, and nothing else."""

    def work() -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for row in connection.execute(_READ):
                hashlib.sha256(row[4]).digest()
                hashlib.sha256(b"\x00" + row[5]).digest()

    return work


def peak(path: Path) -> float:
    """Peak resident memory, in MiB, of a process that verifies the ledger at ``path``."""
    code = _PEAK.format(path=str(path))
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def long_log(folder: Path, path: Path, events: int) -> None:
    """A ledger with so many sealed events at ``path``: lifecycles of one range, sealed for ever new ranges.

    Made by the software they would take minutes; what a seal and a ciphertext are is the same.
    """
    pattern = folder / "log-1.db"
    with measures.log_with(folder, 1) as ledger:
        ledger.catch_up()
        ring = ledger._parts.ring
        assert ring is not None
        with contextlib.closing(sqlite3.connect(pattern)) as connection:
            connection.execute("VACUUM INTO ?", (str(path),))
        shutil.copytree(f"{pattern}.keys", f"{path}.keys")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            ((origin,),) = connection.execute("SELECT origin FROM log_head")
            ((subject,),) = connection.execute("SELECT reference FROM subjects")
            facts = [
                (topic, ring.decrypt(stream, version, topic, state), key_of(state))
                for _, stream, version, topic, state, *_ in connection.execute(_READ).fetchall()
            ]
            rows = _rows(facts, ring, origin, subject, events)
            with connection:
                connection.execute("DROP TRIGGER stored_events_no_delete")
                connection.execute("DELETE FROM stored_events")
            while some := list(itertools.islice(rows, AT_ONCE)):
                with connection:
                    connection.executemany("INSERT INTO stored_events VALUES (?,?,?,?,?,?,?)", some)
            with connection:
                connection.execute("UPDATE log_head SET size = ?", (events,))
    for left in folder.glob("log-1.db*"):
        if left.is_dir():  # of its keys
            shutil.rmtree(left)
        else:
            left.unlink()


def _rows(
    facts: list[tuple[str, bytes, str]], ring: KeyRing, origin: str, subject: str, events: int
) -> Iterator[tuple[object, ...]]:
    stream, previous = uuid.UUID(int=0), ""
    for index in range(events):
        number = index % len(facts)
        if not number:
            stream, previous = uuid.uuid4(), ""
        topic, payload, key = facts[number]
        state = ring.encrypt(key, stream.hex, number + 1, topic, payload)
        event = StoredEvent(stream, number + 1, topic, state)
        envelope, leaf = seal(event, origin, subject, previous, 1_700_000_000_000_000 + index)
        previous = leaf.hex()
        yield index, stream.hex, number + 1, topic, leaf, envelope, state
