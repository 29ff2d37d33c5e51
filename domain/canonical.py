"""Canonical JSON: RFC 8785 bytes, extended injectively to lone surrogates (B1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from compaction_ledger.domain.errors import InvalidInput

# RFC 8785 takes numbers as IEEE 754 doubles; integers beyond this are not exact there (section 3.2.2.3).
MAX_INTEGER = 2**53 - 1

_slow_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode_ordered(value: Any) -> bytes:
    """Encode ``value``, whose objects already have their keys in canonical order.

    The result is RFC 8785's bytes for every well-formed value. A lone surrogate becomes its
    three-byte form, which no well-formed string has, so the encoding stays injective (B1).
    """
    try:
        return to_json(value)
    except PydanticSerializationError:
        return _slow_encoder.encode(value).encode("utf-8", "surrogatepass")


def canonical_json(value: Any) -> bytes:
    """RFC 8785 of ``value``: objects, arrays, strings, integers, booleans and null.

    Raises :class:`InvalidInput` for anything else: floats have no place in a binding.
    """
    return encode_ordered(_ordered(value))


def tagged_sha256(tag: bytes, *data: bytes) -> str:
    """``SHA-256(tag || 0x00 || data)`` in lower-case hexadecimal: a domain-separated digest.

    ``data`` may come in pieces, which are hashed as if they were joined.
    """
    digest = hashlib.sha256(tag)
    digest.update(b"\x00")
    for piece in data:
        digest.update(piece)
    return digest.hexdigest()


def _ordered(value: object) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise InvalidInput(f"integer {value} is not exact in canonical JSON")
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        for key in cast("Mapping[object, object]", value):
            if not isinstance(key, str):
                raise InvalidInput(f"a key must be text, not {type(key).__name__}")
        return {key: _ordered(members[key]) for key in sorted(members, key=utf16_units)}
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in cast("list[object]", value)]
    raise InvalidInput(f"a {type(value).__name__} has no canonical JSON form")


def utf16_units(key: str) -> bytes:
    """The sort key of RFC 8785 section 3.2.3: UTF-16 code units."""
    return key.encode("utf-16-be", "surrogatepass")
