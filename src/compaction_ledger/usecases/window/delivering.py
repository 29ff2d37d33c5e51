"""Record what one request of a run was really given (section 0, Delivery; H8)."""

from __future__ import annotations

import uuid

from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.window.events import WindowDelivered
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.preparing import Prepared


def record_window_delivery(
    context: WindowContext, prepared: Prepared, delivery_id: str | None = None
) -> int:
    """Append the delivery to the sealed log and return its index.

    Recording it again under the same ``delivery_id`` is answered with the index it has. Raises
    :class:`InvalidId`, and :class:`DifferentResult` where the id stands for another delivery.
    """
    if delivery_id is not None:
        check_id(delivery_id, "delivery id")
    manifest = prepared.manifest
    return context.log.deliver(
        WindowDelivered(
            delivery_id=delivery_id or uuid.uuid4().hex,
            window=context.key,
            shape=manifest.shape,
            messages=manifest.messages,
            chunks=manifest.chunks,
            pins=manifest.pins,
            stubs=manifest.stubs,
            tokens=manifest.tokens + manifest.beside,
            limit=manifest.limit,
            bytes_sent=prepared.bytes_sent,
            bytes_reused=prepared.bytes_reused,
            request_digest=manifest.request_digest,
        )
    )
