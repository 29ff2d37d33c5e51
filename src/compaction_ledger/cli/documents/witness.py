"""What `witness serve` and `witness show` answer."""

from __future__ import annotations

from compaction_ledger.cli.documents.common import Count, Document, Hash, Time, moment
from compaction_ledger.witness_parts import WitnessLook


class WitnessServeDocument(Document):
    """`compaction-ledger witness serve`, once it listens."""

    name: str
    """The name of the witness's key."""

    key: str
    """Its verifier key."""

    url: str
    """Where it listens."""

    logs: list[str]
    """The origins of the logs that it cosigns."""


class CosignedRecord(Document):
    """The newest checkpoint of a log that a witness has cosigned."""

    origin: str
    size: Count
    root: Hash
    cosigned_at: Time
    """When that was, by the witness's clock."""

    checkpoint: str
    """The checkpoint with its signatures, as a signed note."""


class WitnessShowDocument(Document):
    """`compaction-ledger witness show`."""

    name: str
    """The name of the witness's key."""

    key: str
    """Its verifier key."""

    logs: list[CosignedRecord]

    @classmethod
    def of(cls, look: WitnessLook) -> WitnessShowDocument:
        return cls(
            name=look.verifier_key.name,
            key=str(look.verifier_key),
            logs=[
                CosignedRecord(
                    origin=one.checkpoint.origin,
                    size=one.checkpoint.size,
                    root=one.checkpoint.root.hex(),
                    cosigned_at=moment(one.time * 1_000_000),
                    checkpoint=one.note.decode(),
                )
                for one in look.logs
            ],
        )
