"""Workers of Procrastinate, and one of ours, as processes on one ledger.

Run as a script: ``procrastinate`` or ``native``, ledger, schema of Procrastinate's tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from compaction_ledger import (
    Answer,
    FinishFacts,
    Ledger,
    ModelIdentity,
    Settings,
    SignalStop,
    SummaryRequest,
)
from compaction_ledger.dispatch import app_on, run_procrastinate_worker
from compaction_ledger.serving import Pace

Process = subprocess.Popen[str]
LEASE_SECONDS = 2.0
PACE = Pace(threads=2, poll=0.2, discover=2.0, drain=5.0, ranges=2)


class Slow:
    """A summarizer that takes its time, so that a process can be killed in the midst of an attempt."""

    model = ModelIdentity.of("test", "slow")

    def summarize(self, request: SummaryRequest) -> Answer:
        time.sleep(0.05)
        return Answer(request.replies[0].text[:60], FinishFacts(("stop",)))


def settings() -> Settings:
    """A lease that is over soon when its holder is killed."""
    return Settings(lease_seconds=LEASE_SECONDS, attempts_at_once=PACE.threads)


def start(kind: str, place: str, schema: str) -> Process:
    """Start a worker: ``procrastinate`` or ``native``."""
    support = Path(__file__).parent
    places = os.pathsep.join((str(support), os.environ.get("PYTHONPATH", "")))
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(support / "dispatching.py"), kind, place, schema],
        env={**os.environ, "PYTHONPATH": places},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main(kind: str, place: str, schema: str) -> None:
    """Work until SIGTERM."""
    with Ledger.open(place, settings=settings(), summarizer=Slow()) as ledger:
        if kind == "procrastinate":
            run_procrastinate_worker(ledger, app_on(place, schema), pace=PACE)
        else:
            stop = SignalStop()
            with stop.on_signals():
                ledger.work(stop=stop, pace=PACE)


if __name__ == "__main__":
    main(*sys.argv[1:])
