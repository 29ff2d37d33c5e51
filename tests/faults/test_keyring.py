"""A keyring file under kills, rivals, full and read-only disks: no key is ever lost (S1, S2)."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from disks import small_disk, unwritable
from keyring_tasks import CONTEXT
from processes import Process, tell

from compaction_ledger.domain.errors import DiskFull, KeysUnavailable
from compaction_ledger.infrastructure.keys import keyring_file
from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring

SECRET = b"a data key"
SUPPORT = Path(__file__).parents[1] / "support"


@contextmanager
def _processes(task: str, folder: Path, number: int, count: int) -> Iterator[list[Process]]:
    """So many processes that are killed in the end, if they still run."""
    with ExitStack() as stack:
        yield [stack.enter_context(_process(task, folder, number)) for _ in range(count)]


@contextmanager
def _process(task: str, folder: Path, number: int = 0) -> Iterator[Process]:
    with subprocess.Popen(
        [sys.executable, SUPPORT / "keyring_tasks.py", task, str(folder), str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _start(processes: Sequence[Process]) -> None:
    """All at once, when each of them is ready."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        tell(process)


def _output(process: Process) -> str:
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return out


def _killed_everywhere(task: str, folder: Path) -> int:
    """How many steps there were; the last one is the process that was not killed."""
    with _process(task, folder) as process:
        steps, status = json.loads(_output(process))
    assert status == 0
    return int(steps)


def _left_over(folder: Path) -> list[str]:
    return sorted(
        path.name for path in folder.iterdir() if path.name not in {"keyring.json", "keyring.lock"}
    )


def test_killed_at_each_step_of_its_creation(tmp_path: Path) -> None:  # S1
    steps = _killed_everywhere("kill-create", tmp_path / "keys")
    assert steps > 10
    for step in range(1, steps + 1):
        folder = tmp_path / f"keys-{step}"
        made = (folder / "keyring.json").exists()
        epoch = FileKeyring.open(folder, create=False).current_epoch() if made else None
        keyring = FileKeyring.open(folder, create=True)
        assert epoch in {None, keyring.current_epoch()}
        assert keyring.unwrap(*keyring.wrap(SECRET, CONTEXT), CONTEXT) == SECRET
        keyring.rotate()
        assert _left_over(folder) == []
        assert len(keyring.epochs()) == 2


def test_killed_at_each_step_of_a_rotation(tmp_path: Path) -> None:  # S2
    before = FileKeyring.open(tmp_path / "keys", create=True)
    wrapped = before.wrap(SECRET, CONTEXT)
    steps = _killed_everywhere("kill-rotate", tmp_path / "keys")
    assert steps > 5
    rotated = set[int]()
    for step in range(1, steps + 1):
        keyring = FileKeyring.open(tmp_path / f"keys-{step}", create=False)
        assert keyring.epochs()[0] == wrapped[0]
        assert keyring.unwrap(*wrapped, CONTEXT) == SECRET
        rotated.add(len(keyring.epochs()))
        between = keyring.wrap(SECRET, CONTEXT)
        made = keyring.rotate()
        assert keyring.epochs()[-1] == made == keyring.current_epoch()
        assert keyring.unwrap(*between, CONTEXT) == keyring.unwrap(*wrapped, CONTEXT) == SECRET
        assert _left_over(tmp_path / f"keys-{step}") == []
    assert rotated == {1, 2}


def test_many_processes_begin_at_once(tmp_path: Path) -> None:  # S1
    folder = tmp_path / "above" / "keys"
    with _processes("create", folder, 0, count=6) as processes:
        _start(processes)
        wraps = [_output(process).split() for process in processes]
    keyring = FileKeyring.open(folder, create=False)
    assert {epoch for epoch, _ in wraps} == set(keyring.epochs())
    assert len(keyring.epochs()) == 1
    assert all(
        keyring.unwrap(epoch, bytes.fromhex(wrapped), CONTEXT) == b"secret"
        for epoch, wrapped in wraps
    )
    assert _left_over(folder) == []


@pytest.mark.slow
def test_two_processes_rotate_at_once(tmp_path: Path) -> None:  # S2
    tmp_path.chmod(0o700)
    keyring = FileKeyring.open(tmp_path, create=True)
    first = keyring.wrap(SECRET, CONTEXT)
    with _processes("rotate", tmp_path, 40, count=2) as processes:
        _start(processes)
        while any(process.poll() is None for process in processes):  # a third one reads meanwhile
            assert keyring.unwrap(*first, CONTEXT) == SECRET
            assert keyring.unwrap(*keyring.wrap(SECRET, CONTEXT), CONTEXT) == SECRET
        lines = [line.split() for process in processes for line in _output(process).splitlines()]
    assert len(lines) == 80
    assert len(keyring.epochs()) == len(set(keyring.epochs())) == 81
    assert all(
        keyring.unwrap(epoch, bytes.fromhex(wrapped), CONTEXT) == b"secret"
        for epoch, wrapped in lines
    )


def test_a_lock_that_is_held_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    held = os.open(tmp_path / keyring_file.LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with (
            pytest.raises(KeysUnavailable, match="another process"),
            keyring_file.locked(tmp_path, patience=0.05),
        ):
            pytest.fail("it was locked twice")
    finally:
        os.close(held)


def _fill(path: Path) -> None:
    """Until nothing more can be written."""
    with path.open("wb", 0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        keyring = FileKeyring.open(disk / "keys", create=True)
        wrapped = keyring.wrap(SECRET, CONTEXT)
        _fill(disk / "filler")
        with pytest.raises(DiskFull):
            keyring.rotate()
        with pytest.raises(DiskFull):
            FileKeyring.open(disk / "more", create=True)
        assert FileKeyring.open(disk / "keys", create=False).unwrap(*wrapped, CONTEXT) == SECRET
        (disk / "filler").unlink()
        assert keyring.rotate() == keyring.current_epoch()
        assert _left_over(disk / "keys") == []
        assert keyring.unwrap(*wrapped, CONTEXT) == SECRET


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    keyring = FileKeyring.open(folder, create=True)
    wrapped = keyring.wrap(SECRET, CONTEXT)
    with unwritable(folder):
        with pytest.raises(KeysUnavailable):
            keyring.rotate()
        assert FileKeyring.open(folder, create=True).unwrap(*wrapped, CONTEXT) == SECRET
