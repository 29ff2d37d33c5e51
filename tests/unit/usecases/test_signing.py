"""K1, K2: signing a log, refusing what must not be signed, and proving what was."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import naive_tree
import pytest
from signed_logs import SignedLog, add_leaves, cut_leaves, leaf, raw, signed_log

from compaction_ledger.domain.errors import (
    DamagedLog,
    InconsistentTree,
    InvalidProof,
    InvalidSetting,
    NotSigned,
    SignerBusy,
    SignerOvertaken,
    SmallerTree,
)
from compaction_ledger.domain.proof.checkpoints import Checkpoint, open_checkpoint
from compaction_ledger.domain.proof.inclusion import parse_inclusion, parse_witness_request
from compaction_ledger.domain.proof.merkle import EMPTY_ROOT, check_consistency, leaf_hash
from compaction_ledger.domain.proof.notes import sign_note
from compaction_ledger.domain.proof.ports import Node
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)
from compaction_ledger.infrastructure.tree.sqlite import SQLiteTree

SIZES = [0, 1, 2, 255, 256, 257, 1000, 1023, 1024, 1025, 3000]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SignedLog]:
    """An empty log."""
    with signed_log(tmp_path) as made:
        yield made


def files(folder: Path) -> dict[str, bytes]:
    """What stands in a folder, by its path in it."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_k1_each_size_is_signed_and_kept(log: SignedLog) -> None:
    notes: dict[int, bytes] = {}
    for before, size in zip([0, *SIZES], SIZES, strict=False):
        add_leaves(log.path, size - before)
        signed = log.signer().sign()
        assert signed.new
        leaves = [leaf(index) for index in range(size)]
        assert signed.checkpoint == Checkpoint(log.origin, size, naive_tree.head(leaves))
        assert signed.keys == (f"{log.origin}+{log.key.key_id.hex()}",)
        notes[size] = signed.data
    assert files(log.checkpoints) == {
        "checkpoint": notes[SIZES[-1]],
        "lock": b"",
        **{f"checkpoints/{size}": note for size, note in notes.items()},
    }


def test_k1_nothing_new_is_not_signed_again(log: SignedLog) -> None:
    add_leaves(log.path, 3)
    first = log.signer().sign()
    second = log.signer(holder="two").sign()
    assert (first.new, second.new) == (True, False)
    assert (second.data, second.checkpoint) == (first.data, first.checkpoint)


def test_k2_a_new_key_signs_the_same_tree_and_old_signatures_hold(log: SignedLog) -> None:
    add_leaves(log.path, 3)
    first = log.signer().sign()
    new = Ed25519Signer(log.origin, private_key(b"\x09" * 32))
    second = log.signer(new).sign()
    assert second.new
    assert len(second.keys) == 2
    assert (log.checkpoints / "checkpoint").read_bytes() == second.data
    assert (log.checkpoints / "checkpoints" / "3").read_bytes() == first.data
    open_checkpoint(second.data, [Ed25519Verifier(log.key.verifier_key)])
    open_checkpoint(second.data, [Ed25519Verifier(new.verifier_key)])


def test_k1_a_smaller_log_is_refused_with_both_heads(log: SignedLog) -> None:
    add_leaves(log.path, 300)
    signed = log.signer().sign()
    cut_leaves(log.path, 299)
    before = files(log.checkpoints)
    with pytest.raises(SmallerTree) as refusal:
        log.signer().sign()
    assert refusal.value.signed == str(signed.checkpoint)
    found = naive_tree.head([leaf(index) for index in range(299)])
    assert refusal.value.found == f"size 299, root {found.hex()}"
    assert files(log.checkpoints) == before


