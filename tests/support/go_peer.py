"""The tree and the notes of Go's ``golang.org/x/mod``, from Debian's packages: not our own (K6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

GOPATH = Path("/usr/share/gocode")
SOURCE = Path(__file__).parent / "crosscheck" / "main.go"
PACKAGE = GOPATH / "src" / "golang.org" / "x" / "mod" / "sumdb" / "tlog"


def built(folder: Path) -> Path:
    """The program, built from the source beside this file; the test is skipped where that cannot be."""
    go = shutil.which("go")
    if go is None or not PACKAGE.is_dir():
        pytest.skip("needs Go and golang.org/x/mod: golang-go, golang-golang-x-mod-dev")
    program = folder / "crosscheck"
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(GOPATH),
        "GOFLAGS": "",
        "GOPROXY": "off",
        "GOCACHE": str(folder / "cache"),
        "CGO_ENABLED": "0",
    }
    subprocess.run(
        [go, "build", "-o", program, SOURCE],
        env=environment,
        check=True,
        timeout=240,
        stdout=sys.stderr,
    )
    return program


@dataclass
class GoPeer:
    """A running program. Questions are asked many at once."""

    process: subprocess.Popen[bytes]
    _waiting: list[dict[str, Any]] = field(default_factory=list)

    def ask_all(self, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers, in order."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        answers: list[dict[str, Any]] = []
        for first in range(0, len(questions), 50):  # so that neither side's pipe is full
            some = questions[first : first + 50]
            self.process.stdin.write(b"".join(json.dumps(q).encode() + b"\n" for q in some))
            self.process.stdin.flush()
            answers += [json.loads(self.process.stdout.readline()) for _ in some]
        return answers

    def ask(self, op: str, **members: Any) -> dict[str, Any]:
        """The answer to one question."""
        (answer,) = self.ask_all([{"Op": op, **members}])
        return answer


@contextmanager
def running(program: Path) -> Iterator[GoPeer]:
    """The program, until the end of the block."""
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield GoPeer(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def text(data: bytes) -> str:
    """Bytes as they stand in a question."""
    return b64encode(data).decode()


def texts(hashes: Sequence[bytes]) -> list[str]:
    """Hashes as they stand in a question."""
    return list(map(text, hashes))


def data(encoded: str) -> bytes:
    """Bytes of an answer."""
    return b64decode(encoded)
