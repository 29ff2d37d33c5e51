"""The folder and file of a keyring: who may read them, and how they are written so that nothing is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from compaction_ledger.domain.errors import DiskFull, KeyMissing, KeysUnavailable

KEYRING: Final = "keyring.json"
LOCK: Final = "keyring.lock"
PATIENCE_SECONDS: Final = 30.0
_TEMPORARY: Final = ".keyring-"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)

Stamp = tuple[int, int, int]
"""Another file, or another state of it, has another one: inode, time of change, size."""


@contextmanager
def translated(path: Path) -> Generator[None]:
    """What the system says comes out as :class:`KeyMissing`, :class:`DiskFull`, :class:`KeysUnavailable`."""
    try:
        yield
    except FileNotFoundError as error:
        raise KeyMissing(f"there is no keyring at {path}") from error
    except OSError as error:
        kind = DiskFull if error.errno in _FULL else KeysUnavailable
        raise kind(f"the keyring at {path} cannot be used: {error.strerror}") from error


def stamp_of(path: Path) -> Stamp:
    """How the file is told from one that replaced it. Raises ``OSError``."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def read(path: Path) -> tuple[Stamp, bytes]:
    """The file, which nobody else may read, nor its folder. Raises ``OSError``, :class:`KeysUnavailable`."""
    _check_private(path.parent, path.parent.stat().st_mode, "700")
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise KeysUnavailable(f"{path} is not a file")
        _check_private(path, found.st_mode, "600")
        return (found.st_ino, found.st_mtime_ns, found.st_size), file.read()


def _check_private(path: Path, mode: int, wanted: str) -> None:
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeysUnavailable(
            f"{path} holds keys and is open to others (mode {stat.S_IMODE(mode):o}): "
            f"make it private, with chmod {wanted}, once you know who has read it"
        )


def make_folder(folder: Path) -> None:
    """Make the folder, for its owner alone, and those above it. Raises ``OSError``."""
    missing = [folder, *folder.parents]
    missing = missing[: next(at for at, one in enumerate(missing) if one.exists())]
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir(mode=0o700 if one == folder else 0o777)
        sync_folder(one.parent)


@contextmanager
def locked(folder: Path, patience: float = PATIENCE_SECONDS) -> Generator[None]:
    """One process at a time makes or changes the keyring. Raises ``OSError`` and :class:`KeysUnavailable`.

    What a process left behind that was killed here is removed: it holds keys.
    """
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(lock, folder, time.monotonic() + patience)
        for left in folder.glob(f"{_TEMPORARY}*"):
            left.unlink(missing_ok=True)
        yield
    finally:
        _release(lock)


def _acquire(lock: int, folder: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise KeysUnavailable(
                    f"the keyring in {folder} is held by another process"
                ) from None
            time.sleep(0.01)
        else:
            return


def _release(lock: int) -> None:
    """A child that was forked meanwhile has the file open, too: to close ours would leave it locked."""
    try:
        fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


def make(path: Path, data: bytes) -> None:
    """Write the file, which is not there yet; the lock is held. Raises ``OSError``.

    One that is there after all, made by a process that the lock does not hold off, is not replaced.
    """
    written = _written(path.parent, data)
    try:
        os.link(written, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(written, path)  # noqa: PTH104 - it may be one of the few calls that a test watches
    finally:
        with suppress(FileNotFoundError):
            os.unlink(written)  # noqa: PTH108
    sync_folder(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Put new contents into the place of the file, all or nothing; the lock is held. Raises ``OSError``."""
    written = _written(path.parent, data)
    try:
        os.replace(written, path)  # noqa: PTH105
    except BaseException:
        os.unlink(written)  # noqa: PTH108
        raise
    sync_folder(path.parent)


def _written(folder: Path, data: bytes) -> Path:
    """A new file of the folder, of its owner alone, that is on the disk."""
    path = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write(file, data)
    except BaseException:
        os.unlink(path)  # noqa: PTH108
        raise
    finally:
        os.close(file)
    return path


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """The names in the folder are on the disk afterwards. Raises ``OSError``."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
