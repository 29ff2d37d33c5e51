"""Every checkpoint that was published of a log, as it lies in the folder (K1, K4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.heads import Evidence, KnownHead, head_in
from compaction_ledger.domain.proof.notes import MAX_NOTE, NoteVerifier
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.folder import COPIES, NEWEST

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
        found = _head(folder / COPIES / f"{size:d}", verifiers)
        if isinstance(found, KnownHead) and found.size != size:
            yield Finding("checkpoint", f"{found.source} is of {found.size} events")
        else:
            yield found


def newest_head(folder: Path, verifiers: Sequence[NoteVerifier]) -> Evidence | None:
    """The checkpoint that was published last."""
    path = folder / NEWEST
    return _head(path, verifiers) if path.exists() else None


def given_head(path: Path, verifiers: Sequence[NoteVerifier]) -> Evidence:
    """The checkpoint in a file."""
    return _head(path, verifiers)


def _head(path: Path, verifiers: Sequence[NoteVerifier]) -> Evidence:
    source = f"the checkpoint {path}"
    try:
        data = files.read(path, MAX_NOTE)
    except StoreError as error:
        return Finding("checkpoint", f"it cannot be read: {error}")
    if data is None:
        return Finding("checkpoint", f"there is no file {path}")
    return head_in(source, data, verifiers)
