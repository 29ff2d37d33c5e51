"""Where a published checkpoint goes beside the ledger's own folder (K3): the ports."""

from __future__ import annotations

import re
from typing import Protocol

from compaction_ledger.domain.errors import Forked, MalformedProof
from compaction_ledger.domain.proof.notes import parse_note
from compaction_ledger.domain.proof.witnessing import origin_name

_is_plain = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch


class WriteOnce(Protocol):
    """A place where something is kept and never replaced."""

    @property
    def name(self) -> str:
        """How it is called in what is said of it."""
        ...

    def put(self, name: str, data: bytes) -> bytes:
        """Keep ``data`` under a name; returns what is kept there, which is what came first.

        Raises kinds of :class:`StoreError`.
        """
        ...


class Authority(Protocol):
    """Who stamps checkpoints with the time."""

    @property
    def name(self) -> str: ...

    def stamp(self, note: bytes) -> bytes:
        """A time stamp of ``note``, checked. Raises :class:`TimestampUnavailable`, :class:`BadTimestamp`."""
        ...


class BesideCopies(Protocol):
    """What is kept of a published checkpoint in the ledger's own folder, beside its copy."""

    def copy(self, size: int) -> bytes | None:
        """The checkpoint that was published first at this size."""
        ...

    def cosigned(self, size: int) -> bytes | None:
        """The same with the signatures of witnesses, as far as there are any."""
        ...

    def keep_cosigned(self, size: int, note: bytes) -> None:
        """Keep it with these signatures; it becomes the newest, unless another has become that."""
        ...

    def timestamp(self, size: int) -> bytes | None:
        """The time stamp of the copy."""
        ...

    def keep_timestamp(self, size: int, response: bytes) -> None:
        """Keep the time stamp of the copy."""
        ...


def copy_name(origin: str, size: int, suffix: str = "") -> str:
    """Under which name a checkpoint is kept among those of other logs."""
    last = origin.rpartition("/")[2]
    return f"{last if _is_plain(last) else origin_name(origin)}/{size:d}{suffix}"


def check_same(where: str, ours: bytes, kept: bytes) -> None:
    """Raise :class:`Forked` unless two checkpoints of one name say the same, whoever signed them.

    What is kept there and is no checkpoint at all is one side of a fork, too.
    """
    if ours == kept:
        return
    sides = (ours.decode("utf-8", "replace"), kept.decode("utf-8", "replace"))
    try:
        same = parse_note(ours).text == parse_note(kept).text
    except MalformedProof:
        same = False
    if not same:
        raise Forked(f"{where} holds another checkpoint of this log and size", sides)
