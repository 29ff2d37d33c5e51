"""Real processes on one ledger file, to be killed, stopped and continued.

What they do is in ``process_tasks``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

TIMEOUT = 120

Process = subprocess.Popen[str]


def worker(task: str, path: Path | str, *arguments: Any) -> Process:
    """Start a process that does ``task`` on the ledger at ``path``."""
    support = Path(__file__).parent
    script = support / "process_tasks.py"
    # Whatever this process imports from, so does that one.
    places = os.pathsep.join((str(support), os.environ.get("PYTHONPATH", "")))
    return subprocess.Popen(
        [sys.executable, "-W", "error", script, task, str(path), json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": places},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(task: str, path: Path | str, *arguments: Any) -> Iterator[Process]:
    """A process that is killed in the end, if it still runs."""
    process = worker(task, path, *arguments)
    try:
        yield process
    finally:
        kill_all([process])


def output(process: Process) -> str:
    """What a process said, once it has ended well."""
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (0, ""), err
    return out


def run_all(processes: Iterable[Process]) -> list[str]:
    """The outputs of processes that run at once; each must end well."""
    started = list(processes)
    try:
        return [output(process) for process in started]
    finally:
        kill_all(started)


def kill_all(processes: Iterable[Process]) -> None:
    """Kill (-9) what still runs, and take in what is left."""
    for process in processes:
        if process.poll() is None:
            process.kill()
        if process.stdout and not process.stdout.closed:
            process.communicate(timeout=TIMEOUT)


def wait_for(process: Process, word: str, seconds: float = TIMEOUT) -> Sequence[str]:
    """Read the process's output up to a line that begins with ``word``; the words after it.

    One that does not say it in time is killed.
    """
    assert process.stdout is not None
    late = Timer(seconds, process.kill)
    late.start()
    try:
        for line in process.stdout:
            first, *rest = line.split()
            if first == word:
                return rest
        _, err = process.communicate(timeout=TIMEOUT)
    finally:
        late.cancel()
    raise AssertionError(f"the process ended, or was too late, before it said {word!r}: {err}")


def tell(process: Process, word: str = "go") -> None:
    """Say a line to the process."""
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
