"""A file that is there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.infrastructure.proof.files import translated


@contextmanager
def whole_file(path: Path, *, replace: bool) -> Generator[BufferedRandom]:
    """A file to be written, which gets its name once it is complete and on the disk.

    Only its owner may read it. Unless ``replace``, a file of that name is left as it is: raises
    :class:`InvalidSetting`, at the beginning, or at the end where it came meanwhile. Also where there is no
    folder for it; kinds of :class:`StoreError` where none can be made in it.
    """
    if not replace and os.path.lexists(path):
        raise InvalidSetting("there is a file already: --force replaces it", place=str(path))
    number, temporary = _begun(path)
    try:
        with os.fdopen(number, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _give_name(temporary, path, replace=replace)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    _keep_name(path.parent)


def _begun(path: Path) -> tuple[int, Path]:
    """A new file beside ``path``."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidSetting(f"there is no folder {path.parent}", place=str(path)) from error
    except OSError as error:
        raise translated(error, path) from error
    return number, Path(name)


def _give_name(temporary: Path, path: Path, *, replace: bool) -> None:
    if replace:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)  # the one call that never replaces
    except FileExistsError as error:
        raise InvalidSetting("a file of this name came meanwhile", place=str(path)) from error
    except OSError:  # no such links on this file system
        if os.path.lexists(path):
            raise
        temporary.rename(path)


def _keep_name(folder: Path) -> None:
    """Bring the folder's entry to the disk, where folders can be opened."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)
