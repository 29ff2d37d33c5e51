"""Writing the lines of conversations to PostgreSQL, as rows of arrays: many lines in few statements.

The functions that are called here stand in the migration that makes the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from compaction_ledger.domain.takeover import Revision
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.postgres.database import Cursor, Database
from compaction_ledger.infrastructure.transcripts.postgres_conversations import Change
from compaction_ledger.infrastructure.transcripts.stored_lines import bytes_of, plain

LINES_AT_ONCE = 2_000
BYTES_AT_ONCE = 4_000_000
"""How much goes into one statement: enough that the way there and back costs nothing."""


class _Line(NamedTuple):
    """A row of ``messages``."""

    conversation: int
    position: int
    id: str
    run: str
    role: str
    status: str
    kind: str
    text: bytes
    created_at: int | None


@dataclass(frozen=True, slots=True)
class LineWriter:
    """Writes what was checked, in the transaction of a cursor, for conversations that it has locked."""

    lines: bytes
    revisions: bytes
    runs: bytes

    @classmethod
    def on(cls, database: Database) -> LineWriter:
        """The writer for the tables of ``database``."""
        return cls(
            database.sql("SELECT {schema}.write_lines(%b, %b, %b, %b, %b, %b, %b, %b, %b)"),
            database.sql("SELECT id FROM {schema}.write_revisions(%b, %b, %b, %b, %b, %b)"),
            database.sql("SELECT {schema}.write_runs(%b, %b, %b, %b)"),
        )

    def append(
        self, cursor: Cursor, changes: Iterable[tuple[Change, Iterable[NewMessage]]]
    ) -> None:
        """Write new messages."""
        rows = (row for change, messages in changes for row in _lines(change, messages))
        for batch in _batches(rows):
            cursor.execute(self.lines, _columns(batch))

    def revise(
        self,
        cursor: Cursor,
        changes: Iterable[tuple[Change, Iterable[Revision]]],
        *,
        deleted: bool = False,
    ) -> str | None:
        """Write new revisions; with ``deleted`` the messages are deleted by them.

        Returns the id of a message that is not there, if there is one, and then all is to be rolled back.
        """
        rows = [
            (
                change.key,
                change.revision,
                plain(revision.message_id),
                None if revision.text is None else bytes_of(revision.text),
                None if revision.status is None else plain(revision.status),
            )
            for change, revisions in changes
            for revision in revisions
        ]
        for start in range(0, len(rows), LINES_AT_ONCE):
            batch = rows[start : start + LINES_AT_ONCE]
            cursor.execute(self.revisions, [*_columns(batch), deleted])
            for (message_id,) in cursor.fetchall():
                return str(message_id)
        return None

    def set_runs(self, cursor: Cursor, changes: Iterable[tuple[Change, Iterable[NewRun]]]) -> None:
        """Write new states of runs; of several states of one run, the last one stands."""
        rows = [
            (change.key, change.revision, run, state)
            for change, runs in changes
            for run, state in {plain(run.id): plain(run.state) for run in runs}.items()
        ]
        for start in range(0, len(rows), LINES_AT_ONCE):
            batch = rows[start : start + LINES_AT_ONCE]
            cursor.execute(self.runs, _columns(batch))


def _lines(change: Change, messages: Iterable[NewMessage]) -> Iterator[_Line]:
    for position, message in enumerate(messages, start=change.position):
        yield _Line(
            change.key,
            position,
            plain(message.id),
            plain(message.run),
            plain(message.role),
            plain(message.status),
            plain(message.kind),
            bytes_of(message.text),
            message.created_at,
        )


def _batches(lines: Iterable[_Line]) -> Iterator[Sequence[_Line]]:
    """The lines by as many as go into one statement."""
    batch: list[_Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line.text)
        if len(batch) >= LINES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
