"""The sealed recorder on SQLite: ``eventsourcing``'s recorder with a head, leaves and a dense index (L1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder

from compaction_ledger.domain.errors import DamagedLog, StoreError
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Subject
from compaction_ledger.infrastructure.event_store.sealed_rows import SealedRows
from compaction_ledger.infrastructure.event_store.sealing import check_time, seal, stream_hex
from compaction_ledger.infrastructure.sqlite.database import Database

_FROM_EVENTS = (
    "SELECT idx, originator_id, originator_version, topic, state, envelope, leaf "
    "FROM stored_events "
)


class SealedSQLiteRecorder(SealedRows, SQLiteApplicationRecorder):
    """Stores events with their leaves. Notification ids are the index plus one.

    The tables are made when the file is opened; :meth:`create_table` does nothing.
    """

    datastore: Database

    def __init__(self, datastore: Database, clock: Callable[[], int]) -> None:
        super().__init__(datastore)
        self.clock = clock
        self.create_table_statements = []
        self.select_max_notification_id_statement = "SELECT max(idx) + 1 FROM stored_events"

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store and seal ``stored_events`` in one transaction; ``subject`` is the conversation's reference.

        Raises ``IntegrityError`` where a version of a stream is taken (A8), and :class:`TimeHasPassed` where
        the clock, read under the lock, is not ``within`` (A5). When the commit's outcome is not known, reads
        back whether it happened (A9).
        """
        if not stored_events:
            return []
        sealed: list[tuple[int, StoredEvent, bytes]] = []
        try:
            with self.datastore.transaction(commit=True) as cursor:
                sealed = self._seal(cursor, stored_events, **kwargs)
        except StoreError:
            if not sealed or not self._is_stored(sealed):
                raise
        return [index + 1 for index, _, _ in sealed]

    def _seal(
        self,
        cursor: sqlite3.Cursor,
        events: Sequence[StoredEvent],
        subject: str = "",
        within: tuple[int, int] | None = None,
    ) -> list[tuple[int, StoredEvent, bytes]]:
        recorded = self.clock()  # under the lock
        check_time(recorded, within)
        size, origin = _head(cursor)
        previous: dict[str, str] = {}
        sealed: list[tuple[int, StoredEvent, bytes]] = []
        for index, event in enumerate(events, start=size):
            stream = stream_hex(event.originator_id)
            if stream not in previous:
                previous[stream] = _last_leaf(cursor, stream)
            envelope, leaf = seal(event, origin, subject, previous[stream], recorded)
            try:
                cursor.execute(
                    "INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        index,
                        stream,
                        event.originator_version,
                        event.topic,
                        leaf,
                        envelope,
                        event.state,
                    ),
                )
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE:
                    raise  # another wrote this version of the stream first (A8)
                raise DamagedLog("the head says that this place is free", index=index) from error
            previous[stream] = leaf.hex()
            sealed.append((index, event, envelope))
        cursor.execute("UPDATE log_head SET size = ? WHERE id = 0", (size + len(events),))
        return sealed

    def _is_stored(self, sealed: Sequence[tuple[int, StoredEvent, bytes]]) -> bool:
        """Whether exactly these envelopes stand where we wrote them (A9). No answer is no success."""
        try:
            with self.datastore.transaction(commit=False) as cursor:
                for index, _, envelope in sealed:
                    cursor.execute("SELECT envelope FROM stored_events WHERE idx = ?", (index,))
                    if cursor.fetchone() != (envelope,):
                        return False
        except StoreError:
            return False
        return True

    # --- reading ---

    def _select_plain(self, clause: str, parameters: Sequence[str | int] = ()) -> list[PlainRow]:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(_FROM_EVENTS + clause, parameters)
            return cursor.fetchall()

    def plain_rows(self, start: int, limit: int) -> Sequence[PlainRow]:
        """As everywhere, in a statement that is prepared once."""
        return self._select_plain("WHERE idx >= ? ORDER BY idx LIMIT ?", (start, limit))

    def head(self) -> tuple[int, str]:
        """The log's size and origin. Raises :class:`DamagedLog`."""
        with self.datastore.transaction(commit=False) as cursor:
            return _head(cursor)

    def totals(self) -> tuple[int, str, int]:
        """The log's size and origin, and how many events are stored, in one snapshot."""
        with self.datastore.transaction(commit=False) as cursor:
            try:
                size, origin = _head(cursor)
            except DamagedLog:
                size, origin = 0, ""
            cursor.execute("SELECT count(*) FROM stored_events")
            (events,) = cursor.fetchone()
        return size, origin, events

    def subject(self, scope: str, conversation: str, new_reference: str) -> str:
        """The reference of a conversation; ``new_reference`` is stored for one that has none."""
        with self.datastore.transaction(commit=False) as cursor:
            found = _subject(cursor, scope, conversation)
        if found is not None:
            return found
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute(
                "INSERT OR IGNORE INTO subjects (scope, conversation, reference) VALUES (?, ?, ?)",
                (scope, conversation, new_reference),
            )
            found = _subject(cursor, scope, conversation)
        if found is None:
            raise IntegrityError(f"the reference {new_reference} is taken")
        return found

    def find_subject(self, scope: str, conversation: str) -> str | None:
        """The reference of a conversation, if it has one."""
        with self.datastore.transaction(commit=False) as cursor:
            return _subject(cursor, scope, conversation)

    def subjects(self) -> dict[str, Subject]:
        """Every reference, and what it stands for."""
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute("SELECT reference, scope, conversation, state FROM subjects")
            return {reference: Subject(*named) for reference, *named in cursor.fetchall()}


def _head(cursor: sqlite3.Cursor) -> tuple[int, str]:
    cursor.execute("SELECT size, origin FROM log_head WHERE id = 0")
    row = cursor.fetchone()
    if row is None or tuple(map(type, row)) != (int, str):
        raise DamagedLog("the log has no head")
    return row[0], row[1]


def _last_leaf(cursor: sqlite3.Cursor, stream: str) -> str:
    cursor.execute(
        "SELECT leaf FROM stored_events WHERE originator_id = ? "
        "ORDER BY originator_version DESC LIMIT 1",
        (stream,),
    )
    row = cursor.fetchone()
    return row[0].hex() if row else ""


def _subject(cursor: sqlite3.Cursor, scope: str, conversation: str) -> str | None:
    cursor.execute(
        "SELECT reference FROM subjects WHERE scope = ? AND conversation = ?", (scope, conversation)
    )
    row = cursor.fetchone()
    return row[0] if row else None
