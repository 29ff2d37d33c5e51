"""Prove that events are in the log as it was signed, and that it begins as it was signed before (K2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import (
    DamagedLog,
    InconsistentTree,
    InvalidProof,
    InvalidSetting,
)
from compaction_ledger.domain.proof.checkpoints import SignedCheckpoint, open_checkpoint
from compaction_ledger.domain.proof.inclusion import InclusionProof, WitnessRequest
from compaction_ledger.domain.proof.merkle import (
    EMPTY_ROOT,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_at,
)
from compaction_ledger.domain.proof.notes import NoteVerifier
from compaction_ledger.domain.proof.ports import Published, TreeStore
from compaction_ledger.domain.proof.tiles import Tiles

logger = logging.getLogger(__name__)

AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Prover:
    """What proves, by the newest checkpoint that was published.

    The ``verifiers`` are asked for when a checkpoint was read: a new key is known before it signs.
    """

    tree: TreeStore
    published: Published
    verifiers: Callable[[], Sequence[NoteVerifier]]

    def newest(self) -> SignedCheckpoint:
        """The newest checkpoint. Raises :class:`InvalidSetting` if there is none; :class:`InvalidProof`."""
        data = self.published.newest()
        if data is None:
            raise InvalidSetting(
                "nothing was signed yet: run `compaction-ledger checkpoint` first",
                place="checkpoint",
            )
        _, origin = self.tree.head()
        return open_checkpoint(data, self.verifiers(), origin)

    def inclusion(self, indices: Sequence[int]) -> Iterator[InclusionProof]:
        """A proof for each event. Its ``extra`` is the event's envelope, which the leaf is the hash of.

        Raises :class:`InvalidSetting` for an event that is not signed yet, :class:`DamagedLog` for one that
        is not what was signed.
        """
        signed = self.newest()
        size = signed.checkpoint.size
        for index in indices:
            if not 0 <= index < size:
                raise InvalidSetting(
                    f"event {index} is not in the newest checkpoint, which is of {size} events",
                    place="index",
                )
        for first in range(0, len(indices), AT_ONCE):
            some = indices[first : first + AT_ONCE]
            tiles = Tiles(self.tree)
            for index, envelope in zip(some, self.tree.envelopes(some), strict=True):
                yield self._inclusion(signed, index, envelope, tiles)

    def _inclusion(
        self, signed: SignedCheckpoint, index: int, envelope: bytes, tiles: Tiles
    ) -> InclusionProof:
        head, leaf = signed.checkpoint, leaf_hash(envelope)
        hashes = inclusion_proof(index, head.size, tiles)
        try:
            check_inclusion(leaf, index, head.size, hashes, head.root)
        except InvalidProof:
            logger.warning("the hashes that are kept over the log do not lead to its signed root")
            hashes = inclusion_proof(index, head.size, Tiles(self.tree, kept=False))
            try:
                check_inclusion(leaf, index, head.size, hashes, head.root)
            except InvalidProof as error:
                raise DamagedLog(
                    f"the log is not as it was signed: {error}", index=index
                ) from error
        return InclusionProof(index, tuple(hashes), signed.data, envelope)

    def consistency(self, old: int) -> WitnessRequest:
        """That the newest checkpoint's tree begins with that of ``old`` events, as a request to a witness.

        Where a checkpoint of ``old`` events was published, it is proved to be consistent with that. Raises
        :class:`InvalidSetting` and :class:`InconsistentTree`.
        """
        signed = self.newest()
        head = signed.checkpoint
        if not 0 <= old <= head.size:
            raise InvalidSetting(
                f"the newest checkpoint is of {head.size} events", place="--consistency"
            )
        before = self._root_before(old, signed)
        found = before
        for tiles in (Tiles(self.tree), Tiles(self.tree, kept=False)):
            found = root_at(old, tiles) if before is None else before
            proof = consistency_proof(old, head.size, tiles)
            try:
                check_consistency(old, found, head.size, head.root, proof)
            except InvalidProof:
                continue
            return WitnessRequest(old, tuple(proof), signed.data)
        raise InconsistentTree(f"size {old}, root {(found or b'').hex()}", str(head))

    def _root_before(self, old: int, signed: SignedCheckpoint) -> bytes | None:
        """The root of the tree of ``old`` events, where that was signed."""
        if not old:
            return EMPTY_ROOT
        data = self.published.at(old)
        if data is None:
            return None
        return open_checkpoint(data, self.verifiers(), signed.checkpoint.origin).checkpoint.root
