"""Record what a request to the model was really given (section 0, Delivery)."""

from __future__ import annotations

import uuid

from compaction_ledger.domain.events import DeliveredPairs, DeliveredSummary, RequestDelivered
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.manifest import Manifest
from compaction_ledger.usecases.context import Context


def record_delivery(context: Context, manifest: Manifest, run: str | None) -> int:
    """Append the delivery to the sealed log and return its index. Raises :class:`InvalidId` for a bad run."""
    if run is not None:
        check_id(run, "run")
    return context.log.deliver(
        RequestDelivered(
            delivery_id=uuid.uuid4().hex,
            scope=manifest.scope,
            conversation=manifest.conversation,
            run=run,
            shape=manifest.shape,
            pairs=tuple(
                DeliveredPairs(group.from_pair, group.to_pair, group.disposition, group.reason)
                for group in manifest.groups
            ),
            summaries=tuple(
                DeliveredSummary(used.from_pair, used.to_pair, used.identity, used.index)
                for used in manifest.summaries
            ),
            rejected=tuple((rejected.identity, rejected.reason) for rejected in manifest.rejected),
            replaced=manifest.replaced,
            bytes_used=manifest.bytes_used,
            bytes_allowed=manifest.bytes_allowed,
            request_digest=manifest.request_digest,
        )
    )
