"""Record what a request to the model was really given (section 0, Delivery)."""

from __future__ import annotations

import uuid

from compaction_ledger.domain.events import (
    DeliveredPairs,
    DeliveredRejection,
    DeliveredReplacement,
    DeliveredSummary,
    RequestDelivered,
)
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.manifest import Manifest
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import follow


def record_delivery(
    context: Context, manifest: Manifest, run: str | None, delivery_id: str | None = None
) -> int:
    """Append the delivery to the sealed log and return its index.

    Recording it again under the same ``delivery_id`` is answered with the index it has. Raises
    :class:`InvalidId`, and :class:`DifferentResult` where the id stands for another delivery.
    """
    if run is not None:
        check_id(run, "run")
    if delivery_id is not None:
        check_id(delivery_id, "delivery id")
    index = context.log.deliver(
        RequestDelivered(
            delivery_id=delivery_id or uuid.uuid4().hex,
            scope=manifest.scope,
            conversation=manifest.conversation,
            run=run,
            shape=manifest.shape,
            mode=manifest.mode,
            pairs=tuple(
                DeliveredPairs(group.from_pair, group.to_pair, group.disposition, group.reason)
                for group in manifest.groups
            ),
            summaries=tuple(
                DeliveredSummary(used.from_pair, used.to_pair, used.identity, used.index)
                for used in manifest.summaries
            ),
            rejected=tuple(
                DeliveredRejection(rejected.identity, rejected.reason)
                for rejected in manifest.rejected
            ),
            replaced=tuple(
                DeliveredReplacement(message_id, count) for message_id, count in manifest.replaced
            ),
            bytes_used=manifest.bytes_used,
            bytes_allowed=manifest.bytes_allowed,
            request_digest=manifest.request_digest,
        )
    )
    follow(context)
    return index
