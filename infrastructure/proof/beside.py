"""What is kept in the folder of checkpoints beside each copy (K3).

::

    cosigned/<size>            the checkpoint with the signatures of witnesses
    checkpoints/<size>.tsr     the time stamp of the copy checkpoints/<size>
"""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.domain.proof.notes import MAX_NOTE, parse_note
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.folder import COPIES, NEWEST, CheckpointFolder

COSIGNED = "cosigned"
TIMESTAMP = ".tsr"
MAX_TIMESTAMP = 256 * 1024


class BesideFolder:
    """The port ``BesideCopies``."""

    def __init__(self, published: CheckpointFolder) -> None:
        self._published = published
        self._folder = published.folder

    def copy(self, size: int) -> bytes | None:
        """The checkpoint that was published first at this size."""
        return self._published.at(size)

    def cosigned(self, size: int) -> bytes | None:
        """The same with the signatures of witnesses."""
        return files.read(self._cosigned(size), MAX_NOTE)

    def keep_cosigned(self, size: int, note: bytes) -> None:
        """Keep it; its signatures come to the newest, unless another has become that.

        Another may have kept what others signed meanwhile: no signature is lost.
        """
        with self._published.locked():
            files.make_folder(self._folder / COSIGNED)
            kept = _merged(note, self.cosigned(size))
            files.replace(self._cosigned(size), kept)
            newest = self._published.newest()
            if newest is not None and parse_note(newest).text == parse_note(kept).text:
                files.replace(self._folder / NEWEST, _merged(newest, kept))

    def timestamp(self, size: int) -> bytes | None:
        """The time stamp of the copy."""
        return files.read(self._timestamp(size), MAX_TIMESTAMP)

    def keep_timestamp(self, size: int, response: bytes) -> None:
        """Keep the time stamp of the copy; the first one stays."""
        files.create(self._timestamp(size), response, by_way_of=self._folder)

    def _cosigned(self, size: int) -> Path:
        return self._folder / COSIGNED / f"{size:d}"

    def _timestamp(self, size: int) -> Path:
        return self._folder / COPIES / f"{size:d}{TIMESTAMP}"


def _merged(note: bytes, other: bytes | None) -> bytes:
    """A note with the signatures of those who signed only the other, if that is of the same checkpoint."""
    known = parse_note(note)
    found = known if other is None else parse_note(other)
    if found.text != known.text:
        return note
    signed = {(one.name, one.key_id) for one in known.signatures}
    return known.and_signed(
        one for one in found.signatures if (one.name, one.key_id) not in signed
    ).encode()
