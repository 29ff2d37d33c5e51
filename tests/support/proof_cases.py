"""Trees whose proofs are compared with those of other implementations (K6)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from hashlib import sha256

from compaction_ledger.domain.proof.merkle import Frontier, leaf_hash
from compaction_ledger.domain.proof.tiles import TILE_BITS

BIG = [65_535, 65_536, 65_537, 68_123, 131_073]


def leaf_data(number: int) -> bytes:
    """What the leaf of this number is the hash of."""
    return b"leaf %d" % number


class Leaves:
    """Leaves whose data says their number, and every hash that is kept over them."""

    def __init__(self, count: int) -> None:
        self.leaves = [leaf_hash(leaf_data(number)) for number in range(count)]
        self._kept: dict[tuple[int, int], bytes] = {}
        Frontier().extend(self.leaves, self._keep)

    def _keep(self, level: int, position: int, node: bytes) -> None:
        if level % TILE_BITS == 0:
            self._kept[level, position] = node

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        return self.leaves[start:stop]

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        found = [self._kept.get((level, position)) for position in range(start, stop)]
        end = found.index(None) if None in found else len(found)
        return [node for node in found[:end] if node is not None]


def mutations(proof: list[bytes], seed: int) -> Iterator[list[bytes]]:
    """The proof with something changed."""
    yield [*proof, sha256(b"more").digest()]
    if proof:
        at = seed % len(proof)
        yield [*proof[:at], sha256(proof[at]).digest(), *proof[at + 1 :]]
        yield [*proof[:at], *proof[at + 1 :]]


def some(size: int, source: random.Random) -> set[int]:
    """A few numbers below ``size``: the ends, what lies about the middle, and others."""
    near = {0, 1, size // 2 - 1, size // 2, size - 2, size - 1, source.randrange(size)}
    power = 1 << (size - 1).bit_length() - 1 if size > 1 else 0
    return {number for number in near | {power - 1, power} if 0 <= number < size}
