"""The tree over a log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from compaction_ledger.domain.proof.ports import Node, Turn
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.tree.leaves import checked_leaves, dense, in_order


class Sealed(Protocol):
    """The part of a recorder that is read."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def rows_at(self, indices: Sequence[int]) -> list[Row]: ...
    def head(self) -> tuple[int, str]: ...


class MemoryTree:
    """Hashes in a dictionary, over the leaves of any recorder."""

    def __init__(self, sealed: Sealed) -> None:
        self._sealed = sealed
        self._lock = Lock()
        self._nodes: dict[tuple[int, int], bytes] = {}
        self._turn = Turn(0, "", 0, b"")

    def head(self) -> tuple[int, str]:
        """The log's size and origin."""
        return self._sealed.head()

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, unchecked, as far as there is no gap."""
        return dense(((row.idx, row.leaf) for row in self._rows(start, stop)), start)

    def sealed_leaves(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, each checked. Raises :class:`DamagedLog`."""
        rows = ((row.idx, row.leaf, row.envelope) for row in self._rows(start, stop))
        return checked_leaves(rows, start, stop)

    def envelopes(self, indices: Sequence[int]) -> Sequence[bytes]:
        """The envelopes at these indices. Raises :class:`DamagedLog`."""
        found = {row.idx: row.envelope for row in self._sealed.rows_at(indices)}
        return in_order(found, indices)

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        """The kept hashes of a level, as far as there is no gap."""
        with self._lock:
            kept = ((at, self._nodes.get((level, at), b"")) for at in range(start, stop))
            return dense(((at, node) for at, node in kept if node), start)

    def keep(self, nodes: Sequence[Node]) -> None:
        """Keep these hashes."""
        with self._lock:
            self._nodes |= {(level, position): node for level, position, node in nodes}

    def forget(self) -> None:
        """Forget all hashes."""
        with self._lock:
            self._nodes.clear()

    def was_announced(self) -> bool:
        """Whether anything of this log was ever about to be signed."""
        return self._turn.size > 0

    def begin_turn(self, holder: str) -> Turn:
        """Become the signer."""
        with self._lock:
            self._turn = self._turn._replace(epoch=self._turn.epoch + 1, holder=holder)
            return self._turn

    def announce(self, turn: Turn, size: int, root: bytes) -> bool:
        """Say what is published next; False where another is the signer."""
        with self._lock:
            if turn[:2] != self._turn[:2]:
                return False
            self._turn = self._turn._replace(size=size, root=root)
            return True

    def _rows(self, start: int, stop: int) -> Sequence[Row]:
        return self._sealed.rows(start, stop - start, stop)
