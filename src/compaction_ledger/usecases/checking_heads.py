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

    ``heads`` come in the order of their sizes. At each size the roots are compared: a difference lies
    behind the last size where they were the same.
    """

    def __init__(
        self,
        origin: str,
        heads: Iterable[Evidence],
        kept: KeptNodes | None = None,
        witnesses: Sequence[str] = (),
    ) -> None:
        self.compared = 0
        """With how many heads the log was compared; those of one size and root are one head."""
        self.signed = 0
        """So many events are those that were signed, and no head that is no larger says otherwise."""
        self.witnesses = tuple(witnesses)
        """The names of the witnesses that were asked."""
        self._origin = origin
        self._heads = iter(heads)
        self._kept = None if kept is None else _Kept(kept)
        self._tree = GrowingTree(None if self._kept is None else self._kept.compare)
        self._broken = False
        self._findings: list[Finding] = []
        self._matched = 0
        self._agreed = True
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
            self._compare(self._of_one_size(self._next))
        self._tree.extend(leaves[done:] if done else leaves)

    def finish(self) -> list[Finding]:
        """Everything that was found; to be asked once, when all leaves are there."""
        last: KnownHead | None = None
        while self._next is not None:
            heads = self._of_one_size(self._next)
            if heads[0].size <= self._tree.size:  # both are zero
                self._compare(heads)
            elif not self._broken:
                self.compared += _distinct(heads)
                for head in heads:
                    if head.by_witness:
                        self._find("fork", head, self._ahead(head), self._tree.size)
                    else:
                        last = head
        if last is not None:
            self._find("rollback", last, self._ahead(last), self._tree.size)
        kept = [] if self._kept is None else self._kept.findings
        return self._findings + kept

    def _of_one_size(self, first: KnownHead) -> list[KnownHead]:
        """``first`` and those behind it that are of the same size; the next one is another's."""
        heads = [first]
        self._next = self._following()
        while self._next is not None and self._next.size == first.size:
            heads.append(self._next)
            self._next = self._following()
        return heads

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

    def _compare(self, heads: Sequence[KnownHead]) -> None:
        """Compare heads of the size which the tree has now."""
        self.compared += _distinct(heads)
        root = self._tree.root()
        same = [head for head in heads if head.checkpoint.root == root]
        others = [head for head in heads if head.checkpoint.root != root]
        for head in others:
            self._compare_other(head, same[0] if same else None)
        self._agreed = self._agreed and not others
        if same:
            self._matched = self._tree.size
            self.signed = self._tree.size if self._agreed else self.signed

    def _compare_other(self, head: KnownHead, same: KnownHead | None) -> None:
        """Say where ``head`` is another log's. ``same`` is of its size, and has the root of this log."""
        if self._differs and same is None and not head.by_witness:
            return  # as at the size before: it has been said
        where = _where(self._matched, head.size, head.source)
        if same is not None:
            events = f"{head.size} event{'' if head.size == 1 else 's'}"
            where = (
                f"two different logs of {events} were signed: {same.source} is of the log that is "
                f"here, {head.source} is of another one; {where}"
            )
        self._find("fork" if head.by_witness else "root", head, where, self._matched, same)
        self._differs = self._differs or not head.by_witness

    def _ahead(self, head: KnownHead) -> str:
        return (
            f"{head.source} was signed over {head.checkpoint.size} events, the log has "
            f"{self._tree.size}"
        )

    def _find(
        self, code: str, head: KnownHead, message: str, index: int, same: KnownHead | None = None
    ) -> None:
        size = min(self._tree.size, head.size)
        ours = Checkpoint(self._origin, size, self._tree.root()).encode()
        sides = (head.note, ours if same is None else same.note)
        self._findings.append(Finding(code, message, index, sides))


def _distinct(heads: Iterable[KnownHead]) -> int:
    """How many heads these are: a head may be known from several places."""
    return len({(head.size, head.checkpoint.root) for head in heads})


def _where(matched: int, size: int, source: str) -> str:
    """Where the first difference lies, if the first ``matched`` of ``size`` events are the same."""
    if not size:
        return f"{source} was signed over no event, and its root is not that of an empty log"
    behind = f", behind the first {matched} that are as they were signed" if matched else ""
    if matched == size - 1:
        comma = "," if behind else ""
        return f"event {matched}{behind}{comma} is not the one that {source} was signed over"
    return (
        f"of the events {matched} to {size - 1}{behind}, at least one is not the one that "
        f"{source} was signed over"
    )


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
