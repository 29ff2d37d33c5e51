"""Copies of checkpoints in a folder where nothing is replaced (K3)."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.infrastructure.proof import files

MAX_KEPT = 256 * 1024


class FolderCopies:
    """A folder, on a disk or in a system of files that lets nobody change what was written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = f"the folder {folder}"

    def put(self, name: str, data: bytes) -> bytes:
        """Keep ``data`` under a name; returns what is kept there, which is what came first."""
        path = self._folder / name
        files.make_folder(path.parent)
        if files.create(path, data):
            return data
        kept = files.read(path, MAX_KEPT)
        if kept is None:
            raise StoreUnavailable(f"{path} is gone while it is read")
        return kept
