"""What was signed of a log, as far as it is known (K4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction_ledger.domain.errors import InvalidProof, MalformedProof
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.checkpoints import Checkpoint, open_checkpoint
from compaction_ledger.domain.proof.notes import NoteVerifier


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A signed head, and where it is from. ``note`` is the checkpoint as it was signed."""

    source: str
    checkpoint: Checkpoint
    note: str
    by_witness: bool = False

    @property
    def size(self) -> int:
        """How many events were signed."""
        return self.checkpoint.size


Evidence = KnownHead | Finding
"""A signed head, or why what should be one is none."""


def head_in(source: str, data: bytes, verifiers: Iterable[NoteVerifier]) -> Evidence:
    """The head in a checkpoint, if a known key has signed it."""
    try:
        signed = open_checkpoint(data, verifiers)
    except (InvalidProof, MalformedProof) as error:
        return Finding("checkpoint", f"{source}: {error}")
    return KnownHead(source, signed.checkpoint, data.decode())


def in_order(evidence: Iterable[Evidence]) -> list[Evidence]:
    """By size; what is no head comes first."""
    return sorted(evidence, key=size_of)


def size_of(evidence: Evidence) -> int:
    """The size of a head; zero for what is none."""
    return evidence.size if isinstance(evidence, KnownHead) else 0
