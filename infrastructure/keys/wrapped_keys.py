"""Where wrapped data keys are kept, and what was erased: outside the ledger's database (S3).

Were they inside, each backup of the database would hold them, and revive what was erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

ErasureState = Literal["begun", "destroyed", "completed"]


class WrappedKey(NamedTuple):
    """A data key under the key-encryption key of an epoch. ``wrapped`` is empty once it is destroyed."""

    id: str
    epoch: str
    wrapped: bytes


class Tombstone(NamedTuple):
    """An erasure: of which subject, by a name that only the holder of the keys can make, and which key."""

    reference: str
    name: bytes
    key: str
    state: ErasureState


class WrappedKeys(Protocol):
    """A small durable store that any number of processes share. Nothing in it is secret by itself."""

    def add(self, keys: Sequence[WrappedKey]) -> None:
        """Keep these, or fail; durable when it returns."""
        ...

    def find(self, key: str) -> WrappedKey | None:
        """The key of this id, destroyed or not."""
        ...

    def revision(self) -> int:
        """A number that grows with every erasure. Cheap: it is asked for with every use of a key.

        It may be as of a moment ago, unless :meth:`look` was called.
        """
        ...

    def look(self) -> None:
        """Let the next :meth:`revision` tell of every erasure that was begun by now."""
        ...

    def tombstones(self) -> Sequence[Tombstone]:
        """Every erasure."""
        ...

    def bury(self, tombstone: Tombstone) -> None:
        """Keep this erasure; one that is known keeps its state, and its key, if it has one."""
        ...

    def destroy(self, reference: str) -> None:
        """Overwrite the wrapped key of a subject that was buried."""
        ...

    def complete(self, reference: str) -> None:
        """Note that an erasure is complete."""
        ...

    def older_than(self, epoch: str, limit: int) -> Sequence[WrappedKey]:
        """At most so many keys that are wrapped under another epoch and are not destroyed."""
        ...

    def replace(self, keys: Iterable[tuple[WrappedKey, WrappedKey]]) -> int:
        """Put the second in place of the first wherever that is still there; for how many it was."""
        ...

    def count(self) -> dict[str, int]:
        """How many keys are wrapped under each epoch, without those that are destroyed."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
