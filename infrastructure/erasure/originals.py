"""Originals of which nothing erased is read, and to which nothing erased comes back."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.erasure import Erasures
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, Original, Originals
from compaction_ledger.infrastructure.erasure.writing import written


class GuardedOriginals:
    """Any store of originals, a host's too. Raises :class:`Erased`."""

    def __init__(self, store: Originals, erasures: Erasures) -> None:
        self._store = store
        self._erasures = erasures

    def count(self, key: WindowKey) -> int:
        """How many messages are kept."""
        self._erasures.check(key.scope, key.conversation)
        return self._store.count(key)

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape."""
        self._erasures.check(key.scope, key.conversation)
        return self._store.shape(key)

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages."""
        with written(self._erasures, self._store, key.scope, [key.conversation]):
            self._store.append(key, shape, first, messages)

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message."""
        self._erasures.check(key.scope, key.conversation)
        return self._store.digests(key)

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``."""
        self._erasures.check(key.scope, key.conversation)
        return self._store.read(key, start, stop)

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation."""
        self._erasures.check(scope, conversation)
        return self._store.runs(scope, conversation)

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once."""
        with written(self._erasures, self._store, scope, [conversation]):
            return self._store.keep_result(scope, conversation, content)

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """A tool result."""
        self._erasures.check(scope, conversation)
        return self._store.result(scope, conversation, digest)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation."""
        self._store.forget(scope, conversation)
