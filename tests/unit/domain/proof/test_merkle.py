"""K1, K2: the tree of RFC 6962 and its proofs, against the recursive definition."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import naive_tree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import DamagedLog, InvalidInput, InvalidProof
from compaction_ledger.domain.proof.merkle import (
    EMPTY_ROOT,
    MAX_SIZE,
    Frontier,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_at,
    root_of,
)
from compaction_ledger.domain.proof.tiles import TILE_BITS, Tiles

LEAVES = naive_tree.some_leaves(600)
HEADS = [naive_tree.head(LEAVES[:size]) for size in range(70)]

# The test data of Certificate Transparency: these leaves, and the roots of the trees that begin with them.
VECTOR_LEAVES = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
)
VECTOR_ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


class Reader:
    """A log of leaves, and the hashes that are kept of it."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.leaves = leaves
        self.kept: dict[tuple[int, int], bytes] = {}
        self.asked: list[tuple[int, int, int]] = []

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        self.asked.append((0, start, stop))
        return self.leaves[start:stop]

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        self.asked.append((level, start, stop))
        found: list[bytes] = []
        while start + len(found) < stop and (level, start + len(found)) in self.kept:
            found.append(self.kept[level, start + len(found)])
        return found

    def keep(self, level: int, position: int, node: bytes) -> None:
        if level % TILE_BITS == 0:
            self.kept[level, position] = node


def test_k2_known_roots() -> None:
    leaves = [leaf_hash(bytes.fromhex(leaf)) for leaf in VECTOR_LEAVES]
    found = [root_of(leaves[:size]).hex() for size in range(1, 9)]
    assert found == list(VECTOR_ROOTS)
    assert root_of([]) == EMPTY_ROOT == sha256(b"").digest()


def test_k2_a_tree_that_grows_has_the_root_of_the_definition() -> None:
    tree = Frontier()
    for size, head in enumerate(HEADS):
        assert (tree.size, tree.root()) == (size, head)
        assert Frontier(size, tree.peaks).root() == head
        tree.append(LEAVES[size])


def test_k2_every_proof_of_small_trees_is_that_of_the_definition() -> None:
    for size in range(1, 35):
        nodes = naive_tree.nodes_of(LEAVES[:size])
        for index in range(size):
            path = inclusion_proof(index, size, nodes)
            assert path == naive_tree.path(index, LEAVES[:size])
            check_inclusion(LEAVES[index], index, size, path, HEADS[size])
        for old in range(size + 1):
            proof = consistency_proof(old, size, nodes)
            assert proof == naive_tree.proof(old, LEAVES[:size])
            check_consistency(old, HEADS[old], size, HEADS[size], proof)


def mutated(proof: Sequence[bytes], choice: int) -> list[bytes]:
    """The proof with one thing changed."""
    changed = list(proof)
    if choice % 4 == 0 or not changed:
        changed.insert(choice % (len(changed) + 1), LEAVES[-1])
    elif choice % 4 == 1:
        changed.pop(choice % len(changed))
    elif choice % 4 == 2:
        at = choice % len(changed)
        changed[at] = bytes([changed[at][0] ^ 1]) + changed[at][1:]
    else:
        changed.append(changed[-1])
    return changed


@given(st.integers(1, 69), st.integers(0, 68), st.integers(0, 10**6))
def test_k2_a_changed_inclusion_proof_is_refused(size: int, index: int, choice: int) -> None:
    index %= size
    path = inclusion_proof(index, size, naive_tree.nodes_of(LEAVES[:size]))
    with pytest.raises(InvalidProof):
        check_inclusion(LEAVES[index], index, size, mutated(path, choice), HEADS[size])
    with pytest.raises(InvalidProof):
        check_inclusion(LEAVES[index + 1], index, size, path, HEADS[size])
    with pytest.raises(InvalidProof):
        check_inclusion(LEAVES[index], index, size, path, LEAVES[0] if size > 1 else LEAVES[1])
    if size > 1:
        with pytest.raises(InvalidProof):
            check_inclusion(LEAVES[index], (index + 1) % size, size, path, HEADS[size])


@given(st.integers(0, 69), st.integers(0, 69), st.integers(0, 10**6))
def test_k2_a_changed_consistency_proof_is_refused(one: int, other: int, choice: int) -> None:
    old, new = sorted((one, other))
    proof = consistency_proof(old, new, naive_tree.nodes_of(LEAVES[:new]))
    with pytest.raises(InvalidProof):
        check_consistency(old, HEADS[old], new, HEADS[new], mutated(proof, choice))
    with pytest.raises(InvalidProof):
        check_consistency(old, LEAVES[-1], new, HEADS[new], proof)
    if old:
        with pytest.raises(InvalidProof):
            check_consistency(old, HEADS[old], new, LEAVES[-1], proof)
    if old < new:
        with pytest.raises(InvalidProof):
            check_consistency(new, HEADS[new], old, HEADS[old], proof)


