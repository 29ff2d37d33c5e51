"""A program of somebody else's, asked on its standard input: a line of JSON for each question."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class LinePeer:
    """A running program. Questions are asked many at once."""

    process: subprocess.Popen[bytes]

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

    def ask(self, **members: Any) -> dict[str, Any]:
        """The answer to one question."""
        (answer,) = self.ask_all([members])
        return answer


@contextmanager
def running(*command: str | Path) -> Iterator[LinePeer]:
    """The program, until the end of the block."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield LinePeer(process)
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
