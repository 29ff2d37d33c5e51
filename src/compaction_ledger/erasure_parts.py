"""The part of the composition root that is about keys and erasure: who holds keys, and what guards what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_ledger.domain.errors import KeyMissing
from compaction_ledger.domain.keys import KeyProvider
from compaction_ledger.key_parts import key_provider_text, provider_named
from compaction_ledger.settings import Settings

if TYPE_CHECKING:
    from compaction_ledger.infrastructure.keys.ring import KeyRing

DATA_KEYS = "data-keys.db"


def stored_ring(
    folder: Path, settings: Settings, is_encrypted: Callable[[], bool], *, read_only: bool
) -> KeyRing:
    """The keys of a ledger whose keys folder this is. Nothing is made there before something is encrypted.

    ``is_encrypted`` says whether the ledger has conversations with keys already: then a keyring that is
    missing is not made anew, as it could open nothing.
    """
    from compaction_ledger.infrastructure.keys.ring import KeyRing  # noqa: PLC0415 - cryptography
    from compaction_ledger.infrastructure.keys.sqlite_keys import (  # noqa: PLC0415
        SQLiteWrappedKeys,
    )

    def provider() -> KeyProvider:
        text = key_provider_text(settings)
        try:
            return provider_named(text, folder, create=False)
        except KeyMissing:
            if read_only or is_encrypted():
                raise
        return provider_named(text, folder, create=True)

    keys = SQLiteWrappedKeys(folder / DATA_KEYS, read_only=read_only)
    return KeyRing(provider, keys, encrypts=settings.encryption == "on" and not read_only)


def memory_ring(settings: Settings) -> KeyRing:
    """Keys that are gone when the ledger is closed."""
    from compaction_ledger.infrastructure.keys.memory import (  # noqa: PLC0415 - cryptography
        MemoryKeyProvider,
        MemoryWrappedKeys,
    )
    from compaction_ledger.infrastructure.keys.ring import KeyRing  # noqa: PLC0415

    return KeyRing(MemoryKeyProvider, MemoryWrappedKeys(), encrypts=settings.encryption == "on")
