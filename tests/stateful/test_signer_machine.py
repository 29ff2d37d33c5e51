"""A log that grows, is restored from copies, is signed and interrupted, against a plain model (K1).

The store is lists in memory, whose copies are what a copy of a database is: leaves, kept hashes and the turn.
The folder of checkpoints is real, and stands outside of what is restored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

import naive_tree
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compaction_ledger.domain.errors import (
    InconsistentTree,
    SmallerTree,
    StoreUnavailable,
)
from compaction_ledger.domain.proof.checkpoints import open_checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.merkle import check_consistency
from compaction_ledger.domain.proof.notes import parse_note
from compaction_ledger.domain.proof.ports import Node
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)
from compaction_ledger.infrastructure.proof.folder import CheckpointFolder
from compaction_ledger.infrastructure.tree.memory import MemoryTree
from compaction_ledger.usecases.proving import Prover
from compaction_ledger.usecases.signing import LogSigner

ORIGIN = "log"
KEY = Ed25519Signer(ORIGIN, private_key(b"\x03" * 32))
KEYS = [Ed25519Verifier(KEY.verifier_key)]


class Envelopes:
    """A log as the tree reads it."""

    def __init__(self) -> None:
        self.envelopes: list[bytes] = []

    def leaves(self, size: int | None = None) -> list[bytes]:
        return [sha256(b"\0" + envelope).digest() for envelope in self.envelopes[:size]]

    def head(self) -> tuple[int, str]:
        return len(self.envelopes), ORIGIN

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]:
        end = min(len(self.envelopes), start + limit, start + limit if stop is None else stop)
        return self.rows_at(range(start, end))

    def rows_at(self, indices: Sequence[int]) -> list[Row]:
        return [self._row(index) for index in indices if index < len(self.envelopes)]

    def _row(self, index: int) -> Row:
        envelope = self.envelopes[index]
        return Row(index, "", 1, "", b"", envelope, sha256(b"\0" + envelope).digest())


class Interrupted(CheckpointFolder):
    """A folder whose next publication ends after so many steps."""

    steps: int | None = None

    def publish(self, size: int, data: bytes) -> None:
        if self.steps is None:
            super().publish(size, data)
            return
        steps, self.steps = self.steps, None
        pending, copy = self.folder / "pending", self.folder / "checkpoints" / str(size)
        files.make_folder(copy.parent)
        if steps > 0:
            files.replace(pending, data)
        if steps > 1:
            files.create(copy, data)
        raise StoreUnavailable("interrupted")


class SignerMachine(RuleBasedStateMachine):
    """The steps, and what the model says of each."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(mkdtemp())
        self.log = Envelopes()
        self.tree = MemoryTree(self.log)
        self.published = Interrupted(self.folder / "checkpoints")
        self.copy: tuple[list[bytes], dict[tuple[int, int], bytes], object] | None = None
        self.signed: list[bytes] | None = None
        """The leaves that were signed last, or are about to be published."""
        self.heads: dict[int, bytes] = {}
        """The root of each size that was published."""
        self.number = 0

    @rule(count=st.sampled_from([1, 2, 30, 255, 256, 257, 600]))
    def grow(self, count: int) -> None:
        self.log.envelopes += [b"%d" % (self.number + number) for number in range(count)]
        self.number += count

    @rule()
    def take_a_copy(self) -> None:
        self.copy = (list(self.log.envelopes), dict(self.tree._nodes), self.tree._turn)

    @precondition(lambda self: self.copy is not None)
    @rule()
    def restore_the_copy(self) -> None:
        assert self.copy is not None
        envelopes, nodes, turn = self.copy
        self.log.envelopes, self.tree._nodes = list(envelopes), dict(nodes)
        self.tree._turn = turn  # type: ignore[assignment]

    @rule()
    def forget_hashes(self) -> None:
        self.tree.forget()

    @precondition(lambda self: bool(self.tree._nodes))
    @rule(choice=st.integers(0, 100))
    def damage_a_hash(self, choice: int) -> None:
        level, position = sorted(self.tree._nodes)[choice % len(self.tree._nodes)]
        self.tree.keep([Node(level, position, b"\x01" * 32)])

    @rule(steps=st.integers(0, 2))
    def sign_and_be_interrupted(self, steps: int) -> None:
        self.published.steps = steps
        before = self.signed
        try:
            self.sign()
        except StoreUnavailable:
            pending = self.published.pending()
            self.signed = before
            if pending is not None:
                about = parse_checkpoint(parse_note(pending).text)
                now = self.log.leaves(about.size)
                # What was pending before this call is of the log as it was then.
                if before is None or naive_tree.head(before[: about.size]) != about.root:
                    self.signed = now
        self.published.steps = None

    @rule()
    def sign(self) -> None:
        size = len(self.log.envelopes)
        signer = LogSigner(self.tree, self.published, [KEY], KEYS, "one")
        signed = self.signed
        if signed is not None and size < len(signed):
            with pytest.raises(SmallerTree):
                signer.sign()
            return
        if signed is not None and self.log.leaves(len(signed)) != signed:
            with pytest.raises(InconsistentTree):
                signer.sign()
            return
        leaves = self.log.leaves()
        self.signed = leaves
        head = signer.sign().checkpoint
        assert (head.size, head.root) == (size, naive_tree.head(leaves))

    @rule(choice=st.integers(0, 10_000))
    def prove(self, choice: int) -> None:
        newest = self.published.newest()
        if newest is None:
            return
        head = parse_checkpoint(parse_note(newest).text)
        leaves = self.log.leaves()
        if not head.size or naive_tree.head(leaves[: head.size]) != head.root:
            return
        prover = Prover(self.tree, self.published, lambda: KEYS)
        index = choice % head.size
        (proof,) = prover.inclusion([index])
        proof.check(leaves[index], KEYS)
        request = prover.consistency(index)
        old = naive_tree.head(leaves[:index])
        check_consistency(index, old, head.size, head.root, request.hashes)

    @invariant()
    def what_was_published_stays_and_is_one_history(self) -> None:
        if not hasattr(self, "folder"):
            return
        for path in (self.published.folder / "checkpoints").glob("[0-9]*"):
            head = open_checkpoint(path.read_bytes(), KEYS, ORIGIN).checkpoint
            assert self.heads.setdefault(head.size, head.root) == head.root
            assert self.signed is not None
            assert naive_tree.head(self.signed[: head.size]) == head.root

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        SignerMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            derandomize="CI" in os.environ,
        ),
    )


@pytest.mark.stateful
def test_signing_against_the_plain_model() -> None:
    run(examples=25, steps=25)


@pytest.mark.slow
@pytest.mark.stateful
def test_signing_against_the_plain_model_at_length() -> None:
    run(examples=200, steps=50)
