"""A file that is there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from compaction_ledger.domain.errors import InvalidSetting


@contextmanager
def whole_file(path: Path, *, replace: bool) -> Generator[BinaryIO]:
    """A file to be written, which gets its name once it is complete and on the disk.

    Only its owner may read it. Unless ``replace``, a file of that name is left as it is: raises
    :class:`InvalidSetting`, at the beginning, or at the end where it came meanwhile.
    """
    if not replace and os.path.lexists(path):
        raise InvalidSetting("there is a file already: --force replaces it", place=str(path))
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
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
