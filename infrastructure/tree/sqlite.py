"""The tree over the log in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.proof.ports import Node, Turn
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.sqlite.formats import file_format
from compaction_ledger.infrastructure.tree.leaves import checked_leaves, dense, in_order

TREE_FORMAT = 4
_AT_ONCE = 500


class SQLiteTree:
    """Leaves, kept hashes and the signer's turn in one file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self) -> tuple[int, str]:
        """The log's size and origin. Raises :class:`DamagedLog`."""
        rows = self._read("SELECT size, origin FROM log_head WHERE id = 0")
        if len(rows) != 1 or tuple(map(type, rows[0])) != (int, str):
            raise DamagedLog("the log has no head")
        size, origin = rows[0]
        return int(size), str(origin)

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, unchecked, as far as there is no gap."""
        rows = self._read(
            "SELECT idx, leaf FROM stored_events WHERE idx >= ? AND idx < ? ORDER BY idx",
            (start, stop),
        )
        return dense(rows, start)

    def sealed_leaves(self, start: int, stop: int) -> Sequence[bytes]:
        """Leaf hashes, each checked. Raises :class:`DamagedLog`."""
        rows = self._read(
            "SELECT idx, leaf, envelope FROM stored_events WHERE idx >= ? AND idx < ? ORDER BY idx",
            (start, stop),
        )
        return checked_leaves(rows, start, stop)

    def envelopes(self, indices: Sequence[int]) -> Sequence[bytes]:
        """The envelopes at these indices. Raises :class:`DamagedLog`."""
        found: dict[int, bytes] = {}
        for first in range(0, len(indices), _AT_ONCE):
            some = indices[first : first + _AT_ONCE]
            marks = ",".join("?" * len(some))
            found |= self._read(
                f"SELECT idx, envelope FROM stored_events WHERE idx IN ({marks})",  # noqa: S608 - marks alone
                some,
            )
        return in_order(found, indices)

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        """The kept hashes of a level, as far as there is no gap."""
        with self._database.transaction(commit=False) as cursor:
            if not self._is_there(cursor):
                return ()
            cursor.execute(
                "SELECT position, hash FROM tree_nodes "
                "WHERE level = ? AND position >= ? AND position < ? ORDER BY position",
                (level, start, stop),
            )
            return dense(cursor.fetchall(), start)

    def keep(self, nodes: Sequence[Node]) -> None:
        """Keep these hashes. They may be lost when the power fails: they can be made again."""
        with self._database.transaction(commit=True, durable=False) as cursor:
            cursor.executemany("INSERT OR REPLACE INTO tree_nodes VALUES (?, ?, ?)", nodes)

    def forget(self) -> None:
        """Forget all hashes."""
        with self._database.transaction(commit=True) as cursor:
            cursor.execute("DELETE FROM tree_nodes")

    def was_announced(self) -> bool:
        """Whether anything of this log was ever about to be signed."""
        rows = self._read("SELECT size FROM signer WHERE id = 0 AND size > 0")
        return bool(rows)

    def begin_turn(self, holder: str) -> Turn:
        """Become the signer."""
        with self._database.transaction(commit=True) as cursor:
            cursor.execute(
                "UPDATE signer SET epoch = epoch + 1, holder = ? WHERE id = 0", (holder,)
            )
            cursor.execute("SELECT epoch, holder, size, root FROM signer WHERE id = 0")
            return turn_of(cursor.fetchall())

    def announce(self, turn: Turn, size: int, root: bytes) -> bool:
        """Say what is published next; False where another is the signer."""
        with self._database.transaction(commit=True) as cursor:
            cursor.execute(
                "UPDATE signer SET size = ?, root = ? WHERE id = 0 AND epoch = ? AND holder = ?",
                (size, root, turn.epoch, turn.holder),
            )
            return cursor.rowcount == 1

    def _read(self, statement: str, parameters: Sequence[int] = ()) -> list[Any]:
        with self._database.transaction(commit=False) as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall()

    def _is_there(self, cursor: sqlite3.Cursor) -> bool:
        """Whether the file, which may be of an older format and only read, has the tables."""
        return self._database.is_current or file_format(cursor) >= TREE_FORMAT


def turn_of(rows: Sequence[tuple[Any, ...]]) -> Turn:
    """The one row on the signer. Raises :class:`DamagedLog` where it is not there."""
    if len(rows) != 1 or tuple(map(type, rows[0])) != (int, str, int, bytes):
        raise DamagedLog("what is kept of the signer is not what belongs there")
    return Turn(*rows[0])
