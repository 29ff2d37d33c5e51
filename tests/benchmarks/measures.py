"""One function per figure of the table. Each returns named numbers; the names are the keys of bench.json."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import stock
import workload
from eventsourcing.application import Application
from timing import median, ratio, side_by_side

from compaction_ledger import (
    Answer,
    FinishFacts,
    Job,
    Ledger,
    ModelIdentity,
    PromptVersion,
    WindowPolicy,
)
from compaction_ledger.composition import Parts, open_sqlite, system_clock
from compaction_ledger.domain.commands import ClaimRange, FinishAttempt, StartAttempt
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.range_session import RangeSession

Figures = dict[str, float]
BUDGET = 1 << 40
LEASE = 300_000_000
MODEL = ModelIdentity.of("bench", "model")
PROMPT = PromptVersion("conversation-compaction", 3)


# --- read path --------------------------------------------------------------------------------------


def read_path(folder: Path, pairs: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of our read path, of its floor, and of the peers, on one conversation."""
    with workload.summarized_ledger(folder / f"read-{pairs}.db", pairs) as ledger:
        texts = [
            (message.role, message.text)
            for message in ledger.transcripts.conversation(
                "default", workload.CONVERSATION
            ).messages
        ]
        # The same budget for both: what our full candidate needs, at the peers' four characters a token.
        budget = ledger.assemble(workload.CONVERSATION, budget=BUDGET).manifest.bytes_used
        session = _session(folder / f"peers-{pairs}.db", texts)
        return side_by_side(
            {
                "ours": lambda: ledger.assemble(workload.CONVERSATION, budget=budget),
                "floor": lambda: _hash_and_encode(texts),
                "peers": _trimmed(session, budget // 4),
                "peers_untrimmed": _trimmed(session, BUDGET),
            },
            rounds,
        )


def _hash_and_encode(texts: Sequence[tuple[str, str]]) -> str:
    """The floor: one JSON encoding of the conversation, by the standard library, and SHA-256 of it."""
    messages = [{"role": role, "content": text} for role, text in texts]
    data = json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return hashlib.sha256(data).hexdigest()


def _session(path: Path, texts: Sequence[tuple[str, str]]) -> Callable[[], object]:
    """A stored session of ``openai-agents``: what reads all its items."""
    import asyncio  # noqa: PLC0415 - only where the peers are measured

    from agents import SQLiteSession  # noqa: PLC0415

    session = SQLiteSession("bench", path)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(session.add_items([{"role": r, "content": t} for r, t in texts]))  # type: ignore[misc]
    return lambda: loop.run_until_complete(session.get_items())


def _trimmed(read: Callable[[], Any], max_tokens: int) -> Callable[[], object]:
    """What one would run instead, without any check: read the session and trim it."""
    from langchain_core.messages import trim_messages  # noqa: PLC0415

    return lambda: trim_messages(read(), max_tokens=max_tokens, token_counter="approximate")


# --- lifecycle --------------------------------------------------------------------------------------


def lifecycle(folder: Path, times: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of ``times`` lifecycles: claim, start, complete, sealed; and of three stock saves each."""
    parts = open_sqlite(
        folder / f"lifecycle-{times}.db",
        policy=WindowPolicy(),
        registry=DEFAULT_REGISTRY,
        settings=Settings(),
    )
    application = stock.stock_application(folder / f"stock-{times}.db")
    text = "The fund closed at 59.46 EUR; the ongoing charges are 0.45 per cent. " * 20
    conversations = iter(range(1_000_000))
    with contextlib.closing(parts), contextlib.closing(application):
        return side_by_side(
            {
                "ours": lambda: _our_lifecycles(parts, f"c-{next(conversations)}", times, text),
                "stock": lambda: _stock_lifecycles(application, times, text, load=False),
                "stock_loading": lambda: _stock_lifecycles(application, times, text, load=True),
            },
            rounds,
        )


def _our_lifecycles(parts: Parts, conversation: str, times: int, text: str) -> None:
    for n in range(times):
        _one_lifecycle(parts, conversation, n * 10, Answer(text, FinishFacts(("stop",))))


def _one_lifecycle(parts: Parts, conversation: str, first: int, answer: Answer) -> None:
    messages = tuple(
        f"{side}-{first + pair:06d}" for pair in range(10) for side in ("user", "assistant")
    )
    job = Job("default", conversation, first, first + 9, messages, "0" * 64, MODEL, PROMPT)
    claim, attempt = uuid.uuid4().hex, uuid.uuid4().hex
    session = RangeSession(parts.context.log, RangeKey("default", conversation, first), EMPTY)
    session.execute(lambda now: ClaimRange(claim, "worker", job, WindowPolicy(), now, LEASE))
    session.execute(lambda now: StartAttempt(claim, attempt, now, LEASE))
    session.execute(lambda now: FinishAttempt(claim, attempt, answer, now))


def _stock_lifecycles(application: Application[UUID], times: int, text: str, *, load: bool) -> None:
    for n in range(times):
        messages = [
            f"{side}-{n * 10 + pair:06d}" for pair in range(10) for side in ("user", "assistant")
        ]
        now = system_clock()
        claimed = stock.StockRange(
            uuid.uuid4().hex, "worker", "0" * 64, messages, "0" * 64, now + LEASE
        )
        application.save(claimed)
        started: stock.StockRange = application.repository.get(claimed.id) if load else claimed
        attempt = uuid.uuid4().hex
        started.start(attempt, 1, now + LEASE)
        application.save(started)
        completed: stock.StockRange = application.repository.get(claimed.id) if load else started
        completed.complete(attempt, "0" * 64, text)
        application.save(completed)


# --- rebuild and verify -----------------------------------------------------------------------------


def log_with(folder: Path, ranges: int) -> Ledger:
    """A ledger whose log holds three events for each of ``ranges`` ranges."""
    path = folder / f"log-{ranges}.db"
    parts = open_sqlite(path, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings())
    text = "The fund closed at 59.46 EUR; the ongoing charges are 0.45 per cent. " * 20
    with contextlib.closing(parts):
        _our_lifecycles(parts, "bench", ranges, text)
    return Ledger.open(path)


def rebuild(ledger: Ledger, rounds: int) -> dict[str, list[float]]:
    """Seconds of a rebuild, and of merely reading and decoding the same events."""
    return side_by_side(
        {"rebuild": ledger.rebuild, "decode": lambda: sum(1 for _ in ledger.events())}, rounds
    )


def verify(ledger: Ledger, path: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of verifying the seal of the whole log, and of reading the rows and hashing them."""
    connection = sqlite3.connect(path)

    def read_and_hash() -> None:
        rows = connection.execute(
            "SELECT idx, originator_id, originator_version, topic, state, envelope, leaf "
            "FROM stored_events ORDER BY idx"
        )
        for row in rows:
            hashlib.sha256(row[4]).digest()
            hashlib.sha256(b"\x00" + row[5]).digest()

    with contextlib.closing(connection):
        verify = partial(ledger.verify, seal_only=True)
        return side_by_side({"verify": verify, "floor": read_and_hash}, rounds)


# --- start-up ---------------------------------------------------------------------------------------


def start_up(rounds: int) -> Figures:
    """Start-up of the package over its dependencies, and of ``--help`` over Typer."""
    commands = {
        "nothing": [sys.executable, "-c", "pass"],
        "dependencies": [sys.executable, "-c", "import pydantic, eventsourcing.application"],
        "dependencies_used": [
            sys.executable,
            "-c",
            "from pydantic import BaseModel, TypeAdapter; import eventsourcing.application",
        ],
        "package": [sys.executable, "-c", "import compaction_ledger"],
        "ledger": [sys.executable, "-c", "from compaction_ledger import Ledger"],
        "typer": [sys.executable, "-c", "import typer"],
        "help": [sys.executable, "-m", "compaction_ledger", "--help"],
    }
    seconds = side_by_side({name: _process(command) for name, command in commands.items()}, rounds)
    return {
        "import_over_dependencies": ratio(seconds, "package", "dependencies"),
        "import_ledger_over_dependencies": ratio(seconds, "ledger", "dependencies"),
        "import_ledger_over_dependencies_used": ratio(seconds, "ledger", "dependencies_used"),
        "help_over_typer": ratio(seconds, "help", "typer"),
        "import_ledger_ms": median(seconds["ledger"]) * 1e3,
        "help_ms": median(seconds["help"]) * 1e3,
    }


def _process(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


# --- memory -----------------------------------------------------------------------------------------

_MEMORY = """
import re, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from typing import Any
from uuid import UUID
import workload
from compaction_ledger import Ledger
with Ledger.open(Path({path!r})) as ledger:
    {work}
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""

_WORKS = {
    "open": "ledger.size()",
    "assemble": "ledger.assemble(workload.CONVERSATION, budget=1 << 40)",
    "rebuild": "ledger.rebuild()",
    "verify": "ledger.verify(seal_only=True)",
}


def memory(path: Path) -> Figures:
    """Peak resident memory in MiB of a process that does one thing with the ledger at ``path``."""
    here = str(Path(__file__).parent)
    peaks: Figures = {}
    for name, work in _WORKS.items():
        code = _MEMORY.format(here=here, path=str(path), work=work)
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        peaks[name] = float(done.stdout)
    return peaks


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run of ``work``."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
