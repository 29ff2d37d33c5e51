"""What processes do with the window of one run. Run as a script: task, ledger, arguments as JSON."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from window_runs import PLACE, STOP, Json, good, growing

from compaction_ledger import (
    Answer,
    HistoryChanged,
    Ledger,
    LedgerError,
    ModelIdentity,
    StoreError,
    WindowBudget,
)
from compaction_ledger.domain.window.summarization import ChunkRequest
from compaction_ledger.settings import Settings
from compaction_ledger.window import Window

LEASE = 1.0
BUDGET = WindowBudget(4_000, trigger=1_800, keep=700, summaries=900)
WORDS = {number: f"Never open case {number}. " for number in range(0, 1_000, 5)}


@dataclass(slots=True)
class Moody:
    """Takes its time, and every third time or so brings nothing that could be used."""

    seed: int
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    @property
    def model(self) -> ModelIdentity:
        return ModelIdentity.of("test", "moody")

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        time.sleep(self.chance.random() * 0.04)
        mood = self.chance.random()
        if mood < 0.05:
            raise RuntimeError("not today")
        return Answer("In short: all is well.", STOP) if mood < 0.15 else good(request)


def opened(ledger: Ledger, seed: int) -> Window:
    scope, conversation, run = PLACE
    return ledger.window(
        conversation,
        run=run,
        scope=scope,
        shape="openai-chat",
        budget=BUDGET,
        summarizer=Moody(seed),
        background=False,
    )


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def work(place: str, seed: int, turns: int) -> None:
    """Run the agent turn by turn, compacting; then, when told to, say the digest of the next request."""
    with Ledger.open(place, settings=Settings(lease_seconds=LEASE)) as ledger:
        window = opened(ledger, seed)
        say("begun")
        messages: list[Json] = []
        for messages in growing(turns, WORDS):
            try:
                window.prepare(messages)
            except HistoryChanged:  # it began anew behind what is recorded
                continue
            compact(window)
        settle(window, messages)
        say("worked")
        sys.stdin.readline()
        prepared = window.prepare(messages)
        say("request", prepared.manifest.request_digest, prepared.tokens)


def settle(window: Window, messages: list[Any]) -> None:
    """Compact what is due of the last turn; claims of those that were killed run out first."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        prepared = window.prepare(messages)
        if prepared.due is not None:
            compact(window)
        elif prepared.nothing_due == "running":
            time.sleep(0.05)
        else:
            return


def compact(window: Window) -> None:
    """Whatever is due. That a claim is lost, or the file busy, is everyday life."""
    try:
        while (outcome := window.compact()) is not None and outcome.result == "completed":
            pass
    except StoreError as error:
        say("away", type(error).__name__)
    except LedgerError as error:
        say("refused", type(error).__name__)
        raise


def worker(place: str, *arguments: Any) -> subprocess.Popen[str]:
    """Start a process that works on the run."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", __file__, place, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    work(sys.argv[1], *json.loads(sys.argv[2]))
