"""Which key provider a ledger has, by a setting: the adapters are imported when they are asked for (S1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from compaction_ledger.domain.keys import KeyProvider, ProviderName, provider_names
from compaction_ledger.settings import KEY_PROVIDER_VARIABLE, Settings


def key_provider_text(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The name of the key provider: by the settings, by the environment, or ``file``."""
    if "key_provider" in settings.model_fields_set:
        return settings.key_provider
    return environment.get(KEY_PROVIDER_VARIABLE) or settings.key_provider


def provider_named(
    text: str, folder: Path, *, create: bool, environment: Mapping[str, str] = os.environ
) -> KeyProvider:
    """The key provider that ``text`` names; ``folder`` is where a file keyring is, and ``create`` makes it.

    Names after a comma are of providers that only open what they wrapped before; they are never made. Raises
    :class:`InvalidSetting`, also for an extra that is not installed, and what opening a keyring raises.
    """
    current, *former = provider_names(text)
    provider = _opened(current, folder, create, environment)
    if not former:
        return provider
    from compaction_ledger.infrastructure.keys.moved import MovedKeys  # noqa: PLC0415 - rarely

    return MovedKeys(provider, [_opened(name, folder, False, environment) for name in former])  # noqa: FBT003


def _opened(
    name: ProviderName,
    folder: Path,
    create: bool,  # noqa: FBT001
    environment: Mapping[str, str],
) -> KeyProvider:
    # Each import is that of an extra, or of the cryptography that a ledger without encryption does not need.
    if name.kind == "aws-kms":
        from compaction_ledger.infrastructure.keys.aws_kms import AwsKms  # noqa: PLC0415

        return AwsKms.open(name.key)
    if name.kind == "google-kms":
        from compaction_ledger.infrastructure.keys.google_kms import GoogleKms  # noqa: PLC0415

        return GoogleKms.open(name.key)
    if name.kind == "vault":
        from compaction_ledger.infrastructure.keys.vault import Vault  # noqa: PLC0415

        return Vault.open(name.key, environment)
    from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring  # noqa: PLC0415

    return FileKeyring.open(folder, create=create)
