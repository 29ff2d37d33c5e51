"""Whose stream a recorded fact stands in."""

from __future__ import annotations

from compaction_ledger.domain.events import RangeClaimed, RequestDelivered, SummaryImported
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import RangeKey, Recorded, StreamKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.window.events import ChunkClaimed, PinAccepted, WindowDelivered


def stream_of(log: Log, entry: Recorded) -> StreamKey | None:
    """The range or window that a fact is about; ``None`` for a delivery of a conversation.

    Not every fact names it: then the others of its stream are looked at.
    """
    if isinstance(entry.fact, RequestDelivered):
        return None
    named = _named(entry.fact)
    if named is not None:
        return named
    found = (_named(earlier.fact) for earlier in log.stream(entry.stream))
    return next((key for key in found if key is not None), None)


def _named(fact: Fact) -> StreamKey | None:
    match fact:
        case RangeClaimed(job=job) | SummaryImported(job=job):
            return RangeKey(job.scope, job.conversation, job.from_pair)
        case ChunkClaimed(job=job):
            return job.window
        case PinAccepted(window=window) | WindowDelivered(window=window):
            return window
        case _:
            return None
