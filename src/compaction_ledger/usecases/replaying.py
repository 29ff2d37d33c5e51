"""What stood in a ledger at a point of its log, and what changed between two (P5). Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from compaction_ledger.domain.errors import InvalidSetting, UnknownConversation
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.moments import Point
from compaction_ledger.domain.ports import Log, PastReadModels, Progress
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.replay import (
    AnyRow,
    RangeThen,
    RowChange,
    Standing,
    SummaryThen,
    ValidityChange,
    ranges_then,
    summaries_then,
    validity_changes,
)
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.serving_then import (
    ServedThen,
    ServingOptions,
    pairs_known_then,
    served_then,
)

Kind = TypeVar("Kind", RangeRow, SummaryRow)

PastOf = Callable[[], PastReadModels]
"""Makes read models that reflect nothing yet and follow a log as they are told."""


@dataclass(frozen=True, slots=True)
class ConversationThen:
    """All that the log says of one conversation up to a point.

    ``pairs_known`` is how many pairs it has had at least, as the log shows. ``served`` is what a request
    would have held; ``None`` where the transcripts do not know the conversation (any more).
    """

    point: Point
    size: int
    scope: str
    conversation: str
    pairs_known: int
    ranges: Sequence[RangeThen]
    summaries: Sequence[SummaryThen]
    attempts: Sequence[AttemptRow]
    deliveries: Sequence[DeliveryRow]
    chunks: Sequence[WindowChunkRow]
    pins: Sequence[WindowPinRow]
    window_deliveries: Sequence[WindowDeliveryRow]
    served: ServedThen | None


@dataclass(frozen=True, slots=True)
class ConversationCounts:
    """One conversation of an overview, counted. ``requests`` are recorded ones, those of runs included."""

    scope: str
    conversation: str
    ranges: Mapping[Standing, int]
    claimable: int
    valid: int
    excluded: int
    chunks: int
    pins: int
    requests: int


@dataclass(frozen=True, slots=True)
class LedgerThen:
    """A whole ledger at a point, counted by conversation.

    ``erased`` counts the events that were erased since, by the reference of their subject: which
    conversations these were is not known any more (S3, L4).
    """

    point: Point
    size: int
    conversations: Sequence[ConversationCounts]
    erased: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two points: rows, and which summaries began or ceased to be valid.

    ``erased`` counts the events between them that are erased, and of which nothing is said (S3).
    """

    start: Point
    end: Point
    size: int
    changes: Sequence[RowChange]
    validity: Sequence[ValidityChange]
    erased: int


def replay_conversation(
    context: Context,
    past_of: PastOf,
    place: tuple[str, str],
    point: Point,
    options: ServingOptions,
    progress: Progress | None = None,
) -> ConversationThen:
    """A conversation at a point. Raises :class:`Erased` (S3), :class:`UnknownConversation` where neither the
    log nor the transcripts know it, :class:`BudgetTooSmall`, :class:`DamagedLog`.
    """
    scope, conversation = place
    _check_not_erased(context.log, scope, conversation)
    past = past_of()
    past.follow_to(context.log, point.position, progress)
    then = replace(context, read_models=past)
    deliveries = past.deliveries(scope, conversation)
    rows, summaries = past.ranges(scope, conversation), past.summaries(scope, conversation)
    served = served_then(then, place, rows, deliveries, options)
    if served is None and not any(_place(row) == place for row in past.rows()):
        raise UnknownConversation(
            f"neither the log up to there nor the transcripts know conversation {conversation!r}"
            f" in scope {scope!r}"
        )
    return ConversationThen(
        point=point,
        size=context.log.size(),
        scope=scope,
        conversation=conversation,
        pairs_known=pairs_known_then(context.log, rows, deliveries),
        ranges=ranges_then(rows, summaries, point.judged_at),
        summaries=summaries_then(summaries, rows, context.registry.rank),
        attempts=past.attempts(scope, conversation),
        deliveries=deliveries,
        chunks=past.window_chunks(scope, conversation),
        pins=past.window_pins(scope, conversation),
        window_deliveries=past.window_deliveries(scope, conversation),
        served=served,
    )


def _check_not_erased(log: Log, scope: str, conversation: str) -> None:
    """Raise :class:`Erased` for a conversation of which nothing is to be said any more (S3).

    Any stream of it will do to be refused: one that there cannot be has nothing to be read.
    """
    log.history(RangeKey(scope, conversation, -1))


