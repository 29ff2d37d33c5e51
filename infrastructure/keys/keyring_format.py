"""The keyring as a file: versioned JSON, read strictly. The last epoch is the current one."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from compaction_ledger.domain.errors import NewerFormat, WrongKey
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, items_of, members_of, parsed

FORMAT: Final = "compaction-ledger-keyring"
VERSION: Final = 1
KEY_BYTES: Final = 32
LARGEST_FILE: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class EpochKey(Unpicklable):
    """A key-encryption key: AES-256, of an epoch. ``created`` in microseconds since the epoch."""

    id: str
    created: int
    key: bytes = field(repr=False)


def encode(epochs: Sequence[EpochKey]) -> bytes:
    """The bytes of a keyring file."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "epochs": [
            {"id": one.id, "created": one.created, "key": base64.b64encode(one.key).decode()}
            for one in epochs
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def decode(data: bytes, name: str) -> tuple[EpochKey, ...]:
    """The epochs in a keyring file that is called ``name``, the oldest first; at least one.

    Raises :class:`NewerFormat`, and :class:`WrongKey` for a file that is damaged. No error repeats what it
    read (S4).
    """
    document = members_of(parsed(data)) if len(data) <= LARGEST_FILE else None
    if document is None or document.get("format") != FORMAT:
        raise WrongKey(f"{name} is not a keyring, or is damaged")
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise NewerFormat(
            f"{name} is a keyring of version {version}: this software knows {VERSION}"
        )
    known = type(version) is int and version == VERSION
    if not known or document.keys() != {"format", "version", "epochs"}:
        raise WrongKey(f"{name} is damaged: it is not of the form of a keyring")
    listed = items_of(document["epochs"])
    if not listed:
        raise WrongKey(f"{name} is damaged: it has no epochs")
    epochs = tuple(_epoch(value, f"{name}: epoch {at}") for at, value in enumerate(listed, 1))
    if len({one.id for one in epochs}) != len(epochs):
        raise WrongKey(f"{name} is damaged: an epoch stands twice")
    return epochs


def _epoch(value: Any, place: str) -> EpochKey:
    found = members_of(value)
    if found is None or found.keys() != {"id", "created", "key"}:
        raise WrongKey(f"{place} is not of the form of an epoch")
    name, created = found["id"], found["created"]
    if not isinstance(name, str) or not name.isascii() or not 1 <= len(name) <= 64:
        raise WrongKey(f"{place} has no proper id")
    if type(created) is not int or created < 0:
        raise WrongKey(f"{place} has no proper time of creation")
    key = _key(found["key"])
    if key is None:
        raise WrongKey(f"{place} has no proper key")
    return EpochKey(name, created, key)


def _key(text: Any) -> bytes | None:
    """The key in canonical base64, or ``None``."""
    if not isinstance(text, str):
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(key) != KEY_BYTES or base64.b64encode(key).decode() != text:
        return None
    return key
