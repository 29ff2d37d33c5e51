"""The sealed recorder on SQLite: ``eventsourcing``'s recorder with a head, leaves and a dense index (L1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import DamagedLog, StoreError
from compaction_ledger.infrastructure.event_store.rows import PlainRow
from compaction_ledger.infrastructure.event_store.sealed_rows import SealedRows
from compaction_ledger.infrastructure.event_store.sealing import (
    change_by,
    check_not_erased,
    check_time,
    is_plain_of,
    keys_named,
    seal,
    stream_hex,
)
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.sqlite.formats import file_format

_BLOBS_FROM_EVENTS = (
    "SELECT idx, originator_id, originator_version, topic, "
    "CASE typeof(state) WHEN 'blob' THEN state END, "
    "CASE typeof(envelope) WHEN 'blob' THEN envelope END, "
    "CASE typeof(leaf) WHEN 'blob' THEN leaf END FROM stored_events "
)
KEYS_FORMAT = 3
# What an append follows: the head, the last event of its stream, and whether its subject is erased.
_BEFORE = (
    "SELECT h.size, h.origin, "
    "(SELECT leaf FROM stored_events WHERE originator_id = ? "
    "ORDER BY originator_version DESC LIMIT 1), "
    "(SELECT state FROM subjects WHERE reference = ?) "
    "FROM (SELECT 1) LEFT JOIN log_head AS h ON h.id = 0"
)
_FROM_SUBJECTS = "SELECT reference, key, state, scope, conversation FROM subjects"
_FROM_SUBJECTS_WITHOUT_KEYS = _FROM_SUBJECTS.replace(" key,", " '',")

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
        first = stream_hex(events[0].originator_id)
        cursor.execute(_BEFORE, (first, subject))
        size, origin, before, state = cursor.fetchone()
        if type(size) is not int or type(origin) is not str:
            raise DamagedLog("the log has no head")
        check_not_erased(state or "", events)
        previous = {first: before.hex() if before else ""}
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
        if state is not None:
            _note_erasure(cursor, subject, events)
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
        """As everywhere, in a statement that is prepared once. Text that is none comes as bytes."""
        clause = "WHERE idx >= ? ORDER BY idx LIMIT ?"
        try:
            return self._select_plain(clause, (start, limit))
        except DamagedLog:  # of one row, which is to be named
            with self.datastore.transaction(commit=False, lenient=True) as cursor:
                cursor.execute(_BLOBS_FROM_EVENTS + clause, (start, limit))
                return cursor.fetchall()

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

    def subject(
        self, scope: str, conversation: str, new_reference: str, new_key: str = ""
    ) -> Subject:
        """The subject of a conversation; what it has not yet of these two is stored."""
        found = self.find_subject(scope, conversation)
        if found is not None and (found.key or not new_key or found.state != "live"):
            return found
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute(
                "INSERT OR IGNORE INTO subjects (scope, conversation, reference) VALUES (?, ?, ?)",
                (scope, conversation, new_reference),
            )
            cursor.execute(
                "UPDATE subjects SET key = ? "
                "WHERE scope = ? AND conversation = ? AND key = '' AND state = 'live'",
                (new_key, scope, conversation),
            )
            found = _subject(cursor, scope, conversation)
        if found is None:
            raise IntegrityError(f"the reference {new_reference} is taken")
        return found

    def find_subject(self, scope: str, conversation: str) -> Subject | None:
        """The subject of a conversation, if it has one."""
        with self.datastore.transaction(commit=False) as cursor:
            return _subject(cursor, scope, conversation, self._from_subjects(cursor))

    def subject_of(self, reference: str) -> Subject | None:
        """What a reference stands for."""
        with self.datastore.transaction(commit=False) as cursor:
            return _subject_of(cursor, reference, self._from_subjects(cursor))

    def erased_references(self) -> frozenset[str]:
        """The references of what is erased."""
        with self.datastore.transaction(commit=False) as cursor:
            rows = cursor.execute("SELECT reference FROM subjects WHERE state = 'erased'")
            return frozenset(reference for (reference,) in rows.fetchall())

    def subjects(self) -> dict[str, Subject]:
        """Every reference, and what it stands for."""
        with self.datastore.transaction(commit=False) as cursor:
            found = map(Subject._make, cursor.execute(self._from_subjects(cursor)).fetchall())
            return {subject.reference: subject for subject in found}

    def _from_subjects(self, cursor: sqlite3.Cursor) -> str:
        """What reads subjects: a file that cannot be written may be of a format that had no keys."""
        if self.datastore.is_current or file_format(cursor) >= KEYS_FORMAT:
            return _FROM_SUBJECTS
        return _FROM_SUBJECTS_WITHOUT_KEYS

    def keys_of(self, reference: str) -> set[str]:
        """The ids of the data keys that a subject's events name: the whole log is looked through."""
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(
                "SELECT envelope FROM stored_events WHERE instr(envelope, CAST(? AS BLOB)) > 0",
                (f'"subject":"{reference}"',),
            )
            return keys_named((envelope for (envelope,) in cursor), reference)

    def blank(self, reference: str) -> int:
        """Remove the payloads of an erased subject that are not encrypted; how many."""
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute(
                "SELECT idx, envelope FROM stored_events "
                "WHERE instr(envelope, CAST(? AS BLOB)) > 0 AND state <> x''",
                (f'"subject":"{reference}"',),
            )
            found = [
                (idx,) for idx, envelope in cursor.fetchall() if is_plain_of(envelope, reference)
            ]
            cursor.executemany("UPDATE stored_events SET state = x'' WHERE idx = ?", found)
            return len(found)


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


def _subject(
    cursor: sqlite3.Cursor, scope: str, conversation: str, select: str = _FROM_SUBJECTS
) -> Subject | None:
    cursor.execute(f"{select} WHERE scope = ? AND conversation = ?", (scope, conversation))
    row = cursor.fetchone()
    return Subject._make(row) if row else None


def _subject_of(
    cursor: sqlite3.Cursor, reference: str, select: str = _FROM_SUBJECTS
) -> Subject | None:
    cursor.execute(f"{select} WHERE reference = ?", (reference,))
    row = cursor.fetchone()
    return Subject._make(row) if row else None


def _note_erasure(cursor: sqlite3.Cursor, subject: str, events: Sequence[StoredEvent]) -> None:
    """What an erasure that is being recorded makes of its subject: within the same transaction (S3)."""
    match change_by(events):
        case "requested":
            cursor.execute("UPDATE subjects SET state = 'erased' WHERE reference = ?", (subject,))
        case "completed":
            cursor.execute(
                "UPDATE subjects SET state = 'erased', scope = '', conversation = reference "
                "WHERE reference = ?",
                (subject,),
            )
        case None:
            pass
