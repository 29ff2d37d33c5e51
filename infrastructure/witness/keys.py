"""A witness's own key, in a folder that nobody else reads (K3, S4)."""

from __future__ import annotations

import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger.domain.errors import InvalidInput, InvalidSetting, UnusableSignerKey
from compaction_ledger.domain.proof.notes import COSIGNATURE
from compaction_ledger.domain.proof.text import check_name, decode_base64, encode_base64
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Cosigner, private_key

KEY = "witness-key"
PUBLIC = "verifier-key"
STORE = "witness.db"
_PREFIX = "PRIVATE+KEY+"
_LIMIT = 4_096


def witness_key(folder: Path, clock: Callable[[], int], name: str | None = None) -> Ed25519Cosigner:
    """The key in ``folder``; the first time one is made, under ``name`` or a random one.

    ``clock`` gives seconds since the epoch. Raises :class:`UnusableSignerKey`, which never says what stands
    in the file, and :class:`InvalidSetting` for another name than the key has.
    """
    path = folder / KEY
    data = files.read(path, _LIMIT)
    if data is None:
        chosen = name or f"compaction-ledger-witness/{secrets.token_hex(8)}"
        check_name(chosen, "name")
        files.make_folder(folder, 0o700)
        files.create(path, _written(chosen, Ed25519PrivateKey.generate(), clock), 0o600)
        data = files.read(path, _LIMIT) or b""
    cosigner = _checked(folder, data, clock)
    if name is not None and name != cosigner.name:
        raise InvalidSetting(f"the key in {folder} is that of {cosigner.name}", place="name")
    files.replace(folder / PUBLIC, f"{cosigner.verifier_key}\n".encode())
    return cosigner


def known_key(folder: Path) -> Ed25519Cosigner:
    """The key in ``folder``, to be looked at. Raises as :func:`witness_key`; none is made."""
    return _checked(folder, files.read(folder / KEY, _LIMIT) or b"", lambda: 0)


def _checked(folder: Path, data: bytes, clock: Callable[[], int]) -> Ed25519Cosigner:
    _check_private(folder, folder / KEY)
    return _cosigner(data, folder / KEY, clock)


def _written(name: str, key: Ed25519PrivateKey, clock: Callable[[], int]) -> bytes:
    identifier = Ed25519Cosigner(name, key, clock).key_id.hex()
    secret = encode_base64(bytes([COSIGNATURE]) + key.private_bytes_raw())
    return f"{_PREFIX}{name}+{identifier}+{secret}\n".encode()


def _cosigner(data: bytes, path: Path, clock: Callable[[], int]) -> Ed25519Cosigner:
    try:
        prefix, line = _PREFIX, data.decode().removesuffix("\n")
        name, identifier, encoded = line.removeprefix(prefix).split("+", 2)
        typed = decode_base64(encoded, KEY)
        cosigner = Ed25519Cosigner(name, private_key(typed[1:]), clock)
        right = line.startswith(prefix) and cosigner.key_id.hex() == identifier
    except (InvalidInput, ValueError):
        typed, cosigner, right = b"", None, False
    if cosigner is None or not right or typed[0] != COSIGNATURE:
        raise UnusableSignerKey(f"{path}: this is not the private key of a witness") from None
    return cosigner


def _check_private(folder: Path, path: Path) -> None:
    for place, forbidden in ((folder, 0o022), (path, 0o077)):
        try:
            mode = stat.S_IMODE(place.stat().st_mode)
        except OSError as error:
            raise files.translated(error, place) from error
        if mode & forbidden:
            raise UnusableSignerKey(
                f"{place} has mode {mode:04o}: others could read or replace the key; "
                f"{'chmod 700' if place == folder else 'chmod 600'} it"
            )
