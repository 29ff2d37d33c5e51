"""What `checkpoint`, `prove` and `keys` answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compaction_ledger.cli.documents.common import Count, Document, Hash
from compaction_ledger.domain.errors import Forked, LedgerError
from compaction_ledger.domain.keys import KeyEpochs
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.inclusion import InclusionProof, WitnessRequest
from compaction_ledger.domain.proof.merkle import leaf_hash
from compaction_ledger.domain.proof.notes import VerifierKey
from compaction_ledger.domain.proof.ports import SignerKeyFiles
from compaction_ledger.usecases.signing import Signed
from compaction_ledger.usecases.spreading import Spread


class SpreadFailure(Document):
    """A witness, place or authority that a checkpoint did not get to."""

    name: str
    code: str
    """Stable; see the error codes in cli.md."""

    message: str
    sides: list[str]
    """Of a fork: the checkpoints of both sides."""

    @classmethod
    def of(cls, name: str, error: LedgerError) -> SpreadFailure:
        sides = error.sides if isinstance(error, Forked) else ()
        return cls(name=name, code=error.code, message=str(error), sides=list(sides))


class CheckpointDocument(Document):
    """`compaction-ledger checkpoint`."""

    origin: str
    """The log, and the name of its keys."""

    size: Count
    """How many events are signed."""

    root: Hash
    """The root of the tree over them."""

    keys: list[str]
    """Name and id of each key that signed."""

    new: bool
    """Whether it was signed now; `false` where nothing had happened since the last one."""

    note: str
    """The checkpoint, as it is handed on."""

    cosigned: list[str]
    """The witnesses that cosigned it, of those that are set."""

    copies: list[str]
    """The places that keep a copy, of those that are set."""

    timestamped: bool
    """Whether it has a time stamp."""

    failures: list[SpreadFailure]
    """The witnesses, places and authorities that it did not get to."""

    @classmethod
    def of(cls, signed: Signed, spread: Spread | None) -> CheckpointDocument:
        head = signed.checkpoint
        failures = () if spread is None else spread.failures
        return cls(
            origin=head.origin,
            size=head.size,
            root=head.root.hex(),
            keys=list(signed.keys),
            new=signed.new,
            note=(signed.data if spread is None else spread.note).decode(),
            cosigned=[] if spread is None else list(spread.cosigned),
            copies=[] if spread is None else list(spread.copies),
            timestamped=spread is not None and spread.timestamped,
            failures=[SpreadFailure.of(name, error) for name, error in failures],
        )


class ProofRecord(Document):
    """That one event is in the log."""

    index: Count
    leaf: Hash
    """The hash of its envelope, with a zero byte before it."""

    proof: str
    """The proof, as it is handed on (C2SP `tlog-proof`); `extra` is the envelope."""

    file: str | None
    """Where it was written."""

    @classmethod
    def of(cls, proof: InclusionProof, file: Path | None) -> ProofRecord:
        return cls(
            index=proof.index,
            leaf=leaf_hash(proof.extra).hex(),
            proof=proof.encode().decode(),
            file=None if file is None else str(file),
        )


class ConsistencyRecord(Document):
    """That the log began as it was before."""

    old_size: Count
    proof: str
    """The proof, as it is handed on: a request to a witness (C2SP `tlog-witness`)."""

    file: str | None
    """Where it was written."""

    @classmethod
    def of(cls, proof: WitnessRequest, file: Path | None) -> ConsistencyRecord:
        return cls(
            old_size=proof.old,
            proof=proof.encode().decode(),
            file=None if file is None else str(file),
        )


class ProveDocument(Document):
    """`compaction-ledger prove`."""

    origin: str
    """The log."""

    size: Count
    """How many events the checkpoint covers that all of it is proved by."""

    root: Hash
    """The root of the tree over them."""

    proofs: list[ProofRecord]
    consistency: ConsistencyRecord | None
    """With `--consistency`."""

    @classmethod
    def of(
        cls,
        head: Checkpoint,
        proofs: Sequence[ProofRecord],
        consistency: ConsistencyRecord | None,
    ) -> ProveDocument:
        return cls(
            origin=head.origin,
            size=head.size,
            root=head.root.hex(),
            proofs=list(proofs),
            consistency=consistency,
        )


class SignerKeyRecord(Document):
    """A key that signs the log, or signed it."""

    key: str
    """The public key, as it is handed on: name, id and key (C2SP `signed-note`)."""

    id: str
    """Its id, in hexadecimal."""

    signs: bool
    """Whether it signs what is signed from now on."""

    @classmethod
    def of(cls, key: VerifierKey, active: Sequence[VerifierKey]) -> SignerKeyRecord:
        return cls(key=str(key), id=key.key_id.hex(), signs=key in active)


class KeyEpochRecord(Document):
    """A key-encryption key: data keys are wrapped with it."""

    epoch: str
    """How the provider names it."""

    data_keys: Count
    """How many data keys are wrapped with it."""

    current: bool
    """Whether new data keys are."""


class KeysDocument(Document):
    """`compaction-ledger keys`."""

    signers: list[SignerKeyRecord]
    """The keys of the signer, the oldest first."""

    provider: str | None
    """Who holds the key-encryption keys; `null` where nothing is encrypted yet."""

    epochs: list[KeyEpochRecord]
    """The key-encryption keys, the oldest first."""

    rewrapped: Count
    """How many data keys were wrapped anew by this command."""

    @classmethod
    def of(
        cls, files: SignerKeyFiles, epochs: KeyEpochs | None, rewrapped: int = 0
    ) -> KeysDocument:
        active = files.active_keys()
        return cls(
            signers=[SignerKeyRecord.of(key, active) for key in files.verifier_keys()],
            provider=None if epochs is None else epochs.provider,
            epochs=[
                KeyEpochRecord(epoch=name, data_keys=count, current=name == epochs.current)
                for name, count in epochs.data_keys.items()
            ]
            if epochs
            else [],
            rewrapped=rewrapped,
        )
