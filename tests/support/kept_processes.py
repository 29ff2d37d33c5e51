"""Servers of other people's making, run for the tests: as nobody in particular, and never beyond the tests.

The program that keeps them is ``keeper``.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

STEP = 0.005
# Below the ports that the system gives to clients: a client that tries again and again to reach a server
# which is down could otherwise be given that very port, and talk to itself.
PORTS = range(20_000, 32_000)


class NotStarted(Exception):
    """A server did not start; the message tells what it said."""


@dataclass(frozen=True)
class User:
    """Somebody to run a server as."""

    number: int
    group: int

    def run(self, *command: str | Path) -> str:
        """Run a program as this user; what it says, and what it complains of is raised."""
        root = os.geteuid() == 0
        done = subprocess.run(
            command,
            env=base_environment(),
            cwd="/",
            user=self.number if root else None,
            group=self.group if root else None,
            extra_groups=[] if root else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotStarted(f"{Path(command[0]).name}: {done.stdout}{done.stderr}")
        return done.stdout

    def own(self, path: Path) -> None:
        """Give the user a file or folder."""
        if os.geteuid() == 0:
            os.chown(path, self.number, self.group)

    def may_run(self, program: Path) -> bool:
        """Whether the user reaches the program (a folder of root's may lie in the way)."""
        try:
            self.run(program, "--version")
        except (OSError, NotStarted):
            return False
        return True


def unprivileged() -> User:
    """Who runs the servers: oneself, or where that is root, somebody who may do nothing."""
    if os.geteuid():
        return User(os.geteuid(), os.getegid())
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(entry.pw_uid, entry.pw_gid)
    pytest.skip("needs a user other than root to run a server as")


def base_environment() -> dict[str, str]:
    """What a server is told of its surroundings: next to nothing."""
    return {"PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC", "LC_ALL": "C"}


def open_folder(name: str) -> Path:
    """A new folder, short of name, that every user reaches (those of pytest are for one's own eyes)."""
    folder = Path(tempfile.mkdtemp(prefix=f"ledger-{name}-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


def free_port() -> int:
    """A port on the loopback interface on which nobody listens."""
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise NotStarted("no free port")


# --- locks --------------------------------------------------------------------------------------


@dataclass
class Lock:
    """A lock on a file, held until it is released or the process is gone."""

    path: Path
    shared: bool = True
    _file: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        while self._file is None:
            self.path.parent.mkdir(exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(file, fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX)
            if _is_at(self.path, file):
                self._file = file
            else:  # whoever had it before has removed it
                os.close(file)

    def release(self) -> None:
        """Let it go."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_at(path: Path, file: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False


# --- processes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptProcess:
    """A program that runs in the background, until it is told to end or its lock is free."""

    pid: int

    def alive(self) -> bool:
        """Whether it runs."""
        return alive(self.pid)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = 120) -> None:
        """Until it is gone."""
        wait_until(lambda: not self.alive(), seconds, f"process {self.pid} to end")


@dataclass(frozen=True)
class Order:
    """What to run, and what to do when nobody holds the lock any more."""

    command: Sequence[str | Path]
    lock: Path
    log: Path
    user: User
    environment: Mapping[str, str] = field(default_factory=base_environment)
    farewell: int = signal.SIGTERM
    folder: Path | None = None
    mounts: Sequence[Path] = ()


def keep(order: Order) -> KeptProcess:
    """Start a program that never outlives those who hold its lock."""
    said = subprocess.run(
        [sys.executable, "-I", "-S", Path(__file__).with_name("keeper.py"), _as_json(order)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if not said.isdigit():
        raise NotStarted(said)
    return KeptProcess(int(said))


def _as_json(order: Order) -> str:
    root = os.geteuid() == 0
    return json.dumps(
        {
            "command": [str(word) for word in order.command],
            "lock": str(order.lock),
            "log": str(order.log),
            "user": [order.user.number, order.user.group] if root else None,
            "environment": dict(order.environment),
            "farewell": int(order.farewell),
            "folder": str(order.folder) if order.folder else None,
            "mounts": [str(place) for place in order.mounts],
        }
    )


def alive(pid: int) -> bool:
    """Whether there is such a process; one that is dead and not yet taken in is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = _status(pid)
    return status is None or status[0] not in "ZX"


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    if not Path("/proc/self/stat").exists():
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        ).stdout
        pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
        return [child for child, parent in pairs if parent == pid]
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [number for number in numbers if (_status(number) or ["", "-1"])[1] == str(pid)]


def _status(pid: int) -> list[str] | None:
    """The state of a process, its parent and so on, where the system shows them as files."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def kill_family(pid: int) -> None:
    """Kill (-9) a process and all that it started, at one moment: the first of them starts no more."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: (_status(pid) or "T")[0] in "TZX", 30, f"process {pid} to stop")
    family = [*children(pid), pid]  # the first last, for the others notice when it is gone
    for member in family:
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_until(lambda: not any(map(alive, family)), 30, f"process {pid} and its children to end")


def wait_until(condition: Callable[[], bool], seconds: float = 30, what: str = "it") -> None:
    """Until something is so; an error if it is not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} seconds for {what}")
        time.sleep(STEP)


def find_program(name: str, *folders: str) -> Path | None:
    """A program on the path or in one of some more folders."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *folders))
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def first_existing(places: Iterable[Path]) -> Path | None:
    """The first of these files that there is."""
    return next((place for place in places if place.exists()), None)
