"""Transcripts in memory, for users' own tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock

from compaction_ledger.domain.conversation import (
    Conversation,
    Message,
    MessageStatus,
    Run,
    RunState,
)
from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    UnknownConversation,
    UnknownMessage,
)
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.takeover import (
    KnownThread,
    NewThread,
    ThreadChanges,
    check_threads,
    thread_changes,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines, check_revision


@dataclass(slots=True)
class _Thread:
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    positions: dict[str, int] = field(default_factory=dict[str, int])
    deleted: set[str] = field(default_factory=set[str])
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    revision: int = 0

    def known(self) -> KnownThread:
        """The thread for comparing new lines with."""
        present = [m for m in self.messages.values() if m.id not in self.deleted]
        return KnownThread(present, self.positions, self.runs)


class MemoryTranscripts:
    """A transcript store in dictionaries, with the promises of the SQLite one."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, str], _Thread] = {}
        self._lock = RLock()

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Iterable[NewMessage],
        runs: Iterable[NewRun] = (),
    ) -> None:
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        lines, states = list(messages), list(runs)
        check_lines(lines, states)
        with self._lock:
            thread = self._threads.get((scope, conversation)) or _Thread()
            positions = dict(thread.positions)
            for message in lines:
                if message.id in positions:
                    raise DuplicateMessageId(
                        message.id,
                        f"position {positions[message.id]}",
                        f"position {len(positions)}",
                    )
                positions[message.id] = len(positions)
            for m in lines:
                text = str.__str__(m.text)  # of a subclass, the text alone
                thread.messages[m.id] = Message(
                    m.id, m.run, m.role, m.status, m.kind, text, conversation, scope
                )
            for run in states:
                thread.runs[run.id] = Run(run.id, run.state, conversation, scope)
            thread.positions = positions
            thread.revision += 1
            self._threads[scope, conversation] = thread

    def take_over(
        self, scope: str, threads: Sequence[NewThread], *, update: bool = False
    ) -> Sequence[ThreadChanges]:
        check_threads(scope, threads)
        with self._lock:
            decided: list[ThreadChanges] = []
            for given in threads:
                stored = self._threads.get((scope, given.conversation))
                known = None if stored is None else stored.known()
                decided.append(thread_changes(given, known, update=update))
            for changes in decided:
                self._apply(scope, changes)
        return decided

    def _apply(self, scope: str, changes: ThreadChanges) -> None:
        """Store what was decided; nothing of it can be refused any more."""
        place = (scope, changes.conversation)
        if changes.any or place not in self._threads:
            for change in changes.revised:
                self.revise(*place, change.message_id, change.text, status=change.status)
            self.append(*place, changes.appended, changes.runs)

    def revise(
        self,
        scope: str,
        conversation: str,
        message_id: str,
        text: str | None = None,
        *,
        status: MessageStatus | None = None,
    ) -> None:
        check_revision(message_id, text, status)
        with self._lock:
            thread, message = self._message(scope, conversation, message_id)
            thread.messages[message_id] = message._replace(
                text=message.text if text is None else str.__str__(text),
                status=status or message.status,
            )
            thread.revision += 1

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        with self._lock:
            thread, _ = self._message(scope, conversation, message_id)
            thread.deleted.add(message_id)
            thread.revision += 1

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        check_lines((), [NewRun(run, state)])
        with self._lock:
            thread = self._thread(scope, conversation)
            thread.runs[run] = Run(run, state, conversation, scope)
            thread.revision += 1

    def forget(self, scope: str, conversation: str) -> None:
        """Delete the conversation."""
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        with self._lock:
            self._threads.pop((scope, conversation), None)

    def conversation(self, scope: str, conversation: str) -> Conversation:
        with self._lock:
            thread = self._thread(scope, conversation)
            return Conversation(scope, conversation, thread.known().messages, dict(thread.runs))

    def revision(self, scope: str, conversation: str) -> str | None:
        with self._lock:
            return str(self._thread(scope, conversation).revision)

    def conversations(self) -> Iterable[tuple[str, str]]:
        with self._lock:
            return sorted(self._threads)

    def _thread(self, scope: str, conversation: str) -> _Thread:
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        thread = self._threads.get((scope, conversation))
        if thread is None:
            raise UnknownConversation(
                f"there is no conversation {conversation!r} in scope {scope!r}"
            )
        return thread

    def _message(self, scope: str, conversation: str, message_id: str) -> tuple[_Thread, Message]:
        thread = self._thread(scope, conversation)
        check_id(message_id, "message id")
        message = thread.messages.get(message_id)
        if message is None or message_id in thread.deleted:
            raise UnknownMessage(f"conversation {conversation!r} has no message {message_id!r}")
        return thread, message
