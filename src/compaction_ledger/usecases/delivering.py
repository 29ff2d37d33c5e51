"""Record what a request to the model was really given (section 0, Delivery)."""

from __future__ import annotations

import logging
import uuid
from dataclasses import asdict

from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.binding import source_hash
from compaction_ledger.domain.canonical import canonical_json, tagged_sha256
from compaction_ledger.domain.errors import DamagedLog, StoreError
from compaction_ledger.domain.events import (
    DeliveredPairs,
    DeliveredRejection,
    DeliveredReplacement,
    DeliveredSummary,
    RequestDelivered,
)
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.manifest import PairGroup
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import follow

logger = logging.getLogger(__name__)

DELIVERY_TAG = b"compaction-ledger/delivery/v1"


def record_delivery(
    context: Context, assembly: Assembly, run: str | None, delivery_id: str | None = None
) -> int:
    """Append the delivery to the sealed log and return its index.

    Recording it again under the same ``delivery_id`` is answered with the index it has. Raises
    :class:`InvalidId`, and :class:`DifferentResult` where the id stands for another delivery.
    """
    if run is not None:
        check_id(run, "run")
    if delivery_id is not None:
        check_id(delivery_id, "delivery id")
    index = context.log.deliver(_delivery(assembly, run, delivery_id or uuid.uuid4().hex))
    follow(context)
    return index


def record_by_setting(context: Context, assembly: Assembly, run: str | None) -> int | None:
    """Record a request because all of them are to be recorded; ``None`` where that cannot be done now.

    Its id is a digest of what it holds: the same request, made again because its call failed, is one
    delivery. What cannot be recorded is told to the log and is no error of the request's (A11, H9).
    """
    if run is not None:
        check_id(run, "run")
    delivery = _delivery(assembly, run, delivery_id_of(_delivery(assembly, run, "")))
    try:
        index = context.log.deliver(delivery)
    except (StoreError, DamagedLog) as error:
        logger.warning("a request is not recorded: %s", error)
        return None
    follow(context)
    return index


def delivery_id_of(delivery: RequestDelivered) -> str:
    """An id for what a request held, whoever records it and however often."""
    members = {name: value for name, value in asdict(delivery).items() if name != "delivery_id"}
    return tagged_sha256(DELIVERY_TAG, canonical_json(members))[:32]


def _delivery(assembly: Assembly, run: str | None, delivery_id: str) -> RequestDelivered:
    manifest = assembly.manifest
    return RequestDelivered(
        delivery_id=delivery_id,
        scope=manifest.scope,
        conversation=manifest.conversation,
        run=run,
        shape=manifest.shape,
        mode=manifest.mode,
        pairs=tuple(_pairs(assembly, group) for group in manifest.groups),
        summaries=tuple(
            DeliveredSummary(used.from_pair, used.to_pair, used.identity, used.index)
            for used in manifest.summaries
        ),
        rejected=tuple(
            DeliveredRejection(rejected.identity, rejected.reason) for rejected in manifest.rejected
        ),
        replaced=tuple(
            DeliveredReplacement(message_id, count) for message_id, count in manifest.replaced
        ),
        bytes_used=manifest.bytes_used,
        bytes_allowed=manifest.bytes_allowed,
        request_digest=manifest.request_digest,
    )


def _pairs(assembly: Assembly, group: PairGroup) -> DeliveredPairs:
    """A group of pairs, bound to what it was made of if it stands in the request."""
    pairs = assembly.pairs[group.from_pair : group.to_pair + 1]
    bound = group.disposition != "left_out" and len(pairs) == group.to_pair - group.from_pair + 1
    manifest = assembly.manifest
    return DeliveredPairs(
        group.from_pair,
        group.to_pair,
        group.disposition,
        group.reason,
        source_hash(manifest.scope, manifest.conversation, pairs) if bound else None,
    )
