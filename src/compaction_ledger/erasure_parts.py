"""The part of the composition root that is about keys and erasure: who holds keys, and what guards what."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_ledger.domain.errors import InvalidSetting, KeyMissing
from compaction_ledger.domain.keys import KeyProvider
from compaction_ledger.key_parts import key_provider_text, provider_named
from compaction_ledger.settings import Settings

if TYPE_CHECKING:
    from compaction_ledger.infrastructure.event_store.application import SealedRecorder
    from compaction_ledger.infrastructure.keys.ring import KeyRing
    from compaction_ledger.infrastructure.keys.wrapped_keys import WrappedKeys

DATA_KEYS = "data-keys.db"
DATA_KEYS_VARIABLE = "COMPACTION_LEDGER_DATA_KEYS"


def stored_ring(
    folder: Path, settings: Settings, recorder: SealedRecorder, *, read_only: bool
) -> KeyRing:
    """The keys of a ledger whose keys folder this is. Nothing is made there before something is encrypted.

    Where the ledger has conversations with keys already, a keyring that is missing is not made anew: it
    could open nothing.
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
            may_begin = not read_only and not any(one.key for one in recorder.subjects().values())
        # Another process may have begun just now: it makes the keyring before a conversation gets a key.
        return provider_named(text, folder, create=may_begin)

    def is_new() -> bool:
        return not recorder.head()[0] and all(one.key for one in recorder.subjects().values())

    url = data_keys_url(settings)
    keys: WrappedKeys = (
        SQLiteWrappedKeys(folder / DATA_KEYS, read_only=read_only)
        if url is None
        else _database_keys(url, settings, read_only=read_only)
    )
    return KeyRing(
        provider,
        keys,
        origin=lambda: recorder.head()[1],
        encrypts=settings.encryption == "on" and not read_only,
        is_new=is_new,
        holds=lambda: next((one.key for one in recorder.subjects().values() if one.key), None),
        place=str(folder / DATA_KEYS) if url is None else "the database of data keys",
    )


def data_keys_url(settings: Settings, environment: Mapping[str, str] = os.environ) -> str | None:
    """The database for wrapped data keys, by the settings or by the environment, if there is one."""
    if settings.data_keys is not None:
        return settings.data_keys.get_secret_value()
    return environment.get(DATA_KEYS_VARIABLE) or None


def _database_keys(url: str, settings: Settings, *, read_only: bool) -> WrappedKeys:
    try:
        from compaction_ledger.infrastructure.keys.postgres_keys import (  # noqa: PLC0415 - an extra
            PostgresWrappedKeys,
        )
        from compaction_ledger.infrastructure.postgres.address import (  # noqa: PLC0415
            parse_address,
        )
        from compaction_ledger.infrastructure.postgres.database import Database  # noqa: PLC0415
    except ImportError as error:
        raise InvalidSetting(
            f"this needs: pip install 'compaction-ledger[postgres]' ({error})", place="data_keys"
        ) from error
    database = Database(
        parse_address(url),
        read_only=read_only,
        pool_size=settings.database_connections,
        patience=settings.database_patience_seconds,
    )
    return PostgresWrappedKeys(database)


def memory_ring(settings: Settings) -> KeyRing:
    """Keys that are gone when the ledger is closed."""
    from compaction_ledger.infrastructure.keys.memory import (  # noqa: PLC0415 - cryptography
        MemoryKeyProvider,
        MemoryWrappedKeys,
    )
    from compaction_ledger.infrastructure.keys.ring import KeyRing  # noqa: PLC0415

    return KeyRing(MemoryKeyProvider, MemoryWrappedKeys(), encrypts=settings.encryption == "on")
