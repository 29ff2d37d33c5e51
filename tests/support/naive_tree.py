"""RFC 6962 section 2.1 as it is written there: recursive, over whole lists of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from compaction_ledger.domain.proof.merkle import Nodes


def head(leaves: Sequence[bytes]) -> bytes:
    """``MTH``, of leaf hashes."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else sha256().digest()
    k = split(len(leaves))
    return sha256(b"\x01" + head(leaves[:k]) + head(leaves[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """``PATH``."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), head(leaves[k:])]
    return [*path(m - k, leaves[k:]), head(leaves[:k])]


def proof(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """``PROOF``."""
    return _subproof(m, leaves, True) if 0 < m < len(leaves) else []


def _subproof(m: int, leaves: Sequence[bytes], known: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if known else [head(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*_subproof(m, leaves[:k], known), head(leaves[k:])]
    return [*_subproof(m - k, leaves[k:], False), head(leaves[:k])]


def split(n: int) -> int:
    """The largest power of two smaller than ``n``."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def nodes_of(leaves: Sequence[bytes]) -> Nodes:
    """The complete subtrees over a list of leaf hashes."""

    def node(level: int, position: int) -> bytes:
        first = position << level
        found = leaves[first : first + (1 << level)]
        assert len(found) == 1 << level
        return head(found)

    return node


def some_leaves(count: int) -> list[bytes]:
    """Leaf hashes that differ."""
    return [sha256(b"\x00leaf %d" % number).digest() for number in range(count)]
