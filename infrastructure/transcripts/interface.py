"""What an embedded transcript store offers beyond reading: append-only writing with revisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from compaction_ledger.domain.conversation import RunState
from compaction_ledger.domain.ports import Transcripts
from compaction_ledger.domain.transcript import NewMessage, NewRun


class TranscriptStore(Transcripts, Protocol):
    """An embedded store. Nothing that was written is ever changed: an edit is a new revision."""

    def append(
        self, scope: str, conversation: str, messages: Iterable[NewMessage], runs: Iterable[NewRun] = ()
    ) -> None:
        """Append lines, in order, in one transaction; makes the conversation when it is new.

        A run that is known gets its new state. Raises :class:`InvalidInput` kinds (E4); then nothing is stored.
        """
        ...

    def revise(self, scope: str, conversation: str, message_id: str, text: str) -> None:
        """Give a message another text, as a new revision. Raises :class:`UnknownMessage`."""
        ...

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation as it is now, as a new revision."""
        ...

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state as it is now."""
        ...
