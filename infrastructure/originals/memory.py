"""Originals in memory, for users' own tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import RLock

from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.originals import NewOriginal, Original
from compaction_ledger.infrastructure.originals import checking


@dataclass(slots=True)
class _Run:
    shape: str
    messages: list[Original] = field(default_factory=list[Original])


@dataclass(slots=True)
class _Conversation:
    runs: dict[str, _Run] = field(default_factory=dict[str, _Run])
    results: dict[str, bytes] = field(default_factory=dict[str, bytes])


class MemoryOriginals:
    """A store of originals in dictionaries, with the promises of the others."""

    def __init__(self) -> None:
        self._conversations: dict[tuple[str, str], _Conversation] = {}
        self._lock = RLock()

    def count(self, key: WindowKey) -> int:
        """How many messages are kept."""
        return len(self._messages(key))

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape."""
        check_key(key)
        with self._lock:
            run = self._of(key.scope, key.conversation).runs.get(key.run)
            return None if run is None else run.shape

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages, all or none (A9)."""
        checking.check_append(key, shape, first, messages)
        with self._lock:
            conversation = self._of(key.scope, key.conversation)
            run = conversation.runs.get(key.run) or _Run(shape)
            checking.check_shape(key, run.shape, shape)
            there = run.messages[first : first + len(messages)]
            if checking.is_kept_already(
                key,
                first,
                messages,
                len(run.messages),
                lambda: [checking.Identity(m.role, m.exchange, m.digest) for m in there],
            ):
                return
            run.messages += [
                Original(position, m.role, m.exchange, m.at, bytes(m.wire), m.digest)
                for position, m in enumerate(messages, start=first)
            ]
            conversation.runs[key.run] = run
            self._conversations[key.scope, key.conversation] = conversation

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message, in order."""
        return [message.digest for message in self._messages(key)]

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``."""
        checking.check_part(start, stop)
        return self._messages(key)[start:stop]

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation, in the order they began."""
        checking.check_conversation(scope, conversation)
        with self._lock:
            return list(self._of(scope, conversation).runs)

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once (T14)."""
        checking.check_conversation(scope, conversation)
        checking.check_bytes(content, "result")
        digest = checking.sha256(content)
        with self._lock:
            found = self._conversations.setdefault((scope, conversation), _Conversation())
            found.results.setdefault(digest, bytes(content))
        return digest

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """The content, checked against its digest."""
        if not checking.check_result(scope, conversation, digest):
            return None
        with self._lock:
            content = self._of(scope, conversation).results.get(digest)
        return None if content is None else checking.checked_result(content, digest)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation."""
        checking.check_conversation(scope, conversation)
        with self._lock:
            self._conversations.pop((scope, conversation), None)

    def _of(self, scope: str, conversation: str) -> _Conversation:
        """What is kept of a conversation; an empty one, that is not kept, where there is none."""
        return self._conversations.get((scope, conversation)) or _Conversation()

    def _messages(self, key: WindowKey) -> list[Original]:
        check_key(key)
        with self._lock:
            run = self._of(key.scope, key.conversation).runs.get(key.run)
            return [] if run is None else list(run.messages)
