"""Where a fact belongs: into which stream, and to which conversation (L4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from compaction_ledger.domain.erasure import ErasureCompleted, ErasureRequested
from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.events import RangeClaimed, RequestDelivered, SummaryImported
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.window.events import ChunkClaimed, PinAccepted, WindowDelivered
from compaction_ledger.infrastructure.event_store.streams import (
    delivery_stream,
    erasure_stream,
    range_stream,
    window_delivery_stream,
    window_stream,
)

Conversation = tuple[str, str]


def _range_key(fact: Any) -> RangeKey:
    return RangeKey(fact.job.scope, fact.job.conversation, fact.job.from_pair)


def _of_job(fact: Any) -> Conversation:
    return fact.job.scope, fact.job.conversation


def _of_chunk(fact: Any) -> Conversation:
    return fact.job.window.scope, fact.job.window.conversation


def _of_window(fact: Any) -> Conversation:
    return fact.window.scope, fact.window.conversation


def _of_delivery(fact: Any) -> Conversation:
    return fact.scope, fact.conversation


_CONVERSATIONS: dict[type[Fact], Callable[[Any], Conversation]] = {
    RangeClaimed: _of_job,
    SummaryImported: _of_job,
    RequestDelivered: _of_delivery,
    ChunkClaimed: _of_chunk,
    PinAccepted: _of_window,
    WindowDelivered: _of_window,
}
_STREAMS: dict[type[Fact], Callable[[str, Any], UUID]] = {
    RangeClaimed: lambda subject, fact: range_stream(subject, _range_key(fact)),
    SummaryImported: lambda subject, fact: range_stream(subject, _range_key(fact)),
    RequestDelivered: lambda subject, fact: delivery_stream(subject, fact.delivery_id),
    ChunkClaimed: lambda subject, fact: window_stream(subject, fact.job.window),
    PinAccepted: lambda subject, fact: window_stream(subject, fact.window),
    WindowDelivered: lambda subject, fact: window_delivery_stream(subject, fact.delivery_id),
    ErasureRequested: lambda _subject, fact: erasure_stream(fact.subject),
    ErasureCompleted: lambda _subject, fact: erasure_stream(fact.subject),
}


def conversation_of(fact: Fact) -> Conversation | None:
    """The scope and conversation that a fact names, if it names any."""
    named = _CONVERSATIONS.get(type(fact))
    return None if named is None else named(fact)


def check_place(
    fact: Fact, stream: str, subject: str, conversation: Conversation | None, index: int
) -> None:
    """Raise :class:`DamagedLog` for a fact that was recorded for another stream or conversation.

    ``conversation`` is the one that the subject stands for, where that is known. Of a fact that names
    neither, nothing can be said here.
    """
    belongs = _STREAMS.get(type(fact))
    if belongs is None:
        return
    if belongs(subject, fact).hex != stream:
        raise DamagedLog("it was recorded for another stream", index=index)
    if conversation is not None and conversation_of(fact) not in (conversation, None):
        raise DamagedLog("it was recorded for another conversation", index=index)
