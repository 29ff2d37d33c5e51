"""From facts to rows: pure, and the same for every store (P1). Judges nothing but versions (V1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from compaction_ledger.domain.erasure import (
    ErasedFact,
    ErasureCompleted,
    ErasureRequested,
)
from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.identity import Job
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.range_stream import MAX_ATTEMPTS
from compaction_ledger.domain.read_models import RangeStatus
from compaction_ledger.projections import window_fold
from compaction_ledger.projections.records import (
    AttemptRecord,
    DeliveryRecord,
    RangeRecord,
    SummaryRecord,
)
from compaction_ledger.projections.rows import Rows
from compaction_ledger.projections.verdicts import Judge


def apply(rows: Rows, entry: Recorded, judge: Judge) -> None:
    """Change ``rows`` by one recorded fact."""
    kind = type(entry.fact)
    if kind in _OF_ERASURE:  # rows go with the erasure, and none come back from what is erased (S3)
        return
    of_window = window_fold.APPLY.get(kind)
    if of_window is None:
        _APPLY[kind](rows, entry, entry.fact, judge)
    else:
        of_window(rows, entry, entry.fact)


def _claimed(rows: Rows, entry: Recorded, fact: RangeClaimed, judge: Judge) -> None:
    summary = rows.summary(fact.identity) or _new_summary(fact.job, fact.identity, judge)
    summary.status = "claimed"
    summary.claim_id = fact.claim_id
    summary.holder = fact.holder
    summary.expires_at = fact.expires_at
    summary.retry_at = None
    rows.put(summary)
    _set_range(rows, entry, summary, "running", newest=True)


def _started(rows: Rows, entry: Recorded, fact: AttemptStarted, _judge: Judge) -> None:
    summary = _known(rows, entry, fact.identity)
    summary.status = "running"
    summary.attempts = fact.number
    summary.expires_at = fact.expires_at
    rows.put(summary)
    rows.put(
        AttemptRecord(
            fact.identity,
            fact.number,
            summary.scope,
            summary.conversation,
            summary.from_pair,
            summary.to_pair,
            fact.attempt_id,
            fact.claim_id,
            summary.holder or "",
            "running",
            started_index=entry.index,
            started_at=entry.recorded_at,
        )
    )
    _set_range(rows, entry, summary, "running")


def _renewed(rows: Rows, entry: Recorded, fact: ClaimRenewed, _judge: Judge) -> None:
    summary = _known(rows, entry, fact.identity)
    if _is_finished(summary):  # by an import, meanwhile
        return
    summary.expires_at = fact.expires_at
    rows.put(summary)
    _set_range(rows, entry, summary, "running")


def _failed(rows: Rows, entry: Recorded, fact: AttemptFailed, _judge: Judge) -> None:
    summary = _known(rows, entry, fact.identity)
    finished = _is_finished(summary)  # by an import, meanwhile
    if not finished:
        summary.status = "failed"
        summary.failure = fact.failure
        summary.retry_at = fact.retry_at
        rows.put(summary)
    _end_attempt(rows, entry, summary, fact)
    _set_range(rows, entry, summary, _finished_range(summary) if finished else "failed")


def _completed(rows: Rows, entry: Recorded, fact: RangeCompleted, _judge: Judge) -> None:
    summary = _known(rows, entry, fact.identity)
    if _was_finished(summary, entry):
        return
    _finish(summary, entry, "completed")
    summary.input_tokens = fact.usage.input_tokens
    summary.output_tokens = fact.usage.output_tokens
    rows.put(summary)
    _end_attempt(rows, entry, summary, fact)
    _set_range(rows, entry, summary, _finished_range(summary))


def _released(rows: Rows, entry: Recorded, fact: ClaimReleased, _judge: Judge) -> None:
    summary = _known(rows, entry, fact.identity)
    if fact.reason == "outdone":
        _outdone(rows, entry, summary)
    if _is_finished(summary):
        if _finished_range(summary) == "due":
            _set_range(rows, entry, summary, "due")
        return
    status: RangeStatus = "failed" if summary.attempts else "due"
    if fact.reason == "exhausted" or summary.attempts >= MAX_ATTEMPTS:
        status, summary.retry_at = "exhausted", None
    summary.status = "released" if status == "due" else status
    summary.holder = summary.expires_at = None
    rows.put(summary)
    _set_range(rows, entry, summary, status)


def _outdone(rows: Rows, entry: Recorded, summary: SummaryRecord) -> None:
    """An attempt that ran while its identity was imported: nothing came of it."""
    attempt = rows.attempt((summary.identity, summary.attempts))
    if attempt is not None and attempt.outcome == "running":
        attempt.outcome = "outdone"
        attempt.ended_index = entry.index
        attempt.ended_at = entry.recorded_at
        rows.put(attempt)


def _imported(rows: Rows, entry: Recorded, fact: SummaryImported, judge: Judge) -> None:
    summary = rows.summary(fact.identity) or _new_summary(fact.job, fact.identity, judge)
    if _was_finished(summary, entry):
        return
    _finish(summary, entry, "imported")
    summary.origin = fact.origin
    rows.put(summary)
    if _finished_range(summary) == "done":  # else it says nothing of the range (V2)
        _set_range(rows, entry, summary, "done", newest=True)


def _delivered(rows: Rows, entry: Recorded, fact: RequestDelivered, _judge: Judge) -> None:
    rows.put(
        DeliveryRecord(
            delivery_id=fact.delivery_id,
            scope=fact.scope,
            conversation=fact.conversation,
            run=fact.run,
            shape=fact.shape,
            bytes_used=fact.bytes_used,
            bytes_allowed=fact.bytes_allowed,
            request_digest=fact.request_digest,
            idx=entry.index,
            recorded_at=entry.recorded_at,
        )
    )


def _new_summary(job: Job, identity: str, judge: Judge) -> SummaryRecord:
    return SummaryRecord(
        identity=identity,
        scope=job.scope,
        conversation=job.conversation,
        from_pair=job.from_pair,
        to_pair=job.to_pair,
        source_hash=job.source_hash,
        provider=job.model.provider,
        model=job.model.name,
        settings=_settings(job.model.settings),
        prompt=job.prompt.name,
        prompt_version=job.prompt.version,
        status="claimed",
        validity=judge.verdict(job.prompt),
    )


@lru_cache(maxsize=256)
def _settings(settings: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(settings, ensure_ascii=False)


@lru_cache(maxsize=256)
def _words(words: tuple[str, ...]) -> str:
    return json.dumps(words)


def _known(rows: Rows, entry: Recorded, identity: str) -> SummaryRecord:
    summary = rows.summary(identity)
    if summary is None:
        raise DamagedLog(f"there is no claim for job {identity}", index=entry.index)
    return summary


def _is_finished(summary: SummaryRecord) -> bool:
    return summary.idx is not None


def _was_finished(summary: SummaryRecord, entry: Recorded) -> bool:
    """Whether it was before this fact: what somebody forged replaces nothing (A2)."""
    return summary.idx is not None and summary.idx < entry.index


def _finished_range(summary: SummaryRecord) -> RangeStatus:
    """What a completed identity makes of its range: one that may not be projected leaves it due (P4, W4)."""
    return "done" if summary.validity == "projectable" else "due"


def _finish(summary: SummaryRecord, entry: Recorded, status: str) -> None:
    summary.status = status
    summary.idx = entry.index
    summary.recorded_at = entry.recorded_at
    summary.holder = summary.expires_at = summary.retry_at = summary.failure = None


def _end_attempt(
    rows: Rows, entry: Recorded, summary: SummaryRecord, fact: AttemptFailed | RangeCompleted
) -> None:
    attempt = rows.attempt((fact.identity, summary.attempts))
    if attempt is None:
        raise DamagedLog(
            f"there is no attempt {summary.attempts} of job {fact.identity}", index=entry.index
        )
    if isinstance(fact, AttemptFailed):
        attempt.outcome = "failed"
        attempt.failure = fact.failure
        attempt.also = _words(fact.also)
        attempt.detail = fact.detail
        attempt.output_digest = fact.output_digest
    else:
        attempt.outcome = "completed"
    attempt.signals = _words(fact.finish.signals)
    attempt.tool_calls = fact.finish.tool_calls
    attempt.input_tokens = fact.usage.input_tokens
    attempt.output_tokens = fact.usage.output_tokens
    attempt.ended_index = entry.index
    attempt.ended_at = entry.recorded_at
    rows.put(attempt)


def _set_range(
    rows: Rows,
    entry: Recorded,
    summary: SummaryRecord,
    status: RangeStatus,
    *,
    newest: bool = False,
) -> None:
    """Let the range's row say ``status``, unless a newer source or a finished summary has the say.

    ``newest``: this fact brings the range's latest source (a claim or an import).
    """
    record = rows.range((summary.scope, summary.conversation, summary.from_pair))
    if record is None:
        record = RangeRecord(
            scope=summary.scope,
            conversation=summary.conversation,
            from_pair=summary.from_pair,
            to_pair=summary.to_pair,
            status=status,
            source_hash=summary.source_hash,
            identity=summary.identity,
            expires_at=None,
            retry_at=summary.retry_at,
            updated_index=entry.index,
            updated_at=entry.recorded_at,
        )
    elif record.source_hash == summary.source_hash:
        if record.status == "done" and status != "done":
            return
        record.status = status
        record.identity = summary.identity
    elif newest:
        record.status = status
        record.source_hash = summary.source_hash
        record.identity = summary.identity
    else:
        return
    record.expires_at = summary.expires_at if status == "running" else None
    record.retry_at = summary.retry_at
    record.updated_index = entry.index
    record.updated_at = entry.recorded_at
    rows.put(record)


_OF_ERASURE = frozenset({ErasedFact, ErasureRequested, ErasureCompleted})

_APPLY: dict[type[Fact], Callable[[Rows, Recorded, Any, Judge], None]] = {
    RangeClaimed: _claimed,
    AttemptStarted: _started,
    ClaimRenewed: _renewed,
    AttemptFailed: _failed,
    RangeCompleted: _completed,
    ClaimReleased: _released,
    SummaryImported: _imported,
    RequestDelivered: _delivered,
}
