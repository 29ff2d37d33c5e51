"""How long a search of the history takes: 100,000 messages in one conversation, others beside it.

    python tests/benchmarks/history.py [--messages N] [--store sqlite|postgres] [--rounds N]

Prints for each store how long it took to index, and for each kind of query the median and the 99th
percentile of whole searches: the look whether something is new, the index, the originals read again and
checked, the quotes. CPU is that of this process alone: on a busy machine it tells more.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from backends import START
from history_cases import SECOND, originals
from pg_servers import running_server

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.history import HistorySearch

SCOPE, CONVERSATION = "acme", "long"
OTHERS = 20
WORDS = 30_000
AT_ONCE = 1_000
MARK_SECONDS = 0.05

_RANDOM = random.Random(20261130)
_LETTERS = "bcdfghklmnprstvz"
_VOWELS = "aeiou"
_VOCABULARY = [
    "".join(_RANDOM.choice(_LETTERS) + _RANDOM.choice(_VOWELS) for _ in range(2 + n % 3))
    for n in range(WORDS)
]
_WEIGHTS = list(
    accumulate(1 / (n + 10) for n in range(WORDS))
)  # as often as words of a language are
_HAN = [chr(0x4E00 + n * 7) for n in range(2_500)]
_HAN_WEIGHTS = list(accumulate(1 / (n + 10) for n in range(len(_HAN))))

QUERIES = {
    "rare word": "INV-{rare:04d}-Q",
    "common word": "budget",
    "word of one in 30": "margin",
    "two common words": "report budget",
    "phrase": '"quarterly budget report"',
    "rare phrase of common words": '"report budget report"',
    "Chinese, common": "预算",
    "Chinese, rare": "四千欧元",
    "number": "{high},{low:03d}.50",
    "by role and exchange": "budget",
    "no hit": "nothing{rare}",
    "no hit of common words": '"budget margin quarterly report budget"',
}


def wire(number: int) -> dict[str, Any]:
    """One message: mostly words, some Chinese, some long results."""
    roles = ("user", "assistant", "assistant", "user", "assistant")
    if number % 5 == 4:
        text = "".join(_RANDOM.choices(_HAN, cum_weights=_HAN_WEIGHTS, k=120))
        text += "预算上限" * (number % 10 == 4) + "四千欧元" * (number % 5_000 == 4)
    else:
        count = 300 if number % 10 == 7 else 80
        words = _RANDOM.choices(_VOCABULARY, cum_weights=_WEIGHTS, k=count)
        for place, word in enumerate(("budget", "report")):
            if (number + place) % 2:
                words[_RANDOM.randrange(count)] = word
        if not number % 30:
            words[_RANDOM.randrange(count)] = "margin"
        if not number % 700:
            words[3:6] = ["quarterly", "budget", "report"]
        if not number % 111:
            words[9] = f"INV-{(number // 111) % 900:04d}-Q"
        words[1] = f"{_RANDOM.randrange(100)},{_RANDOM.randrange(1000):03d}.50"
        text = " ".join(words)
    return {"role": roles[number % 5], "content": text}


def fill(parts: Parts, messages: int) -> None:
    """The conversation in ten runs, and a tenth as much in others."""
    per_run = messages // 10
    for run in range(10):
        write(parts, CONVERSATION, f"run-{run}", run * per_run, per_run)
    for other in range(OTHERS):
        write(parts, f"other-{other}", "run", 0, messages // 10 // OTHERS)


def write(parts: Parts, conversation: str, run: str, start: int, count: int) -> None:
    """One run; its messages are those from ``start`` on."""
    key = WindowKey(SCOPE, conversation, run)
    for first in range(0, count, AT_ONCE):
        wires = [wire(start + n) for n in range(first, min(first + AT_ONCE, count))]
        at = START + (start + first) * SECOND
        new = originals(wires, at=at, first_exchange=first // 2)
        parts.originals.append(key, "openai-chat", first, new)


class Timed(NamedTuple):
    """Seconds of each whole search of one kind, those of the processor, and how many hits there were."""

    seconds: list[float]
    ours: list[float]
    hits: int

    def percentiles(self) -> tuple[float, float, float]:
        """The median, the 99th percentile, and that of the processor's time."""
        last = statistics.quantiles(self.seconds, n=100)[-1]
        return statistics.median(self.seconds), last, statistics.quantiles(self.ours, n=100)[-1]


