"""The part of the composition root that makes a witness, and reaches others' (K3)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compaction_ledger.domain.errors import InvalidSetting, MalformedProof
from compaction_ledger.domain.proof.checkpoints import Checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.cosignatures import split_cosignature
from compaction_ledger.domain.proof.notes import ED25519, NoteSigner, VerifierKey, parse_note
from compaction_ledger.domain.proof.witnessing import origin_name
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.infrastructure.witness.keys import KEY, STORE, known_key, witness_key
from compaction_ledger.infrastructure.witness.server import Bounds, WitnessServer
from compaction_ledger.infrastructure.witness.store import SQLiteWitnessStore
from compaction_ledger.usecases.witnessing import WitnessService


class WitnessParts(NamedTuple):
    """A witness in a folder. ``verifier_key`` is what its cosignatures are checked with."""

    service: WitnessService
    verifier_key: VerifierKey
    store: SQLiteWitnessStore


class LookedAt(NamedTuple):
    """What a witness cosigned last of one log, and when, in seconds since the epoch."""

    checkpoint: Checkpoint
    time: int
    note: bytes


class WitnessLook(NamedTuple):
    """A witness as its folder shows it."""

    verifier_key: VerifierKey
    logs: Sequence[LookedAt]


def open_witness(folder: Path, log_keys: Sequence[str], name: str | None = None) -> WitnessParts:
    """The witness in ``folder``, which is made where there is none, for the logs of these verifier keys.

    Raises :class:`InvalidSetting` for what is no key of a log, and kinds of :class:`StoreError`.
    """
    logs = logs_of(log_keys)
    cosigner: NoteSigner = witness_key(folder, lambda: int(time.time()), name)
    store = SQLiteWitnessStore(folder / STORE)
    return WitnessParts(WitnessService(logs, cosigner, store), cosigner.verifier_key, store)


def look_at_witness(folder: Path) -> WitnessLook:
    """What a witness keeps. Nothing is written. Raises :class:`InvalidSetting` where there is none."""
    if not (folder / KEY).is_file() or not (folder / STORE).is_file():
        raise InvalidSetting("there is no witness in this folder", place=str(folder))
    cosigner = known_key(folder)
    notes = SQLiteWitnessStore(folder / STORE, create=False).all()
    return WitnessLook(cosigner.verifier_key, [_looked_at(note, cosigner) for note in notes])


def _looked_at(data: bytes, cosigner: NoteSigner) -> LookedAt:
    note = parse_note(data)
    ours = [one for one in note.signatures if one.key_id == cosigner.key_id]
    time, _ = split_cosignature(ours[-1].signature if ours else b"")
    return LookedAt(parse_checkpoint(note.text), time, data)


def logs_of(keys: Sequence[str]) -> Mapping[str, Sequence[Ed25519Verifier]]:
    """Verifier keys by the origin of their log, which is the key's name. Raises :class:`InvalidSetting`."""
    found: defaultdict[str, list[Ed25519Verifier]] = defaultdict(list)
    for text in keys:
        try:
            verifier = Ed25519Verifier.parse(text)
        except MalformedProof as error:
            raise InvalidSetting(f"not a verifier key: {error}", place="log key") from error
        if verifier.verifier_key.signature_type != ED25519:
            raise InvalidSetting("this is the key of a witness, not of a log", place="log key")
        found[verifier.name].append(verifier)
    return found


def witness_server(
    parts: WitnessParts, address: tuple[str, int], bounds: Bounds | None = None
) -> WitnessServer:
    """A server for a witness at ``address``. Raises :class:`InvalidSetting` where that cannot be had."""
    origins = {origin_name(origin): origin for origin in parts.service.logs}

    def named(name: str) -> bytes | None:
        origin = origins.get(name)
        return None if origin is None else parts.service.latest(origin)

    try:
        return WitnessServer(address, parts.service, named, bounds)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(f"cannot listen there: {error}", place="listen") from error