def replay_ledger(
    context: Context,
    past_of: PastOf,
    scope: str | None,
    point: Point,
    progress: Progress | None = None,
) -> LedgerThen:
    """Every conversation of a scope, or of all, at a point. Raises :class:`DamagedLog`."""
    past = past_of()
    past.follow_to(context.log, point.position, progress)
    rows = [row for row in past.rows() if scope in (None, row.scope)]
    counts = _counted(rows, point, context)
    return LedgerThen(point, context.log.size(), counts, past.erased())


def _counted(
    rows: Sequence[AnyRow], point: Point, context: Context
) -> Sequence[ConversationCounts]:
    """Every conversation that has a row, counted, in order."""
    counts = {place: _Counts() for place in sorted({_place(row) for row in rows})}
    ranges, summaries = _of_kind(rows, RangeRow), _of_kind(rows, SummaryRow)
    for one in ranges_then(ranges, summaries, point.judged_at):
        counted = counts[_place(one.row)]
        counted.ranges[one.standing] += 1
        counted.claimable += one.claimable
    for judged in summaries_then(summaries, ranges, context.registry.rank):
        counted = counts[_place(judged.row)]
        counted.valid += judged.validity == "valid"
        counted.excluded += judged.row.finished and judged.validity != "valid"
    for row in rows:
        counted = counts[_place(row)]
        counted.chunks += isinstance(row, WindowChunkRow) and row.stands
        counted.pins += isinstance(row, WindowPinRow) and row.current
        counted.requests += isinstance(row, (DeliveryRow, WindowDeliveryRow))
    return [
        ConversationCounts(
            scope=place[0],
            conversation=place[1],
            ranges=one.ranges,
            claimable=one.claimable,
            valid=one.valid,
            excluded=one.excluded,
            chunks=one.chunks,
            pins=one.pins,
            requests=one.requests,
        )
        for place, one in counts.items()
    ]


@dataclass(slots=True)
class _Counts:
    """The counts of a conversation while they are made."""

    ranges: Counter[Standing] = field(default_factory=Counter[Standing])
    claimable: int = 0
    valid: int = 0
    excluded: int = 0
    chunks: int = 0
    pins: int = 0
    requests: int = 0


def _place(row: AnyRow) -> tuple[str, str]:
    return row.scope, row.conversation


def _of_kind(rows: Iterable[AnyRow], kind: type[Kind]) -> list[Kind]:
    return [row for row in rows if isinstance(row, kind)]


def differ(
    context: Context,
    past_of: PastOf,
    points: tuple[Point, Point],
    scope: str | None,
    conversation: str | None,
    progress: Progress | None = None,
) -> Difference:
    """What changed between two points, of a conversation, a scope or all.

    Raises :class:`InvalidSetting` where the second comes before the first, :class:`Erased` where the
    conversation that is named was erased (S3), :class:`DamagedLog`.
    """
    start, end = points
    if scope is not None and conversation is not None:
        _check_not_erased(context.log, scope, conversation)
    if end.index < start.index:
        raise InvalidSetting(
            f"event {end.index} comes before event {start.index}", place="the second point"
        )
    past = past_of()
    past.follow_to(context.log, start.position, progress)
    judge = _Judging(past, context, scope, conversation)
    before, erased = judge.judged(), sum(past.erased().values())
    changes = [
        change
        for change in past.changes_to(context.log, end.position, progress)
        if judge.is_meant(change.after.scope, change.after.conversation)
    ]
    validity = validity_changes(before, judge.judged(), changes)
    erased = sum(past.erased().values()) - erased
    return Difference(start, end, context.log.size(), changes, validity, erased)


@dataclass(frozen=True, slots=True)
class _Judging:
    """Judges the summaries that are meant, at whatever point the read models are."""

    past: PastReadModels
    context: Context
    scope: str | None
    conversation: str | None

    def is_meant(self, scope: str, conversation: str) -> bool:
        return self.scope in (None, scope) and self.conversation in (None, conversation)

    def judged(self) -> list[SummaryThen]:
        rows = [row for row in self.past.rows() if self.is_meant(*_place(row))]
        summaries, ranges = _of_kind(rows, SummaryRow), _of_kind(rows, RangeRow)
        return summaries_then(summaries, ranges, self.context.registry.rank)
