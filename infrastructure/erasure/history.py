"""An index of transcripts in which nothing erased is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction_ledger.domain.erasure import Erasures
from compaction_ledger.domain.history import Document, HistoryIndex, HistoryQuery, Place
from compaction_ledger.infrastructure.erasure.writing import written


class GuardedHistoryIndex:
    """Any index. Raises :class:`Erased`."""

    def __init__(self, store: HistoryIndex, erasures: Erasures) -> None:
        self._store = store
        self._erasures = erasures

    def marks(self, scope: str, conversation: str) -> Mapping[str, str]:
        """The mark of every shelf."""
        self._erasures.check(scope, conversation)
        return self._store.marks(scope, conversation)

    def put(
        self,
        scope: str,
        conversation: str,
        shelf: str,
        documents: Sequence[Document],
        *,
        before: str | None,
        after: str | None,
        replace: bool = False,
    ) -> bool:
        """Add to a shelf, or replace all that is on it."""
        with written(self._erasures, self._store, scope, [conversation]):
            return self._store.put(
                scope, conversation, shelf, documents, before=before, after=after, replace=replace
            )

    def candidates(
        self, scope: str, conversation: str, query: HistoryQuery, start: int, count: int
    ) -> Sequence[Place]:
        """The places that may have what is wanted."""
        self._erasures.check(scope, conversation)
        return self._store.candidates(scope, conversation, query, start, count)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        self._store.forget(scope, conversation)
