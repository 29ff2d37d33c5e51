"""From the facts of windows to their rows: pure, and the same for every store (P1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from compaction_ledger.domain.claim_rules import MAX_ATTEMPTS
from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkClaimReleased,
    ChunkClaimRenewed,
    ChunkCompleted,
    PinAccepted,
    WindowDelivered,
)
from compaction_ledger.projections.records import (
    WindowChunkRecord,
    WindowDeliveryRecord,
    WindowPinRecord,
)
from compaction_ledger.projections.rows import Rows
from compaction_ledger.projections.window_records import key_of


def _claimed(rows: Rows, entry: Recorded, fact: ChunkClaimed) -> None:
    chunk = rows.chunk(fact.identity) or _new_chunk(fact)
    chunk.status = "claimed"
    chunk.claim_id = fact.claim_id
    chunk.holder = fact.holder
    chunk.expires_at = fact.expires_at
    chunk.retry_at = None
    _put(rows, entry, chunk)


def _started(rows: Rows, entry: Recorded, fact: ChunkAttemptStarted) -> None:
    chunk = _known(rows, entry, fact.identity)
    chunk.status = "running"
    chunk.attempts = fact.number
    chunk.expires_at = fact.expires_at
    _put(rows, entry, chunk)


def _renewed(rows: Rows, entry: Recorded, fact: ChunkClaimRenewed) -> None:
    chunk = _known(rows, entry, fact.identity)
    chunk.expires_at = fact.expires_at
    _put(rows, entry, chunk)


def _failed(rows: Rows, entry: Recorded, fact: ChunkAttemptFailed) -> None:
    chunk = _known(rows, entry, fact.identity)
    chunk.status = "failed"
    chunk.failure = fact.failure
    chunk.retry_at = fact.retry_at
    _put(rows, entry, chunk)


def _completed(rows: Rows, entry: Recorded, fact: ChunkCompleted) -> None:
    chunk = _known(rows, entry, fact.identity)
    if chunk.idx is not None and chunk.idx < entry.index:
        return  # what somebody forged replaces nothing (A2)
    chunk.status = "completed"
    chunk.idx = entry.index
    chunk.recorded_at = entry.recorded_at
    chunk.holder = chunk.expires_at = chunk.retry_at = chunk.failure = None
    chunk.ungrounded = len(fact.ungrounded)
    chunk.input_tokens = fact.usage.input_tokens
    chunk.output_tokens = fact.usage.output_tokens
    _put(rows, entry, chunk)
    for identity in chunk.taken():
        other = _known(rows, entry, identity)
        other.replaced_by = fact.identity
        _put(rows, entry, other)


def _released(rows: Rows, entry: Recorded, fact: ChunkClaimReleased) -> None:
    chunk = _known(rows, entry, fact.identity)
    if fact.reason == "exhausted" or chunk.attempts >= MAX_ATTEMPTS:
        chunk.status, chunk.retry_at = "exhausted", None
    else:
        chunk.status = "failed" if chunk.attempts else "released"
    chunk.holder = chunk.expires_at = None
    _put(rows, entry, chunk)


def _pinned(rows: Rows, entry: Recorded, fact: PinAccepted) -> None:
    window = fact.window
    if fact.supersedes is not None:
        older = rows.pin(key_of(window, fact.supersedes))
        if older is None:
            raise DamagedLog(f"there is no pin {fact.supersedes} to correct", index=entry.index)
        older.superseded_by = fact.pin_id
        rows.put(older)
    rows.put(
        WindowPinRecord(
            pin_key=key_of(window, fact.pin_id),
            scope=window.scope,
            conversation=window.conversation,
            run=window.run,
            pin_id=fact.pin_id,
            message=fact.message,
            digest=fact.digest,
            part=fact.part,
            quote_start=fact.start,
            quote_end=fact.end,
            quote=fact.quote,
            exchange=fact.exchange,
            proposer=fact.proposer,
            supersedes=fact.supersedes,
            superseded_by=None,
            idx=entry.index,
            recorded_at=entry.recorded_at,
        )
    )


def _delivered(rows: Rows, entry: Recorded, fact: WindowDelivered) -> None:
    messages: Counter[str] = Counter()
    for group in fact.messages:
        messages[group.disposition] += group.last - group.first + 1
    rows.put(
        WindowDeliveryRecord(
            delivery_key=key_of(fact.window, fact.delivery_id),
            delivery_id=fact.delivery_id,
            scope=fact.window.scope,
            conversation=fact.window.conversation,
            run=fact.window.run,
            shape=fact.shape,
            verbatim=messages["verbatim"],
            summarized=messages["summarized"],
            left_out=messages["left_out"],
            chunks=len(fact.chunks),
            pins=len(fact.pins),
            stubs=len(fact.stubs),
            tokens=fact.tokens,
            token_limit=fact.limit,
            bytes_sent=fact.bytes_sent,
            bytes_reused=fact.bytes_reused,
            request_digest=fact.request_digest,
            idx=entry.index,
            recorded_at=entry.recorded_at,
        )
    )


def _new_chunk(fact: ChunkClaimed) -> WindowChunkRecord:
    job = fact.job
    return WindowChunkRecord(
        identity=fact.identity,
        scope=job.window.scope,
        conversation=job.window.conversation,
        run=job.window.run,
        first_message=job.first,
        last_message=job.last,
        source_hash=job.source_hash,
        provider=job.model.provider,
        model=job.model.name,
        settings=_settings(job.model.settings),
        prompt=job.prompt.name,
        prompt_version=job.prompt.version,
        replaces=json.dumps(job.replaces),
        status="claimed",
        claim_id=fact.claim_id,
    )


@lru_cache(maxsize=256)
def _settings(settings: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(settings, ensure_ascii=False)


def _known(rows: Rows, entry: Recorded, identity: str) -> WindowChunkRecord:
    chunk = rows.chunk(identity)
    if chunk is None:
        raise DamagedLog(f"there is no claim for chunk {identity}", index=entry.index)
    return chunk


def _put(rows: Rows, entry: Recorded, chunk: WindowChunkRecord) -> None:
    chunk.updated_index = entry.index
    chunk.updated_at = entry.recorded_at
    rows.put(chunk)


APPLY: dict[type[Fact], Callable[[Rows, Recorded, Any], None]] = {
    ChunkClaimed: _claimed,
    ChunkAttemptStarted: _started,
    ChunkClaimRenewed: _renewed,
    ChunkAttemptFailed: _failed,
    ChunkCompleted: _completed,
    ChunkClaimReleased: _released,
    PinAccepted: _pinned,
    WindowDelivered: _delivered,
}
