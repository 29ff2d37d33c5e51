"""Originals in a ledger's PostgreSQL database: append-only, bytes as they came.

The functions that are called here stand in the migration that makes the tables. To append the same messages
twice does no harm (A9), so what is lost on the way is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.originals import NewOriginal, Original
from compaction_ledger.infrastructure.originals import checking
from compaction_ledger.infrastructure.postgres.database import Cursor, Database, Values
from compaction_ledger.infrastructure.transcripts.stored_lines import plain

MESSAGES_AT_ONCE = 2_000
BYTES_AT_ONCE = 16_000_000
"""How much goes into one statement; one message at least."""

_NAME = "{schema}.window_name(%t, %t, %t)"
_PLACE = "{schema}.conversation_name(%t, %t)"
_END = 1 << 31


class PostgresOriginals:
    """The store for many processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        sql = database.sql
        self._append = sql(
            "SELECT outcome, present_shape, present FROM {schema}.append_originals("
            "%t, %t, %t, %t, %b::integer, %b::text[], %b::integer[], %b::bigint[], %b::text[], "
            "%b::bytea[])"
        )
        self._run = sql(
            f"SELECT messages, shape FROM {{schema}}.window_runs WHERE name = {_NAME}"  # noqa: S608
        )
        self._digests = sql(_part_of_run("digest"))
        self._read = sql(_part_of_run("role", "exchange", "at", "digest", "wire"))
        self._runs = sql(
            f"SELECT run FROM {{schema}}.window_runs WHERE place = {_PLACE} ORDER BY key"  # noqa: S608
        )
        self._keep = sql("SELECT {schema}.keep_result(%t, %t, %b)")
        self._result = sql(
            f"SELECT content FROM {{schema}}.window_results WHERE place = {_PLACE} "  # noqa: S608
            "AND digest = %t"
        )
        self._forget = sql("SELECT {schema}.forget_originals(%t, %t)")

    # --- writing ---

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages: in one statement, or in one transaction where there are many."""
        checking.check_append(key, shape, first, messages)
        calls = [
            (*_ids(key), plain(shape), at, *_columns(batch))
            for at, batch in _batches(first, messages)
        ]
        if len(calls) == 1:
            _judge(key, shape, first, self._database.call(self._append, calls[0]))
            return

        def work(cursor: Cursor) -> None:
            outcomes: set[str] = set()
            for values in calls:
                cursor.execute(self._append, values)
                outcomes.add(_judge(key, shape, first, cursor.fetchall()))
            if len(outcomes) > 1:  # some are there already, and the rest is not
                raise checking.other_first(key, first, first + len(messages))

        self._database.run(work, commit=True, repeatable=True)

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once (T14)."""
        checking.check_conversation(scope, conversation)
        checking.check_bytes(content, "result")
        values = (plain(scope), plain(conversation), bytes(content))
        ((digest,),) = self._database.call(self._keep, values)
        return str(digest)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation, in one transaction."""
        checking.check_conversation(scope, conversation)
        self._database.call(self._forget, (plain(scope), plain(conversation)))

    # --- reading ---

    def count(self, key: WindowKey) -> int:
        """How many messages are kept."""
        check_key(key)
        rows = self._database.call(self._run, _ids(key))
        return int(rows[0][0]) if rows else 0

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape."""
        check_key(key)
        rows = self._database.call(self._run, _ids(key))
        return str(rows[0][1]) if rows else None

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message, in order."""
        check_key(key)
        rows = _dense(key, self._database.call(self._digests, (0, _END, *_ids(key))), 0, _END)
        return [checking.digest_of(key, position, digest) for position, digest in rows]

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``, as they were at one moment."""
        check_key(key)
        checking.check_part(start, stop)
        start, end = min(start, _END - 1), _END if stop is None else min(stop, _END)
        rows = self._database.call(self._read, (start, end, *_ids(key)))
        return [checking.original_of(key, *row) for row in _dense(key, rows, start, end)]

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation, in the order they began."""
        checking.check_conversation(scope, conversation)
        rows = self._database.call(self._runs, (plain(scope), plain(conversation)))
        return [run for (run,) in rows]

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """The content, checked against its digest."""
        if not checking.check_result(scope, conversation, digest):
            return None
        values = (plain(scope), plain(conversation), plain(digest))
        rows = self._database.call(self._result, values)
        return checking.checked_result(rows[0][0], digest) if rows else None


def _part_of_run(*columns: str) -> str:
    """The rows of a part of a run behind their number in all; one row at least where there is a run."""
    wanted = "".join(f", m.{column}" for column in columns)
    return (
        f"SELECT r.messages, m.position{wanted} FROM {{schema}}.window_runs AS r "  # noqa: S608
        "LEFT JOIN {schema}.window_messages AS m ON m.run = r.key "
        "AND m.position >= %b::bigint AND m.position < %b::bigint "
        f"WHERE r.name = {_NAME} ORDER BY m.position"
    )


def _dense(key: WindowKey, rows: list[Values], start: int, end: int) -> Iterator[Values]:
    """The rows that were asked for, without their number. Raises :class:`DamagedOriginal` for a gap."""
    if not rows:
        return
    found = [row[1:] for row in rows if row[1] is not None]
    checking.check_dense(key, (row[0] for row in found), start, min(end, rows[0][0]))
    yield from found


def _judge(key: WindowKey, shape: str, first: int, rows: list[Values]) -> str:
    """The outcome of an append. Raises :class:`ConcurrentAppend`, and :class:`InvalidInput` for the shape."""
    ((outcome, present_shape, present),) = rows
    checking.check_shape(key, present_shape, shape)
    if outcome == "taken":
        raise checking.other_first(key, first, present)
    return str(outcome)


def _batches(
    first: int, messages: Sequence[NewOriginal]
) -> Iterator[tuple[int, Sequence[NewOriginal]]]:
    """The messages by as many as go into one statement, each with the position of its first."""
    start = size = 0
    for number, message in enumerate(messages):
        full = number - start >= MESSAGES_AT_ONCE or size + len(message.wire) > BYTES_AT_ONCE
        if number > start and full:
            yield first + start, messages[start:number]
            start, size = number, 0
        size += len(message.wire)
    yield first + start, messages[start:]


def _columns(messages: Sequence[NewOriginal]) -> list[list[Any]]:
    return [
        [plain(message.role) for message in messages],
        [message.exchange for message in messages],
        [message.at for message in messages],
        [plain(message.digest) for message in messages],
        [bytes(message.wire) for message in messages],
    ]


def _ids(key: WindowKey) -> tuple[str, str, str]:
    return plain(key.scope), plain(key.conversation), plain(key.run)
