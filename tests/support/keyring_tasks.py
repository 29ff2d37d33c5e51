"""What other processes do with a keyring. Run as a script: task, folder, number."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring

CONTEXT = b"context"
_WATCHED = ("mkdir", "open", "write", "fsync", "link", "replace", "unlink", "close")


def kill_at(step: int) -> None:
    """This process is killed before the call of that number that changes something on the disk.

    Of what should be written then, half is written.
    """
    left = [step]

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if call.__name__ == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return counted

    for name in _WATCHED:
        setattr(os, name, watched(getattr(os, name)))
    fcntl.flock = watched(fcntl.flock)


def killed_everywhere(folder: Path, act: Callable[[Path], object]) -> None:
    """``act`` is killed at each of its steps, each time on another copy of the folder; the copies remain."""
    step = 0
    while True:
        step += 1
        copy = folder.with_name(f"{folder.name}-{step}")
        if folder.exists():
            shutil.copytree(folder, copy)
        child = os.fork()
        if child == 0:
            kill_at(step)
            act(copy)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.stdout.write(json.dumps([step, status]))
            return


def wait() -> None:
    """Until the test says something."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def create_once(folder: Path) -> None:
    """When told to."""
    wait()
    epoch, wrapped = FileKeyring.open(folder, create=True).wrap(b"secret", CONTEXT)
    sys.stdout.write(f"{epoch} {wrapped.hex()}\n")


def rotate_often(folder: Path, times: int) -> None:
    """When told to; and wrap under each epoch."""
    keyring = FileKeyring.open(folder, create=False)
    wait()
    for _ in range(times):
        keyring.rotate()
        epoch, wrapped = keyring.wrap(b"secret", CONTEXT)
        sys.stdout.write(f"{epoch} {wrapped.hex()}\n")


def main(task: str, place: str, number: str) -> None:
    folder = Path(place)
    if task == "kill-create":
        killed_everywhere(folder, lambda copy: FileKeyring.open(copy, create=True))
    elif task == "kill-rotate":
        killed_everywhere(folder, lambda copy: FileKeyring.open(copy, create=False).rotate())
    elif task == "create":
        create_once(folder)
    else:
        rotate_often(folder, int(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
