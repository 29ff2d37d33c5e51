"""The figures on PostgreSQL: all that is compared runs on one server, which keeps what is committed."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measures
import pg_stock
import psycopg
import workload
from eventsourcing.application import Application
from eventsourcing.projection import ProjectionRunner
from pg_servers import Server, running_server
from timing import median, ratio, side_by_side

from compaction_ledger import Ledger, Settings
from compaction_ledger.composition import Parts, open_postgres
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy

Figures = dict[str, float]
TEXT = "The fund closed at 59.46 EUR; the ongoing charges are 0.45 per cent. " * 20
SIZES = (1_000, 100_000, 1_000_000)
WORKERS = (1, 8, 32)


@dataclass
class Bench:
    """A server, and schemas on it that nobody else uses."""

    server: Server

    def new_schema(self) -> str:
        """A name."""
        return f"b_{uuid.uuid4().hex[:10]}"

    def ledger_url(self, schema: str | None = None) -> str:
        """The place of a new ledger."""
        return self.server.url(schema=schema or self.new_schema())

    def stock(self) -> Application[Any]:
        """A stock application in a schema of its own."""
        return pg_stock.StockRanges(self.stock_environment())

    def stock_environment(self) -> dict[str, str]:
        """The settings of a stock application in a new schema."""
        schema = self.new_schema()
        self.server.execute(f"CREATE SCHEMA {schema}")
        return pg_stock.environment(self.server.url(), schema)


@contextmanager
def bench() -> Iterator[Bench]:
    """A server of its own, as PostgreSQL comes: what is committed is on the disk."""
    with running_server() as server:
        yield Bench(server)


def open_parts(url: str, settings: Settings | None = None) -> Parts:
    """The parts of a ledger at ``url``."""
    return open_postgres(
        url, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=settings or Settings()
    )


# --- lifecycle ------------------------------------------------------------------------------------


def lifecycle(bench: Bench, times: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of ``times`` lifecycles: ours, sealed; a stock application's; bare inserts of the same rows."""
    conversations = iter(range(1_000_000))
    with (
        closing(open_parts(bench.ledger_url())) as parts,
        closing(bench.stock()) as stock,
        _bare(bench) as bare,
    ):
        return side_by_side(
            {
                "ours": lambda: measures._our_lifecycles(
                    parts, f"c-{next(conversations)}", times, TEXT
                ),
                "stock": lambda: measures._stock_lifecycles(stock, times, TEXT, load=False),
                "bare": lambda: bare.lifecycles(times),
            },
            rounds,
        )


