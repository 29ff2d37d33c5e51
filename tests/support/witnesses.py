"""Witnesses for tests: served in a thread of this process, or as a process of their own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from command_line import COMMAND, environment
from manipulations import Victim

from compaction_ledger.domain.proof.notes import NoteSignature
from compaction_ledger.infrastructure.witness.client import HttpWitness
from compaction_ledger.infrastructure.witness.server import Bounds, serve
from compaction_ledger.usecases.cosigning import cosign
from compaction_ledger.witness_parts import open_witness, witness_server


@dataclass
class RunningWitness:
    """A witness that is served in a thread."""

    name: str
    key: str
    port: int
    stop: Callable[[], None]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def setting(self) -> str:
        """How it is named in the settings."""
        return f"{self.url} {self.key}"

    def client(self, seconds: float = 10.0) -> HttpWitness:
        """A client of it."""
        return HttpWitness.parse(self.setting, seconds)

    def cosign(self, log: Victim) -> tuple[NoteSignature, ...]:
        """Have the newest checkpoint of a ledger cosigned."""
        with log.opened(read_only=True) as ledger:
            note = (log.checkpoints / "checkpoint").read_bytes()
            return cosign(note, self.client(), lambda old: ledger.prove_consistency(old).hashes)


@contextmanager
def running_witness(
    folder: Path, log_keys: Sequence[str], bounds: Bounds | None = None
) -> Iterator[RunningWitness]:
    """A witness in ``folder``, until the context ends."""
    parts = open_witness(folder, log_keys)
    server = witness_server(parts, ("127.0.0.1", 0), bounds)
    end = serve(server)
    ended = False

    def stop() -> None:
        nonlocal ended
        if not ended:
            ended = True
            end()

    try:
        key = parts.verifier_key
        yield RunningWitness(key.name, str(key), int(server.server_address[1]), stop)
    finally:
        stop()


@dataclass
class WitnessProcess:
    """A witness as a process of its own, which can be killed."""

    folder: Path
    log_keys: Sequence[str]
    process: subprocess.Popen[str] = field(init=False)
    url: str = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        keys = [word for key in self.log_keys for word in ("--log-key", key)]
        words = [
            "witness",
            "serve",
            "--folder",
            str(self.folder),
            "--listen",
            "127.0.0.1:0",
            "--json",
        ]
        self.process = subprocess.Popen(
            [*COMMAND, *words, *keys],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            line = self.process.stdout.readline()
            assert line, "the witness ended before it listened"
            lines.append(line)
        document = json.loads("".join(lines))
        self.url, self.key = document["url"], document["key"]

    @property
    def setting(self) -> str:
        """How it is named in the settings."""
        return f"{self.url} {self.key}"

    def kill(self) -> None:
        """End it at once, by kill -9."""
        self.process.kill()
        self._wait()

    def stop(self) -> int:
        """End it as one should; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


def post(port: int, body: bytes, path: str = "/add-checkpoint") -> tuple[int, str, bytes]:
    """One request: status, content type and body of the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, body)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()
    finally:
        connection.close()
