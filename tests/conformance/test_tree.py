"""K1: the tree over the log, on every store."""

from __future__ import annotations

import naive_tree
import pytest
from backends import Backend
from chunk_scenarios import WINDOW, A, done

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.proof.merkle import leaf_hash, root_at
from compaction_ledger.domain.proof.ports import Node
from compaction_ledger.domain.proof.tiles import Tiles
from compaction_ledger.domain.window.window_stream import EMPTY

NODES = [Node(8, number, bytes([number]) * 32) for number in range(5)]


@pytest.fixture
def parts(backend: Backend) -> Parts:
    """A session on a store with three events."""
    opened = backend.open()
    opened.context.log.append(WINDOW, EMPTY, done(A))
    return opened


def test_k1_leaves_are_those_of_the_log(backend: Backend, parts: Parts) -> None:
    rows = backend.recorder().rows(0, 10)
    leaves = [row.leaf for row in rows]
    size, origin = parts.tree.head()
    assert (size, origin) == backend.recorder().head() == (3, origin)
    assert list(parts.tree.leaf_hashes(0, 256)) == leaves
    assert list(parts.tree.leaf_hashes(1, 2)) == leaves[1:2]
    assert list(parts.tree.leaf_hashes(3, 9)) == []
    assert list(parts.tree.sealed_leaves(0, 3)) == leaves
    envelopes = parts.tree.envelopes([2, 0])
    assert list(map(leaf_hash, envelopes)) == [leaves[2], leaves[0]]
    assert root_at(3, Tiles(parts.tree)) == naive_tree.head(leaves)


def test_l1_what_is_missing_is_named(parts: Parts) -> None:
    with pytest.raises(DamagedLog, match="index 3"):
        parts.tree.sealed_leaves(1, 5)
    with pytest.raises(DamagedLog, match="index 7"):
        parts.tree.envelopes([0, 7])
    with pytest.raises(DamagedLog, match="index 3"):
        Tiles(parts.tree)(2, 0)


def test_k1_hashes_are_kept_replaced_and_forgotten(backend: Backend, parts: Parts) -> None:
    tree = parts.tree
    assert list(tree.nodes(8, 0, 256)) == []
    tree.keep([])
    tree.keep(NODES[:2])
    tree.keep(NODES[3:])
    tree.keep([Node(16, 0, b"\xff" * 32)])
    other = backend.open().tree
    assert list(other.nodes(8, 0, 256)) == [node.hash for node in NODES[:2]]
    assert list(other.nodes(8, 3, 4)) == [NODES[3].hash]
    assert list(other.nodes(8, 2, 5)) == []
    assert list(other.nodes(16, 0, 1)) == [b"\xff" * 32]
    tree.keep([Node(8, 0, b"\xee" * 32)])
    assert list(other.nodes(8, 0, 1)) == [b"\xee" * 32]
    tree.forget()
    assert list(other.nodes(8, 0, 256)) == []


def test_k1_who_comes_later_is_the_signer(backend: Backend, parts: Parts) -> None:
    one, other = parts.tree, backend.open().tree
    first = one.begin_turn("one")
    assert (first.size, first.root) == (0, b"")
    assert one.announce(first, 3, b"\x01" * 32)
    second = other.begin_turn("other")
    assert second == (first.epoch + 1, "other", 3, b"\x01" * 32)
    assert not one.announce(first, 4, b"\x02" * 32)
    assert not one.announce(second._replace(holder="one"), 4, b"\x02" * 32)
    assert other.announce(second, 4, b"\x02" * 32)
    third = one.begin_turn("third")
    assert third[2:] == (4, b"\x02" * 32)
