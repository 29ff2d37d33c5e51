"""The tree over a whole log, leaf by leaf in one pass and in little memory (K4)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from compaction_ledger.domain.proof.merkle import NODE_PREFIX, Frontier, KeepNode
from compaction_ledger.domain.proof.tiles import TILE, TILE_BITS


class GrowingTree:
    """As :class:`Frontier`, and faster for many leaves: they are hashed by rows of 256.

    ``keep`` is told of each complete subtree of 256, 65,536 … leaves.
    """

    __slots__ = ("_keep", "_tile", "_tiles")

    def __init__(self, keep: KeepNode | None = None) -> None:
        self._tiles = Frontier()
        self._tile: list[bytes] = []
        self._keep = keep

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._tiles.size * TILE + len(self._tile)

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add leaf hashes, in the order of the log."""
        tile = self._tile
        if not tile and len(leaves) == TILE:
            self._complete(leaves)
            return
        tile += leaves
        while len(tile) >= TILE:
            self._complete(tile[:TILE])
            del tile[:TILE]

    def root(self) -> bytes:
        """The hash of the whole tree."""
        rest = Frontier()
        rest.extend(self._tile)
        return Frontier(self.size, (*self._tiles.peaks, *rest.peaks)).root()

    def _complete(self, row: Sequence[bytes]) -> None:
        while len(row) > 1:
            each = iter(row)
            row = [
                sha256(NODE_PREFIX + left + right).digest()
                for left, right in zip(each, each, strict=True)
            ]
        if self._keep is not None:
            self._keep(TILE_BITS, self._tiles.size, row[0])
        self._tiles.append(row[0], self._kept_above)

    def _kept_above(self, level: int, position: int, node: bytes) -> None:
        if self._keep is not None and not level % TILE_BITS:
            self._keep(level + TILE_BITS, position, node)
