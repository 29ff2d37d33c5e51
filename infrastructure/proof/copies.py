"""Every checkpoint that was published of a log, as it lies in the folder (K1, K4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.heads import Evidence, KnownHead, head_in
from compaction_ledger.domain.proof.notes import MAX_NOTE, NoteVerifier
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.folder import COPIES, NEWEST

ReadHead = Callable[[Sequence[NoteVerifier]], Evidence]
"""A checkpoint that was read, and is yet to be checked with the keys that are known then.

In this order: a new key is known before it signs, and may sign at any time.
"""

_is_size = re.compile("0|[1-9][0-9]{0,18}").fullmatch


def published_sizes(folder: Path) -> Sequence[int]:
    """The sizes at which a checkpoint was published, in order. Raises kinds of :class:`StoreError`."""
    copies = folder / COPIES
    try:
        names = [path.name for path in copies.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.translated(error, copies) from error
    return sorted(int(name) for name in names if _is_size(name))


def published_heads(
    folder: Path, sizes: Sequence[int], verifiers: Sequence[NoteVerifier]
) -> Iterator[Evidence]:
    """The copies of these sizes, each read when it is asked for."""
    for size in sizes:
        found = read_head(folder / COPIES / f"{size:d}")(verifiers)
        if isinstance(found, KnownHead) and found.size != size:
            yield Finding("checkpoint", f"{found.source} is of {found.size} events")
        else:
            yield found


def read_newest(folder: Path) -> ReadHead | None:
    """The checkpoint that was published last."""
    path = folder / NEWEST
    return read_head(path) if path.exists() else None


def read_head(path: Path) -> ReadHead:
    """The checkpoint in a file."""
    source = f"the checkpoint {path}"
    try:
        data = files.read(path, MAX_NOTE)
    except StoreError as error:
        return _told(f"it cannot be read: {error}")
    return _told(f"there is no file {path}") if data is None else partial(head_in, source, data)


def _told(message: str) -> ReadHead:
    return lambda _: Finding("checkpoint", message)
