"""Have a published checkpoint cosigned by a witness (K3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compaction_ledger.domain.errors import (
    Forked,
    WitnessRefused,
    WitnessUnavailable,
)
from compaction_ledger.domain.proof.checkpoints import Checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.notes import NoteSignature, parse_note
from compaction_ledger.domain.proof.witnessing import Witness

TRIES = 4
"""So often a witness is asked again with the size that it says: another may submit at the same time."""

Prove = Callable[[int], Sequence[bytes]]
"""The consistency proof from a size of the log to that of the checkpoint."""


def cosign(
    note: bytes, witness: Witness, prove: Prove, known: int = 0
) -> tuple[NoteSignature, ...]:
    """The cosignatures of one witness.

    Raises :class:`Forked`, with both sides, where it has cosigned what this log does not begin with,
    :class:`WitnessRefused` where it does not know the log or its key, or (``stale``) has cosigned more than
    this checkpoint, and :class:`WitnessUnavailable`.
    """
    head = parse_checkpoint(parse_note(note).text)
    old = min(known, head.size)
    for _ in range(TRIES):
        try:
            return witness.add(WitnessRequest(old, tuple(prove(old)), note))
        except WitnessRefused as error:
            if error.reason in ("fork", "inconsistent"):
                raise _forked(note, head, witness, str(error)) from error
            if error.reason != "stale" or error.size is None:
                raise
            if error.size > head.size:  # another has published meanwhile, or this log was set back
                raise WitnessRefused(
                    "stale",
                    f"{witness.name} has cosigned {error.size} events, this checkpoint has {head.size}",
                    error.size,
                ) from error
            if error.size == old:
                raise WitnessUnavailable(f"{witness.name} contradicts itself") from error
            old = error.size
    raise WitnessUnavailable(f"{witness.name} is kept busy by others who submit this log")


def _forked(note: bytes, head: Checkpoint, witness: Witness, why: str) -> Forked:
    try:
        theirs = witness.latest(head.origin)
    except WitnessUnavailable:
        theirs = None
    sides = (note.decode("utf-8", "replace"), (theirs or b"").decode("utf-8", "replace"))
    return Forked(f"the witness {witness.name} has another log than this one: {why}", sides)
