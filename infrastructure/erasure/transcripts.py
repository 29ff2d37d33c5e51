"""Transcripts of which nothing erased is read, and to which nothing erased comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compaction_ledger.domain.conversation import Conversation, MessageStatus, RunState
from compaction_ledger.domain.erasure import Erasures
from compaction_ledger.domain.ports import Transcripts, TranscriptStore
from compaction_ledger.domain.takeover import NewThread, ThreadChanges
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.erasure.writing import written


class GuardedTranscripts:
    """Transcripts of a host's, or of a store, to be read. Raises :class:`Erased`."""

    def __init__(self, transcripts: Transcripts, erasures: Erasures) -> None:
        self._transcripts = transcripts
        self._erasures = erasures

    def conversation(self, scope: str, conversation: str) -> Conversation:
        """The conversation as it is now."""
        self._erasures.check(scope, conversation)
        return self._transcripts.conversation(scope, conversation)

    def revision(self, scope: str, conversation: str) -> str | None:
        """A token that changes with every change of the conversation."""
        self._erasures.check(scope, conversation)
        return self._transcripts.revision(scope, conversation)

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation that was not erased."""
        return self._present()

    def _present(self) -> Iterator[tuple[str, str]]:
        for scope, conversation in self._transcripts.conversations():
            if not self._erasures.was_erased(scope, conversation):
                yield scope, conversation


class GuardedTranscriptStore(GuardedTranscripts):
    """The embedded store."""

    def __init__(self, store: TranscriptStore, erasures: Erasures) -> None:
        super().__init__(store, erasures)
        self._store = store

    @property
    def unguarded(self) -> TranscriptStore:
        """The store itself, with what was erased and has come back: for whoever erases."""
        return self._store

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Iterable[NewMessage],
        runs: Iterable[NewRun] = (),
    ) -> None:
        """Append lines."""
        with written(self._erasures, self._store, scope, [conversation]):
            self._store.append(scope, conversation, messages, runs)

    def take_over(
        self, scope: str, threads: Sequence[NewThread], *, update: bool = False
    ) -> Sequence[ThreadChanges]:
        """Append several conversations, or bring them up to date."""
        names = [thread.conversation for thread in threads]
        with written(self._erasures, self._store, scope, names):
            return self._store.take_over(scope, threads, update=update)

    def revise(
        self,
        scope: str,
        conversation: str,
        message_id: str,
        text: str | None = None,
        *,
        status: MessageStatus | None = None,
    ) -> None:
        """Give a message another text or status."""
        with written(self._erasures, self._store, scope, [conversation]):
            self._store.revise(scope, conversation, message_id, text, status=status)

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation."""
        with written(self._erasures, self._store, scope, [conversation]):
            self._store.delete(scope, conversation, message_id)

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state."""
        with written(self._erasures, self._store, scope, [conversation]):
            self._store.set_run(scope, conversation, run, state)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete the conversation."""
        self._store.forget(scope, conversation)
