"""Transcripts in the ledger's own SQLite file: append-only, with revisions, text kept bit for bit (E6)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from eventsourcing.persistence import IntegrityError

from compaction_ledger.domain.conversation import (
    Conversation,
    Message,
    MessageKind,
    MessageStatus,
    Role,
    Run,
    RunState,
)
from compaction_ledger.domain.errors import DuplicateMessageId
from compaction_ledger.domain.identifiers import check_id, is_well_formed
from compaction_ledger.domain.takeover import (
    KnownThread,
    NewThread,
    Revision,
    ThreadChanges,
    check_threads,
    thread_changes,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines, check_revision
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.transcripts.stored_lines import (
    bytes_of,
    check_place,
    new_message,
    runs_of,
    text_of,
    unknown_conversation,
    unknown_message,
)

POSITIONS = 1 << 32  # as in schema.sql: a message's key is conversation * 2^32 + position

_LINES = (
    "SELECT id, run, role, status, kind, text FROM messages WHERE key >= ? AND key < ? ORDER BY key"
)
_REVISIONS = (
    "SELECT m.id, r.status, r.text, r.deleted FROM message_revisions AS r JOIN messages AS m "
    "ON m.key = r.message WHERE r.message >= ? AND r.message < ? ORDER BY r.message, r.revision"
)
_RUNS = "SELECT id, state FROM runs WHERE conversation = ? ORDER BY id, revision"


@dataclass(frozen=True, slots=True)
class _Newest:
    """A message's newest revision."""

    key: int
    revision: int
    status: str
    text: str | bytes
    deleted: bool = False


class SQLiteTranscripts:
    """The embedded store. Nothing that was written is ever changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- writing ---

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Iterable[NewMessage],
        runs: Iterable[NewRun] = (),
    ) -> None:
        """Append lines, in order, in one transaction; makes the conversation when it is new."""
        check_place(scope, conversation)
        lines, states = list(messages), list(runs)
        check_lines(lines, states)
        with self._database.transaction(commit=True) as cursor:
            _append(cursor, scope, conversation, lines, states)

    def take_over(
        self, scope: str, threads: Sequence[NewThread], *, update: bool = False
    ) -> Sequence[ThreadChanges]:
        """Append several conversations, or with ``update`` bring them up to date, in one transaction."""
        check_threads(scope, threads)
        with self._database.transaction(commit=True) as cursor:
            decided = [
                thread_changes(
                    given, _known_thread(cursor, scope, given.conversation), update=update
                )
                for given in threads
            ]
            for changes in decided:
                _apply(cursor, scope, changes)
        return decided

    def revise(
        self,
        scope: str,
        conversation: str,
        message_id: str,
        text: str | None = None,
        *,
        status: MessageStatus | None = None,
    ) -> None:
        """Give a message another text or status, as a new revision."""
        check_revision(message_id, text, status)
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            _revise(cursor, key, Revision(message_id, text, status))
            _touch(cursor, key)

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation as it is now, as a new revision."""
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            _insert_revision(cursor, replace(_newest(cursor, key, message_id), deleted=True))
            _touch(cursor, key)

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state as it is now."""
        check_lines((), [NewRun(run, state)])
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            _insert_run(cursor, key, NewRun(run, state))
            _touch(cursor, key)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete the conversation with all its lines and revisions, in one transaction."""
        check_place(scope, conversation)
        with self._database.transaction(commit=True) as cursor:
            key = _key(cursor, scope, conversation)
            if key is None:
                return
            lines = (key * POSITIONS, (key + 1) * POSITIONS)
            cursor.execute(
                "DELETE FROM message_revisions WHERE message >= ? AND message < ?", lines
            )
            cursor.execute("DELETE FROM messages WHERE key >= ? AND key < ?", lines)
            cursor.execute("DELETE FROM runs WHERE conversation = ?", (key,))
            cursor.execute("DELETE FROM conversations WHERE key = ?", (key,))

    # --- reading ---

    def conversation(self, scope: str, conversation: str) -> Conversation:
        """The conversation as it is now, in one snapshot."""
        with self._database.transaction(commit=False) as cursor:
            rows = _rows(cursor, _known(cursor, scope, conversation))
        return Conversation(scope, conversation, *_lines(rows, scope, conversation))

    def revision(self, scope: str, conversation: str) -> str | None:
        """A count of the conversation's changes."""
        with self._database.transaction(commit=False) as cursor:
            key = _known(cursor, scope, conversation)
            cursor.execute("SELECT revision FROM conversations WHERE key = ?", (key,))
            return str(cursor.fetchone()[0])

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation, in order."""
        with self._database.transaction(commit=False) as cursor:
            cursor.execute(
                "SELECT scope, conversation FROM conversations ORDER BY scope, conversation"
            )
            found: list[tuple[str, str]] = cursor.fetchall()
        return found


class _Rows(NamedTuple):
    """A conversation's rows, as they were at one moment."""

    lines: list[tuple[str, str, Role, MessageStatus, MessageKind, str | bytes]]
    revisions: list[tuple[str, MessageStatus, str | bytes, int]]
    runs: list[tuple[str, RunState]]


def _rows(cursor: sqlite3.Cursor, key: int) -> _Rows:
    rows = (key * POSITIONS, (key + 1) * POSITIONS)
    return _Rows(
        cursor.execute(_LINES, rows).fetchall(),
        cursor.execute(_REVISIONS, rows).fetchall(),
        cursor.execute(_RUNS, (key,)).fetchall(),
    )


