"""The checkpoints that were published, as they lie in their folder (K1, K5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.domain.proof.notes import MAX_NOTE

_SIZE = re.compile(r"0|[1-9][0-9]{0,14}")


def published_notes(folder: Path, below: int) -> Iterator[tuple[Path, bytes]]:
    """Every copy of a checkpoint of a size ``below``, the smallest first. Other files are passed over.

    Raises :class:`StoreUnavailable` for a folder or file that cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreUnavailable(f"{folder}: {error.strerror or error}") from error
    sizes = sorted(int(name) for name in names if _SIZE.fullmatch(name))
    for size in sizes:
        if size < below:
            path = folder / str(size)
            yield path, read_note(path)


def read_note(path: Path) -> bytes:
    """A signed note in a file, as far as a note can be long. Raises :class:`StoreUnavailable`."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTE + 1)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror or error}") from error
