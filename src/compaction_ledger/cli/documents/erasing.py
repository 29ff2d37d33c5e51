"""What `erase` answers."""

from __future__ import annotations

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.usecases.erasing import Erasure, Resumed


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

    @classmethod
    def of(cls, one: Erasure) -> ErasureRecord:
        return cls(
            reference=one.reference,
            requested_index=one.requested,
            completed_index=one.completed,
            blanked=one.blanked,
            purged=list(one.purged),
        )


class EraseDocument(Document):
    """`compaction-ledger erase`."""

    erased: list[ErasureRecord]
    destroyed_again: list[str]
    """References of which a backup had brought back the key, which is destroyed once more."""

    forgotten_again: Count
    """How many conversations a backup had brought back, on the work list too, which are deleted once more."""

    @classmethod
    def of(cls, done: Erasure) -> EraseDocument:
        return cls(erased=[ErasureRecord.of(done)], destroyed_again=[], forgotten_again=0)

    @classmethod
    def of_resumed(cls, done: Resumed) -> EraseDocument:
        return cls(
            erased=list(map(ErasureRecord.of, done.erasures)),
            destroyed_again=list(done.destroyed_again),
            forgotten_again=done.forgotten_again,
        )
