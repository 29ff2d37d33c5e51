"""Calls of `compaction-ledger`: in this process for speed, as a process of its own where that matters."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction_ledger.cli import main

COMMAND = (sys.executable, "-m", "compaction_ledger")


@dataclass(frozen=True)
class Done:
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    def fine(self) -> Done:
        """Exit code 0, and nothing on stderr."""
        assert (self.code, self.err) == (0, ""), self
        return self

    def failed(self, code: str, exit_code: int = 2) -> str:
        """One readable line on stderr with this error code, and no trace; returns its message."""
        assert self.code == exit_code, self
        assert self.err.count("\n") == 1, self.err
        start = f"error[{code}]: "
        assert self.err.startswith(start), self.err
        assert "Traceback" not in self.out + self.err
        return self.err.removeprefix(start).rstrip("\n")


def call(*words: object, ledger: Path | None = None) -> Done:
    """Call the command in this process."""
    out, err = _stream(), _stream()
    given = [*map(str, words), *(() if ledger is None else ("--ledger", str(ledger)))]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(given)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(code, _text(out), _text(err))


def run(*words: object, cwd: Path | None = None, **variables: str) -> Done:
    """Call the command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def start(words: Sequence[object], **variables: str) -> subprocess.Popen[str]:
    """Start the command as a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what would steer the command, and with ``variables``."""
    steering = {"COMPACTION_LEDGER", "COLUMNS", "FORCE_COLOR", "NO_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in steering}
    return {**kept, "PYTHONWARNINGS": "error", **variables}


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
