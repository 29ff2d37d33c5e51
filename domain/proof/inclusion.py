"""Proofs as files (K2): C2SP ``tlog-proof`` of inclusion, C2SP ``tlog-witness`` of consistency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction_ledger.domain.errors import MalformedProof
from compaction_ledger.domain.proof.checkpoints import SignedCheckpoint, open_checkpoint
from compaction_ledger.domain.proof.merkle import check_inclusion
from compaction_ledger.domain.proof.notes import MAX_NOTE, NoteVerifier, parse_note
from compaction_ledger.domain.proof.text import (
    decode_base64,
    decode_hash,
    decode_number,
    decode_text,
    encode_base64,
)

HEADER = "c2sp.org/tlog-proof@v1"
SUFFIX = ".tlog-proof"
MAX_LINES = 63
MAX_EXTRA = 64 * 1024
_LIMIT = MAX_NOTE + 2 * MAX_EXTRA


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That a leaf stands at ``index`` in the tree of a checkpoint, which is kept as the signed note it is.

    ``extra`` is for the reader's use and proves nothing.
    """

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes = b""

    def encode(self) -> bytes:
        """The file's bytes. Raises :class:`MalformedProof` for what could not be parsed again."""
        lines = [HEADER]
        if self.extra:
            lines.append(f"extra {encode_base64(self.extra)}")
        lines += [f"index {self.index}", *map(encode_base64, self.hashes), "", ""]
        data = "\n".join(lines).encode() + self.checkpoint
        if parse_inclusion(data) != self:
            raise MalformedProof("this cannot be written as a proof", place="proof")
        return data

    def check(
        self, leaf: bytes, verifiers: Iterable[NoteVerifier], origin: str | None = None
    ) -> SignedCheckpoint:
        """The signed checkpoint that ``leaf``, a leaf hash, is in. Raises :class:`InvalidProof` kinds."""
        signed = open_checkpoint(self.checkpoint, verifiers, origin)
        head = signed.checkpoint
        check_inclusion(leaf, self.index, head.size, self.hashes, head.root)
        return signed


def parse_inclusion(data: bytes) -> InclusionProof:
    """The proof in ``data``, unchecked. Raises :class:`MalformedProof`."""
    lines, checkpoint = _parted(data, "proof")
    if lines[0] != HEADER:
        raise MalformedProof(f"the first line is not {HEADER}", place="proof")
    extra = b""
    if len(lines) > 1 and lines[1].startswith("extra "):
        extra = decode_base64(lines.pop(1).removeprefix("extra "), "proof: extra")
        if not 0 < len(extra) <= MAX_EXTRA:
            raise MalformedProof(f"1 to {MAX_EXTRA} bytes are allowed", place="proof: extra")
    index = _numbered(lines[1:2], "index", "proof")
    return InclusionProof(index, _hashes(lines[2:], "proof"), checkpoint, extra)


@dataclass(frozen=True, slots=True)
class WitnessRequest:
    """That the tree of ``old`` leaves is the beginning of that of a checkpoint, kept as its signed note."""

    old: int
    hashes: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """The request's body. Raises :class:`MalformedProof` for what could not be parsed again."""
        lines = [f"old {self.old}", *map(encode_base64, self.hashes), "", ""]
        data = "\n".join(lines).encode() + self.checkpoint
        if parse_witness_request(data) != self:
            raise MalformedProof("this cannot be written as a request", place="request")
        return data


def parse_witness_request(data: bytes) -> WitnessRequest:
    """The request in ``data``, unchecked. Raises :class:`MalformedProof`."""
    lines, checkpoint = _parted(data, "request")
    return WitnessRequest(
        _numbered(lines[:1], "old", "request"), _hashes(lines[1:], "request"), checkpoint
    )


def _parted(data: bytes, place: str) -> tuple[list[str], bytes]:
    """The lines before the first empty one, and the note behind it."""
    if len(data) > _LIMIT:
        raise MalformedProof(f"more than {_LIMIT} bytes", place=place)
    head, blank, checkpoint = data.partition(b"\n\n")
    if not blank:
        raise MalformedProof("there is no checkpoint", place=place)
    parse_note(checkpoint)
    return decode_text(head + b"\n", _LIMIT, place)[:-1].split("\n"), checkpoint


def _numbered(lines: list[str], word: str, place: str) -> int:
    if not lines or not lines[0].startswith(f"{word} "):
        raise MalformedProof(f"the line '{word} …' is missing", place=place)
    return decode_number(lines[0].removeprefix(f"{word} "), f"{place}: {word}")


def _hashes(lines: list[str], place: str) -> tuple[bytes, ...]:
    if len(lines) > MAX_LINES:
        raise MalformedProof(f"more than {MAX_LINES} hashes", place=place)
    return tuple(
        decode_hash(line, f"{place}: hash {number}") for number, line in enumerate(lines, 1)
    )