def index(parts: Parts, messages: int) -> HistorySearch:
    """Fill an empty store and index all of it."""
    fill(parts, messages)
    for other in range(OTHERS):
        composition.history_search(parts, SCOPE, f"other-{other}").catch_up()
    history = composition.history_search(parts, SCOPE, CONVERSATION)
    history.catch_up()
    return history


def searches(
    history: HistorySearch, messages: int, rounds: int, kinds: Mapping[str, str]
) -> Iterator[tuple[str, Timed]]:
    """Each kind of query, ``rounds`` times after five that do not count, each time a little different."""
    for name, text in kinds.items():
        filters: dict[str, Any] = {}
        if name.startswith("by role"):
            filters = {"roles": frozenset({"user"}), "first": 10, "last": messages // 40}
        hits = 0
        seconds: list[float] = []
        ours: list[float] = []
        for number in range(-5, rounds):
            rare, high, low = (number * 37) % 900, 1 + number % 99, (number * 7) % 1000
            query = HistoryQuery(text.format(rare=rare, high=high, low=low), **filters)
            begun, busy = time.perf_counter(), time.process_time()
            found = history.search(query)
            if number >= 0:
                seconds.append(time.perf_counter() - begun)
                ours.append(time.process_time() - busy)
                hits += len(found.hits)
        yield name, Timed(seconds, ours, hits)


def measure(parts: Parts, messages: int, rounds: int) -> bool:
    """Print the figures of one store; whether all are within the mark."""
    start = time.perf_counter()
    history = index(parts, messages)
    print(f"  indexed {messages * 11 // 10:,} messages in {time.perf_counter() - start:.0f} s")
    fine = True
    for name, timed in searches(history, messages, rounds, QUERIES):
        middle, last, ours = timed.percentiles()
        fine &= last < MARK_SECONDS
        print(
            f"  {name:28} p50 {1e3 * middle:6.1f} ms   p99 {1e3 * last:6.1f} ms"
            f"   CPU p99 {1e3 * ours:6.1f} ms   {timed.hits / rounds:4.1f} hits"
        )
    return fine


def figures(messages: int, rounds: int) -> dict[str, float]:
    """For the table, in milliseconds: each kind of query on each store, and of all kinds the slowest."""
    found: dict[str, float] = {}
    for name in ("sqlite", "postgres"):
        with store(name) as parts:
            history = index(parts, messages)
            kinds = dict(searches(history, messages, rounds, QUERIES))
        for kind, timed in kinds.items():
            figure = f"history_{name}_" + "_".join(kind.replace(",", "").lower().split())
            middle, last, _ = timed.percentiles()
            found[f"{figure}_p50_ms"], found[f"{figure}_p99_ms"] = middle * 1e3, last * 1e3
        for figure, place in (("p50_ms", 0), ("p99_ms", 1), ("p99_cpu_ms", 2)):
            found[f"history_{name}_{figure}"] = 1e3 * max(
                timed.percentiles()[place] for timed in kinds.values()
            )
    return found


@contextmanager
def store(name: str) -> Iterator[Parts]:
    """An empty ledger."""
    given: dict[str, Any] = {
        "policy": WindowPolicy(),
        "registry": DEFAULT_REGISTRY,
        "settings": Settings(),
    }
    if name == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            parts = composition.open_sqlite(Path(folder) / "ledger.db", **given)
            yield parts
            parts.close()
        return
    with running_server() as server:
        parts = composition.open_postgres(server.url(schema="history_bench"), **given)
        yield parts
        parts.close()


def main() -> int:
    """Measure the stores. The exit code is 1 where a figure is beyond the mark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--store", choices=("sqlite", "postgres"))
    given = parser.parse_args()
    fine = True
    for name in [given.store] if given.store else ["sqlite", "postgres"]:
        print(f"{name}, {given.messages:,} messages in one conversation")
        with store(name) as parts:
            fine &= measure(parts, given.messages, given.rounds)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
