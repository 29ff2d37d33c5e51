"""Assemble the next request from the conversation and its stored summaries, believing neither unchecked."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from compaction_ledger.domain.assembly import Assembly, Candidate, Options, assemble
from compaction_ledger.domain.errors import DamagedLog, StoreError
from compaction_ledger.domain.events import RangeCompleted, SummaryImported
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.manifest import RejectedSummary
from compaction_ledger.domain.read_models import SummaryRow
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import read_eligible
from compaction_ledger.usecases.rows import sound_rows

logger = logging.getLogger(__name__)


def assemble_request(context: Context, scope: str, conversation: str, options: Options) -> Assembly:
    """The next request under a budget, with its manifest (H1 to H8).

    A missing, late or damaged read model degrades to originals (H9). Raises :class:`UnknownConversation`,
    :class:`BudgetTooSmall`, :class:`InvalidSetting`.
    """
    with context.telemetry.span("assemble") as span:
        eligibility = read_eligible(context, scope, conversation)
        candidates, damaged = stored_candidates(context, scope, conversation)
        assembly = assemble(
            scope, conversation, eligibility, candidates, context.registry, options, damaged
        )
        manifest = assembly.manifest
        span.tell(
            mode=manifest.mode,
            summaries=len(manifest.summaries),
            rejected=len(manifest.rejected),
            bytes_used=manifest.bytes_used,
            bytes_allowed=manifest.bytes_allowed,
        )
        return assembly


def stored_candidates(
    context: Context, scope: str, conversation: str
) -> tuple[list[Candidate], list[RejectedSummary]]:
    """The finished summaries of a conversation, their texts read from the sealed log, and damaged rows.

    The read model only says where to look. A text whose seal does not hold, or whose event is not the
    completion of the identity that its row names, is given on as damaged and is not used.
    """
    try:
        rows, damaged = sound_rows(context, scope, conversation)
    except (StoreError, DamagedLog):
        return [], []
    finished = [row for row in rows if row.finished]
    entries: Mapping[int, Recorded] = {}
    # A key that is missing, say: that the summaries are there and cannot be read is told (H8, H9).
    try:
        entries = context.log.at([row.index for row in finished if row.index is not None])
    except (StoreError, DamagedLog) as error:
        logger.warning("a request is made without summaries, as they cannot be read: %s", error)
    return (
        [_candidate(row, entries.get(-1 if row.index is None else row.index)) for row in finished],
        [
            _unreadable(error.from_pair, error.identity)
            for error in damaged
            if error.from_pair is not None and error.identity is not None
        ],
    )


def _unreadable(from_pair: int, identity: str) -> RejectedSummary:
    window = Range.at(from_pair)
    return RejectedSummary(window.from_pair, window.to_pair, identity, "damaged")


def _candidate(row: SummaryRow, entry: Recorded | None) -> Candidate:
    fact = entry.fact if entry else None
    text: str | None = None
    if isinstance(fact, (RangeCompleted, SummaryImported)) and fact.identity == row.identity:
        text = fact.text
    return Candidate(
        window=Range(row.from_pair, row.to_pair),
        identity=row.identity,
        model=row.model,
        prompt=row.prompt,
        source_hash=row.source_hash,
        index=-1 if row.index is None else row.index,
        recorded_at=entry.recorded_at if entry else 0,
        text=text,
        origin=fact.origin if isinstance(fact, SummaryImported) else None,
        made_at=fact.made_at if isinstance(fact, SummaryImported) else None,
    )


def summary_text(context: Context, row: SummaryRow) -> str | None:
    """The text of a finished summary, from the sealed log; ``None`` if it is damaged or not finished."""
    return (
        _candidate(row, context.log.at([row.index]).get(row.index)).text
        if row.index is not None
        else None
    )
