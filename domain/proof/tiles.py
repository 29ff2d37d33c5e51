"""Every hash of the tree, from what is stored of it: the leaves, and one level of hashes in eight (K1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.proof.merkle import HASH_SIZE, node_hash

TILE_BITS = 8
TILE = 1 << TILE_BITS


class TreeReader(Protocol):
    """What the tree is read from. Leaves are facts of the log; the other hashes only save work."""

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        """The leaf hashes from index ``start`` below ``stop``, as far as they are there without a gap."""
        ...

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        """The hashes of complete subtrees of 2^``level`` leaves, as far as they are kept without a gap.

        ``level`` is a multiple of :data:`TILE_BITS` above zero; ``start`` and ``stop`` are positions.
        """
        ...


class Tiles:
    """The hashes of one tree. Calling it gives that of a complete subtree (``merkle.Nodes``).

    What is not kept is computed from below, at the worst from the leaves; what was read is remembered,
    so an object serves one proof or a few. With ``kept`` unset nothing is believed but the leaves.
    Raises :class:`DamagedLog` for a leaf that is missing.
    """

    def __init__(self, reader: TreeReader, *, kept: bool = True) -> None:
        self._reader = reader
        self._kept = kept
        self._known: dict[tuple[int, int], bytes] = {}
        self._tiles: dict[tuple[int, int], Sequence[bytes]] = {}

    def __call__(self, level: int, position: int) -> bytes:
        """The hash of the 2^``level`` leaves from ``position`` × 2^``level`` on."""
        known = self._known.get((level, position))
        if known is None:
            known = self._known[level, position] = self._computed(level, position)
        return known

    def _computed(self, level: int, position: int) -> bytes:
        below, height = level - level % TILE_BITS, level % TILE_BITS
        if not height:
            return self._entry(level, position)
        first = position << height
        row = [self._entry(below, first + number) for number in range(1 << height)]
        while len(row) > 1:
            row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
        return row[0]

    def _entry(self, level: int, position: int) -> bytes:
        """A hash of a level that is kept: a leaf, or of 256, 65,536 … leaves."""
        number, place = divmod(position, TILE)
        tile = self._tile(level, number)
        if place < len(tile):
            return tile[place]
        if not level:
            raise DamagedLog("the leaf is missing", index=position)
        return self._from_below(level, position)

    def _tile(self, level: int, number: int) -> Sequence[bytes]:
        tile = self._tiles.get((level, number))
        if tile is None:
            start, stop = number * TILE, (number + 1) * TILE
            if level:
                tile = self._reader.nodes(level, start, stop) if self._kept else ()
            else:
                tile = self._reader.leaf_hashes(start, stop)
                _check_leaves(start, tile)
            self._tiles[level, number] = tile
        return tile

    def _from_below(self, level: int, position: int) -> bytes:
        """The hash of a complete subtree that is not kept."""
        known = self._known.get((level, position))
        if known is None:
            first = position << TILE_BITS
            row = [self._entry(level - TILE_BITS, first + number) for number in range(TILE)]
            self._tiles.pop((level - TILE_BITS, position), None)  # memory is that of one way down
            while len(row) > 1:
                row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
            known = self._known[level, position] = row[0]
        return known


def _check_leaves(start: int, leaves: Sequence[bytes]) -> None:
    for index, leaf in enumerate(leaves, start):
        if type(leaf) is not bytes or len(leaf) != HASH_SIZE:
            raise DamagedLog("the leaf is not a hash", index=index)
