"""K6: the verifier's own tree agrees with the ledger's, and refuses what is not a proof."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_ledger.bundle_verifier import (
    Checkpoint,
    Tree,
    is_consistent,
    is_included,
    leaf_hash,
)
from compaction_ledger.domain.proof.merkle import (
    EMPTY_ROOT,
    consistency_proof,
    inclusion_proof,
    root_of,
)
from compaction_ledger.domain.proof.merkle import leaf_hash as ours

MOST = 70
LEAVES = [leaf_hash(str(number).encode()) for number in range(MOST)]


def node(level: int, position: int) -> bytes:
    return root_of(LEAVES[position << level : (position + 1) << level])


def head(size: int) -> Checkpoint:
    tree = Tree()
    for leaf in LEAVES[:size]:
        tree.add(leaf)
    assert tree.root() == root_of(LEAVES[:size])
    return Checkpoint("o", size, tree.root(), (), ())


HEADS = [head(size) for size in range(MOST + 1)]


def test_roots() -> None:
    assert HEADS[0].root == EMPTY_ROOT == sha256(b"").digest()
    assert leaf_hash(b"x") == ours(b"x")
    assert len({one.root for one in HEADS}) == MOST + 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 70])
def test_every_leaf_is_where_it_is_and_nowhere_else(size: int) -> None:
    for index in range(size):
        proof = inclusion_proof(index, size, node)
        assert is_included(LEAVES[index], index, HEADS[size], proof)
        assert not is_included(LEAVES[(index + 1) % MOST], index, HEADS[size], proof)
        assert not is_included(LEAVES[index], index, HEADS[size], [*proof, LEAVES[0]])
        assert not is_included(LEAVES[index], size, HEADS[size], proof)
        if size > 1:
            assert not is_included(LEAVES[index], index, HEADS[size], proof[:-1])
            assert not is_included(LEAVES[index], (index + 1) % size, HEADS[size], proof)


@pytest.mark.parametrize("new", [1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 70])
def test_every_beginning_is_one(new: int) -> None:
    for old in range(new):
        proof = consistency_proof(old, new, node)
        assert is_consistent(HEADS[old], HEADS[new], proof)
        assert not is_consistent(HEADS[old]._replace(root=bytes(32)), HEADS[new], proof)
        assert not is_consistent(HEADS[old], HEADS[new], [*proof, LEAVES[0]])
        if old:
            assert not is_consistent(HEADS[old], HEADS[new], proof[:-1])
            assert not is_consistent(HEADS[old], HEADS[new]._replace(root=bytes(32)), proof)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_changed_hash_is_no_proof(data: st.DataObject) -> None:
    new = data.draw(st.integers(2, MOST))
    old = data.draw(st.integers(1, new - 1))
    proof = consistency_proof(old, new, node)
    at = data.draw(st.integers(0, len(proof) - 1))
    proof[at] = data.draw(st.binary(min_size=32, max_size=32))
    assert not is_consistent(HEADS[old], HEADS[new], proof)
