"""The rows of conversations in PostgreSQL: what is locked by whoever changes a conversation.

A change locks the row of its conversation first and for as long as the transaction takes: the changes of
one conversation come one after the other, and nobody waits for those of another. Who changes several
locks them in the order of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compaction_ledger.domain.errors import DuplicateMessageId
from compaction_ledger.domain.takeover import NewThread
from compaction_ledger.infrastructure.postgres.database import Cursor, Database
from compaction_ledger.infrastructure.transcripts.stored_lines import (
    bytes_of,
    check_place,
    plain,
    unknown_conversation,
)

NAMES_AT_ONCE = 10_000


class Change(NamedTuple):
    """A conversation that is being changed: its key, the change's number, and the next line's position."""

    key: int
    revision: int
    position: int


class Opened(NamedTuple):
    """A conversation that is locked, the change that may be made of it, and whether it was made just now."""

    change: Change
    new: bool


def name_of(scope: str, conversation: str) -> bytes:
    """What a conversation is found by. Raises :class:`InvalidId` (E4): no id has a NUL in it."""
    check_place(scope, conversation)
    return hashlib.sha256(bytes_of(f"{scope}\0{conversation}")).digest()


class ConversationRows:
    """Locks, makes and counts up the rows of conversations, in the transaction of a cursor."""

    def __init__(self, database: Database) -> None:
        sql = database.sql
        self._change = sql(
            "SELECT key, revision, first_position, taken, taken_position "
            "FROM {schema}.change_conversation(%b, %t, %t, %b::text[])"
        )
        self._change_known = sql(
            "UPDATE {schema}.conversations SET revision = revision + 1 WHERE name = %b "
            "RETURNING key, revision, lines"
        )
        self._make = sql(
            "SELECT name, key FROM {schema}.make_conversations(%b, %t, %b, %b::integer[])"
        )
        self._lock = sql(
            "SELECT name, key, revision + 1, lines FROM {schema}.conversations "
            "WHERE name = ANY(%b) ORDER BY name FOR NO KEY UPDATE"
        )
        self._count_up = sql(
            "UPDATE {schema}.conversations AS c SET revision = c.revision + 1, lines = c.lines + n.lines "
            "FROM unnest(%b::bigint[], %b::integer[]) AS n (key, lines) WHERE c.key = n.key"
        )

    def change(self, cursor: Cursor, scope: str, conversation: str, ids: list[str]) -> Change:
        """Change a conversation by messages with these ids; it is made when it is new.

        Raises :class:`DuplicateMessageId` (E4), and then all is to be rolled back.
        """
        name = name_of(scope, conversation)
        cursor.execute(self._change, (name, plain(scope), plain(conversation), ids))
        [(key, revision, first, taken, taken_at)] = cursor.fetchall()
        positions = {} if taken is None else {taken: taken_at}
        if taken is not None or len(set(ids)) < len(ids):
            _refuse_second(ids, positions, first)
        return Change(key, revision, first)

    def change_known(self, cursor: Cursor, scope: str, conversation: str) -> Change:
        """Change a conversation that is there. Raises :class:`UnknownConversation`."""
        cursor.execute(self._change_known, (name_of(scope, conversation),))
        for row in cursor.fetchall():
            return Change._make(row)
        raise unknown_conversation(scope, conversation)

    def open(self, cursor: Cursor, scope: str, threads: Iterable[NewThread]) -> dict[str, Opened]:
        """Lock every one of ``threads``; what is new is made, and counted up by all its lines."""
        missing = {name_of(scope, thread.conversation): thread for thread in threads}
        opened: dict[str, Opened] = {}
        while missing:  # again for what was deleted between the two statements
            for name, key in self._made(cursor, scope, missing):
                opened[missing.pop(name).conversation] = Opened(Change(key, 1, 0), new=True)
            if missing:
                cursor.execute(self._lock, (list(missing),))
                for name, *row in cursor.fetchall():
                    opened[missing.pop(name).conversation] = Opened(Change._make(row), new=False)
        return opened

    def _made(
        self, cursor: Cursor, scope: str, threads: dict[bytes, NewThread]
    ) -> list[tuple[bytes, int]]:
        conversations = [plain(thread.conversation) for thread in threads.values()]
        lines = [len(thread.messages) for thread in threads.values()]
        cursor.execute(self._make, (list(threads), plain(scope), conversations, lines))
        return [(name, key) for name, key in cursor.fetchall()]

    def count_up(self, cursor: Cursor, changes: Sequence[tuple[Change, int]]) -> None:
        """Count up conversations that were opened, each by a change and so many lines."""
        if changes:
            keys = [change.key for change, _ in changes]
            cursor.execute(self._count_up, (keys, [lines for _, lines in changes]))


def _refuse_second(ids: Iterable[str], positions: dict[str, int], first: int) -> None:
    """Raise :class:`DuplicateMessageId` for the first id that has a position already (E4)."""
    for position, message_id in enumerate(ids, start=first):
        if positions.setdefault(message_id, position) != position:
            raise DuplicateMessageId(
                message_id, f"position {positions[message_id]}", f"position {position}"
            )


@dataclass(frozen=True, slots=True)
class ConversationNames:
    """Every scope and conversation, in order (of the first 256 characters of each), read as they are taken.

    A page is one statement: what comes or goes meanwhile may be among them or not.
    """

    database: Database

    def __iter__(self) -> Iterator[tuple[str, str]]:
        page = self.database.sql(
            "SELECT scope, conversation, left(scope, 256), left(conversation, 256), key "
            "FROM {schema}.conversations "
            "WHERE (left(scope, 256), left(conversation, 256), key) > (%t, %t, %b::bigint) "
            "ORDER BY left(scope, 256), left(conversation, 256), key LIMIT %b"
        )
        behind: Sequence[str | int] = ("", "", 0)
        while rows := self.database.call(page, (*behind, NAMES_AT_ONCE)):
            for scope, conversation, *_ in rows:
                yield scope, conversation
            if len(rows) < NAMES_AT_ONCE:
                return
            behind = rows[-1][2:]
