"""The tree over the log in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.proof.ports import Node, Turn
from compaction_ledger.infrastructure.postgres.database import Database, Values
from compaction_ledger.infrastructure.tree.leaves import checked_leaves, dense, in_order


class PostgresTree:
    """Leaves, kept hashes and the signer's turn in one schema. What is written is written by functions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self) -> tuple[int, str]:
        """The log's size and origin. Raises :class:`DamagedLog`."""
        rows = self._call("SELECT size, origin FROM {schema}.log_head WHERE id = 0")
        if len(rows) != 1:
            raise DamagedLog("the log has no head")
        return rows[0][0], rows[0][1]

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, unchecked, as far as there is no gap."""
        rows = self._call(
            "SELECT idx, leaf FROM {schema}.stored_events "
            "WHERE idx >= %s::bigint AND idx < %s::bigint ORDER BY idx",
            start,
            stop,
        )
        return dense(((index, leaf) for index, leaf in rows), start)

    def sealed_leaves(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, each checked. Raises :class:`DamagedLog`."""
        rows = self._call(
            "SELECT idx, leaf, envelope FROM {schema}.stored_events "
            "WHERE idx >= %s::bigint AND idx < %s::bigint ORDER BY idx",
            start,
            stop,
        )
        return checked_leaves(((index, leaf, sealed) for index, leaf, sealed in rows), start, stop)

    def envelopes(self, indices: Sequence[int]) -> Sequence[bytes]:
        """The envelopes at these indices. Raises :class:`DamagedLog`."""
        rows = self._call(
            "SELECT idx, envelope FROM {schema}.stored_events WHERE idx = ANY(%s::bigint[])",
            list(indices),
        )
        return in_order({int(index): envelope for index, envelope in rows}, indices)

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        """The kept hashes of a level, as far as there is no gap."""
        rows = self._call(
            "SELECT position, hash FROM {schema}.tree_nodes WHERE level = %s::integer "
            "AND position >= %s::bigint AND position < %s::bigint ORDER BY position",
            level,
            start,
            stop,
        )
        return dense(((position, node) for position, node in rows), start)

    def keep(self, nodes: Sequence[Node]) -> None:
        """Keep these hashes."""
        if nodes:
            levels, positions, hashes = map(list, zip(*nodes, strict=True))
            self._call(
                "SELECT {schema}.keep_tree_nodes(%s::integer[], %s::bigint[], %s::bytea[])",
                levels,
                positions,
                hashes,
            )

    def forget(self) -> None:
        """Forget all hashes."""
        self._call("SELECT {schema}.forget_tree_nodes()")

    def was_announced(self) -> bool:
        """Whether anything of this log was ever about to be signed."""
        return bool(self._call("SELECT size FROM {schema}.signer WHERE id = 0 AND size > 0"))

    def begin_turn(self, holder: str) -> Turn:
        """Become the signer."""
        rows = self._call("SELECT epoch, size, root FROM {schema}.begin_signing(%s)", holder)
        if len(rows) != 1:
            raise DamagedLog("what is kept of the signer is not what belongs there")
        epoch, size, root = rows[0]
        return Turn(epoch, holder, size, root)

    def announce(self, turn: Turn, size: int, root: bytes) -> bool:
        """Say what is published next; False where another is the signer."""
        ((done,),) = self._call(
            "SELECT {schema}.announce_signing(%s::bigint, %s, %s::bigint, %s::bytea)",
            turn.epoch,
            turn.holder,
            size,
            root,
        )
        return bool(done)

    def _call(self, statement: str, *values: object) -> list[Values]:
        return self._database.call(self._database.sql(statement), values)
