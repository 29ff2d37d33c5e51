"""Checkpoints: a log's origin, size and root as the text of a note (C2SP ``tlog-checkpoint``, K2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction_ledger.domain.errors import InvalidProof, MalformedProof
from compaction_ledger.domain.proof.merkle import EMPTY_ROOT
from compaction_ledger.domain.proof.notes import (
    MAX_NOTE,
    NoteSignature,
    NoteVerifier,
    open_note,
)
from compaction_ledger.domain.proof.text import (
    decode_hash,
    decode_number,
    decode_text,
    encode_base64,
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log: whose, how many leaves, and the root of the tree over them (32 bytes)."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def encode(self) -> str:
        """The note's text. Raises :class:`MalformedProof` for what could not be parsed again."""
        lines = (self.origin, str(self.size), encode_base64(self.root), *self.extensions)
        text = "".join(f"{line}\n" for line in lines)
        if parse_checkpoint(text) != self:
            raise MalformedProof("this cannot be written as a checkpoint", place="checkpoint")
        return text

    def __str__(self) -> str:
        return f"size {self.size}, root {self.root.hex()}"


def parse_checkpoint(text: str) -> Checkpoint:
    """The checkpoint in a note's text. Raises :class:`MalformedProof`."""
    checked = decode_text(text.encode("utf-8", "surrogatepass"), MAX_NOTE, "checkpoint")
    lines = checked[:-1].split("\n")
    if len(lines) < 3 or not all(lines):
        raise MalformedProof("a checkpoint is three lines or more, none empty", place="checkpoint")
    origin, size, root, *extensions = lines
    found = Checkpoint(
        origin,
        decode_number(size, "checkpoint: size"),
        decode_hash(root, "checkpoint: root"),
        tuple(extensions),
    )
    if not found.size and found.root != EMPTY_ROOT:
        raise MalformedProof("an empty tree has another root", place="checkpoint: root")
    return found


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint that at least one known key has signed, with the bytes that it came in."""

    checkpoint: Checkpoint
    verified: tuple[NoteSignature, ...]
    unknown: tuple[NoteSignature, ...]
    data: bytes


def open_checkpoint(
    data: bytes, verifiers: Iterable[NoteVerifier], origin: str | None = None
) -> SignedCheckpoint:
    """The checkpoint in a signed note. Raises as :func:`open_note`.

    Also :class:`InvalidProof` where it is not of the log ``origin``, if that is given.
    """
    note = open_note(data, verifiers)
    checkpoint = parse_checkpoint(note.text)
    if origin is not None and checkpoint.origin != origin:
        raise InvalidProof(f"this is a checkpoint of {checkpoint.origin!r}, not of {origin!r}")
    return SignedCheckpoint(checkpoint, note.verified, note.unknown, data)