@pytest.mark.parametrize("size", [-1, MAX_SIZE + 1, True])
def test_k2_sizes_are_bounded(size: int) -> None:
    nodes = naive_tree.nodes_of(LEAVES)
    with pytest.raises(InvalidInput):
        Frontier(size, [LEAVES[0]])
    with pytest.raises(InvalidInput):
        inclusion_proof(0, size, nodes)
    with pytest.raises(InvalidInput):
        consistency_proof(0, size, nodes)
    with pytest.raises(InvalidProof):
        check_inclusion(LEAVES[0], 0, size, [], LEAVES[0])
    with pytest.raises(InvalidProof):
        check_consistency(0, EMPTY_ROOT, size, LEAVES[0], [])


def test_k2_bounds_of_proofs_and_hashes() -> None:
    nodes = naive_tree.nodes_of(LEAVES)
    with pytest.raises(InvalidInput, match="no leaf 3"):
        inclusion_proof(3, 3, nodes)
    with pytest.raises(InvalidInput, match="does not begin"):
        consistency_proof(4, 3, nodes)
    with pytest.raises(InvalidInput, match="2 subtrees"):
        Frontier(4, LEAVES[:2])
    with pytest.raises(InvalidProof, match="more than 64"):
        check_inclusion(LEAVES[0], 0, 2, LEAVES[:65], LEAVES[0])
    with pytest.raises(InvalidProof, match="32 bytes"):
        check_inclusion(LEAVES[0], 0, 2, [b"short"], LEAVES[0])
    with pytest.raises(InvalidProof, match="no leaf 2"):
        check_inclusion(LEAVES[0], 2, 2, [], LEAVES[0])
    with pytest.raises(InvalidProof, match="is missing"):
        check_consistency(3, HEADS[3], 4, HEADS[4], [])
    with pytest.raises(InvalidProof):
        check_consistency(0, EMPTY_ROOT, 0, LEAVES[0], [])


def test_k2_the_largest_tree_has_proofs_that_can_be_checked() -> None:
    node = sha256(b"any").digest()

    def nodes(_level: int, _position: int) -> bytes:
        return node

    path = inclusion_proof(MAX_SIZE - 1, MAX_SIZE, nodes)
    check_inclusion(node, MAX_SIZE - 1, MAX_SIZE, path, root_at(MAX_SIZE, nodes))
    assert len(path) <= 63


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 512, 600])
def test_k1_one_level_in_eight_gives_every_hash(size: int) -> None:
    reader = Reader(LEAVES[:size])
    tree = Frontier()
    tree.extend(LEAVES[:size], reader.keep)
    assert set(reader.kept) == {(8, number) for number in range(size // 256)}
    expected = naive_tree.head(LEAVES[:size])
    for tiles in (Tiles(reader), Tiles(reader, kept=False), Tiles(Reader(LEAVES[:size]))):
        assert root_at(size, tiles) == expected == tree.root()
        index = size // 3
        path = inclusion_proof(index, size, tiles)
        check_inclusion(LEAVES[index], index, size, path, expected)
        proof = consistency_proof(index, size, tiles)
        check_consistency(index, naive_tree.head(LEAVES[:index]), size, expected, proof)


def test_k1_a_whole_level_is_read_from_what_is_kept_and_else_from_the_leaves() -> None:
    count = 3 * 256
    leaves = naive_tree.some_leaves(count)
    reader = Reader(leaves)
    Frontier().extend(leaves, reader.keep)
    assert Tiles(reader)(9, 0) == naive_tree.head(leaves[:512])
    assert reader.asked == [(8, 0, 256)]
    del reader.kept[8, 1]
    assert Tiles(reader)(9, 0) == naive_tree.head(leaves[:512])
    assert (0, 256, 512) in reader.asked


def test_k1_two_levels_are_kept_of_65536_leaves() -> None:
    leaves = naive_tree.some_leaves(65_537)
    reader = Reader(leaves)
    tree = Frontier()
    tree.extend(leaves, reader.keep)
    assert len(reader.kept) == 257
    assert Tiles(reader, kept=False)(16, 0) == reader.kept[16, 0] == tree.peaks[0]


def test_l1_a_missing_or_strange_leaf_is_named() -> None:
    with pytest.raises(DamagedLog, match="index 5"):
        root_at(6, Tiles(Reader(LEAVES[:5])))
    with pytest.raises(DamagedLog, match="index 1"):
        root_at(2, Tiles(Reader([LEAVES[0], b"short"])))


def test_k1_a_copy_grows_by_itself() -> None:
    tree = Frontier()
    tree.extend(LEAVES[:3])
    other = tree.copy()
    other.append(LEAVES[3])
    assert (tree.size, other.size) == (3, 4)
    assert tree.root() == HEADS[3]
