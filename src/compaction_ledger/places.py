"""Where a ledger keeps what must not stand in its database: keys, and the last signed head (K1, S1, S3)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.settings import Settings, is_database_url

KEYS_VARIABLE = "COMPACTION_LEDGER_KEYS"
CHECKPOINTS_VARIABLE = "COMPACTION_LEDGER_CHECKPOINTS"
_NAME = re.compile(r"[0-9a-f]{32}")


class Places(NamedTuple):
    """The folders of one ledger. Neither needs to be there before something is kept in it.

    ``keys`` holds the keyring, the wrapped data keys and the signer's private key; ``checkpoints`` the last
    signed head and a copy of every checkpoint that was published.
    """

    keys: Path
    checkpoints: Path


def places_of(
    place: str | Path,
    origin: Callable[[], str],
    settings: Settings,
    environment: Mapping[str, str] = os.environ,
) -> Places:
    """The folders of the ledger at ``place``: by the settings, by the environment, or beside its file.

    A database has no place of ours beside it: there they are among the user's own state, named after the
    ``origin`` of the log, which is the same however the database is reached, and after it was restored.
    """
    keys = settings.keys_folder or _named(environment, KEYS_VARIABLE)
    checkpoints = settings.checkpoints_folder or _named(environment, CHECKPOINTS_VARIABLE)
    if keys is None or checkpoints is None:
        beside = _beside(place, origin, environment)
        keys = keys or Path(f"{beside}.keys")
        checkpoints = checkpoints or Path(f"{beside}.checkpoints")
    return Places(keys, checkpoints)


def _named(environment: Mapping[str, str], variable: str) -> Path | None:
    named = environment.get(variable)
    return Path(named) if named else None


def _beside(place: str | Path, origin: Callable[[], str], environment: Mapping[str, str]) -> Path:
    """What the folders' names begin with."""
    if not is_database_url(place):
        return Path(place)
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    try:
        name = origin().rpartition("/")[2]
    except DamagedLog:  # it will be said of the log; keys cannot be told whose they are
        name = ""
    return Path(state) / "compaction-ledger" / (name if _NAME.fullmatch(name) else "unnamed")
