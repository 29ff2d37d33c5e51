"""The folder of checkpoints (K1): the newest, a copy of each, and one whose publication has not ended.

::

    checkpoint           the newest, as a signed note
    checkpoints/<size>   the first that was published at that size; never overwritten
    pending              its publication has begun
    lock                 held while somebody publishes
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from compaction_ledger.domain.proof.notes import MAX_NOTE
from compaction_ledger.infrastructure.proof import files

NEWEST = "checkpoint"
COPIES = "checkpoints"
PENDING = "pending"
LOCK = "lock"


class CheckpointFolder:
    """Checkpoints in a folder, which is made when the first is published."""

    def __init__(self, folder: Path, *, lock_seconds: float = files.LOCK_SECONDS) -> None:
        self.folder = folder
        self._lock_seconds = lock_seconds

    @contextmanager
    def locked(self) -> Generator[None]:
        """While this lasts, no other process publishes here. Raises :class:`SignerBusy`."""
        files.make_folder(self.folder)
        with files.locked(self.folder / LOCK, self._lock_seconds):
            files.forget_temporaries(self.folder)
            yield

    def newest(self) -> bytes | None:
        """The newest checkpoint."""
        return files.read(self.folder / NEWEST, MAX_NOTE)

    def pending(self) -> bytes | None:
        """A checkpoint whose publication has begun and not ended."""
        return files.read(self.folder / PENDING, MAX_NOTE)

    def at(self, size: int) -> bytes | None:
        """The checkpoint that was published first at this size."""
        return files.read(self._copy(size), MAX_NOTE)

    def publish(self, size: int, data: bytes) -> None:
        """Publish: note what is about to be published, keep a copy, and then it is the newest."""
        pending, copy = self.folder / PENDING, self._copy(size)
        files.make_folder(copy.parent)
        files.replace(pending, data)
        files.create(copy, data, by_way_of=self.folder)
        files.move(pending, self.folder / NEWEST)

    def _copy(self, size: int) -> Path:
        return self.folder / COPIES / f"{size:d}"
