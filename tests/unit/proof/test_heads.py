"""The tree in one pass, and the comparison with what was signed (K4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from witness_logs import HASH, LooseLog

from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.checkpoints import Checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.growing import GrowingTree
from compaction_ledger.domain.proof.heads import Evidence, KnownHead, head_in, in_order
from compaction_ledger.domain.proof.merkle import leaf_hash, root_of
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.usecases.checking_heads import HeadCheck

LOG = LooseLog()
OTHER = LOG.forked(300)


def leaves(log: LooseLog, size: int) -> list[bytes]:
    return [log.leaf(index) for index in range(size)]


def head(size: int, log: LooseLog = LOG, *, by_witness: bool = False) -> KnownHead:
    root = log.root(size)
    checkpoint = Checkpoint(log.origin, size, root)
    return KnownHead(f"head {size}", checkpoint, checkpoint.encode(), by_witness)


def checked(log: LooseLog, size: int, *heads: Evidence, batch: int = 100) -> list[Finding]:
    check = HeadCheck(log.origin, heads)
    all_leaves = leaves(log, size)
    for first in range(0, size, batch):
        check.on_leaves(first, all_leaves[first : first + batch])
    return check.finish()


def codes(findings: Sequence[Finding]) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.index) for finding in findings]


# --- the tree ---


@pytest.mark.slow
@given(st.lists(st.integers(0, 700), max_size=8))
def test_the_tree_is_that_of_rfc_6962(steps: list[int]) -> None:
    tree = GrowingTree()
    end = 0
    for end in accumulate(steps):
        tree.extend(leaves(LOG, end)[tree.size :])
        assert tree.size == end
        assert tree.root() == LOG.root(end)
    assert tree.size == end


def test_every_kept_level_is_told_once() -> None:
    told: dict[tuple[int, int], bytes] = {}

    def keep(level: int, position: int, node: bytes) -> None:
        assert (level, position) not in told
        told[level, position] = node

    size = 65_536 + 256
    every = [leaf_hash(b"%d" % index) for index in range(size)]
    tree = GrowingTree(keep)
    for first in range(0, size, 1000):
        tree.extend(every[first : first + 1000])
    assert sorted(told) == [*((8, at) for at in range(257)), (16, 0)]
    assert told[16, 0] == root_of(every[:65_536])
    assert told[8, 256] == root_of(every[65_536:])


# --- the heads ---


@given(st.lists(st.integers(0, 600), max_size=6), st.integers(1, 300))
def test_a_log_that_was_signed(sizes: list[int], batch: int) -> None:
    heads = [head(size) for size in sorted(sizes)]
    check = HeadCheck(LOG.origin, heads)
    every = leaves(LOG, 600)
    for first in range(0, 600, batch):
        check.on_leaves(first, every[first : first + batch])
    assert check.finish() == []
    assert (check.compared, check.signed) == (len(set(sizes)), max(sizes, default=0))


def test_a_difference_lies_behind_the_last_that_matched() -> None:
    findings = checked(OTHER, 600, head(100), head(299), head(301), head(400))
    assert codes(findings) == [("root", 299)]
    assert "299 to 300" in findings[0].message
    signed, now = map(parse_checkpoint, findings[0].sides)
    assert (signed, now.size, now.root) == (
        head(301).checkpoint,
        301,
        OTHER.root(301),
    )


def test_a_witness_is_heard_beside_the_copies() -> None:
    findings = checked(OTHER, 600, head(301), head(310, by_witness=True), head(320))
    assert codes(findings) == [("root", 0), ("fork", 0)]


@pytest.mark.parametrize("witness_first", [True, False])
def test_two_logs_of_one_size_were_signed(witness_first: bool) -> None:  # K4
    heads = [head(310, OTHER, by_witness=True), head(310), head(310)]
    check = HeadCheck(LOG.origin, [head(5), *(heads if witness_first else heads[::-1])])
    check.on_leaves(0, leaves(LOG, 310))
    (found,) = check.finish()
    assert (found.code, found.index) == ("fork", 5)
    assert found.message.startswith("two different logs of 310 events were signed: head 310 is of")
    assert "of the events 5 to 309, behind the first 5" in found.message
    signed, now = map(parse_checkpoint, found.sides)
    assert (signed.size, signed.root) == (310, OTHER.root(310))
    assert (now.size, now.root) == (310, LOG.root(310))
    assert (check.compared, check.signed) == (3, 5)  # size and root are the head, not the place


def test_what_contradicts_a_head_is_not_outdone_by_a_larger_one() -> None:  # K4
    check = HeadCheck(LOG.origin, [head(299), head(301, OTHER, by_witness=True), head(400)])
    check.on_leaves(0, leaves(LOG, 400))
    assert codes(check.finish()) == [("fork", 299)]
    assert check.signed == 299


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([head(301)], "of the events 0 to 300, at least one is not the one that head 301 was"),
        (
            [head(300), head(301)],
            "event 300, behind the first 300 that are as they were signed, is",
        ),
    ],
)
def test_a_difference_is_said_plainly(heads: list[KnownHead], said: str) -> None:
    (found,) = checked(OTHER, 600, *heads)
    assert found.message.startswith(said)


def test_what_is_shorter_than_what_was_signed() -> None:
    findings = checked(LOG, 200, head(100), head(250), head(400), head(500, by_witness=True))
    assert codes(findings) == [("fork", 200), ("rollback", 200)]
    assert "400" in findings[1].message
    assert parse_checkpoint(findings[1].sides[1]).size == 200


def test_an_empty_log() -> None:
    assert checked(LOG, 0, head(0)) == []
    assert codes(checked(LOG, 0, head(0), head(1))) == [("rollback", 0)]


def test_behind_a_gap_nothing_is_compared() -> None:
    check = HeadCheck(LOG.origin, [head(10), head(20)])
    check.on_leaves(0, leaves(LOG, 10))
    check.on_leaves(11, leaves(LOG, 20)[11:])
    assert check.finish() == []  # the gap is a finding of its own
    assert (check.compared, check.signed) == (1, 10)


def test_what_is_no_head_of_this_log() -> None:
    another = head(10, LooseLog("another/log"))
    findings = checked(LOG, 20, Finding("checkpoint", "bad"), another, head(10))
    assert codes(findings) == [("checkpoint", None), ("other_log", None)]


def test_kept_hashes_are_compared_one_by_one() -> None:
    nodes = [root_of(leaves(LOG, (at + 1) * 256)[at * 256 :]) for at in range(3)]
    asked: list[tuple[int, int, int]] = []

    def kept(level: int, start: int, stop: int) -> Sequence[bytes]:
        asked.append((level, start, stop))
        return [nodes[0], HASH]  # the third is not kept yet

    check = HeadCheck(LOG.origin, [], kept)
    check.on_leaves(0, leaves(LOG, 800))
    findings = check.finish()
    assert codes(findings) == [("tree", 256)]
    assert "256 to 511" in findings[0].message
    assert asked == [(8, 0, 256)]


@pytest.mark.parametrize(
    "data",
    [b"", LOG.note(5)[:-1], LOG.note(5).replace(b"\n5\n", b"\n6\n"), LooseLog(LOG.origin).note(5)],
)
def test_what_is_not_signed_is_no_head(data: bytes) -> None:
    verifiers = [Ed25519Verifier.parse(LOG.key)]
    found = head_in("a file", data, verifiers)
    assert isinstance(found, Finding)
    assert found.message.startswith("a file: ")
    right = head_in("a file", LOG.note(5), verifiers)
    assert isinstance(right, KnownHead)
    assert right.size == 5
    assert in_order([right, found]) == [found, right]
