"""Where a ledger keeps what must not stand in its database: keys, and the last signed head (K1, S1, S3)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from compaction_ledger.settings import Settings, is_database_url

KEYS_VARIABLE = "COMPACTION_LEDGER_KEYS"
CHECKPOINTS_VARIABLE = "COMPACTION_LEDGER_CHECKPOINTS"


class Places(NamedTuple):
    """The folders of one ledger. Neither needs to be there before something is kept in it.

    ``keys`` holds the keyring, the wrapped data keys and the signer's private key; ``checkpoints`` the last
    signed head and a copy of every checkpoint that was published.
    """

    keys: Path
    checkpoints: Path


def places_of(
    place: str | Path, settings: Settings, environment: Mapping[str, str] = os.environ
) -> Places:
    """The folders of the ledger at ``place``: by the settings, by the environment, or beside its file.

    A database has no place of ours beside it: there they are among the user's own state, named after
    host, port, database and schema.
    """
    beside = _beside(place, environment)
    return Places(
        _chosen(settings.keys_folder, environment.get(KEYS_VARIABLE), f"{beside}.keys"),
        _chosen(
            settings.checkpoints_folder,
            environment.get(CHECKPOINTS_VARIABLE),
            f"{beside}.checkpoints",
        ),
    )


def _chosen(given: Path | None, named: str | None, default: str) -> Path:
    return given or Path(named or default)


def _beside(place: str | Path, environment: Mapping[str, str]) -> Path:
    """What the folders' names begin with."""
    if not is_database_url(place):
        return Path(place)
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "compaction-ledger" / _name_of(str(place))


def _name_of(url: str) -> str:
    """A name for a database, without anything secret: of who connects, and how, it knows nothing (S4)."""
    from compaction_ledger.infrastructure.postgres.address import (  # noqa: PLC0415 - an extra
        parse_address,
    )

    return hashlib.sha256(parse_address(url).name.encode()).hexdigest()[:16]
