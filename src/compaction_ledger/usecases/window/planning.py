"""What is to be summarized next of a run (T3, T4, T8, T11): planned only; the claim decides (W3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.window.blocks import ChunkSummary, chunk_block
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.cutting import Cut, NoCut, plan_cut, plan_regroup
from compaction_ledger.domain.window.policy import REGROUP
from compaction_ledger.domain.window.window_stream import WindowState
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.holding import Record
from compaction_ledger.usecases.window.reading import Turn

NothingDue = NoCut | Literal["running", "waiting", "rejected"]
"""Why nothing is planned: those of a cut; a claim on these messages is open; the second attempt waits, or
one that is exhausted would be tried again too soon; a recorded chunk does not hold any more."""

GROWTH = 1.5
"""Behind an exhausted job one on the same messages has so many times its tokens: no failing at each turn.
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the plan is made from. ``tokens``: of the request as it would be now, with what stands beside;
    ``beside``: those of that alone.
    """

    turn: Turn
    record: Record
    state: WindowState
    chunks: Sequence[ChunkSummary]
    digests: Sequence[str]
    tokens: int
    now: int
    beside: int = 0


def plan_job(
    context: WindowContext, model: ModelIdentity, situation: Situation
) -> ChunkJob | NothingDue:
    """The job that is due now, or why none is. A regroup comes first: it makes room in front (T8)."""
    if len(situation.chunks) != len(situation.state.chunks):
        return "rejected"
    if any(claim.expires_at > situation.now for claim in situation.state.lifecycle.open.values()):
        return "running"
    regroup = _regroup(context, model, situation)
    if regroup is not None and not _is_closed(regroup, situation):
        return "waiting" if _waits(regroup, situation) else regroup
    if situation.tokens <= context.budget.trigger_with(situation.beside):
        return "below_trigger"
    job = _next(context, model, situation)
    if isinstance(job, ChunkJob) and _waits(job, situation):
        return "waiting"
    return job


def is_going_to_be_regrouped(
    context: WindowContext, model: ModelIdentity, situation: Situation
) -> bool:
    """Whether the oldest chunks still may become one; otherwise they are left to search (T8)."""
    job = _regroup(context, model, situation)
    return job is not None and not _is_closed(job, situation)


def _next(
    context: WindowContext, model: ModelIdentity, situation: Situation
) -> ChunkJob | NothingDue:
    transcript, budget = situation.turn.transcript, context.budget
    head = transcript.shape.head(transcript.messages)
    first = situation.chunks[-1].last + 1 if situation.chunks else head
    begun = _begun(first, model, context, situation)
    if begun is not None:
        return begun
    fixed = situation.tokens - sum(transcript.tokens[first:])
    keep = budget.keep_with(situation.beside, fixed)
    cut = plan_cut(transcript.tokens, transcript.boundaries, first, keep, budget.trigger)
    if not isinstance(cut, Cut):
        return cut
    tokens = sum(transcript.tokens[cut.first : cut.last + 1])
    tried = [
        sum(transcript.tokens[job.first : job.last + 1])
        for job in situation.record.exhausted
        if job.first == first and job.model == model
    ]
    if tried and tokens < GROWTH * max(tried):
        return "waiting"
    return _job(context, model, situation, cut.first, cut.last)


def _begun(
    first: int, model: ModelIdentity, context: WindowContext, situation: Situation
) -> ChunkJob | None:
    """A job that was claimed before and given back or failed once: a chunk is fixed by its claim (T11)."""
    last = len(situation.digests) - 1
    for identity, job in reversed(situation.record.jobs.items()):
        if (job.first, job.model, job.replaces) == (first, model, ()) and job.last <= last:
            again = _job(context, model, situation, first, job.last)
            if again.identity == identity and not _is_closed(again, situation):
                return again
    return None


def _regroup(context: WindowContext, model: ModelIdentity, situation: Situation) -> ChunkJob | None:
    if context.budget.when_outgrown != REGROUP:
        return None
    tokens = situation.turn.transcript.tokens
    sources = [sum(tokens[chunk.first : chunk.last + 1]) for chunk in situation.chunks]
    blocks = context.gauge.count(
        [chunk_block(chunk, ()).encode("utf-8", "surrogatepass") for chunk in situation.chunks]
    )
    count = plan_regroup(sources, blocks, context.budget.summaries, context.budget.limit)
    if not count:
        return None
    chosen = situation.chunks[:count]
    return _job(
        context,
        model,
        situation,
        chosen[0].first,
        chosen[-1].last,
        tuple(chunk.identity for chunk in chosen),
    )


def _job(
    context: WindowContext,
    model: ModelIdentity,
    situation: Situation,
    first: int,
    last: int,
    replaces: tuple[str, ...] = (),
) -> ChunkJob:
    source = chunk_source_hash(
        context.key, context.shape.name, first, situation.digests[first : last + 1]
    )
    return ChunkJob(context.key, first, last, source, model, context.registry.current, replaces)


def _is_closed(job: ChunkJob, situation: Situation) -> bool:
    """Whether nothing more can come of a job: it is completed or has used its attempts."""
    lifecycle, identity = situation.state.lifecycle, job.identity
    return identity in lifecycle.completions or lifecycle.attempts.get(identity, 0) >= 2


def _waits(job: ChunkJob, situation: Situation) -> bool:
    retry_at: Mapping[str, int] = situation.state.lifecycle.retry_at
    return situation.now < retry_at.get(job.identity, 0)
