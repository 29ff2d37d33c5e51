"""Sign the log: extend the tree, prove that what was signed is its beginning, and publish (K1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import (
    InconsistentTree,
    InvalidProof,
    SignerOvertaken,
    SmallerTree,
)
from compaction_ledger.domain.proof.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    open_checkpoint,
    parse_checkpoint,
)
from compaction_ledger.domain.proof.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    consistency_proof,
    root_at,
)
from compaction_ledger.domain.proof.notes import (
    NoteSigner,
    NoteVerifier,
    check_note,
    parse_note,
    sign_note,
)
from compaction_ledger.domain.proof.ports import Node, Published, TreeStore, Turn
from compaction_ledger.domain.proof.tiles import TILE, TILE_BITS, Tiles

logger = logging.getLogger(__name__)

BATCH = 4 * TILE
"""So many leaves are read at once."""

KEPT_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Signed:
    """The checkpoint that is published now. Not ``new``: nothing had happened since the last one."""

    checkpoint: Checkpoint
    data: bytes
    keys: tuple[str, ...]
    new: bool


@dataclass(frozen=True, slots=True)
class LogSigner:
    """What signs one log. ``verifiers`` are the keys of ``signers``, and those that signed before them."""

    tree: TreeStore
    published: Published
    signers: Sequence[NoteSigner]
    verifiers: Sequence[NoteVerifier]
    holder: str

    def sign(self) -> Signed:
        """Sign the log as it is now.

        The work grows with the new leaves, and with the logarithm of all. Raises :class:`SmallerTree`,
        :class:`InconsistentTree`, :class:`SignerOvertaken`, :class:`SignerBusy`, :class:`DamagedLog`, and
        :class:`InvalidProof` where what was published is not a checkpoint of ours; nothing is published then.
        """
        with self.published.locked():
            turn = self.tree.begin_turn(self.holder)
            size, origin = self.tree.head()
            last = self._last(origin)
            tree = self._checked_beginning(last, Checkpoint(origin, size, EMPTY_ROOT))
            self._check_announced(turn, last, origin, size)
            if last is not None and last.checkpoint.size == size and self._have_all_signed(last):
                return self._signed(last, new=False)
            self._extend(tree, size)
            head = Checkpoint(origin, size, tree.root())
            self._check_proof(last, head)
            note = sign_note(head.encode(), self.signers)
            check_note(note, self.verifiers)
            if not self.tree.announce(turn, size, head.root):
                raise SignerOvertaken(f"another signer began after this one, in epoch {turn.epoch}")
            data = note.encode()
            self._publish(head, data)
            return self._signed(open_checkpoint(data, self.verifiers, origin), new=True)

    # --- what was signed before ---

    def _last(self, origin: str) -> SignedCheckpoint | None:
        """The newest checkpoint; one whose publication was interrupted is published first."""
        newest = self._opened(self.published.newest(), origin)
        pending = self._opened(self.published.pending(), origin)
        if pending is None:
            return newest
        if newest is None or pending.checkpoint.size >= newest.checkpoint.size:
            self._publish(pending.checkpoint, pending.data)
            return pending
        raise InvalidProof("a checkpoint that is older than the newest is about to be published")

    def _opened(self, data: bytes | None, origin: str) -> SignedCheckpoint | None:
        return None if data is None else open_checkpoint(data, self.verifiers, origin)

    def _have_all_signed(self, last: SignedCheckpoint) -> bool:
        signed = {(one.name, one.key_id) for one in last.verified}
        return signed >= {(one.name, one.key_id) for one in self.signers}

    def _publish(self, head: Checkpoint, data: bytes) -> None:
        """Publish, unless another tree of this size was published before."""
        before = self.published.at(head.size)
        if before is not None:
            known = parse_checkpoint(parse_note(before).text)
            if known != head:
                raise InconsistentTree(str(known), str(head))
        self.published.publish(head.size, data)

    # --- the tree ---

    def _checked_beginning(self, last: SignedCheckpoint | None, now: Checkpoint) -> Frontier:
        """The tree as it was signed, from what is in the store now."""
        if last is None:
            return Frontier()
        signed = last.checkpoint
        if now.size < signed.size:
            raise SmallerTree(str(signed), str(self._head_now(now.origin, now.size)))
        tree = self._tree_at(signed.size, signed.root)
        if tree.root() != signed.root:
            raise InconsistentTree(
                str(signed), str(Checkpoint(now.origin, signed.size, tree.root()))
            )
        return tree

    def _check_announced(
        self, turn: Turn, last: SignedCheckpoint | None, origin: str, size: int
    ) -> None:
        """What any signer announced must be the log's beginning, too. It is only the store that says so."""
        if not turn.root or (last and turn[2:] == (last.checkpoint.size, last.checkpoint.root)):
            return
        if turn.size > size:
            announced = f"size {turn.size}, root {turn.root.hex()}"
            raise SmallerTree(announced, str(self._head_now(origin, size)))
        found_root = self._tree_at(turn.size, turn.root).root()
        if found_root != turn.root:
            raise InconsistentTree(
                f"size {turn.size}, root {turn.root.hex()}",
                f"size {turn.size}, root {found_root.hex()}",
            )

    def _head_now(self, origin: str, size: int) -> Checkpoint:
        """The log as it is, by its leaves alone."""
        return Checkpoint(origin, size, root_at(size, Tiles(self.tree, kept=False)))

    def _tree_at(self, size: int, root: bytes) -> Frontier:
        """The tree of so many leaves; kept hashes that do not lead to ``root`` are made again."""
        tree = Frontier.at(size, Tiles(self.tree))
        if tree.root() == root:
            return tree
        whole = Frontier.at(size, Tiles(self.tree, kept=False))
        if whole.root() == root:
            logger.warning("the hashes that are kept over the log are damaged: they are made again")
            self.tree.forget()
            self._extend(Frontier(), size)
        return whole

    def _extend(self, tree: Frontier, size: int) -> None:
        """Add the leaves up to ``size``, and keep the hashes that this completes."""
        nodes: list[Node] = []

        def keep(level: int, position: int, node: bytes) -> None:
            if not level % TILE_BITS:
                nodes.append(Node(level, position, node))

        while tree.size < size:
            stop = min(tree.size + BATCH, size)
            tree.extend(self.tree.sealed_leaves(tree.size, stop), keep)
            if len(nodes) >= KEPT_AT_ONCE or (nodes and tree.size == size):
                self.tree.keep(nodes)
                nodes.clear()

    def _check_proof(self, last: SignedCheckpoint | None, head: Checkpoint) -> None:
        """Prove to ourselves, by what is in the store, that the new tree begins with the signed one (K1)."""
        signed = Checkpoint(head.origin, 0, EMPTY_ROOT) if last is None else last.checkpoint
        proof = consistency_proof(signed.size, head.size, Tiles(self.tree))
        try:
            check_consistency(signed.size, signed.root, head.size, head.root, proof)
        except InvalidProof as error:
            raise InconsistentTree(str(signed), str(head)) from error

    @staticmethod
    def _signed(last: SignedCheckpoint, *, new: bool) -> Signed:
        keys = tuple(f"{one.name}+{one.key_id.hex()}" for one in last.verified)
        return Signed(last.checkpoint, last.data, keys, new)
