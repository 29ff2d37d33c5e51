"""Transcripts in a ledger's PostgreSQL database: append-only, with revisions, text kept bit for bit (E6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction_ledger.domain.conversation import (
    Conversation,
    Message,
    MessageStatus,
    Run,
    RunState,
)
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.takeover import (
    KnownThread,
    NewThread,
    Revision,
    ThreadChanges,
    check_threads,
    thread_changes,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines, check_revision
from compaction_ledger.infrastructure.postgres.database import Cursor, Database, Values
from compaction_ledger.infrastructure.transcripts.postgres_conversations import (
    ConversationNames,
    ConversationRows,
    Opened,
    name_of,
)
from compaction_ledger.infrastructure.transcripts.postgres_lines import LineWriter
from compaction_ledger.infrastructure.transcripts.stored_lines import (
    check_place,
    new_message,
    plain,
    runs_of,
    text_of,
    unknown_conversation,
    unknown_message,
)


class PostgresTranscripts:
    """The store for many processes. Nothing that was written is ever changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = ConversationRows(database)
        self._writer = LineWriter.on(database)
        self._now = database.sql("SELECT * FROM {schema}.conversation_now(%b)")
        self._revision = database.sql(
            "SELECT key, revision FROM {schema}.conversations WHERE name = %b"
        )
        self._forget = database.sql("SELECT {schema}.forget_conversation(%t, %t)")
        self._positions = database.sql(
            "SELECT id, position FROM {schema}.messages WHERE conversation = %b"
        )

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
        ids = [plain(message.id) for message in lines]

        def work(cursor: Cursor) -> None:
            change = self._rows.change(cursor, scope, conversation, ids)
            self._writer.append(cursor, [(change, lines)])
            self._writer.set_runs(cursor, [(change, states)])

        self._database.run(work, commit=True)

    def take_over(
        self, scope: str, threads: Sequence[NewThread], *, update: bool = False
    ) -> Sequence[ThreadChanges]:
        """Append several conversations, or with ``update`` bring them up to date, in one transaction."""
        check_threads(scope, threads)

        def work(cursor: Cursor) -> Sequence[ThreadChanges]:
            opened = self._rows.open(cursor, scope, threads)
            decided = [
                thread_changes(
                    given,
                    self._known(cursor, scope, given.conversation, opened[given.conversation]),
                    update=update,
                )
                for given in threads
            ]
            self._apply(cursor, [(opened[changes.conversation], changes) for changes in decided])
            return decided

        return self._database.run(work, commit=True)

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
        self._revise(scope, conversation, Revision(message_id, text, status), deleted=False)

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation as it is now, as a new revision."""
        self._revise(scope, conversation, Revision(message_id, None, None), deleted=True)

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state as it is now."""
        check_place(scope, conversation)
        new = NewRun(run, state)
        check_lines((), [new])

        def work(cursor: Cursor) -> None:
            change = self._rows.change_known(cursor, scope, conversation)
            self._writer.set_runs(cursor, [(change, [new])])

        self._database.run(work, commit=True)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete the conversation with all its lines and revisions. It is for the owner of the tables."""
        check_place(scope, conversation)
        self._database.call(self._forget, (plain(scope), plain(conversation)))

    # --- reading ---

    def conversation(self, scope: str, conversation: str) -> Conversation:
        """The conversation as it is now, in one snapshot."""
        rows = self._database.call(self._now, (name_of(scope, conversation),))
        if not rows:
            raise unknown_conversation(scope, conversation)
        return Conversation(scope, conversation, *_lines(rows, scope, conversation))

    def revision(self, scope: str, conversation: str) -> str | None:
        """A count of the conversation's changes, behind its key: one that is made anew has another."""
        rows = self._database.call(self._revision, (name_of(scope, conversation),))
        for key, revision in rows:
            return f"{key}.{revision}"
        raise unknown_conversation(scope, conversation)

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation, in order, read page by page as they are taken."""
        return ConversationNames(self._database)

    # --- inside ---

    def _known(
        self, cursor: Cursor, scope: str, conversation: str, opened: Opened
    ) -> KnownThread | None:
        """The conversation for comparing new lines with; ``None`` where it was made just now."""
        if opened.new:
            return None
        cursor.execute(self._now, (name_of(scope, conversation),))
        messages, runs = _lines(cursor.fetchall(), scope, conversation)
        cursor.execute(self._positions, (opened.change.key,))
        return KnownThread(messages, dict(cursor.fetchall()), runs)

    def _apply(self, cursor: Cursor, decided: Sequence[tuple[Opened, ThreadChanges]]) -> None:
        """Store what was decided; nothing of it can be refused any more."""
        changed = [(opened.change, each) for opened, each in decided if opened.new or each.any]
        self._rows.count_up(
            cursor,
            [(at.change, len(each.appended)) for at, each in decided if not at.new and each.any],
        )
        self._writer.append(cursor, ((change, each.appended) for change, each in changed))
        self._writer.revise(cursor, ((change, each.revised) for change, each in changed))
        self._writer.set_runs(cursor, ((change, each.runs) for change, each in changed))

    def _revise(self, scope: str, conversation: str, revision: Revision, *, deleted: bool) -> None:
        check_place(scope, conversation)
        check_id(revision.message_id, "message id")

        def work(cursor: Cursor) -> None:
            change = self._rows.change_known(cursor, scope, conversation)
            missing = self._writer.revise(cursor, [(change, [revision])], deleted=deleted)
            if missing is not None:
                raise unknown_message(missing)

        self._database.run(work, commit=True)


def _lines(
    rows: Sequence[Values], scope: str, conversation: str
) -> tuple[list[Message], dict[str, Run]]:
    """The messages and runs in an answer of ``conversation_now``. Raises :class:`StoreError`."""
    *_, runs, states = rows[0]
    known = runs_of(zip(runs or (), states or (), strict=True), scope, conversation)
    try:
        # Strict decoding is the faster way, and nearly always all there is to do.
        messages = [
            new_message((message_id, run, role, status, kind, text.decode(), conversation, scope))
            for message_id, run, role, status, kind, text, _, _ in rows[1:]
        ]
    except UnicodeDecodeError:
        messages = [
            new_message((message_id, run, role, status, kind, text_of(text), conversation, scope))
            for message_id, run, role, status, kind, text, _, _ in rows[1:]
        ]
    return messages, known
