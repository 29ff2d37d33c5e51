"""Processes that sign, to be killed at every step, paused, or run at once. Run as a script."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from signed_logs import add_leaves

from compaction_ledger import Ledger, LedgerError
from compaction_ledger.settings import Settings

TRIES = 20


def opened(place: str, folder: str) -> Ledger:
    """The ledger at a place, with its keys and checkpoints in a folder."""
    settings = Settings(
        keys_folder=Path(folder) / "keys", checkpoints_folder=Path(folder) / "checkpoints"
    )
    return Ledger.open(place, create=False, settings=settings)


def say(**members: Any) -> None:
    """Say a line to the test."""
    sys.stdout.write(json.dumps(members) + "\n")
    sys.stdout.flush()


def sign(place: str, folder: str) -> None:
    """Sign once, and say what came of it."""
    try:
        with opened(place, folder) as ledger:
            signed = ledger.checkpoint()
            say(size=signed.checkpoint.size, root=signed.checkpoint.root.hex(), new=signed.new)
    except LedgerError as error:
        say(error=error.code, message=str(error))


def sign_often(place: str, folder: str) -> None:
    """Sign again and again."""
    for _ in range(TRIES):
        sign(place, folder)


def sign_paused(place: str, folder: str) -> None:
    """Sign, and wait for a line before it is announced what is about to be published."""
    with opened(place, folder) as ledger:
        tree: Any = ledger._parts.tree
        announce = tree.announce

        def late(*arguments: Any) -> bool:
            say(paused=True)
            sys.stdin.readline()
            return bool(announce(*arguments))

        tree.announce = late
        try:
            say(size=ledger.checkpoint().checkpoint.size)
        except LedgerError as error:
            say(error=error.code, message=str(error))


def sign_killed(place: str, folder: str) -> None:
    """Sign in a process of its own that is killed at its first step, then at its second … until one ends.

    After each, another signs what there is.
    """
    step = 0
    while True:
        step += 1
        killed = _in_child(lambda at=step: _sign_and_die(place, folder, at))  # type: ignore[misc]
        say(step=step, killed=killed, files=_files(folder))
        _in_child(lambda: sign(place, folder))
        if not killed:
            return
        _grow(place)


def _in_child(work: Callable[[], None]) -> bool:
    """Do it in a process that is forked off; whether that was killed."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or status == 0, status
    return killed


def _sign_and_die(place: str, folder: str, step: int) -> None:
    """Sign; before step ``step`` of all that changes something the process kills itself."""
    left = [step]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return call

    patched: Any
    for patched, names in (
        (os, ("fsync", "link", "mkdir", "open")),
        (Path, ("replace", "unlink")),
    ):
        for name in names:
            setattr(patched, name, counted(getattr(patched, name)))
    with opened(place, folder) as ledger:
        tree: Any = ledger._parts.tree
        for name in ("begin_turn", "keep", "announce"):
            setattr(tree, name, counted(getattr(tree, name)))
        ledger.checkpoint()


def _files(folder: str) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()
    )


def _grow(place: str) -> None:
    """One more event, so that there is something to sign again."""
    add_leaves(Path(place), 300)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