def _lines(rows: _Rows, scope: str, conversation: str) -> tuple[list[Message], dict[str, Run]]:
    """The messages and runs of a conversation, by their newest revisions."""
    messages = [
        new_message(
            (
                message_id,
                run,
                role,
                status,
                kind,
                text if type(text) is str else _text(text),
                conversation,
                scope,
            )
        )
        for message_id, run, role, status, kind, text in rows.lines
    ]
    if rows.revisions:
        messages = _revised(messages, rows.revisions)
    return messages, runs_of(rows.runs, scope, conversation)


def _known_thread(cursor: sqlite3.Cursor, scope: str, conversation: str) -> KnownThread | None:
    """The conversation for comparing new lines with."""
    key = _key(cursor, scope, conversation)
    if key is None:
        return None
    rows = _rows(cursor, key)
    messages, runs = _lines(rows, scope, conversation)
    positions = {line[0]: position for position, line in enumerate(rows.lines)}
    return KnownThread(messages, positions, runs)


def _revised(
    messages: list[Message], revisions: list[tuple[str, MessageStatus, str | bytes, int]]
) -> list[Message]:
    """The messages by their newest revisions, without the deleted ones."""
    newest = {revision[0]: revision for revision in revisions}  # the last one stands
    revised: list[Message] = []
    for message in messages:
        revision = newest.get(message.id)
        if revision is None:
            revised.append(message)
        elif not revision[3]:
            revised.append(message._replace(status=revision[1], text=_text(revision[2])))
    return revised


def _key(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int | None:
    cursor.execute(
        "SELECT key FROM conversations WHERE scope = ? AND conversation = ?", (scope, conversation)
    )
    row = cursor.fetchone()
    return int(row[0]) if row else None


def _known(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int:
    check_place(scope, conversation)
    key = _key(cursor, scope, conversation)
    if key is None:
        raise unknown_conversation(scope, conversation)
    return key


def _next_message(cursor: sqlite3.Cursor, key: int) -> int:
    first = key * POSITIONS
    cursor.execute(
        "SELECT coalesce(max(key) + 1, ?) FROM messages WHERE key >= ? AND key < ?",
        (first, first, first + POSITIONS),
    )
    return int(cursor.fetchone()[0])


def _newest(cursor: sqlite3.Cursor, key: int, message_id: str) -> _Newest:
    check_id(message_id, "message id")
    cursor.execute(
        "SELECT m.key, coalesce(r.revision, 0), coalesce(r.status, m.status), coalesce(r.text, m.text), "
        "coalesce(r.deleted, 0) FROM messages AS m LEFT JOIN message_revisions AS r ON r.message = m.key "
        "WHERE m.conversation = ? AND m.id = ? ORDER BY r.revision DESC LIMIT 1",
        (key, message_id),
    )
    row = cursor.fetchone()
    if row is None or row[4]:
        raise unknown_message(message_id)
    return _Newest(*row)


def _append(
    cursor: sqlite3.Cursor,
    scope: str,
    conversation: str,
    lines: Iterable[NewMessage],
    states: Iterable[NewRun],
) -> int:
    """Append lines; makes the conversation when it is new. Returns its key."""
    key = _key(cursor, scope, conversation)
    if key is None:
        cursor.execute(
            "INSERT INTO conversations (scope, conversation) VALUES (?, ?)", (scope, conversation)
        )
        key = int(cursor.lastrowid or 0)
    for message_key, message in enumerate(lines, start=_next_message(cursor, key)):
        _insert(cursor, key, message_key, message)
    for run in states:
        _insert_run(cursor, key, run)
    _touch(cursor, key)
    return key


def _apply(cursor: sqlite3.Cursor, scope: str, changes: ThreadChanges) -> None:
    """Store what was decided of one conversation."""
    if changes.any or _key(cursor, scope, changes.conversation) is None:
        key = _append(cursor, scope, changes.conversation, changes.appended, changes.runs)
        for revision in changes.revised:
            _revise(cursor, key, revision)


def _revise(cursor: sqlite3.Cursor, key: int, revision: Revision) -> None:
    line = _newest(cursor, key, revision.message_id)
    text = line.text if revision.text is None else _stored(revision.text)
    _insert_revision(cursor, replace(line, text=text, status=revision.status or line.status))


def _insert(cursor: sqlite3.Cursor, key: int, message_key: int, message: NewMessage) -> None:
    try:
        cursor.execute(
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                message_key,
                key,
                message.id,
                message.run,
                message.role,
                message.status,
                message.kind,
                _stored(message.text),
                message.created_at,
            ),
        )
    except sqlite3.IntegrityError as error:
        cursor.execute(
            "SELECT key FROM messages WHERE conversation = ? AND id = ?", (key, message.id)
        )
        row = cursor.fetchone()
        if row is None:
            raise IntegrityError(error) from error
        first, second = (f"position {at % POSITIONS}" for at in (row[0], message_key))
        raise DuplicateMessageId(message.id, first, second) from error


def _insert_revision(cursor: sqlite3.Cursor, line: _Newest) -> None:
    cursor.execute(
        "INSERT INTO message_revisions VALUES (?, ?, ?, ?, ?)",
        (line.key, line.revision + 1, line.status, line.text, int(line.deleted)),
    )


def _insert_run(cursor: sqlite3.Cursor, key: int, run: NewRun) -> None:
    cursor.execute(
        "INSERT INTO runs SELECT ?, ?, coalesce(max(revision) + 1, 0), ? FROM runs "
        "WHERE conversation = ? AND id = ?",
        (key, run.id, run.state, key, run.id),
    )


def _touch(cursor: sqlite3.Cursor, key: int) -> None:
    cursor.execute("UPDATE conversations SET revision = revision + 1 WHERE key = ?", (key,))


def _stored(text: str) -> str | bytes:
    """Text that SQLite can hold as text; what has lone surrogates goes in as bytes (E6)."""
    return text if is_well_formed(text) else bytes_of(text)


def _text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else text_of(stored)
