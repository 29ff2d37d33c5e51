"""The port to whoever holds the key-encryption keys: data keys are wrapped and opened by it (S1, S2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from compaction_ledger.domain.errors import InvalidSetting

MAX_EPOCH = 256
"""An epoch is text of 1 to so many characters."""


class KeyProvider(Protocol):
    """Wraps data keys with a key-encryption key of an epoch (S1). Threads may share one.

    ``context`` says whose key it is. It is not secret; it is authenticated, so that two wrapped keys cannot
    be swapped. Every method may raise :class:`~compaction_ledger.domain.errors.KeysUnavailable`; where the
    keyring or the key is not there they raise :class:`~compaction_ledger.domain.errors.KeyMissing`. Neither
    says that anything was erased (S3).
    """

    @property
    def name(self) -> str:
        """``file``, ``aws-kms``, ``google-kms`` or ``vault``."""
        ...

    def current_epoch(self) -> str:
        """The epoch that new data keys are wrapped under: 1 to 256 characters of text."""
        ...

    def epochs(self) -> Sequence[str]:
        """The epochs that this provider can tell of, the oldest first."""
        ...

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` wrapped under the current epoch, after that epoch."""
        ...

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped under ``epoch`` with this ``context``.

        Raises :class:`~compaction_ledger.domain.errors.KeyMissing` where the epoch is not known, and
        :class:`~compaction_ledger.domain.errors.WrongKey` where its key does not open this.
        """
        ...

    def rotate(self) -> str:
        """Make a new epoch the current one, and return it. What is wrapped already stays as it is (S2).

        What was wrapped under older epochs can be opened until their keys are destroyed.
        """
        ...


class ProviderName(NamedTuple):
    """Which provider, and which of its keys; ``key`` is empty for the file keyring."""

    kind: str
    key: str


_GOOGLE_PART = r"[A-Za-z0-9_.:-]{1,63}"
_VAULT_PART = r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,62}"
_KEYS = {
    "file": "",
    "aws-kms": r"[A-Za-z0-9:/_-]{1,200}",
    "google-kms": (
        rf"projects/{_GOOGLE_PART}/locations/{_GOOGLE_PART}"
        rf"/keyRings/{_GOOGLE_PART}/cryptoKeys/{_GOOGLE_PART}"
    ),
    "vault": rf"(?:{_VAULT_PART}/){{1,3}}{_VAULT_PART}",
}
_FORMS = "file, aws-kms:KEY, google-kms:projects/…/cryptoKeys/KEY or vault:MOUNT/KEY"
_LONGEST_KEY = 220  # room for a version behind it in an epoch


def provider_names(text: str) -> tuple[ProviderName, ...]:
    """The providers that a setting names: the current one, and after commas those that only open older keys.

    Raises :class:`InvalidSetting`. The text is not repeated: it might be a secret, put into the wrong place.
    """
    found = tuple(_provider_name(part.strip(" ")) for part in text.split(","))
    if len(set(found)) != len(found):
        raise InvalidSetting("names a provider twice", place="key_provider")
    return found


def _provider_name(text: str) -> ProviderName:
    kind, colon, key = text.partition(":")
    pattern = _KEYS.get(kind)
    fits = pattern is not None and re.fullmatch(pattern, key) and bool(key) == bool(colon)
    if not fits or len(key) > _LONGEST_KEY:
        raise InvalidSetting(f"must be one of {_FORMS}", place="key_provider")
    return ProviderName(kind, key)


@dataclass(frozen=True, slots=True)
class KeyEpochs:
    """How many data keys are wrapped under which epoch of a provider, the oldest first."""

    provider: str
    current: str
    data_keys: Mapping[str, int]


class KeyRotation(Protocol):
    """Data keys that can be wrapped anew (S2)."""

    def epochs(self) -> KeyEpochs | None:
        """How many data keys are wrapped under each epoch; none where nothing is encrypted yet."""
        ...

    def rotate(self) -> str:
        """Begin a new epoch; its name."""
        ...

    def rewrap(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Wrap under the current epoch whatever is wrapped under another; how many keys it was."""
        ...
