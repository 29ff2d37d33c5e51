"""Record what one request of a run was really given (section 0, Delivery; H8)."""

from __future__ import annotations

import logging
import uuid
from dataclasses import asdict

from compaction_ledger.domain.canonical import canonical_json, tagged_sha256
from compaction_ledger.domain.errors import DamagedLog, DifferentResult, StoreError
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.window.events import WindowDelivered
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.preparing import Prepared

logger = logging.getLogger(__name__)

DELIVERY_TAG = b"compaction-ledger/window-delivery/v1"


def record_window_delivery(
    context: WindowContext, prepared: Prepared, delivery_id: str | None = None
) -> int:
    """Append the delivery to the sealed log and return its index.

    Recording it again under the same ``delivery_id`` is answered with the index it has. Raises
    :class:`InvalidId`, and :class:`DifferentResult` where the id stands for another delivery.
    """
    if delivery_id is not None:
        check_id(delivery_id, "delivery id")
    return context.log.deliver(_delivery(context, prepared, delivery_id or uuid.uuid4().hex))


def record_window_by_setting(context: WindowContext, prepared: Prepared) -> None:
    """Record a request because all of them are to be recorded.

    Its id is a digest of what it holds, whatever stood in the request before: the same request, prepared
    again because its call failed or its process died, is one delivery. What cannot be recorded is told to
    the log and is no error of the request's (A11, H9).
    """
    delivery = _delivery(context, prepared, window_delivery_id_of(_delivery(context, prepared, "")))
    try:
        context.log.deliver(delivery)
    except DifferentResult:  # it was recorded when another part of it had been sent before
        logger.debug("a request was recorded before: %s", delivery.delivery_id)
    except (StoreError, DamagedLog) as error:
        logger.warning("a request is not recorded: %s", error)


def window_delivery_id_of(delivery: WindowDelivered) -> str:
    """An id for what a request held. What of it was sent before is no part of that."""
    members = {
        name: value
        for name, value in asdict(delivery).items()
        if name not in ("delivery_id", "bytes_reused")
    }
    return tagged_sha256(DELIVERY_TAG, canonical_json(members))[:32]


def _delivery(context: WindowContext, prepared: Prepared, delivery_id: str) -> WindowDelivered:
    manifest = prepared.manifest
    return WindowDelivered(
        delivery_id=delivery_id,
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
