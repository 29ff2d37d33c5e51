"""Compare a log with every signed head that is known of it, while its leaves go by (K3, K4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.growing import GrowingTree
from compaction_ledger.domain.proof.heads import Evidence, KnownHead
from compaction_ledger.domain.proof.tiles import TILE

KeptNodes = Callable[[int, int, int], Sequence[bytes]]
"""The hashes that the store keeps of a level, from a position below another, as far as there is no gap."""


class HeadCheck:
    """Is told of all leaves, in order, and says what does not fit to the heads and to the kept hashes.

    ``heads`` come in the order of their sizes. At each of them the root is compared: a difference lies
    behind the last size where the roots were the same.
    """

    def __init__(
        self, origin: str, heads: Iterable[Evidence], kept: KeptNodes | None = None
    ) -> None:
        self.compared = 0
        """With how many heads the log was compared."""
        self.signed = 0
        """So many events are those that were signed."""
        self._origin = origin
        self._heads = iter(heads)
        self._kept = None if kept is None else _Kept(kept)
        self._tree = GrowingTree(None if self._kept is None else self._kept.compare)
        self._broken = False
        self._findings: list[Finding] = []
        self._differs = False
        self._next = self._following()

    def on_leaves(self, index: int, leaves: Sequence[bytes]) -> None:
        """The leaf hashes from ``index`` on. Behind a gap nothing can be compared any more."""
        self._broken = self._broken or index != self._tree.size
        if self._broken:
            return
        done = 0
        while self._next is not None and self._next.checkpoint.size <= index + len(leaves):
            end = self._next.checkpoint.size - index
            self._tree.extend(leaves[done:end])
            done = end
            self._compare(self._next)
            self._next = self._following()
        self._tree.extend(leaves[done:] if done else leaves)

    def finish(self) -> list[Finding]:
        """Everything that was found; to be asked once, when all leaves are there."""
        last: KnownHead | None = None
        while self._next is not None:
            if self._next.checkpoint.size <= self._tree.size:  # both are zero
                self._compare(self._next)
            elif not self._broken:
                self.compared += 1
                if self._next.by_witness:
                    self._find("fork", self._next, self._ahead(self._next))
                else:
                    last = self._next
            self._next = self._following()
        if last is not None:
            self._find("rollback", last, self._ahead(last))
        kept = [] if self._kept is None else self._kept.findings
        return self._findings + kept

    def _following(self) -> KnownHead | None:
        """The next head of this log."""
        for head in self._heads:
            if isinstance(head, Finding):
                self._findings.append(head)
                continue
            if head.checkpoint.origin == self._origin:
                return head
            self._findings.append(
                Finding(
                    "other_log",
                    f"{head.source} is of the log {head.checkpoint.origin}, this is {self._origin}",
                    sides=(head.note,),
                )
            )
        return None

    def _compare(self, head: KnownHead) -> None:
        """Compare at the size of ``head``, which the tree has now."""
        self.compared += 1
        if self._tree.root() == head.checkpoint.root:
            self.signed = head.checkpoint.size
            return
        if self._differs and not head.by_witness:
            return  # as at the size before: it has been said
        behind = f" behind the {self.signed} that are as they were signed" if self.signed else ""
        self._find(
            "fork" if head.by_witness else "root",
            head,
            f"of the events {self.signed} to {head.checkpoint.size - 1}{behind}, at least one is not "
            f"the one that {head.source} was signed over",
        )
        self._differs = self._differs or not head.by_witness

    def _ahead(self, head: KnownHead) -> str:
        return (
            f"{head.source} was signed over {head.checkpoint.size} events, the log has "
            f"{self._tree.size}"
        )

    def _find(self, code: str, head: KnownHead, message: str) -> None:
        size = min(self._tree.size, head.checkpoint.size)
        ours = Checkpoint(self._origin, size, self._tree.root()).encode()
        index = self._tree.size if head.checkpoint.size > self._tree.size else self.signed
        self._findings.append(Finding(code, message, index, (head.note, ours)))


class _Kept:
    """The hashes that are kept over the log (K1), read by the 256 and compared one by one."""

    def __init__(self, kept: KeptNodes) -> None:
        self.findings: list[Finding] = []
        self._kept = kept
        self._read: dict[int, tuple[int, Sequence[bytes]]] = {}

    def compare(self, level: int, position: int, node: bytes) -> None:
        """Compare one with what is made of the leaves; those that are not kept yet are no finding."""
        start, nodes = self._read.get(level, (-1, ()))
        first = position - position % TILE
        if start != first:
            nodes = self._kept(level, first, first + TILE)
            self._read[level] = (first, nodes)
        at = position - first
        if at < len(nodes) and nodes[at] != node:
            begin, end = position << level, ((position + 1) << level) - 1
            self.findings.append(
                Finding(
                    "tree",
                    f"the hash that is kept of the events {begin} to {end} is not that of these events",
                    begin,
                )
            )
