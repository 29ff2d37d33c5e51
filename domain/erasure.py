"""Erasing a conversation: what is recorded of it, and what must be destroyed (S3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from compaction_ledger.domain.events import Stored

ERASURE_EVENTS = ("ErasureRequested", "ErasureCompleted")


@dataclass(frozen=True, slots=True)
class ErasureRequested(Stored):
    """From here on nothing of the subject is read any more.

    It names the reference that stands for the conversation, and the ids of its data keys: nothing that
    could be traced to it once the reference means nothing (L4).
    """

    subject: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErasureCompleted(Stored):
    """The data keys are destroyed, and the subject's rows are gone from ``purged``, named stores."""

    subject: str
    keys: tuple[str, ...]
    purged: tuple[str, ...]


ErasureFact = ErasureRequested | ErasureCompleted


@dataclass(frozen=True, slots=True)
class ErasedFact:
    """In place of a fact whose conversation was erased: what its envelope still tells."""

    event: str
    schema: int
    subject: str


class Subject(NamedTuple):
    """The conversation that a reference stands for, and its data key; empty where it has none.

    ``is_named`` is false once nothing links the reference to the conversation any more.
    """

    reference: str
    key: str
    state: str
    scope: str
    conversation: str

    @property
    def is_named(self) -> bool:
        """Whether it is still known which conversation it stands for."""
        return bool(self.scope)


WasErased = Callable[[str, str], bool]
"""Whether a conversation, by its scope and id, was erased."""


class Erasures(Protocol):
    """What is known of erasures outside the database, so that no restored backup revives anything (S3).

    What others have begun a moment ago may not be known yet, unless :meth:`look` was called.
    """

    def look(self) -> None:
        """Let what is asked next know of every erasure that was begun by now, in any process."""
        ...

    def check(self, scope: str, conversation: str) -> None:
        """Raise :class:`Erased` for a conversation that was, or is being, erased."""
        ...

    def was_erased(self, scope: str, conversation: str) -> bool:
        """Whether :meth:`check` would raise."""
        ...

    def since(self) -> WasErased:
        """What tells of a conversation, later on, whether it was not completely erased by now, and is."""
        ...

    def begin(self, subject: Subject) -> None:
        """Let nothing be read of the subject from now on, in any process (S3). Once and for all."""
        ...

    def destroy(self, reference: str) -> None:
        """Destroy the subject's data key."""
        ...

    def complete(self, reference: str) -> None:
        """Note that there is nothing left to do."""
        ...

    def references(self) -> Iterable[str]:
        """Every reference that was begun with, whatever the database says of it."""
        ...

    def check_keys(self, keys: Iterable[str]) -> None:
        """Raise :class:`KeyMissing` unless each of these is known here, destroyed or not."""
        ...

    def bury(self, subject: Subject) -> None:
        """Destroy once more what the database knows as erased, and this does not: its name is not known."""
        ...

    def pending(self) -> Iterable[str]:
        """Those of them that are not complete."""
        ...


class ErasableLog(Protocol):
    """The part of the log that erasing needs. None of it minds that nothing else of a subject is read."""

    def known_keys(self) -> Iterable[str]:
        """The id of every data key that a conversation has, or had."""
        ...

    def nameless(self) -> Sequence[Subject]:
        """The subjects that are erased completely."""
        ...

    def named(self, scope: str, conversation: str) -> Subject | None:
        """The subject of a conversation, if it has one; not that of one that was erased completely."""
        ...

    def subject_for(self, scope: str, conversation: str) -> Subject:
        """The subject of a conversation; it is given one, without a key, where it has none."""
        ...

    def unfinished(self, begun: Iterable[str], was_erased: WasErased) -> Sequence[Subject]:
        """The subjects whose erasure was requested or ``begun``, or whose name ``was_erased``, and that still
        have a name."""
        ...

    def check_key(self, subject: Subject) -> None:
        """Raise :class:`DamagedLog` where the subject's events are encrypted with another key than it has."""
        ...

    def with_key(self, subject: Subject) -> Subject:
        """The subject with the key that it has in the store now."""
        ...

    def request_erasure(self, subject: Subject) -> int:
        """Record the request, and refuse all else of the subject; the index. Recorded once."""
        ...

    def blank(self, subject: Subject) -> int:
        """Remove the payloads that were stored unencrypted; how many."""
        ...

    def complete_erasure(self, subject: Subject, purged: Sequence[str]) -> int:
        """Record the completion and forget the name; the index. Recorded once."""
        ...


class Purged(Protocol):
    """A store that holds something of conversations, and can delete all of one."""

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is kept of a conversation; nothing, where nothing is."""
        ...
