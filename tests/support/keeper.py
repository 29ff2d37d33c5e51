"""Keeps a program running for as long as somebody holds a lock: no server of a test outlives the tests.

Run as a script with one argument, an order as JSON (``kept_processes.keep`` writes it). Says the program's
process id and leaves; what stays behind is a process in the background that waits for two things. If the
program ends, it ends too. If all who hold the lock are gone, however they went, it ends the program, waits
until it is gone and removes its folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE = 30


def main() -> None:
    """Start the program, say its process id, and keep it in the background."""
    order = json.loads(sys.argv[1])
    heard, said = os.pipe()
    if os.fork():
        os.close(said)
        with os.fdopen(heard) as answer:
            sys.stdout.write(answer.read())
        return
    os.close(heard)
    os.setsid()
    _be_silent()
    _keep(order, said)


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _keep(order: dict[str, Any], said: int) -> None:
    with os.fdopen(said, "w") as answer:
        lock = os.open(order["lock"], os.O_RDWR)
        try:
            program = _started(order)
        except OSError as error:
            answer.write(f"{type(error).__name__}: {error}")
            return
        answer.write(str(program.pid))
    signal.signal(signal.SIGCHLD, lambda *_: _leave_after(program))
    _leave_after(program)  # it may have ended before there was anybody to hear of it
    fcntl.flock(lock, fcntl.LOCK_EX)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end(program, order["farewell"])
    for place in order["mounts"]:
        subprocess.run(["umount", "--lazy", place], check=False)
    if order["folder"]:
        shutil.rmtree(order["folder"], ignore_errors=True)


def _started(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    user, group = order["user"] or (None, None)
    with Path(order["log"]).open("ab") as log:
        return subprocess.Popen(
            order["command"],
            env=order["environment"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )


def _leave_after(program: subprocess.Popen[bytes]) -> None:
    if program.poll() is not None:
        os._exit(0)


def _end(program: subprocess.Popen[bytes], farewell: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        program.send_signal(signal.SIGCONT)
        program.send_signal(farewell)
    try:
        program.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


if __name__ == "__main__":
    main()
