"""The complete transcript of a run: the system of record (T15), and the port of the stores that keep it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.messages.interface import EntryRole, Wire
from compaction_ledger.domain.window.keys import WindowKey, message_id

MESSAGE_TAG = b"compaction-ledger/message/v1"


@dataclass(frozen=True, slots=True)
class NewOriginal:
    """A message to be kept: its JSON in the caller's own order of keys, and the digest of its settled
    value.

    ``exchange`` counts the user's turns from zero: the pair index of T15; -1 before the first. ``at`` is in
    microseconds since the epoch, by whoever appends.
    """

    role: EntryRole
    exchange: int
    at: int
    wire: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Original:
    """A message as it is kept, at its place in its run."""

    position: int
    role: EntryRole
    exchange: int
    at: int
    wire: bytes
    digest: str

    @property
    def id(self) -> str:
        """Its message id within its run."""
        return message_id(self.position)


class Originals(Protocol):
    """Keeps the transcripts of runs, and large tool results by their content. Nothing is ever changed.

    What is kept is bytes; a host may put its own store behind this. Every method may raise
    :class:`StoreError`.
    """

    def count(self, key: WindowKey) -> int:
        """How many messages are kept; zero for a run that nobody has begun."""
        ...

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape; ``None`` for a run that nobody has begun."""
        ...

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages, all or none. Raises :class:`ConcurrentAppend` where there are
        others.

        The same messages at the same places once more (an answer was lost) are no error (A9): compared
        by role, exchange and digest. Raises :class:`InvalidInput` for another shape than the run has.
        """
        ...

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message, in order."""
        ...

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``. Raises :class:`DamagedOriginal` where one is missing in
        between.
        """
        ...

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation, in the order they began."""
        ...

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once (T14) and return its SHA-256 in hexadecimal, by which it is found."""
        ...

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """The content, checked against its digest; ``None`` where there is none in this conversation.

        Raises :class:`DamagedOriginal` where what is stored is not what was kept.
        """
        ...

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation (S3). Doing it again is no error."""
        ...


def message_digest(settled: Wire) -> str:
    """The digest of a message: SHA-256 over its JSON with sorted keys (two equal values have one digest).

    A lone surrogate is written in its three-byte form, as in B1. Raises :class:`InvalidInput` kinds for
    what is not JSON.
    """
    digest = hashlib.sha256(MESSAGE_TAG)
    digest.update(b"\x00")
    digest.update(_sorted_json(settled))
    return digest.hexdigest()


def wire_bytes(wire: Wire) -> bytes:
    """The message's compact JSON in its own order of keys."""
    return _plain.encode(wire).encode("utf-8", "surrogatepass")


def _sorted_json(value: Wire) -> bytes:
    return _sorted.encode(value).encode("utf-8", "surrogatepass")


_sorted = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True
)
_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
