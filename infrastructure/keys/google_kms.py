"""Data keys wrapped by Google Cloud KMS. Needs the extra ``google-kms``.

An epoch is the name of a key version: ``projects/…/cryptoKeys/KEY/cryptoKeyVersions/2``. What is sent and
answered is checked by CRC32C, as Google asks for, since the service works on copies of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Self, TypeVar

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    LedgerError,
    WrongKey,
)
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, bound, unlogged

T = TypeVar("T")

ROTATION_SECONDS: Final = 120.0
CALL_SECONDS: Final = 15.0
RETRY_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 1.0
_VERSIONS: Final = "/cryptoKeyVersions/"


class GoogleKms(Unpicklable):
    """The key provider ``google-kms``: a symmetric key, ``projects/…/locations/…/keyRings/…/cryptoKeys/…``.

    ``client`` is a ``google.cloud.kms_v1.KeyManagementServiceClient``.
    """

    __slots__ = ("_client", "_crc32c", "_key", "_options")

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self._key = key
        self._crc32c: Any = _module("google_crc32c").value
        self._options = {"timeout": CALL_SECONDS, "retry": _retry()}

    @classmethod
    def open(cls, key: str) -> Self:
        """With a client of its own, which finds its credentials as Google's libraries do.

        It speaks REST, not gRPC: gRPC's threads do not survive a fork. Raises :class:`InvalidSetting`.
        """
        module = _module("google.cloud.kms_v1")
        client = _called(key, lambda: module.KeyManagementServiceClient(transport="rest"))
        return cls(client, key)

    def __repr__(self) -> str:
        return f"GoogleKms({self._key!r})"

    @property
    def name(self) -> str:
        """``google-kms``."""
        return "google-kms"

    def current_epoch(self) -> str:
        """The primary version of the key."""
        key = self._asked("get_crypto_key", name=self._key)
        if key.purpose.name != "ENCRYPT_DECRYPT" or not key.primary.name:
            raise InvalidSetting(
                f"{self._key} is no key for symmetric encryption with a primary version",
                place="key_provider",
            )
        return str(key.primary.name)

    def epochs(self) -> Sequence[str]:
        """The versions that are enabled."""
        request = {"parent": self._key, "filter": "state=ENABLED"}
        pager = self._asked("list_crypto_key_versions", request=request)
        names = _called(self._key, lambda: [str(version.name) for version in pager])
        return sorted(names, key=_number)

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` under the primary version, which is named: a new one is known everywhere later."""
        epoch = self.current_epoch()
        data = bound(epoch, context)
        request = {
            "name": epoch,
            "plaintext": secret,
            "plaintext_crc32c": self._crc32c(secret),
            "additional_authenticated_data": data,
            "additional_authenticated_data_crc32c": self._crc32c(data),
        }
        said = self._asked("encrypt", request=request)
        if not (
            said.verified_plaintext_crc32c
            and said.verified_additional_authenticated_data_crc32c
            and said.name == epoch
            and said.ciphertext_crc32c == self._crc32c(said.ciphertext)
        ):
            raise _garbled()
        return epoch, bytes(said.ciphertext)

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped. Raises :class:`WrongKey`; :class:`KeyMissing` for another key than this, too."""
        if epoch.rpartition(_VERSIONS)[0] != self._key:
            raise KeyMissing(f"{self._key} is not the key of the epoch {epoch[:256]!r}")
        if not wrapped:
            raise WrongKey("a wrapped key is empty")
        data = bound(epoch, context)
        request = {
            "name": self._key,
            "ciphertext": wrapped,
            "ciphertext_crc32c": self._crc32c(wrapped),
            "additional_authenticated_data": data,
            "additional_authenticated_data_crc32c": self._crc32c(data),
        }
        try:
            said = self._asked("decrypt", request=request)
        except _BadRequest as refused:
            raise self._why_closed(epoch, str(refused)) from None
        if said.plaintext_crc32c != self._crc32c(said.plaintext):
            raise _garbled()
        return bytes(said.plaintext)

    def rotate(self) -> str:
        """Make a new version and then the primary one of it.

        Ended between the two, it leaves a version that is used for nothing; the next one makes another.
        """
        request: dict[str, Any] = {"parent": self._key, "crypto_key_version": {}}
        version = self._asked("create_crypto_key_version", request=request)
        until = time.monotonic() + ROTATION_SECONDS
        while version.state.name == "PENDING_GENERATION":
            if time.monotonic() > until:
                raise KeysUnavailable(f"{version.name} is still being made: try again later")
            time.sleep(_POLL_SECONDS)
            version = self._asked("get_crypto_key_version", name=version.name)
        self._asked(
            "update_crypto_key_primary_version",
            name=self._key,
            crypto_key_version_id=str(_number(version.name)),
        )
        return str(version.name)

    def _why_closed(self, epoch: str, words: str) -> LedgerError:
        """Why Google does not open what is said to be of this version; a status alone does not tell."""
        state = str(self._asked("get_crypto_key_version", name=epoch).state.name)
        if state == "ENABLED":
            return WrongKey(f"{epoch} does not open a wrapped key: {words}")
        if state == "DESTROYED":
            return KeyMissing(f"the key version {epoch} is destroyed")
        return KeysUnavailable(f"the key version {epoch} is in the state {state}")

    def _asked(self, method: str, **arguments: Any) -> Any:
        call = getattr(self._client, method)
        return _called(self._key, lambda: call(**arguments, **self._options))


def _number(version: str) -> int:
    return int(version.rpartition("/")[2])


def _garbled() -> KeysUnavailable:
    return KeysUnavailable(
        "what Google Cloud KMS got, or answered, was damaged on the way: try again"
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidSetting(
            f"google-kms needs: pip install 'compaction-ledger[google-kms]' ({error})",
            place="key_provider",
        ) from error


def _retry() -> Any:
    """A few tries where the service is not there for a moment, and an end to them."""
    errors, retries = _module("google.api_core.exceptions"), _module("google.api_core.retry")
    return retries.Retry(
        predicate=retries.if_exception_type(errors.ServiceUnavailable, errors.TooManyRequests),
        initial=0.2,
        maximum=5.0,
        timeout=RETRY_SECONDS,
    )


class _BadRequest(KeysUnavailable):
    """Google answered 400: what that means depends on what was asked."""


def _called(name: str, call: Callable[[], T]) -> T:
    """The answer of a call. Nothing of it is logged; what Google's library raises comes out as one of ours.

    Its own errors are left behind: they hold the request, and with it secrets (S4).
    """
    try:
        with unlogged("google"):
            return call()
    except LedgerError:
        raise
    except Exception as error:
        found = _said(name, error)
        if found is None:
            raise
    raise found


def _said(name: str, error: Exception) -> LedgerError | None:
    """The error in our words; ``None`` for one that does not come from Google's library."""
    words = (str(error).strip().splitlines() or [type(error).__name__])[0]
    errors = _module("google.api_core.exceptions")
    if isinstance(error, errors.NotFound):
        return KeyMissing(f"Google Cloud KMS has no key {name}: {words}")
    if isinstance(error, errors.BadRequest):
        return _BadRequest(f"Google Cloud KMS does not do it for {name}: {words}")
    others = (
        errors.GoogleAPIError,
        _module("google.auth.exceptions").GoogleAuthError,
        _module("requests").RequestException,
    )
    if isinstance(error, others):
        return KeysUnavailable(f"Google Cloud KMS does not do it for {name}: {words}")
    return None
