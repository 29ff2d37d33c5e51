"""The parts that notes, checkpoints and proofs are written in: lines, base64 and decimal numbers (K2)."""

from __future__ import annotations

import binascii
import re

from compaction_ledger.domain.errors import MalformedProof
from compaction_ledger.domain.proof.merkle import HASH_SIZE, MAX_SIZE

_is_number = re.compile("0|[1-9][0-9]{0,18}").fullmatch
_control = re.compile("[\x00-\x09\x0b-\x1f]").search


def encode_base64(data: bytes) -> str:
    """Base 64 of RFC 4648 section 4, with padding."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode_base64(text: str, place: str) -> bytes:
    """What ``text`` encodes, if it is written as :func:`encode_base64` would write it."""
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        data = b""
    if encode_base64(data) != text:
        raise MalformedProof("this is not canonical base64", place=place)
    return data


def decode_hash(text: str, place: str) -> bytes:
    """A SHA-256 hash in base64."""
    data = decode_base64(text, place)
    if len(data) != HASH_SIZE:
        raise MalformedProof(f"a hash is {HASH_SIZE} bytes, this is {len(data)}", place=place)
    return data


def decode_number(text: str, place: str) -> int:
    """A number up to 2^63 - 1 in ASCII digits, without leading zeros."""
    if not _is_number(text) or int(text) > MAX_SIZE:
        raise MalformedProof("this is not a number from 0 to 2^63 - 1", place=place)
    return int(text)


def decode_text(data: bytes, limit: int, place: str) -> str:
    """UTF-8 of at most ``limit`` bytes, without control characters but newlines, and ending in one."""
    if len(data) > limit:
        raise MalformedProof(f"more than {limit} bytes", place=place)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedProof(f"byte {error.start} is not UTF-8", place=place) from None
    if control := _control(text):
        raise MalformedProof(f"control character at {control.start()}", place=place)
    if not text.endswith("\n"):
        raise MalformedProof("the last line does not end", place=place)
    return text


def check_name(name: str, place: str) -> None:
    """Raise unless ``name`` can be that of a key: not empty, no space, no plus, no control character."""
    if not name or "+" in name or any(c.isspace() or c < " " for c in name):
        raise MalformedProof("a key's name is text without spaces and without +", place=place)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise MalformedProof("a key's name is not well-formed text", place=place) from None
