"""Transcripts in the ledger's own SQLite file: append-only, with revisions, text kept bit for bit (E6)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eventsourcing.persistence import IntegrityError

from compaction_ledger.domain.conversation import Conversation, Message, Run, RunState
from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidInput,
    UnknownConversation,
    UnknownMessage,
)
from compaction_ledger.domain.identifiers import check_id, is_well_formed
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines
from compaction_ledger.infrastructure.sqlite.database import Database

_LINES = (
    "SELECT position, id, run, role, status, kind, text, deleted FROM messages "
    "WHERE conversation = ? ORDER BY position, revision"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """The newest revision of one message."""

    position: int
    revision: int
    values: tuple[Any, ...]  # id, run, role, status, kind, text, created_at


class SQLiteTranscripts:
    """The embedded store. Nothing that was written is ever changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- writing ---

    def append(
        self, scope: str, conversation: str, messages: Iterable[NewMessage], runs: Iterable[NewRun] = ()
    ) -> None:
        """Append lines, in order, in one transaction; makes the conversation when it is new."""
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        lines, states = list(messages), list(runs)
        check_lines(lines, states)
        with self._database.transaction(commit=True) as cursor:
            key = _key(cursor, scope, conversation)
            if key is None:
                cursor.execute(
                    "INSERT INTO conversations (scope, conversation) VALUES (?, ?)", (scope, conversation)
                )
                key = int(cursor.lastrowid or 0)
            cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM messages WHERE conversation = ?", (key,))
            first = cursor.fetchone()[0]
            for position, message in enumerate(lines, start=first):
                _insert_new(cursor, key, position, message)
            for run in states:
                _insert_run(cursor, key, run)
            _touch(cursor, key)

    def revise(self, scope: str, conversation: str, message_id: str, text: str) -> None:
        """Give a message another text, as a new revision."""
        if not isinstance(text, str):
            raise InvalidInput("must be text", place=f"message {message_id!r}: text")
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            line = _newest(cursor, key, message_id)
            values = (*line.values[:5], _stored(text), line.values[6])
            _insert(cursor, key, line.position, line.revision + 1, values)
            _touch(cursor, key)

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation as it is now, as a new revision."""
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            line = _newest(cursor, key, message_id)
            _insert(cursor, key, line.position, line.revision + 1, line.values, deleted=1)
            _touch(cursor, key)

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state as it is now."""
        check_lines((), [NewRun(run, state)])
        with self._database.transaction(commit=True) as cursor:
            key = _known(cursor, scope, conversation)
            _insert_run(cursor, key, NewRun(run, state))
            _touch(cursor, key)

    # --- reading ---

    def conversation(self, scope: str, conversation: str) -> Conversation:
        """The conversation as it is now, in one snapshot."""
        with self._database.transaction(commit=False) as cursor:
            key = _known(cursor, scope, conversation)
            lines = cursor.execute(_LINES, (key,)).fetchall()
            states = cursor.execute(
                "SELECT id, state FROM runs WHERE conversation = ? ORDER BY id, revision", (key,)
            ).fetchall()
        newest = {line[0]: line for line in lines}  # a later revision takes the place of an earlier one
        if len(newest) != len(lines) or any(line[7] for line in lines):
            lines = [line for line in newest.values() if not line[7]]
        messages = [
            Message(
                message_id,
                run,
                role,
                status,
                kind,
                text if type(text) is str else text.decode("utf-8", "surrogatepass"),
                conversation,
                scope,
            )
            for _, message_id, run, role, status, kind, text, _ in lines
        ]
        runs = {run: Run(run, state, conversation, scope) for run, state in states}
        return Conversation(scope, conversation, messages, runs)

    def revision(self, scope: str, conversation: str) -> str | None:
        """A count of the conversation's changes."""
        with self._database.transaction(commit=False) as cursor:
            key = _known(cursor, scope, conversation)
            cursor.execute("SELECT revision FROM conversations WHERE key = ?", (key,))
            return str(cursor.fetchone()[0])

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation, in the order they were made."""
        with self._database.transaction(commit=False) as cursor:
            cursor.execute("SELECT scope, conversation FROM conversations ORDER BY key")
            found: list[tuple[str, str]] = cursor.fetchall()
        return found


def _key(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int | None:
    cursor.execute(
        "SELECT key FROM conversations WHERE scope = ? AND conversation = ?", (scope, conversation)
    )
    row = cursor.fetchone()
    return int(row[0]) if row else None


def _known(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int:
    check_id(scope, "scope")
    check_id(conversation, "conversation")
    key = _key(cursor, scope, conversation)
    if key is None:
        raise UnknownConversation(f"there is no conversation {conversation!r} in scope {scope!r}")
    return key


def _newest(cursor: sqlite3.Cursor, key: int, message_id: str) -> _Line:
    check_id(message_id, "message id")
    cursor.execute(
        "SELECT position, revision, deleted, id, run, role, status, kind, text, created_at FROM messages "
        "WHERE conversation = ? AND id = ? ORDER BY revision DESC LIMIT 1",
        (key, message_id),
    )
    row = cursor.fetchone()
    if row is None or row[2]:
        raise UnknownMessage(f"the conversation has no message {message_id!r}")
    return _Line(row[0], row[1], tuple(row[3:]))


def _insert_new(cursor: sqlite3.Cursor, key: int, position: int, message: NewMessage) -> None:
    values = (
        message.id,
        message.run,
        message.role,
        message.status,
        message.kind,
        _stored(message.text),
        message.created_at,
    )
    try:
        _insert(cursor, key, position, 0, values)
    except sqlite3.IntegrityError as error:
        cursor.execute("SELECT position FROM messages WHERE conversation = ? AND id = ?", (key, message.id))
        row = cursor.fetchone()
        if row is None:
            raise IntegrityError(error) from error
        raise DuplicateMessageId(message.id, f"position {row[0]}", f"position {position}") from error


def _insert(
    cursor: sqlite3.Cursor, key: int, position: int, revision: int, values: Sequence[Any], deleted: int = 0
) -> None:
    cursor.execute(
        "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (key, position, revision, *values, deleted),
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
    return text if is_well_formed(text) else text.encode("utf-8", "surrogatepass")
