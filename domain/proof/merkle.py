"""The Merkle tree of the log and its proofs (RFC 6962 section 2.1; the checks of RFC 9162 section 2.1).

The tests compare it with Go's ``golang.org/x/mod/sumdb/tlog`` (K6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from compaction_ledger.domain.errors import InvalidInput, InvalidProof

HASH_SIZE = 32
MAX_SIZE = 2**63 - 1
MAX_PROOF = 64
"""No proof in a tree of at most :data:`MAX_SIZE` leaves has more hashes."""

LEAF_PREFIX = b"\x00"
NODE_PREFIX = b"\x01"
EMPTY_ROOT = sha256(b"").digest()

Nodes = Callable[[int, int], bytes]
"""The hash of a complete subtree: of the 2^level leaves from ``position`` × 2^level on."""

KeepNode = Callable[[int, int, bytes], object]
"""Called with level, position and hash of a subtree that has become complete."""


def leaf_hash(data: bytes) -> bytes:
    """``SHA-256(0x00 || data)``."""
    return sha256(LEAF_PREFIX + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """``SHA-256(0x01 || left || right)``."""
    return sha256(NODE_PREFIX + left + right).digest()


class Frontier:
    """A tree that grows at its right end, as the hashes of the complete subtrees that it consists of.

    One hash for each bit that is set in ``size``, the largest subtree first.
    """

    __slots__ = ("_peaks", "_size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self._size = _checked_size(size)
        self._peaks = list(peaks)
        if len(self._peaks) != size.bit_count():
            raise InvalidInput(f"{len(self._peaks)} subtrees do not make a tree of {size} leaves")

    @classmethod
    def at(cls, size: int, nodes: Nodes) -> Frontier:
        """The tree of the first ``size`` leaves."""
        return cls(size, _peaks(0, _checked_size(size), nodes))

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._size

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The hashes of the complete subtrees, from left to right."""
        return tuple(self._peaks)

    def append(self, leaf: bytes, keep: KeepNode | None = None) -> None:
        """Add one leaf hash. ``keep`` is told of each subtree of two leaves and more that it completes."""
        self.extend((leaf,), keep)

    def extend(self, leaves: Iterable[bytes], keep: KeepNode | None = None) -> None:
        """Add leaf hashes, in the order of the log."""
        peaks, size = self._peaks, self._size
        for leaf in leaves:
            node, level, carry = leaf, 0, size
            while carry & 1:
                node = sha256(NODE_PREFIX + peaks.pop() + node).digest()
                level += 1
                carry >>= 1
                if keep is not None:
                    keep(level, carry, node)
            peaks.append(node)
            size += 1
            self._size = size

    def root(self) -> bytes:
        """The hash of the whole tree; :data:`EMPTY_ROOT` where there is no leaf."""
        return _joined(self._peaks)

    def copy(self) -> Frontier:
        """The same tree, to grow by itself."""
        return Frontier(self._size, self._peaks)


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The hash of the tree over these leaf hashes (``MTH``)."""
    tree = Frontier()
    tree.extend(leaves)
    return tree.root()


def root_at(size: int, nodes: Nodes) -> bytes:
    """The hash of the tree of the first ``size`` leaves."""
    return Frontier.at(size, nodes).root()


def inclusion_proof(index: int, size: int, nodes: Nodes) -> list[bytes]:
    """``PATH(index, D[size])``: the hashes beside the way from a leaf up to the root, in that order."""
    if not 0 <= index < _checked_size(size):
        raise InvalidInput(f"there is no leaf {index} in a tree of {size}")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_hash(middle, end, nodes))
            end = middle
        else:
            path.append(_range_hash(start, middle, nodes))
            start = middle
    path.reverse()
    return path


def consistency_proof(old: int, new: int, nodes: Nodes) -> list[bytes]:
    """``PROOF(old, D[new])``: what shows that the tree of ``old`` leaves is the beginning of that of ``new``.

    Empty where ``old`` is 0 or ``new``.
    """
    if not 0 <= old <= _checked_size(new):
        raise InvalidInput(f"a tree of {new} leaves does not begin with one of {old}")
    if old in (0, new):
        return []
    path: list[bytes] = []
    start, end = 0, new
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_range_hash(middle, end, nodes))
            end = middle
        else:
            path.append(_range_hash(start, middle, nodes))
            start = middle
    if start:
        path.append(_range_hash(start, end, nodes))
    path.reverse()
    return path


def check_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Raise :class:`InvalidProof` unless ``leaf`` is at ``index`` in that tree (RFC 9162 section 2.1.3.2)."""
    _check_hashes((leaf, root, *proof))
    if not _is_size(size) or not _is_size(index) or index >= size:
        raise InvalidProof(f"there is no leaf {index} in a tree of {size}")
    position, last, node = index, size - 1, leaf
    for hash_ in proof:
        if not last:
            raise InvalidProof(f"{len(proof)} hashes are too many for leaf {index} of {size}")
        if position & 1 or position == last:
            node = node_hash(hash_, node)
            while position and not position & 1:
                position >>= 1
                last >>= 1
        else:
            node = node_hash(node, hash_)
        position >>= 1
        last >>= 1
    if last:
        raise InvalidProof(f"{len(proof)} hashes are too few for leaf {index} of {size}")
    if node != root:
        raise InvalidProof(
            f"the leaf at {index} is not in the tree of {size}: "
            f"it leads to {node.hex()}, the root is {root.hex()}"
        )


