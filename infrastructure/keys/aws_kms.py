"""Data keys wrapped by AWS KMS. Needs the extra ``aws-kms``.

A KMS key keeps its name when its material is rotated, and opens with any material it ever had. So an epoch
is the key's ARN and the number of rotations that KMS has completed: ``arn:…:key/…#2``.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol, Self

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    LedgerError,
    WrongKey,
)
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, bound, unlogged

ROTATION_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 1.0
_CONTEXT_NAME: Final = "compaction-ledger"
_LONGEST_CIPHERTEXT: Final = 6_144

_MISSING = {"NotFoundException", "InvalidArnException"}
_WRONG = {"InvalidCiphertextException", "IncorrectKeyException"}
_UNFIT = {"InvalidKeyUsageException", "UnsupportedOperationException", "ValidationException"}


class KMSClient(Protocol):
    """What is used of ``boto3.client("kms")``."""

    def describe_key(self, **arguments: Any) -> Mapping[str, Any]: ...
    def encrypt(self, **arguments: Any) -> Mapping[str, Any]: ...
    def decrypt(self, **arguments: Any) -> Mapping[str, Any]: ...
    def list_key_rotations(self, **arguments: Any) -> Mapping[str, Any]: ...
    def get_key_rotation_status(self, **arguments: Any) -> Mapping[str, Any]: ...
    def rotate_key_on_demand(self, **arguments: Any) -> Mapping[str, Any]: ...


class AwsKms(Unpicklable):
    """The key provider ``aws-kms``. ``key`` is the id or ARN of a symmetric key, or an alias of one.

    An alias may be pointed to another key: that is another epoch. What was wrapped under the key before is
    opened where this process has seen the alias point there, or that key is given as a further provider.
    """

    __slots__ = ("_client", "_key", "_known")

    def __init__(self, client: KMSClient, key: str) -> None:
        self._client = client
        self._key = key
        self._known = {key} if _is_key_arn(key) else set[str]()

    @classmethod
    def open(
        cls, key: str, *, endpoint_url: str | None = None, region_name: str | None = None
    ) -> Self:
        """With a client of its own, which finds its credentials as boto3 does; nothing is asked yet.

        The region is that of the ARN, where ``key`` is one. Raises :class:`InvalidSetting`.
        """
        region = region_name or (key.split(":")[3] if key.startswith("arn:") else None)
        with _translated(key):
            client = _boto3().client(
                "kms", region_name=region, endpoint_url=endpoint_url, config=_config()
            )
        return cls(client, key)

    def __repr__(self) -> str:
        return f"AwsKms({self._key!r})"

    @property
    def name(self) -> str:
        """``aws-kms``."""
        return "aws-kms"

    def current_epoch(self) -> str:
        """The ARN of the key, and how often its material has been rotated."""
        arn = self._arn()
        return _epoch(arn, self._rotations(arn))

    def epochs(self) -> Sequence[str]:
        """Those of the key that is the current one."""
        arn = self._arn()
        return [_epoch(arn, number) for number in range(self._rotations(arn) + 1)]

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` under the current epoch; what KMS answers is kept as it is."""
        epoch = self.current_epoch()
        with _translated(self._key):
            said = self._client.encrypt(
                KeyId=_arn_of(epoch),
                Plaintext=secret,
                EncryptionContext=_encryption_context(epoch, context),
            )
        return epoch, bytes(said["CiphertextBlob"])

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped. Raises :class:`WrongKey`; :class:`KeyMissing` for another key than this, too."""
        arn = _arn_of(epoch)
        if not _is_key_arn(arn) or (arn not in self._known and self._arn() != arn):
            raise KeyMissing(f"{self._key} is not the key of the epoch {epoch[:256]!r}")
        if not 0 < len(wrapped) <= _LONGEST_CIPHERTEXT:
            raise WrongKey("a wrapped key is not of the form that KMS gives it")
        with _translated(arn):
            said = self._client.decrypt(
                KeyId=arn,
                CiphertextBlob=wrapped,
                EncryptionContext=_encryption_context(epoch, context),
            )
        return bytes(said["Plaintext"])

    def rotate(self) -> str:
        """Have KMS rotate the material of the key, and wait until it has.

        A rotation that is under way is waited for, no second one begun. KMS allows 25 such rotations.
        Raises :class:`KeysUnavailable` where it takes longer than two minutes: ask again later.
        """
        arn = self._arn()
        before = self._rotations(arn)
        with _translated(arn):
            if not self._client.get_key_rotation_status(KeyId=arn).get("OnDemandRotationStartDate"):
                self._client.rotate_key_on_demand(KeyId=arn)
        until = time.monotonic() + ROTATION_SECONDS
        while (now := self._rotations(arn)) == before:
            if time.monotonic() > until:
                raise KeysUnavailable(f"{arn} is still being rotated: try again later")
            time.sleep(_POLL_SECONDS)
        return _epoch(arn, now)

    def _arn(self) -> str:
        """The ARN of the key that is meant now."""
        if _is_key_arn(self._key):
            return self._key
        with _translated(self._key):
            arn = str(self._client.describe_key(KeyId=self._key)["KeyMetadata"]["Arn"])
        self._known.add(arn)
        return arn

    def _rotations(self, arn: str) -> int:
        """How many rotations of its material are complete; keys that cannot be rotated have none."""
        count, marker = 0, dict[str, str]()
        while True:
            try:
                with _translated(arn):
                    page = self._client.list_key_rotations(KeyId=arn, **marker)
            except InvalidSetting:  # of this kind of key: KMS does not support it
                return 0
            count += len(page["Rotations"])
            if not page.get("Truncated"):
                return count
            marker = {"Marker": page["NextMarker"]}


def _is_key_arn(key: str) -> bool:
    return key.startswith("arn:") and ":key/" in key


def _epoch(arn: str, rotations: int) -> str:
    return f"{arn}#{rotations}"


def _arn_of(epoch: str) -> str:
    return epoch.rpartition("#")[0]


def _encryption_context(epoch: str, context: bytes) -> dict[str, str]:
    """What KMS authenticates, and writes into its own log: neither is secret."""
    return {_CONTEXT_NAME: base64.b64encode(bound(epoch, context)).decode()}


def _boto3() -> Any:
    try:
        return import_module("boto3")
    except ImportError as error:
        raise InvalidSetting(
            f"aws-kms needs: pip install 'compaction-ledger[aws-kms]' ({error})",
            place="key_provider",
        ) from error


def _config() -> Any:
    """A few tries, and an end to waiting."""
    config: Any = import_module("botocore.config")  # it has no types
    return config.Config(
        connect_timeout=5, read_timeout=15, retries={"mode": "standard", "total_max_attempts": 3}
    )


@contextmanager
def _translated(key: str) -> Generator[None]:
    """Around a call: nothing of it is logged, and what boto3 raises comes out as an error of ours."""
    try:
        with unlogged("botocore"):
            yield
    except LedgerError:
        raise
    except Exception as error:
        found = _said(key, error)
        if found is None:
            raise
        raise found from error


def _said(key: str, error: Exception) -> LedgerError | None:
    """The error in our words; ``None`` for one that does not come from boto3."""
    exceptions: Any = import_module("botocore.exceptions")
    words = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if not isinstance(error, exceptions.ClientError):
        known = isinstance(error, exceptions.BotoCoreError)
        return KeysUnavailable(f"AWS KMS cannot be reached for {key}: {words}") if known else None
    code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
    if code in _MISSING:
        return KeyMissing(f"AWS KMS has no key {key}: {words}")
    if code in _WRONG:
        return WrongKey(f"{key} does not open a wrapped key: {words}")
    if code in _UNFIT:
        return InvalidSetting(f"{key} cannot be used for this: {words}", place="key_provider")
    # Denied, disabled, to be deleted, asked too often, or the service has a fault of its own.
    return KeysUnavailable(f"AWS KMS does not do it for {key}: {words}")