class Bare:
    """The floor: each fact as JSON and a row as wide as a sealed one, in an INSERT of its own."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._cursor = connection.cursor()
        self._statement = f"INSERT INTO {schema}.bare VALUES (%s, %s, %s, %s, %s, %s, %s)".encode()
        self._index = 0
        self._leaf, self._envelope = os.urandom(32), os.urandom(440)

    def lifecycles(self, times: int) -> None:
        """So many times three rows."""
        messages = [f"{side}-{n:06d}" for n in range(10) for side in ("user", "assistant")]
        for _ in range(times):
            stream, claim, attempt = uuid.uuid4().hex, uuid.uuid4().hex, uuid.uuid4().hex
            claimed = {
                "claim_id": claim,
                "holder": "worker",
                "job": {"messages": messages, "source_hash": "0" * 64},
                "identity": "0" * 64,
                "expires_at": 1,
            }
            self._insert(stream, 1, "RangeClaimed@1", claimed)
            started = {"claim_id": claim, "attempt_id": attempt, "number": 1, "expires_at": 1}
            self._insert(stream, 2, "AttemptStarted@1", started)
            completed = {"claim_id": claim, "attempt_id": attempt, "text": TEXT}
            self._insert(stream, 3, "RangeCompleted@1", completed)

    def _insert(self, stream: str, version: int, topic: str, fact: dict[str, Any]) -> None:
        payload = json.dumps(fact, separators=(",", ":")).encode()
        self._cursor.execute(
            self._statement,
            (self._index, stream, version, topic, self._leaf, self._envelope, payload),
            prepare=True,
        )
        self._index += 1


@contextmanager
def _bare(bench: Bench) -> Iterator[Bare]:
    schema = bench.new_schema()
    with psycopg.connect(bench.server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(
            f"""CREATE TABLE {schema}.bare (
                idx bigint PRIMARY KEY, stream text COLLATE "C" NOT NULL, version bigint NOT NULL,
                topic text COLLATE "C" NOT NULL, leaf bytea NOT NULL, envelope bytea NOT NULL,
                payload bytea NOT NULL, UNIQUE (stream, version))""".encode()
        )
        yield Bare(connection, schema)


# --- many processes -------------------------------------------------------------------------------


def _process(task: str, *arguments: Any) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("pg_bench_tasks.py")
    places = os.pathsep.join(
        (str(script.parent), str(script.parents[1] / "support"), os.environ.get("PYTHONPATH", ""))
    )
    return subprocess.Popen(
        [sys.executable, script, task, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )


def _together(processes: Sequence[subprocess.Popen[str]]) -> tuple[float, list[Any]]:
    """Let processes that are ready go at once; the seconds until all were done, and what each measured."""
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"a process of the benchmark ended with {process.wait()}")
    began = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in processes]
    seconds = time.perf_counter() - began
    return seconds, [json.loads(output) for output in outputs]


def concurrent(bench: Bench, writers: int, each: int, rounds: int) -> Figures:
    """Events a second of so many processes that append at once, ours over stock; a reader misses nothing."""
    url, environment = bench.ledger_url(), bench.stock_environment()
    open_parts(url).close()
    pg_stock.StockRanges(environment).close()
    ratios: list[float] = []
    rates: list[float] = []
    written = 0
    for _ in range(rounds):
        arguments = (bench.server.url(), environment["POSTGRES_SCHEMA"], each)
        ours, _ = _together([_process("append_ours", url, each) for _ in range(writers)])
        stock, _ = _together([_process("append_stock", *arguments) for _ in range(writers)])
        ratios.append(stock / ours)
        rates.append(writers * each / ours)
        written += writers * each
    reader = _process("tail", url, written + writers * each)
    processes = [_process("append_ours", url, each) for _ in range(writers)]
    _, measured = _together([reader, *processes])
    return {
        "pg_concurrent": statistics.median(ratios),
        "pg_concurrent_events_per_s": statistics.median(rates),
        "pg_concurrent_reader_missed": float(written + writers * each - measured[0]),
    }


def claim_latency(bench: Bench, each: int) -> Figures:
    """Milliseconds of a claim with so many workers that claim all the time."""
    figures: Figures = {}
    for workers in WORKERS:
        url = bench.ledger_url()
        open_parts(url).close()
        count = max(each // workers, 30)
        processes = [_process("claim", url, f"c-{n}", count) for n in range(workers)]
        seconds, measured = _together(processes)
        times = sorted(second for one in measured for second in one)
        name = f"pg_claim_{workers}_workers"
        figures[f"{name}_p50_ms"] = times[len(times) // 2] * 1e3
        figures[f"{name}_p99_ms"] = times[int(len(times) * 0.99)] * 1e3
        figures[f"{name}_per_s"] = len(times) / seconds
    return figures


# --- rebuild, assembly, size ----------------------------------------------------------------------


def rebuild(bench: Bench, ranges: int, stock_ranges: int, rounds: int) -> Figures:
    """Events a second of a rebuild, over those of a stock ``ProjectionRunner`` that writes the same rows."""
    environment = bench.stock_environment()
    with closing(pg_stock.StockRanges(environment)) as application:
        measures._stock_lifecycles(application, stock_ranges, TEXT, load=False)
        last = application.recorder.max_notification_id()
    url = bench.ledger_url()
    with closing(open_parts(url)) as parts:
        measures._our_lifecycles(parts, "bench", ranges, TEXT)
    ours: list[float] = []
    stock: list[float] = []
    with Ledger.open(url) as ledger:
        ledger.rebuild()
        for _ in range(rounds):
            ours.append(3 * ranges / measures.timed(ledger.rebuild))
            stock.append(3 * stock_ranges / _project(bench, environment, last))
    return {
        "pg_rebuild_over_stock": statistics.median(a / b for a, b in zip(ours, stock, strict=True)),
        "pg_rebuild_events_per_s": statistics.median(ours),
        "pg_stock_projection_events_per_s": statistics.median(stock),
    }


def _project(bench: Bench, environment: dict[str, str], last: int | None) -> float:
    """Seconds of projecting everything anew, into a schema without tables."""
    tables = "summaries, ranges, attempts, stockprojection_tracking"
    schema = environment["POSTGRES_SCHEMA"]
    names = ", ".join(f"{schema}.{name}" for name in tables.split(", "))
    bench.server.execute(f"DROP TABLE IF EXISTS {names}")
    began = time.perf_counter()
    with ProjectionRunner(
        application_class=pg_stock.StockRanges,
        projection_class=pg_stock.StockProjection,
        view_class=pg_stock.StockView,
        env=environment,
    ) as runner:
        runner.wait(last, timeout=600)
        return time.perf_counter() - began


def assemble(bench: Bench, pairs: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of assembling a request from PostgreSQL, and of hashing and encoding its text."""
    with Ledger.open(bench.ledger_url(), summarizer=workload.FirstSentences()) as ledger:
        ledger.transcripts.append("default", workload.CONVERSATION, *workload.lines(pairs))
        ledger.compact(workload.CONVERSATION)
        messages = ledger.transcripts.conversation("default", workload.CONVERSATION).messages
        texts = [(message.role, message.text) for message in messages]
        assembly = ledger.assemble(workload.CONVERSATION, budget=measures.BUDGET)
        budget = assembly.manifest.bytes_used
        return side_by_side(
            {
                "ours": lambda: ledger.assemble(workload.CONVERSATION, budget=budget),
                "floor": lambda: measures._hash_and_encode(texts),
            },
            rounds,
        )


