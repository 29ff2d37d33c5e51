"""Disks that are small or cannot be written: real mounts, skipped where we may not mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _mount(*arguments: str) -> None:
    tool = shutil.which("mount")
    done = (
        subprocess.run([tool or "mount", *arguments], capture_output=True, check=False)
        if tool
        else None
    )
    if done is None or done.returncode:
        pytest.skip("needs the right to mount a file system")


@contextmanager
def _mounted(folder: Path) -> Iterator[Path]:
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of so many kilobytes at ``folder``."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    with _mounted(folder):
        yield folder


@contextmanager
def unwritable(folder: Path) -> Iterator[Path]:
    """``folder`` and all in it cannot be written, not even by root."""
    if os.geteuid() == 0:
        _mount("--bind", str(folder), str(folder))
        with _mounted(folder):
            _mount("-o", "remount,ro,bind", str(folder))
            yield folder
        return
    modes = {path: path.stat().st_mode for path in (*folder.iterdir(), folder)}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield folder
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def read_only_mount(path: Path) -> Iterator[Path]:
    """The file at ``path`` cannot be written, whoever asks; its folder can."""
    _mount("--bind", str(path), str(path))
    with _mounted(path):
        _mount("-o", "remount,ro,bind", str(path))
        yield path
