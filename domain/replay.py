"""What stood in the read models at a point of the log, and what changed between two (P5).

Pure. Whatever is said here follows from the log alone. The verdicts on prompt versions are those of the
registry that is asked with (V1, P4): the log does not say which one was in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.claim_rules import LONGEST_WAIT, MAX_ATTEMPTS
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)

Standing = Literal["due", "running", "lease_over", "waiting", "failed", "exhausted", "done"]
Validity = Literal[
    "valid",
    "unfinished",
    "unknown_version",
    "mixed_input",
    "not_projectable",
    "older_source",
    "superseded",
]
CLAIMABLE: frozenset[str] = frozenset({"due", "lease_over", "failed"})

AnyRow = (
    RangeRow
    | SummaryRow
    | AttemptRow
    | DeliveryRow
    | WindowChunkRow
    | WindowPinRow
    | WindowDeliveryRow
)


@dataclass(frozen=True, slots=True)
class RangeThen:
    """A range as it stood. ``claimable``: whether a claim of its source could have been granted then (A1,
    A3, D3).

    ``holder`` is whoever had the open claim on its latest source, be its lease over or not.
    """

    row: RangeRow
    standing: Standing
    claimable: bool
    holder: str | None


@dataclass(frozen=True, slots=True)
class SummaryThen:
    """An identity as it stood: whether its summary could be projected, or why not (V1, V3).

    ``older_source``: the log knew a newer source of the range. ``superseded``: another summary of the same
    source came before it. ``by`` is the identity of that one, or of the newer source's job.
    """

    row: SummaryRow
    validity: Validity
    by: str | None = None


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row that is another one at the second point: ``before`` is ``None`` where it is new.

    ``index`` and ``recorded_at`` are those of the last event that changed it. For a range,
    ``source_index`` and ``source_at`` are those of the event that brought another source, if one did.
    """

    before: AnyRow | None
    after: AnyRow
    index: int
    recorded_at: int
    source_index: int | None = None
    source_at: int | None = None


@dataclass(frozen=True, slots=True)
class ValidityChange:
    """A summary that could be projected and cannot any more, or the other way round, and since when."""

    row: SummaryRow
    before: Validity | None
    after: Validity
    by: str | None
    index: int
    recorded_at: int


def ranges_then(
    ranges: Iterable[RangeRow], summaries: Iterable[SummaryRow], now: int | None
) -> list[RangeThen]:
    """The ranges with their standing at ``now``; without a time no lease is over, and no wait."""
    of_source: dict[tuple[str, str, int, str], list[SummaryRow]] = {}
    for row in summaries:
        key = (row.scope, row.conversation, row.from_pair, row.source_hash)
        of_source.setdefault(key, []).append(row)
    return [
        _range_then(
            row,
            of_source.get((row.scope, row.conversation, row.from_pair, row.source_hash), ()),
            now,
        )
        for row in ranges
    ]


def _range_then(row: RangeRow, known: Sequence[SummaryRow], now: int | None) -> RangeThen:
    standing: Standing = row.status
    if row.status == "running" and _is_over(row.expires_at, now):
        standing = "lease_over"
    elif row.status == "failed" and _waits(row.retry_at, now):
        standing = "waiting"
    held = [one for one in known if one.holder is not None and one.expires_at is not None]
    live = [one for one in held if not _is_over(one.expires_at, now)]
    newest = next(iter(live or held), None)
    spent = any(
        one.identity == row.identity and not one.finished and one.attempts >= MAX_ATTEMPTS
        for one in known
    )
    claimable = standing in CLAIMABLE and not live and not spent
    return RangeThen(row, standing, claimable, None if newest is None else newest.holder)


def _waits(retry_at: int | None, now: int | None) -> bool:
    return retry_at is not None and (now is None or now < retry_at <= now + LONGEST_WAIT)


def _is_over(expires_at: int | None, now: int | None) -> bool:
    return expires_at is not None and now is not None and now >= expires_at


def summaries_then(
    summaries: Iterable[SummaryRow],
    ranges: Iterable[RangeRow],
    rank: Callable[[PromptVersion], int],
) -> list[SummaryThen]:
    """Each identity with whether its summary could be projected, in the order in which it is given."""
    latest = {(row.scope, row.conversation, row.from_pair): row for row in ranges}
    rows = list(summaries)
    best: dict[tuple[str, str, int, str], SummaryRow] = {}
    for row in rows:
        if row.finished and row.validity == "projectable":
            key = (row.scope, row.conversation, row.from_pair, row.source_hash)
            known = best.get(key)
            if known is None or _preference(row, rank) > _preference(known, rank):
                best[key] = row
    return [_summary_then(row, latest, best) for row in rows]


def _preference(row: SummaryRow, rank: Callable[[PromptVersion], int]) -> tuple[int, int]:
    """The newest prompt version, then the latest completion (V3)."""
    return rank(row.prompt), -1 if row.index is None else row.index


def _summary_then(
    row: SummaryRow,
    latest: dict[tuple[str, str, int], RangeRow],
    best: dict[tuple[str, str, int, str], SummaryRow],
) -> SummaryThen:
    if not row.finished:
        return SummaryThen(row, "unfinished")
    if row.validity != "projectable":
        return SummaryThen(row, row.validity)
    known = latest.get((row.scope, row.conversation, row.from_pair))
    if known is not None and known.source_hash != row.source_hash:
        return SummaryThen(row, "older_source", known.identity)
    chosen = best[row.scope, row.conversation, row.from_pair, row.source_hash]
    if chosen.identity != row.identity:
        return SummaryThen(row, "superseded", chosen.identity)
    return SummaryThen(row, "valid")


def validity_changes(
    before: Iterable[SummaryThen], after: Iterable[SummaryThen], changes: Sequence[RowChange]
) -> list[ValidityChange]:
    """Which summaries became valid or ceased to be, each with the event that made it so, in log order."""
    earlier = {one.row.identity: one for one in before}
    rows = list(after)
    places = {one.row.identity: one.row for one in rows}
    sources = {
        (change.after.scope, change.after.conversation, change.after.from_pair): change
        for change in changes
        if isinstance(change.after, RangeRow)
    }
    found: list[ValidityChange] = []
    for one in rows:
        known = earlier.get(one.row.identity)
        validity_before = None if known is None else known.validity
        if one.validity in (validity_before, "unfinished"):
            continue
        index, at = _cause(one, known, places, sources)
        found.append(ValidityChange(one.row, validity_before, one.validity, one.by, index, at))
    return sorted(found, key=lambda change: (change.index, change.row.identity))


def _cause(
    one: SummaryThen,
    known: SummaryThen | None,
    places: dict[str, SummaryRow],
    sources: dict[tuple[str, str, int], RowChange],
) -> tuple[int, int]:
    """Index and time of the event that made a summary valid or took that from it."""
    row = one.row
    if known is None or not known.row.finished:  # its own completion
        return row.index or 0, row.recorded_at or 0
    by = places.get(one.by or "")
    moved = "older_source" in (one.validity, known.validity)
    change = sources.get((row.scope, row.conversation, row.from_pair))
    if moved and change is not None and change.source_index is not None:
        return change.source_index, change.source_at or 0
    if by is not None and by.index is not None:
        return by.index, by.recorded_at or 0
    return (change.index, change.recorded_at) if change else (row.index or 0, row.recorded_at or 0)