_FILL = """
INSERT INTO {schema}.stored_events
SELECT n, md5(n::text), 1, 'RangeClaimed@1', sha256(n::text::bytea), convert_to(repeat('e', 440), 'UTF8'),
    convert_to(repeat(md5(n::text), 28), 'UTF8')
FROM generate_series(0, {count} - 1) AS n
"""


def growth(bench: Bench, times: int, rounds: int) -> Figures:
    """The cost of lifecycles where so many events are stored already, over that with the fewest."""
    conversations = iter(range(1_000_000))
    opened: dict[str, Parts] = {}
    for size in SIZES:
        schema = bench.new_schema()
        opened[str(size)] = open_parts(bench.ledger_url(schema))
        bench.server.execute(_FILL.format(schema=schema, count=size))
        bench.server.execute(f"UPDATE {schema}.log_head SET size = {size}")
        bench.server.execute(f"VACUUM ANALYZE {schema}.stored_events")
    bench.server.execute("CHECKPOINT")
    try:
        seconds = side_by_side(
            {
                size: lambda parts=parts: measures._our_lifecycles(  # type: ignore[misc]
                    parts, f"g-{next(conversations)}", times, TEXT
                )
                for size, parts in opened.items()
            },
            rounds,
        )
    finally:
        for parts in opened.values():
            parts.close()
    first = str(SIZES[0])
    figures = {
        f"pg_lifecycle_us_at_{size}_events": median(seconds[str(size)]) / times * 1e6
        for size in SIZES
    }
    worst = max(ratio(seconds, str(size), first) for size in SIZES[1:])
    return {**figures, "pg_growth": worst}


def measure(rounds: int) -> Figures:
    """All figures on PostgreSQL."""
    few = max(3, rounds // 3)
    with bench() as place:
        life = lifecycle(place, 98, rounds)
        assembled = assemble(place, 1_000, rounds)
        return {
            "pg_lifecycle_over_stock": ratio(life, "stock", "ours"),
            "pg_lifecycle_over_bare": ratio(life, "bare", "ours"),
            "pg_lifecycle_us": median(life["ours"]) / 98 * 1e6,
            "pg_stock_lifecycle_us": median(life["stock"]) / 98 * 1e6,
            "pg_bare_lifecycle_us": median(life["bare"]) / 98 * 1e6,
            "pg_assemble_over_floor": ratio(assembled, "ours", "floor"),
            "pg_assemble_ms": median(assembled["ours"]) * 1e3,
            **concurrent(place, 8, 150, few),
            **rebuild(place, 10_000, 1_000, 3),
            **claim_latency(place, 1_000),
            **growth(place, 60, few),
        }
