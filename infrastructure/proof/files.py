"""Writing files so that they are there as a whole or not at all, whatever happens (K1)."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from compaction_ledger.domain.errors import (
    DiskFull,
    LedgerReadOnly,
    SignerBusy,
    StoreError,
    StoreUnavailable,
)

try:
    import fcntl
except ImportError:  # pragma: no cover - not on POSIX
    fcntl = None  # type: ignore[assignment]

LOCK_SECONDS = 30.0
_TEMPORARY = ".tmp-"
_TRIES = 100


def read(path: Path, limit: int) -> bytes | None:
    """What stands in a file of at most ``limit`` bytes; ``None`` where there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translated(error, path) from error
    if len(data) > limit:
        raise StoreError(f"{path} is larger than {limit} bytes")
    return data


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Make a folder where there is none, and those above it."""
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir(mode)
            _sync_folder(folder.parent)
    except OSError as error:
        raise translated(error, folder) from error


def replace(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put ``data`` in the place of whatever stands at ``path``."""
    with _temporary(path, data, mode) as temporary:
        temporary.replace(path)


def create(path: Path, data: bytes, mode: int = 0o644, *, by_way_of: Path | None = None) -> bool:
    """Make the file at ``path``; False where there is one, which is left as it is.

    It is first written in the folder ``by_way_of``, on the same disk, or beside ``path``. Who holds the lock
    of that folder may take it for what a dead writer left behind: then it is written again.
    """
    for left in reversed(range(_TRIES)):
        with _temporary(path, data, mode, by_way_of) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except FileNotFoundError:
                if temporary.exists() or not path.parent.is_dir() or not left:
                    raise
            else:
                return True
    raise AssertionError  # the last try returns or raises


def move(source: Path, path: Path) -> None:
    """Move a file in the same folder over whatever stands at ``path``."""
    try:
        source.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise translated(error, path) from error


def forget_temporaries(folder: Path) -> None:
    """Remove what was left behind by writers that died. Only for who holds the folder's lock."""
    with suppress(OSError):
        for path in folder.glob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, seconds: float = LOCK_SECONDS) -> Generator[None]:
    """While this lasts, nobody else holds the lock of that file. Raises :class:`SignerBusy`.

    The lock belongs to the process and ends with it.
    """
    if fcntl is None:  # pragma: no cover - not on POSIX
        raise StoreUnavailable("this system has no locks of files")
    until = monotonic() + seconds
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise translated(error, path) from error
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() >= until:
                    raise SignerBusy(f"another process publishes in {path.parent}") from None
                sleep(0.02)
            except OSError as error:
                raise translated(error, path) from error
            else:
                break
        yield
    finally:
        try:  # a child that was forked meanwhile has the file open, too: to close ours would leave it locked
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)


@contextmanager
def _temporary(path: Path, data: bytes, mode: int, folder: Path | None = None) -> Generator[Path]:
    """A file with ``data``, safely on the disk; what is done with it for ``path`` is, too, at the end."""
    temporary = (folder or path.parent) / f"{_TEMPORARY}{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise translated(error, path) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def translated(error: OSError, path: Path) -> StoreError:
    """The error of our tree for one of the system."""
    reason = error.strerror or type(error).__name__
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull(f"{path}: {reason}")
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return LedgerReadOnly(f"{path}: {reason}")
    return StoreUnavailable(f"{path}: {reason}")
