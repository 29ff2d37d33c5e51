"""What a signer needs from outside (K1): the tree in the store, its keys, and the folder of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from compaction_ledger.domain.proof.notes import VerifierKey
from compaction_ledger.domain.proof.tiles import TreeReader


class Node(NamedTuple):
    """The hash of a complete subtree of 2^``level`` leaves; ``level`` is a multiple of eight."""

    level: int
    position: int
    hash: bytes


class Turn(NamedTuple):
    """Whose turn it is to sign. ``size`` and ``root`` are what the one before announced, as the store has it.

    ``root`` is empty where none has announced anything.
    """

    epoch: int
    holder: str
    size: int
    root: bytes


class TreeStore(TreeReader, Protocol):
    """The log's leaves, the hashes that are kept over them, and whose turn it is to sign."""

    def head(self) -> tuple[int, str]:
        """The log's size and origin. Raises :class:`DamagedLog`."""
        ...

    def sealed_leaves(self, start: int, stop: int) -> Sequence[bytes]:
        """The leaf hashes from ``start`` below ``stop``, each checked to be that of its envelope.

        Raises :class:`DamagedLog`, which names the index, for one that is not, or is missing.
        """
        ...

    def envelopes(self, indices: Sequence[int]) -> Sequence[bytes]:
        """The envelopes at these indices, in that order, unchecked. Raises :class:`DamagedLog`."""
        ...

    def keep(self, nodes: Sequence[Node]) -> None:
        """Keep these hashes; one that is there already is replaced."""
        ...

    def forget(self) -> None:
        """Forget all hashes that are kept."""
        ...

    def was_announced(self) -> bool:
        """Whether anything of this log was ever about to be signed."""
        ...

    def begin_turn(self, holder: str) -> Turn:
        """Become the signer, under a name that nobody else has."""
        ...

    def announce(self, turn: Turn, size: int, root: bytes) -> bool:
        """Say what is published next; False where another has become the signer meanwhile."""
        ...


class Published(Protocol):
    """Where checkpoints are published, outside the database. What is read may have been written by others."""

    def locked(self) -> AbstractContextManager[object]:
        """While this lasts, no other process publishes here. Raises :class:`SignerBusy`."""
        ...

    def newest(self) -> bytes | None:
        """The newest checkpoint, as a signed note."""
        ...

    def pending(self) -> bytes | None:
        """A checkpoint whose publication has begun and not ended."""
        ...

    def at(self, size: int) -> bytes | None:
        """The checkpoint that was published first at this size."""
        ...

    def publish(self, size: int, data: bytes) -> None:
        """Publish; safe to be interrupted anywhere and to be repeated with the same ``data``.

        Raises kinds of :class:`StoreError`, and then it is either published later, as :meth:`pending`, or not
        at all.
        """
        ...


class SignerKeyFiles(Protocol):
    """The signer's keys, as far as others may know them."""

    def verifier_keys(self) -> Sequence[VerifierKey]:
        """The public keys of those that sign and of those that signed, the ones that sign first."""
        ...

    def active_keys(self) -> Sequence[VerifierKey]:
        """The public keys of those that sign; none where none was made yet."""
        ...

    def rotate(self, *, overlap: bool = False) -> VerifierKey:
        """Sign with a new key from now on; with ``overlap`` the ones before it go on signing beside it."""
        ...

    def retire(self, key_id: bytes) -> VerifierKey:
        """Sign no more with the key of this id; another one must be left."""
        ...
