"""What `erase` answers."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.usecases.erasing import Erasure


class ErasureRecord(Document):
    """One conversation that was erased; its name is not told any more."""

    reference: str
    """What stands for it in the log."""

    requested_index: Count
    """Where the request is recorded."""

    completed_index: Count
    """Where the completion is recorded."""

    blanked: Count
    """How many payloads had been stored without encryption, and were removed from the log."""

    purged: list[str]
    """The stores that its rows were deleted from."""


class EraseDocument(Document):
    """`compaction-ledger erase`."""

    erased: list[ErasureRecord]
    leftovers: Count
    """How many conversations had been erased and had lines again, which were deleted once more."""

    @classmethod
    def of(cls, done: Sequence[Erasure], leftovers: int = 0) -> EraseDocument:
        return cls(
            leftovers=leftovers,
            erased=[
                ErasureRecord(
                    reference=one.reference,
                    requested_index=one.requested,
                    completed_index=one.completed,
                    blanked=one.blanked,
                    purged=list(one.purged),
                )
                for one in done
            ],
        )
