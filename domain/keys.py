"""The port to whoever holds the key-encryption keys: data keys are wrapped and opened by it (S1, S2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
