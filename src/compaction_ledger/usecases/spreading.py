"""Take a published checkpoint to where those who run the ledger cannot change it (K3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidProof,
    LedgerError,
    StoreError,
    WitnessRefused,
)
from compaction_ledger.domain.proof.checkpoints import Checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.merkle import consistency_proof, root_at
from compaction_ledger.domain.proof.notes import NoteSignature, SignedNote, parse_note
from compaction_ledger.domain.proof.spreading import (
    Authority,
    BesideCopies,
    WriteOnce,
    check_same,
    copy_name,
)
from compaction_ledger.domain.proof.tiles import Tiles, TreeReader
from compaction_ledger.domain.proof.witnessing import Witness
from compaction_ledger.usecases.cosigning import Prove, cosign

Failure = tuple[str, LedgerError]


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a checkpoint is now: names of the witnesses that cosigned it, and of the places that keep it.

    ``timestamped`` says whether there is a time stamp of it. ``failures`` are what did not succeed, by name:
    the next time it is tried again. ``note`` has all signatures.
    """

    cosigned: tuple[str, ...]
    copies: tuple[str, ...]
    timestamped: bool
    failures: tuple[Failure, ...]
    note: bytes


@dataclass(frozen=True, slots=True)
class Spreader:
    """What takes checkpoints to witnesses, to write-once places and to a time-stamp authority.

    Whatever was done for a checkpoint is not done again, except that the places are asked whether they still
    hold it. One that fails keeps no other from being asked.
    """

    beside: BesideCopies
    witnesses: Sequence[Witness]
    places: Sequence[WriteOnce]
    authority: Authority | None

    def spread(self, note: bytes, prove: Prove) -> Spread:
        """Spread a checkpoint that was published. ``prove`` makes a consistency proof to it from a size."""
        head = parse_checkpoint(parse_note(note).text)
        failures: list[Failure] = []
        cosigned = self._cosigned(head, note, prove, failures)
        published = self.beside.copy(head.size) or note
        stamp = self._stamped(head, published, failures)
        copies = [
            place.name
            for place in self.places
            if _tried(place.name, failures, partial(_put, place, head, published, stamp))
        ]
        names = {one.name for one in cosigned.signatures}
        return Spread(
            tuple(one.name for one in self.witnesses if one.name in names),
            tuple(copies),
            stamp is not None,
            tuple(failures),
            cosigned.encode(),
        )

    def _cosigned(
        self, head: Checkpoint, note: bytes, prove: Prove, failures: list[Failure]
    ) -> SignedNote:
        """The checkpoint with every cosignature that there is, kept with it."""
        known = parse_note(note)
        before = self.beside.cosigned(head.size)
        if before is not None and parse_note(before).text == known.text:
            known = known.and_signed(parse_note(before).signatures)
        signed = {one.name for one in known.signatures}
        new: list[NoteSignature] = []
        for witness in self.witnesses:
            if witness.name not in signed:

                def ask(asked: Witness = witness) -> None:
                    new.extend(cosign(note, asked, prove))

                _tried(witness.name, failures, ask)
        if not new:
            return known
        cosigned = known.and_signed(new)
        self.beside.keep_cosigned(head.size, cosigned.encode())
        return cosigned

    def _stamped(self, head: Checkpoint, published: bytes, failures: list[Failure]) -> bytes | None:
        """The time stamp of the published copy, if there is one or can be had."""
        authority = self.authority
        if authority is None:
            return None
        if self.beside.timestamp(head.size) is None:
            _tried(
                authority.name,
                failures,
                lambda: self.beside.keep_timestamp(head.size, authority.stamp(published)),
            )
        return self.beside.timestamp(head.size)


def proofs_to(head: Checkpoint, tree: TreeReader) -> Prove:
    """What proves that the log as it was signed goes on from an earlier size.

    Where the kept hashes do not lead to the signed root, the leaves do; where they do not either, the proof
    is given as it is: to find that it does not hold is what a witness is for.
    """

    def prove(old: int) -> Sequence[bytes]:
        proof: Sequence[bytes] = ()
        for kept in (True, False):
            tiles = Tiles(tree, kept=kept)
            proof = consistency_proof(old, head.size, tiles)
            if root_at(head.size, tiles) == head.root:
                break
        return proof

    return prove


def _put(place: WriteOnce, head: Checkpoint, note: bytes, stamp: bytes | None) -> None:
    check_same(place.name, note, place.put(copy_name(head.origin, head.size), note))
    if stamp is not None:
        place.put(copy_name(head.origin, head.size, ".tsr"), stamp)


def _tried(name: str, failures: list[Failure], step: Callable[[], None]) -> bool:
    try:
        step()
    except (DamagedLog, InvalidProof, StoreError, WitnessRefused) as error:
        failures.append((name, error))
        return False
    return True
