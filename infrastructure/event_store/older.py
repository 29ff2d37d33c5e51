"""Stored forms that are not written any more: their shapes, and what makes the present facts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.events import (
    DeliveredPairs,
    DeliveredRejection,
    DeliveredReplacement,
    DeliveredSummary,
    RequestDelivered,
    Stored,
)


@dataclass(frozen=True, slots=True)
class DeliveredPairs1(Stored):
    """Pairs without the hash of their source."""

    from_pair: int
    to_pair: int
    disposition: Literal["verbatim", "summarized", "left_out"]
    reason: str | None


@dataclass(frozen=True, slots=True)
class RequestDelivered1(Stored):
    """``RequestDelivered@1``."""

    delivery_id: str
    scope: str
    conversation: str
    run: str | None
    shape: str
    mode: str
    pairs: tuple[DeliveredPairs1, ...]
    summaries: tuple[DeliveredSummary, ...]
    rejected: tuple[DeliveredRejection, ...]
    replaced: tuple[DeliveredReplacement, ...]
    bytes_used: int
    bytes_allowed: int
    request_digest: str


def request_delivered(old: RequestDelivered1) -> RequestDelivered:
    """The present fact: of its pairs nothing is known but their places."""
    return RequestDelivered(
        delivery_id=old.delivery_id,
        scope=old.scope,
        conversation=old.conversation,
        run=old.run,
        shape=old.shape,
        mode=old.mode,
        pairs=tuple(
            DeliveredPairs(one.from_pair, one.to_pair, one.disposition, one.reason, None)
            for one in old.pairs
        ),
        summaries=old.summaries,
        rejected=old.rejected,
        replaced=old.replaced,
        bytes_used=old.bytes_used,
        bytes_allowed=old.bytes_allowed,
        request_digest=old.request_digest,
    )
