"""What the log needs of whoever encrypts payloads, and what stands there when nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from compaction_ledger.domain.errors import KeyMissing
from compaction_ledger.infrastructure.event_store.envelope import key_of


class PayloadReader(Protocol):
    """Opens payloads, as of one moment: for a batch of rows."""

    def may_be_plain(self) -> bool:
        """Whether the log may hold payloads that are not encrypted, beside those that tell of erasures."""
        ...

    def forgotten(self) -> Mapping[str, str] | None:
        """The subjects of which nothing is read any more, as of now, and how far their erasures have come.

        ``None`` where the keys are not here to tell.
        """
        ...

    def is_erased(self, reference: str, /) -> bool:
        """Whether nothing of this subject is read any more (S3)."""
        ...

    def decrypt(self, stream: str, version: int, topic: str, stored: bytes, /) -> bytes:
        """What was stored: the payload itself where it is not encrypted.

        Raises :class:`Erased`, :class:`DamagedLog`, and kinds of :class:`StoreError` where the key is not to
        be had.
        """
        ...

    def opening(self, stream: str, version: int, topic: str, stored: bytes, /) -> bytes | None:
        """The key of this one event, for whoever may read it (K5); ``None`` where it is not encrypted.

        Raises as :meth:`decrypt`.
        """
        ...


class PayloadCipher(PayloadReader, Protocol):
    """Encrypts and opens payloads (S1)."""

    def fresh(self) -> str:
        """The id of a data key for a new conversation; empty where it is not to be encrypted."""
        ...

    def allow_plain(self) -> None:
        """Nobody takes the log for one that is encrypted only, from now on (S1).

        Called before something is stored of a conversation that has no key, and when that is known already.
        """
        ...

    def encrypt(self, key: str, stream: str, version: int, topic: str, plain: bytes, /) -> bytes:
        """A payload as it is stored. Raises as :meth:`PayloadReader.decrypt`."""
        ...

    def reader(self) -> PayloadReader:
        """What opens payloads by what is known of erasures now."""
        ...

    def revision(self) -> int:
        """A number that changes with every erasure, as of now. Cheap, though not for every event."""
        ...

    def look(self) -> None:
        """Let what is asked next know of every erasure that was begun by now.

        Without it an answer may be as of a moment ago, which does not do where something is looked at again.
        """
        ...

    def check(self, scope: str, conversation: str, /) -> None:
        """Raise :class:`Erased` for a conversation that was, or is being, erased."""
        ...


class PlainPayloads:
    """Encrypts nothing, and cannot open what is encrypted."""

    def fresh(self) -> str:
        """None."""
        return ""

    def allow_plain(self) -> None:
        """Nobody does."""

    def encrypt(self, key: str, _stream: str, _version: int, _topic: str, _plain: bytes) -> bytes:
        """Raises :class:`KeyMissing`: there is a key, and it is not known here."""
        raise KeyMissing(f"the data key {key} is not known here")

    def decrypt(self, _stream: str, _version: int, _topic: str, stored: bytes) -> bytes:
        """The payload. Raises :class:`KeyMissing` where it is encrypted."""
        key = key_of(stored)
        if key:
            raise KeyMissing(f"the data key {key} is not known here")
        return stored

    def opening(self, _stream: str, _version: int, _topic: str, stored: bytes) -> None:
        """None. Raises :class:`KeyMissing` where the payload is encrypted."""
        self.decrypt(_stream, _version, _topic, stored)

    def is_erased(self, _reference: str) -> bool:
        """Of no subject."""
        return False

    def may_be_plain(self) -> bool:
        """All are."""
        return True

    def forgotten(self) -> None:
        """There are no keys."""

    def reader(self) -> PayloadReader:
        """Itself."""
        return self

    def revision(self) -> int:
        """There are none."""
        return 0

    def look(self) -> None:
        """There are none."""

    def check(self, _scope: str, _conversation: str) -> None:
        """None is known to be erased."""


PLAIN = PlainPayloads()