@pytest.mark.parametrize("forget", [True, False])
def test_k1_an_old_copy_that_went_on_is_refused_with_both_heads(
    log: SignedLog, forget: bool
) -> None:
    add_leaves(log.path, 600)
    signed = log.signer().sign()
    cut_leaves(log.path, 400)
    add_leaves(log.path, 400, mark="other")
    if forget:
        log.tree.forget()
    before = files(log.checkpoints)
    with pytest.raises(InconsistentTree) as refusal:
        log.signer().sign()
    leaves = [leaf(n) if n < 400 else leaf(n, "other") for n in range(600)]
    assert refusal.value.signed == str(signed.checkpoint)
    assert refusal.value.found == f"size 600, root {naive_tree.head(leaves).hex()}"
    assert files(log.checkpoints) == before


def test_k1_damaged_hashes_are_made_again_from_the_leaves(
    log: SignedLog, caplog: pytest.LogCaptureFixture
) -> None:
    add_leaves(log.path, 600)
    log.signer().sign()
    right = log.tree.nodes(8, 0, 2)
    log.tree.keep([Node(8, 1, b"\x01" * 32)])
    add_leaves(log.path, 100)
    with caplog.at_level(logging.WARNING):
        signed = log.signer().sign()
    assert "made again" in caplog.text
    assert signed.checkpoint.root == naive_tree.head([leaf(index) for index in range(700)])
    assert log.tree.nodes(8, 0, 2) == right


def test_l1_a_new_leaf_that_is_not_its_envelopes_is_not_signed(log: SignedLog) -> None:
    add_leaves(log.path, 5)
    log.signer().sign()
    add_leaves(log.path, 5)
    with raw(log.path) as connection:
        connection.execute("UPDATE stored_events SET envelope = x'00' WHERE idx = 7")
    with pytest.raises(DamagedLog, match="index 7"):
        log.signer().sign()
    with raw(log.path) as connection:
        connection.execute("DELETE FROM stored_events WHERE idx = 7")
    with pytest.raises(DamagedLog, match="index 7"):
        log.signer().sign()
    assert b"\n5\n" in (log.checkpoints / "checkpoint").read_bytes()


def test_k1_a_signer_that_was_overtaken_publishes_nothing(log: SignedLog) -> None:
    add_leaves(log.path, 3)
    late = log.signer(holder="late")

    class Paused(SQLiteTree):
        """A store that is slow to answer: meanwhile another signer begins, elsewhere."""

        def sealed_leaves(self, start: int, stop: int) -> Sequence[bytes]:
            log.tree.begin_turn("another")
            return log.tree.sealed_leaves(start, stop)

    paused = replace(late, tree=Paused(log.database))
    with pytest.raises(SignerOvertaken, match="epoch 1"):
        paused.sign()
    assert set(files(log.checkpoints)) == {"lock"}
    assert log.signer().sign().new


def test_k1_one_at_a_time_in_a_folder(log: SignedLog) -> None:
    with log.published.locked(), pytest.raises(SignerBusy):
        log.signer().sign()


def test_k1_what_the_store_announced_is_looked_at_where_the_head_was_lost(log: SignedLog) -> None:
    add_leaves(log.path, 300)
    log.signer().sign()
    for path in log.checkpoints.rglob("*"):
        if path.is_file():
            path.unlink()
    cut_leaves(log.path, 200)
    with pytest.raises(SmallerTree):
        log.signer().sign()
    add_leaves(log.path, 200, mark="other")
    with pytest.raises(InconsistentTree, match="size 300"):
        log.signer().sign()


def test_k1_another_tree_of_a_size_that_was_published_is_refused(log: SignedLog) -> None:
    add_leaves(log.path, 3)
    log.signer().sign()
    other = Checkpoint(log.origin, 4, leaf(9))
    (log.checkpoints / "checkpoints" / "4").write_bytes(
        sign_note(other.encode(), [log.key]).encode()
    )
    add_leaves(log.path, 1)
    with pytest.raises(InconsistentTree, match=leaf(9).hex()):
        log.signer().sign()
    assert b"\n3\n" in (log.checkpoints / "checkpoint").read_bytes()
    assert not (log.checkpoints / "pending").exists()


