"""The part of the composition root that knows where checkpoints go beside the ledger's own folder (K3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from compaction_ledger.composition import Parts
from compaction_ledger.domain.proof.spreading import Authority, WriteOnce
from compaction_ledger.infrastructure.proof.beside import BesideFolder
from compaction_ledger.infrastructure.proof.write_once import FolderCopies
from compaction_ledger.infrastructure.witness.client import HttpWitness
from compaction_ledger.settings import Settings
from compaction_ledger.signing_parts import checkpoint_folder
from compaction_ledger.usecases.spreading import Spreader

WITNESSES_VARIABLE = "COMPACTION_LEDGER_WITNESSES"
COPIES_VARIABLE = "COMPACTION_LEDGER_COPIES"
TIMESTAMPS_VARIABLE = "COMPACTION_LEDGER_TIMESTAMPS"
_S3 = "s3://"


def spreader(
    parts: Parts, settings: Settings, environment: Mapping[str, str] = os.environ
) -> Spreader | None:
    """What spreads the checkpoints of this ledger; ``None`` where they go nowhere else.

    Raises :class:`InvalidSetting`.
    """
    witnesses = [HttpWitness.parse(one) for one in witnesses_of(settings, environment)]
    copies = settings.checkpoint_copies or _listed(environment.get(COPIES_VARIABLE))
    timestamps = settings.timestamps or environment.get(TIMESTAMPS_VARIABLE)
    if not witnesses and not copies and not timestamps:
        return None
    return Spreader(
        BesideFolder(checkpoint_folder(parts)),
        witnesses,
        list(map(_place, copies)),
        _authority(timestamps) if timestamps else None,
    )


def witnesses_of(settings: Settings, environment: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Witnesses as they are set: by the settings, else by the environment."""
    return settings.witnesses or _listed(environment.get(WITNESSES_VARIABLE))


def _listed(value: str | None) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(one.strip() for one in (value or "").split(",") if one.strip())


def _place(place: str) -> WriteOnce:
    if place.startswith(_S3):
        from compaction_ledger.infrastructure.proof.s3_copies import (  # noqa: PLC0415 - an extra
            S3Copies,
        )

        return S3Copies.open(place)
    return FolderCopies(Path(place))


def _authority(setting: str) -> Authority:
    from compaction_ledger.infrastructure.timestamps.rfc3161 import (  # noqa: PLC0415 - an extra
        Rfc3161Authority,
    )

    return Rfc3161Authority.parse(setting)