def check_consistency(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Raise :class:`InvalidProof` unless the old tree is the new one's beginning (RFC 9162, 2.1.4.2)."""
    _check_hashes((old_root, new_root, *proof))
    if not _is_size(old_size) or not _is_size(new_size) or old_size > new_size:
        raise InvalidProof(f"a tree of {new_size} leaves does not begin with one of {old_size}")
    if old_size in (0, new_size):
        known = EMPTY_ROOT if old_size == 0 else new_root
        if proof or old_root != known or (not new_size and new_root != EMPTY_ROOT):
            raise InvalidProof(f"the two trees of {old_size} leaves are not the same")
        return
    old_found, new_found = _followed(old_size, old_root, new_size, proof)
    if (old_found, new_found) != (old_root, new_root):
        raise InvalidProof(
            f"the tree of {old_size} leaves, {old_root.hex()}, is not the beginning of "
            f"the tree of {new_size}, {new_root.hex()}"
        )


def _followed(
    old_size: int, old_root: bytes, new_size: int, proof: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """The two roots that a consistency proof leads to; both sizes are above zero and differ."""
    hashes = [old_root, *proof] if old_size.bit_count() == 1 else list(proof)
    if not hashes:
        raise InvalidProof("a consistency proof is missing")
    position, last = old_size - 1, new_size - 1
    while position & 1:
        position >>= 1
        last >>= 1
    old = new = hashes[0]
    for hash_ in hashes[1:]:
        if not last:
            raise InvalidProof(f"{len(proof)} hashes are too many from {old_size} to {new_size}")
        if position & 1 or position == last:
            old, new = node_hash(hash_, old), node_hash(hash_, new)
            while position and not position & 1:
                position >>= 1
                last >>= 1
        else:
            new = node_hash(new, hash_)
        position >>= 1
        last >>= 1
    if last:
        raise InvalidProof(f"{len(proof)} hashes are too few from {old_size} to {new_size}")
    return old, new


def _split(count: int) -> int:
    """The largest power of two below ``count``, which is two or more."""
    return 1 << (count - 1).bit_length() - 1


def _range_hash(start: int, end: int, nodes: Nodes) -> bytes:
    """The hash of the leaves from ``start`` below ``end``, a subtree of some tree."""
    return _joined(list(_peaks(start, end, nodes)))


def _peaks(start: int, end: int, nodes: Nodes) -> Iterable[bytes]:
    """The complete subtrees that a subtree consists of, from left to right."""
    while start < end:
        level = (end - start).bit_length() - 1
        yield nodes(level, start >> level)
        start += 1 << level


def _joined(peaks: Sequence[bytes]) -> bytes:
    if not peaks:
        return EMPTY_ROOT
    node = peaks[-1]
    for peak in peaks[-2::-1]:
        node = node_hash(peak, node)
    return node


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_SIZE


def _checked_size(size: int) -> int:
    if not _is_size(size):
        raise InvalidInput(f"{size!r} is not a number of leaves")
    return size


def _check_hashes(hashes: Sequence[bytes]) -> None:
    if len(hashes) > MAX_PROOF + 2:
        raise InvalidProof(f"a proof of more than {MAX_PROOF} hashes")
    if any(type(hash_) is not bytes or len(hash_) != HASH_SIZE for hash_ in hashes):
        raise InvalidProof(f"a hash is {HASH_SIZE} bytes")
