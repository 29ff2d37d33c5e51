"""Calls of `compaction-ledger work` that run while a test looks at them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from command_line import call, start
from kept_processes import alive, children, wait_until

from compaction_ledger import Ledger

SECONDS = 60
QUICK = ["--poll", "0.1", "--discover", "0.5"]


def statuses(place: str | Path) -> list[str]:
    """Of all ranges that the log knows."""
    with Ledger.open(place, create=False) as ledger:
        return [row.status for row in ledger.ranges()]


def events(place: str | Path, name: str) -> list[Any]:
    """Every event of this name in the log."""
    page = call("log", "--limit", "1000", "--json", "--ledger", place).fine().json
    return [event for event in page["events"] if event["event"] == name]


def completions(place: str | Path) -> list[tuple[str, str, int]]:
    """Every completion in the log, by its range."""
    return [
        (event["scope"], event["conversation"], event["from_pair"])
        for event in events(place, "RangeCompleted")
    ]


@dataclass
class Working:
    """A call of `work` that runs, and the documents that it has printed so far."""

    process: subprocess.Popen[str]
    said: list[Any] = field(default_factory=list)
    err: str = ""

    def __post_init__(self) -> None:
        self._readers = [Thread(target=self._read_out), Thread(target=self._read_err)]
        for reader in self._readers:
            reader.start()

    def _read_out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    def _read_err(self) -> None:
        assert self.process.stderr is not None
        self.err = self.process.stderr.read()

    def events(self, name: str) -> list[Any]:
        return [one for one in list(self.said) if one.get("event") == name]

    def wait_for(self, name: str, count: int = 1) -> list[Any]:
        """Until it has said so often that this happened."""
        wait_until(
            lambda: len(self.events(name)) >= count or self.process.poll() is not None,
            SECONDS,
            name,
        )
        assert len(self.events(name)) >= count, (self.said, self.err)
        return self.events(name)

    def signal(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.process.pid, number)

    def end(self, code: int = 0, complaint: str = "") -> Sequence[Any]:
        """Wait for its end; what it said. Each line on stderr, if any, begins with ``complaint``."""
        assert self.process.wait(SECONDS) == code, (self.said, self.err)
        self.close()
        lines = self.err.splitlines()
        assert all(complaint and line.startswith(complaint) for line in lines), self.err
        return self.said

    def close(self) -> None:
        """Take in what is left of what it said, once it has ended."""
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def working(path: Path | str, *words: object, **variables: str) -> Iterator[Working]:
    """`work` on a ledger, in JSON; it and all its processes are killed in the end."""
    place = ["--ledger", path]
    process = start(["work", "--json", *QUICK, *words, *place], **variables)
    running = Working(process)
    try:
        yield running
    finally:
        family = [process.pid, *(one["process"] for one in running.events("worker_started"))]
        for pid in [*children(process.pid), *family]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(SECONDS)
        running.close()


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of a page."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def ready(port: int) -> int:
    """The status of the page `/ready`; 0 where nobody answers."""
    try:
        return get(port, "/ready")[0]
    except (URLError, ConnectionError):
        return 0


def status(port: int) -> Any:
    """What the page `/status` says."""
    return json.loads(get(port, "/status")[1])
