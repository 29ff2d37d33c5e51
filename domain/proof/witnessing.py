"""What a log and its witnesses say to each other (C2SP ``tlog-witness``), and what a witness refuses (K3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Protocol

from compaction_ledger.domain.errors import InvalidProof, MalformedProof, WitnessRefused
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.merkle import EMPTY_ROOT, check_consistency
from compaction_ledger.domain.proof.notes import (
    MAX_NOTE,
    MAX_SIGNATURES,
    NoteSignature,
    parse_note,
)

MAX_REQUEST = MAX_NOTE + 4_096
"""The old size and 63 hashes are less than 4,096 bytes."""

MAX_ANSWER = MAX_NOTE

SIZE_TYPE = "text/x.tlog.size"
"""The content type of an answer that says which size the witness has cosigned last."""


def origin_name(origin: str) -> str:
    """What stands for a log in the address of the checkpoint that a witness cosigned last."""
    return sha256(origin.encode()).hexdigest()


def check_step(request: WitnessRequest, new: Checkpoint, last: Checkpoint | None) -> None:
    """Raise unless a witness that cosigned ``last`` may cosign ``new``.

    Raises :class:`MalformedProof` for an old size above the new one, and :class:`WitnessRefused`: ``stale``
    for an old size that is not that of ``last``, ``fork`` for another root of the same size, and
    ``inconsistent`` for a proof that does not show that ``last`` is the beginning of ``new``.
    """
    known, root = (0, EMPTY_ROOT) if last is None else (last.size, last.root)
    if request.old > new.size:
        raise MalformedProof(
            f"the old size {request.old} is above {new.size}, that of the checkpoint",
            place="request: old",
        )
    if request.old != known:
        raise WitnessRefused("stale", f"the size that was cosigned last is {known}", known)
    if known == new.size and root != new.root:
        raise WitnessRefused("fork", f"another root of size {known} has been cosigned", known)
    try:
        check_consistency(known, root, new.size, new.root, request.hashes)
    except InvalidProof as error:
        raise WitnessRefused("inconsistent", str(error), known) from error


def encode_lines(signatures: Sequence[NoteSignature]) -> bytes:
    """The answer of a witness: its signature lines."""
    return "".join(signature.line() for signature in signatures).encode()


def parse_lines(answer: bytes) -> tuple[NoteSignature, ...]:
    """The signature lines of a witness's answer, unchecked. Raises :class:`MalformedProof`."""
    if len(answer) > MAX_ANSWER or answer.count(b"\n") > MAX_SIGNATURES:
        raise MalformedProof("the answer is too long", place="answer of the witness")
    return parse_note(b"answer\n\n" + answer).signatures


class Witness(Protocol):
    """A witness as a log sees it. What it cannot do is raised as :class:`WitnessUnavailable`."""

    @property
    def name(self) -> str:
        """The name of its key."""
        ...

    def add(self, request: WitnessRequest) -> tuple[NoteSignature, ...]:
        """Its cosignatures, checked to be its own. Raises :class:`WitnessRefused`."""
        ...

    def latest(self, origin: str) -> bytes | None:
        """The checkpoint of this log that it cosigned last, as a signed note; ``None`` if there is none."""
        ...


Cosigned = Callable[[bytes], None]
"""Keeps a cosigned checkpoint, as a signed note, in the place of the one before."""


class WitnessStore(Protocol):
    """What a witness has cosigned last, of each log."""

    def latest(self, origin: str) -> bytes | None:
        """The checkpoint that was cosigned last, as a signed note."""
        ...

    def step(self, origin: str) -> AbstractContextManager[tuple[bytes | None, Cosigned]]:
        """The latest, and what replaces it; while this lasts, nobody else is at this log.

        What was replaced is safely kept when the context has ended without an error.
        """
        ...