def test_k1_a_head_of_somebody_else_is_not_believed(log: SignedLog, tmp_path: Path) -> None:
    add_leaves(log.path, 3)
    log.signer().sign()
    stranger = Ed25519Signer(log.origin, private_key(b"\x01" * 32))
    newest = log.checkpoints / "checkpoint"
    for head, key, error in (
        (Checkpoint(log.origin, 3, leaf(1)), stranger, NotSigned),
        (Checkpoint("another-log", 0, EMPTY_ROOT), log.key, InvalidProof),
    ):
        newest.write_bytes(sign_note(head.encode(), [key]).encode())
        with pytest.raises(error):
            log.signer().sign()
    newest.write_bytes(b"x" * 70_000)
    with pytest.raises(Exception, match="larger than"):
        log.signer().sign()


def test_k1_what_is_pending_is_published_first(log: SignedLog) -> None:
    add_leaves(log.path, 3)
    signed = log.signer().sign()
    newest, pending = log.checkpoints / "checkpoint", log.checkpoints / "pending"
    newest.rename(pending)
    (log.checkpoints / "checkpoints" / "3").unlink()
    add_leaves(log.path, 2)
    again = log.signer().sign()
    assert again.checkpoint.size == 5
    assert (log.checkpoints / "checkpoints" / "3").read_bytes() == signed.data
    assert not pending.exists()
    pending.write_bytes(signed.data)
    with pytest.raises(InvalidProof, match="older than the newest"):
        log.signer().sign()


def test_k2_each_event_is_proved_and_nothing_is_asked_of_the_ledger(log: SignedLog) -> None:
    add_leaves(log.path, 700)
    with pytest.raises(InvalidSetting, match="nothing was signed"):
        next(log.prover().inclusion([0]))
    log.signer().sign()
    key = [Ed25519Verifier(log.key.verifier_key)]
    for proof in log.prover().inclusion([0, 255, 256, 699, 3]):
        again = parse_inclusion(proof.encode())
        assert again.check(leaf_hash(again.extra), key, log.origin).checkpoint.size == 700
        assert leaf_hash(again.extra) == leaf(proof.index)
    for wrong in (700, -1):
        with pytest.raises(InvalidSetting, match="not in the newest checkpoint"):
            list(log.prover().inclusion([0, wrong]))


def test_k2_damaged_hashes_prove_nothing_false_and_a_changed_leaf_is_named(log: SignedLog) -> None:
    add_leaves(log.path, 700)
    log.signer().sign()
    log.tree.keep([Node(8, 0, b"\x01" * 32)])
    (proof,) = log.prover().inclusion([300])
    proof.check(leaf(300), [Ed25519Verifier(log.key.verifier_key)])
    with raw(log.path) as connection:
        connection.execute("UPDATE stored_events SET envelope = x'01' WHERE idx = 300")
    with pytest.raises(DamagedLog, match="index 300"):
        list(log.prover().inclusion([300]))


@pytest.mark.parametrize("old", [0, 1, 256, 300, 699, 700])
def test_k2_consistency_is_a_request_that_a_witness_accepts(log: SignedLog, old: int) -> None:
    add_leaves(log.path, 300)
    log.signer().sign()
    add_leaves(log.path, 400)
    log.signer().sign()
    request = parse_witness_request(log.prover().consistency(old).encode())
    head = open_checkpoint(request.checkpoint, [Ed25519Verifier(log.key.verifier_key)]).checkpoint
    before = naive_tree.head([leaf(index) for index in range(old)])
    check_consistency(old, before, head.size, head.root, request.hashes)
    assert request.old == old


def test_k2_consistency_with_what_was_not_signed_is_refused(log: SignedLog) -> None:
    add_leaves(log.path, 300)
    log.signer().sign()
    with pytest.raises(InvalidSetting, match="300 events"):
        log.prover().consistency(301)
    other = Checkpoint(log.origin, 200, leaf(5))
    (log.checkpoints / "checkpoints" / "200").write_bytes(
        sign_note(other.encode(), [log.key]).encode()
    )
    with pytest.raises(InconsistentTree, match="size 200"):
        log.prover().consistency(200)
