"""What a witness signs: a checkpoint and the time (C2SP ``tlog-cosignature``, Ed25519, K3)."""

from __future__ import annotations

from compaction_ledger.domain.errors import InvalidInput, MalformedProof
from compaction_ledger.domain.proof.merkle import MAX_SIZE

SIGNATURE_SIZE = 64


def cosigned_message(time: int, text: bytes) -> bytes:
    """The bytes that a witness signs: two lines, and the text of the checkpoint. ``time`` in seconds."""
    if not 0 <= time <= MAX_SIZE:
        raise InvalidInput(f"{time} is not a time in seconds", place="cosignature")
    return b"cosignature/v1\ntime %d\n" % time + text


def join_cosignature(time: int, signature: bytes) -> bytes:
    """The signature of a note's line: eight bytes of time, then the Ed25519 signature."""
    return time.to_bytes(8, "big") + signature


def split_cosignature(signature: bytes) -> tuple[int, bytes]:
    """Time and Ed25519 signature. Raises :class:`MalformedProof`."""
    time = int.from_bytes(signature[:8], "big")
    if len(signature) != 8 + SIGNATURE_SIZE or time > MAX_SIZE:
        raise MalformedProof("this is not a time and an Ed25519 signature", place="cosignature")
    return time, signature[8:]
