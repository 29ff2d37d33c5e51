"""Data keys wrapped by the transit engine of HashiCorp Vault or OpenBao.

An epoch is a version of a key: ``transit/ledger:v2``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    WrongKey,
)
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, bound, members_of
from compaction_ledger.infrastructure.keys.vault_http import Answer, VaultClient

_AUTHENTICATED = {"aes128-gcm96", "aes256-gcm96", "chacha20-poly1305", "xchacha20-poly1305"}
_CIPHERTEXT = re.compile(r"vault:v([1-9][0-9]{0,8}):([A-Za-z0-9+/]+=*)")
_DIGEST_BYTES: Final = 32


class _Versions(NamedTuple):
    """The versions of a key that open what they wrapped, and the one that wraps."""

    known: Sequence[int]
    latest: int


class Vault(Unpicklable):
    """The key provider ``vault``: a key of a transit engine, with authenticated encryption and no derivation.

    What is wrapped is the SHA-256 of epoch and context, and behind it the secret: servers that do not know
    associated data yet pass over it silently.
    """

    __slots__ = ("_client", "_key", "_mount")

    def __init__(self, client: VaultClient, key: str) -> None:
        self._client = client
        self._mount, _, self._key = key.rpartition("/")

    @classmethod
    def open(cls, key: str, environment: Mapping[str, str] = os.environ) -> Self:
        """The key ``MOUNT/KEY`` of the server that the environment names; nothing is asked yet.

        Raises :class:`InvalidSetting`.
        """
        return cls(VaultClient.by_environment(environment), key)

    def __repr__(self) -> str:
        return f"Vault({self._mount}/{self._key})"

    @property
    def name(self) -> str:
        """``vault``."""
        return "vault"

    def current_epoch(self) -> str:
        """The latest version of the key."""
        return self._epoch(self._versions().latest)

    def epochs(self) -> Sequence[str]:
        """The versions that may still be used to open."""
        return [self._epoch(number) for number in self._versions().known]

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` under the latest version, in the text that Vault gives.

        The key is read before: a server may make one that is missing, and nobody would know.
        """
        version = self._versions().latest
        epoch = self._epoch(version)
        data = bound(epoch, context)
        answer = self._client.call(
            "POST",
            f"{self._mount}/encrypt/{self._key}",
            {
                "plaintext": _base64(hashlib.sha256(data).digest() + secret),
                "associated_data": _base64(data),
                "key_version": version,
            },
        )
        wrapped = str(self._found(answer, "encrypt").get("ciphertext"))
        found = _CIPHERTEXT.fullmatch(wrapped)
        if found is None or int(found[1]) != version:
            raise KeysUnavailable(f"Vault wrapped nothing under version {version} of {self._key}")
        return epoch, wrapped.encode()

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped. Raises :class:`WrongKey`; :class:`KeyMissing` for another key than this, too."""
        version = self._version(epoch)
        text = wrapped.decode("latin-1")
        found = _CIPHERTEXT.fullmatch(text)
        if found is None or int(found[1]) != version or _bytes(found[2]) is None:
            raise WrongKey(f"a wrapped key is not of the epoch {epoch}")
        data = bound(epoch, context)
        answer = self._client.call(
            "POST",
            f"{self._mount}/decrypt/{self._key}",
            {"ciphertext": text, "associated_data": _base64(data)},
        )
        if answer.status != 200:
            self._check_known(version)
            raise WrongKey(f"{epoch} does not open a wrapped key: {answer.errors}")
        plain = _bytes(answer.data.get("plaintext"))
        if plain is None or len(plain) <= _DIGEST_BYTES:
            raise WrongKey(f"what {epoch} opens is no wrapped key")
        if not hmac.compare_digest(plain[:_DIGEST_BYTES], hashlib.sha256(data).digest()):
            raise WrongKey(f"a wrapped key of {epoch} is that of another ledger or conversation")
        return plain[_DIGEST_BYTES:]

    def rotate(self) -> str:
        """Have Vault make a new version of the key, and return it."""
        before = self._versions().latest
        self._found(
            self._client.call("POST", f"{self._mount}/keys/{self._key}/rotate", {}), "rotate"
        )
        now = self._versions().latest
        if now <= before:
            raise KeysUnavailable(f"Vault has not rotated {self._mount}/{self._key}: try again")
        return self._epoch(now)

    def _epoch(self, version: int) -> str:
        return f"{self._mount}/{self._key}:v{version}"

    def _version(self, epoch: str) -> int:
        key, _, number = epoch.rpartition(":v")
        if key != f"{self._mount}/{self._key}" or not re.fullmatch(r"[1-9][0-9]{0,8}", number):
            raise KeyMissing(
                f"{self._mount}/{self._key} is not the key of the epoch {epoch[:256]!r}"
            )
        return int(number)

    def _check_known(self, version: int) -> None:
        if version not in self._versions().known:
            raise KeyMissing(
                f"version {version} of {self._mount}/{self._key} is not there, or may not be used to open"
            )

    def _versions(self) -> _Versions:
        data = self._found(
            self._client.call("GET", f"{self._mount}/keys/{self._key}"), "read the key"
        )
        if data.get("type") not in _AUTHENTICATED or data.get("derived"):
            raise InvalidSetting(
                f"{self._mount}/{self._key} must be of a type with authenticated encryption, such as "
                "aes256-gcm96, and not derived",
                place="key_provider",
            )
        latest, least = data.get("latest_version"), data.get("min_decryption_version")
        listed = members_of(data.get("keys"))
        if type(latest) is not int or type(least) is not int or listed is None:
            raise KeysUnavailable(f"what Vault says of {self._mount}/{self._key} is not understood")
        known = sorted(int(number) for number in listed if number.isdecimal())
        return _Versions([number for number in known if number >= least], latest)

    def _found(self, answer: Answer, what: str) -> Mapping[str, Any]:
        if answer.status == 404:
            raise KeyMissing(f"Vault has no key {self._mount}/{self._key}: {answer.errors}")
        if answer.status == 400:
            raise KeysUnavailable(
                f"Vault does not {what} with {self._mount}/{self._key}: {answer.errors}"
            )
        return answer.data


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: Any) -> bytes | None:
    """What stands in canonical base64: Vault takes other spellings of it, too."""
    if not isinstance(text, str):
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if _base64(data) == text else None
