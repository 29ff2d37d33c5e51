"""Have a published checkpoint cosigned by witnesses (K3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import (
    Forked,
    LedgerError,
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


@dataclass(frozen=True, slots=True)
class Cosigned:
    """What came of asking the witnesses: cosignatures, and by a witness's name why there is none."""

    signatures: tuple[NoteSignature, ...]
    failures: tuple[tuple[str, LedgerError], ...]


def collect(note: bytes, witnesses: Sequence[Witness], prove: Prove, known: int = 0) -> Cosigned:
    """Ask each witness once; one that cannot be reached or refuses keeps no other from cosigning.

    ``known`` is the size that they are taken to have cosigned last, which they will correct.
    """
    signatures: list[NoteSignature] = []
    failures: list[tuple[str, LedgerError]] = []
    for witness in witnesses:
        try:
            signatures += cosign(note, witness, prove, known)
        except (Forked, WitnessRefused, WitnessUnavailable) as error:
            failures.append((witness.name, error))
    return Cosigned(tuple(signatures), tuple(failures))


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
            if error.reason != "stale" or error.size is None or error.size > head.size:
                raise  # above: another has published meanwhile, or this log was set back
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
