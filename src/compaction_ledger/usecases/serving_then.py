"""What a request would have held at a point of the log, as far as that can be said.

The log has an order, the transcripts have not: they say what a conversation is now, and their edits bear no
time. So the request is made of the messages as they are now and of the summaries that were known then. A
summary that is used is bound to its messages by its source hash (B3): these are the very messages it was
made of. What stood then in a range that was changed since is not known, and it is said which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.assembly import Assembly, Fallback, Options, assemble
from compaction_ledger.domain.binding import pairs_of, source_hash
from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.errors import InvalidJob, InvalidSetting, UnknownConversation
from compaction_ledger.domain.events import RequestDelivered
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.read_models import DeliveryRow, RangeRow
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.assembling import stored_candidates
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import read_eligible


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How the request is to be made; what is ``None`` is as in the newest delivery recorded until then.

    Where there is none: without a bound, as ``openai-chat``. ``pairs`` takes only the first so many pairs
    of the conversation as it is now, for who knows how many there were.
    """

    budget: int | None = None
    shape: str | None = None
    fallback: Fallback = "newest_originals"
    pairs: int | None = None


@dataclass(frozen=True, slots=True)
class ServedThen:
    """A request of the summaries known then and the messages as they are now.

    ``changed`` are the ranges whose latest source then is not what stands there now: what a request held of
    them is not known.
    """

    assembly: Assembly
    pairs_now: int
    pairs_used: int
    changed: Sequence[Range]
    delivery: int | None


def served_then(
    then: Context,
    place: tuple[str, str],
    ranges: Sequence[RangeRow],
    deliveries: Sequence[DeliveryRow],
    options: ServingOptions,
) -> ServedThen | None:
    """The request, with ``then`` reading the past; ``None`` where the transcripts know no such
    conversation. Raises :class:`InvalidSetting`, :class:`BudgetTooSmall`.
    """
    try:
        present = read_eligible(then, *place)
    except UnknownConversation:
        return None
    used = _first(present, options.pairs)
    candidates, damaged = stored_candidates(then, *place)
    made = _options(deliveries, options)
    assembly = assemble(*place, used, candidates, then.registry, made, damaged)
    changed = [
        Range(row.from_pair, row.to_pair)
        for row in ranges
        if _hash_now(*place, used.pairs, row) != row.source_hash
    ]
    digest = assembly.manifest.request_digest
    same = [row.index for row in deliveries if row.request_digest == digest]
    return ServedThen(
        assembly, len(present.pairs), len(used.pairs), changed, max(same, default=None)
    )


def pairs_known_then(
    log: Log, ranges: Sequence[RangeRow], deliveries: Sequence[DeliveryRow]
) -> int:
    """How many pairs the conversation has had at least: by the ranges claimed and the last request."""
    known = [row.to_pair + 1 for row in ranges]
    for entry in log.at([row.index for row in deliveries[-1:]]).values():
        if isinstance(entry.fact, RequestDelivered):
            known += [group.to_pair + 1 for group in entry.fact.pairs]
    return max(known, default=0)


def _first(present: Eligibility, pairs: int | None) -> Eligibility:
    if pairs is None:
        return present
    if not 0 <= pairs <= len(present.pairs):
        raise InvalidSetting(
            f"the conversation has {len(present.pairs)} pairs, not {pairs}", place="pairs"
        )
    return Eligibility(present.pairs[:pairs], present.left_out)


def _options(deliveries: Sequence[DeliveryRow], options: ServingOptions) -> Options:
    newest = deliveries[-1] if deliveries else None
    budget, shape = options.budget, options.shape
    if budget is None:
        budget = MAX_INTEGER if newest is None else newest.bytes_allowed
    if shape is None:
        shape = "openai-chat" if newest is None else newest.shape
    return Options(budget, shape, options.fallback)


def _hash_now(scope: str, conversation: str, pairs: Sequence[Pair], row: RangeRow) -> str | None:
    """The source hash of a range as it is now; ``None`` where the conversation has not got it."""
    try:
        source = pairs_of(pairs, Range(row.from_pair, row.to_pair))
    except InvalidJob:
        return None
    return source_hash(scope, conversation, source)
