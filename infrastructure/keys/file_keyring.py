"""The embedded key provider: a keyring in a file, readable by its owner alone (S1)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from compaction_ledger.domain.errors import KeyMissing, WrongKey
from compaction_ledger.infrastructure.keys import keyring_file
from compaction_ledger.infrastructure.keys.keyring_file import KEYRING, Stamp, translated
from compaction_ledger.infrastructure.keys.keyring_format import (
    KEY_BYTES,
    EpochKey,
    decode,
    encode,
)
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, bound

_FORMAT: Final = b"\x01"
_NONCE_BYTES: Final = 12
_SHORTEST: Final = len(_FORMAT) + _NONCE_BYTES + 16


class _Ring(NamedTuple):
    """The keyring as it was read; the ciphers do not show their keys."""

    stamp: Stamp
    ciphers: Mapping[str, AESGCM]
    current: str


class FileKeyring(Unpicklable):
    """The key provider ``file``: AES-256-GCM under the keys of a keyring file. Threads may share one.

    Wrapped: ``0x01 || nonce (12 bytes, random) || ciphertext and tag``.

    The file is read again when it has changed, for another process may have made a new epoch.
    """

    __slots__ = ("_path", "_ring")

    def __init__(self, folder: Path) -> None:
        self._path = folder / KEYRING
        self._ring = _read(self._path)

    @classmethod
    def open(cls, folder: Path, *, create: bool) -> Self:
        """The keyring of the folder; with ``create``, folder and keyring are made where they are not there.

        Without it a missing keyring is :class:`KeyMissing`: a ledger that has keys under it must never be
        given a new one silently. Raises :class:`KeysUnavailable` for a folder or file that others may read.
        """
        if create:
            _make(folder)
        return cls(folder)

    def __repr__(self) -> str:
        return f"FileKeyring({str(self._path)!r})"

    @property
    def name(self) -> str:
        """``file``."""
        return "file"

    def current_epoch(self) -> str:
        """The last one of the file."""
        return self._now().current

    def epochs(self) -> Sequence[str]:
        """Those of the file, the oldest first."""
        return tuple(self._now().ciphers)

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` under the current epoch."""
        ring = self._now()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = ring.ciphers[ring.current].encrypt(nonce, secret, bound(ring.current, context))
        return ring.current, _FORMAT + nonce + sealed

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped. Raises :class:`KeyMissing` and :class:`WrongKey`."""
        cipher = self._now().ciphers.get(epoch)
        if cipher is None:
            raise KeyMissing(f"the keyring at {self._path} has no epoch {epoch[:64]!r}")
        if len(wrapped) < _SHORTEST or wrapped[:1] != _FORMAT:
            raise WrongKey("a wrapped key is not of the form that a keyring file gives it")
        nonce, sealed = wrapped[1 : 1 + _NONCE_BYTES], wrapped[1 + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, sealed, bound(epoch, context))
        except InvalidTag:
            raise WrongKey(
                f"epoch {epoch} of the keyring at {self._path} does not open a wrapped key: it was wrapped "
                "by another keyring, for another ledger or conversation, or is damaged"
            ) from None

    def rotate(self) -> str:
        """Add an epoch to the file, behind all that are there (S2)."""
        made = _new_epoch()
        folder = self._path.parent
        with translated(self._path), keyring_file.locked(folder):
            _, data = keyring_file.read(self._path)
            keyring_file.replace(self._path, encode((*decode(data, str(self._path)), made)))
        self._ring = _read(self._path)
        return made.id

    def _now(self) -> _Ring:
        with translated(self._path):
            if keyring_file.stamp_of(self._path) == self._ring.stamp:
                return self._ring
        self._ring = _read(self._path)
        return self._ring


def _make(folder: Path) -> None:
    """Make folder and keyring where they are missing; of many processes at once, one makes them."""
    path = folder / KEYRING
    with translated(path):
        if path.exists():
            return
        keyring_file.make_folder(folder)
        with keyring_file.locked(folder):
            if not path.exists():
                keyring_file.make(path, encode([_new_epoch()]))


def _new_epoch() -> EpochKey:
    key = secrets.token_bytes(KEY_BYTES)
    return EpochKey(f"file:{secrets.token_hex(8)}", time.time_ns() // 1_000, key)


def _read(path: Path) -> _Ring:
    with translated(path):
        stamp, data = keyring_file.read(path)
    epochs = decode(data, str(path))
    return _Ring(stamp, {one.id: AESGCM(one.key) for one in epochs}, epochs[-1].id)
