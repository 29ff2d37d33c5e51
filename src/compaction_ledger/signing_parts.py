"""The part of the composition root that signs and proves: keys and checkpoints of an open ledger (K1, K2)."""

from __future__ import annotations

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidSetting, KeyMissing
from compaction_ledger.infrastructure.proof.folder import CheckpointFolder
from compaction_ledger.infrastructure.proof.keys import SignerKeys
from compaction_ledger.places import Places
from compaction_ledger.usecases.proving import Prover
from compaction_ledger.usecases.signing import LogSigner
from compaction_ledger.worker import worker_name


def signer_keys(parts: Parts) -> SignerKeys:
    """The signer's keys of this ledger."""
    return SignerKeys(_places(parts).keys, parts.tree.head()[1])


def checkpoint_folder(parts: Parts) -> CheckpointFolder:
    """The checkpoints of this ledger."""
    return CheckpointFolder(_places(parts).checkpoints)


def log_signer(parts: Parts) -> LogSigner:
    """What signs this ledger, by a name of its own. A key is made where nothing was signed yet.

    Raises :class:`KeyMissing` where something was, and its key is not there: another one under the same name
    is made on purpose only.
    """
    keys = signer_keys(parts)
    # In this order: another process may make the first key just now, before it signs with it.
    was_signed = parts.tree.was_announced() or checkpoint_folder(parts).newest() is not None
    if was_signed and not keys.active_keys():
        raise KeyMissing(
            f"this log was signed before, and its signer's key is not in {_places(parts).keys}: bring it "
            "back; or put the public key that signed before into the file verifier-keys there, and make a "
            "new key with `keys rotate-signer`"
        )
    signers = keys.signers()
    return LogSigner(parts.tree, checkpoint_folder(parts), signers, keys.verifiers(), worker_name())


def prover(parts: Parts) -> Prover:
    """What proves, by the newest checkpoint of this ledger."""
    return Prover(parts.tree, checkpoint_folder(parts), signer_keys(parts).verifiers)


def _places(parts: Parts) -> Places:
    if parts.places is None:
        raise InvalidSetting(
            "a ledger in memory has no place for keys and checkpoints", place="ledger"
        )
    return parts.places
