"""What the processes of the PostgreSQL benchmarks do: wait for a line, work, print what was measured."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import pg_stock
from eventsourcing.persistence import ApplicationRecorder, StoredEvent
from measures import LEASE, MODEL, PROMPT

from compaction_ledger import Job, WindowPolicy
from compaction_ledger.domain.commands import ClaimRange
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.postgres_recorder import SealedPostgresRecorder
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database
from compaction_ledger.postgres_parts import open_parts
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.range_session import RangeSession

STATE = os.urandom(900)


def wait_for_the_start() -> None:
    """Say that everything is open, and wait for a line."""
    print("ready", flush=True)
    sys.stdin.readline()


def append_ours(url: str, count: int) -> float:
    """Append events of new streams through our recorder; seconds."""
    database = Database(parse_address(url))
    recorder = SealedPostgresRecorder(database)
    seconds = _append(recorder, count, "Happened@1")
    database.close()
    return seconds


def append_stock(url: str, schema: str, count: int) -> float:
    """Append the same through the stock recorder; seconds."""
    # The library's own making of tables does not bear company.
    application = pg_stock.StockRanges({**pg_stock.environment(url, schema), "CREATE_TABLE": "no"})
    seconds = _append(application.recorder, count, "Happened")
    application.close()
    return seconds


def _append(recorder: ApplicationRecorder, count: int, topic: str) -> float:
    recorder.select_notifications(0, 1)  # a connection
    wait_for_the_start()
    began = time.perf_counter()
    for _ in range(count):
        recorder.insert_events([StoredEvent(uuid.uuid4(), 1, topic, STATE)])
    return time.perf_counter() - began


def claim(url: str, conversation: str, count: int) -> list[float]:
    """Claim ranges of a conversation of one's own; the seconds of each claim."""
    log = LedgerLog(SealedPostgresRecorder(Database(parse_address(url))))
    seconds: list[float] = []
    _claim(log, conversation, 0)
    wait_for_the_start()
    for n in range(1, count + 1):
        began = time.perf_counter()
        _claim(log, conversation, 10 * n)
        seconds.append(time.perf_counter() - began)
    return seconds


def _claim(log: LedgerLog, conversation: str, first: int) -> None:
    messages = tuple(
        f"{side}-{first + pair:06d}" for pair in range(10) for side in ("user", "assistant")
    )
    job = Job("default", conversation, first, first + 9, messages, "0" * 64, MODEL, PROMPT)
    session = RangeSession(log, RangeKey("default", conversation, first), EMPTY)
    claim_id = uuid.uuid4().hex
    session.execute(lambda now: ClaimRange(claim_id, "worker", job, WindowPolicy(), now, LEASE))


def tail(url: str, expected: int) -> int:
    """Follow the log while others write; how many events came, in order and without a gap."""
    opened = open_parts(url, DEFAULT_REGISTRY, Settings())
    recorder = opened.log.sealed
    wait_for_the_start()
    position, deadline = 0, time.monotonic() + 300
    while position < expected and time.monotonic() < deadline:
        for row in recorder.rows(position, 500):
            if row.idx != position:
                raise SystemExit(f"passed over {position}")
            position += 1
    opened.close()
    return position


TASKS: dict[str, Callable[..., Any]] = {
    task.__name__: task for task in (append_ours, append_stock, claim, tail)
}

if __name__ == "__main__":
    name, arguments = sys.argv[1:]
    print(json.dumps(TASKS[name](*json.loads(arguments))), flush=True)
