"""Facts that are no range's."""

from __future__ import annotations

from scenarios import CONVERSATION, JOB, SCOPE

from compaction_ledger.domain.events import (
    DeliveredPairs,
    DeliveredRejection,
    DeliveredReplacement,
    DeliveredSummary,
    RequestDelivered,
)


def delivery(delivery_id: str = "d-1", conversation: str = CONVERSATION) -> RequestDelivered:
    """What a request held, with every kind of entry."""
    return RequestDelivered(
        delivery_id,
        SCOPE,
        conversation,
        "run-9",
        "openai-chat",
        "full",
        (
            DeliveredPairs(0, 9, "summarized", None, "cd" * 32),
            DeliveredPairs(10, 29, "verbatim", None, "ef" * 32),
        ),
        (DeliveredSummary(0, 9, JOB.identity, 2),),
        (DeliveredRejection("f" * 64, "superseded"),),
        (DeliveredReplacement("u3", 1),),
        900,
        1_000,
        "ab" * 32,
    )
