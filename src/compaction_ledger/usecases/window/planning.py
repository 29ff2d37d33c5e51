"""What is to be summarized next of a run (T3, T4, T8, T11): planned only; the claim decides (W3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from compaction_ledger.domain.claim_rules import MAX_ATTEMPTS
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.window.blocks import ChunkSummary, block_sizes
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.cutting import Cut, NoCut, plan_cut, plan_regroup
from compaction_ledger.domain.window.policy import REGROUP
from compaction_ledger.domain.window.window_stream import WindowState
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.holding import Record
from compaction_ledger.usecases.window.reading import Turn

NothingDue = NoCut | Literal["running", "waiting", "rejected"]
"""Why nothing is planned: those of a cut; a claim on these messages is open; the second attempt waits, or
one that is exhausted would be tried again too soon; a recorded chunk does not hold any more, and nothing is
to be done about it (now)."""

Fate = Literal["stand", "regroup", "search"]
"""Of the oldest chunks: they have room, are going to become one, or are left to search (T8)."""

GROWTH = 1.5
"""Behind an exhausted job one on the same messages has so many times its tokens: no failing at each turn.
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the plan is made from. ``tokens``: of the request as it would be now, with what stands beside;
    ``beside``: those of that alone. ``searched``: the oldest chunks, at one time or another, whose blocks
    were left to search.
    """

    turn: Turn
    record: Record
    state: WindowState
    chunks: Sequence[ChunkSummary]
    digests: Sequence[str]
    tokens: int
    now: int
    beside: int = 0
    searched: frozenset[str] = field(default=frozenset())

    @property
    def running(self) -> Sequence[ChunkJob]:
        """What is claimed now, and not past its lease."""
        claims = self.state.lifecycle.open.values()
        return [self.state.jobs[one.identity] for one in claims if one.expires_at > self.now]


def plan_job(
    context: WindowContext, model: ModelIdentity, situation: Situation
) -> ChunkJob | NothingDue:
    """The job that is due now, or why none is. A regroup comes first: it makes room in front (T8)."""
    if situation.running:
        return "running"
    if len(situation.chunks) != len(situation.state.chunks):
        return _instead(context, model, situation)
    regroup = _regroup(context, model, situation)
    if regroup is not None:
        return "waiting" if _waits(regroup, situation) else regroup
    if situation.tokens <= context.budget.trigger_with(situation.beside):
        return "below_trigger"
    job = _next(context, model, situation)
    if isinstance(job, ChunkJob) and _waits(job, situation):
        return "waiting"
    return job


def fate_of_oldest(context: WindowContext, model: ModelIdentity, situation: Situation) -> Fate:
    """What becomes of the oldest chunks. Once they are left to search they stay so (T10)."""
    if not _is_outgrown(context, situation):
        return "stand"
    oldest = situation.chunks[0].identity
    if any(len(job.replaces) > 1 and job.replaces[0] == oldest for job in situation.running):
        return "regroup"
    return "search" if _regroup(context, model, situation) is None else "regroup"


def _is_outgrown(context: WindowContext, situation: Situation) -> bool:
    sizes = block_sizes(situation.chunks, context.gauge.uncorrected)
    return len(sizes) > 1 and sum(sizes) > context.budget.summaries


def _instead(
    context: WindowContext, model: ModelIdentity, situation: Situation
) -> ChunkJob | NothingDue:
    """A chunk in the place of the first one that may not be used any more, of the same originals (V2, T8);
    where that is exhausted, of several.

    Not of a version that newer software has written: two that do not know each other's would replace each
    other for ever.
    """
    if situation.tokens <= context.budget.trigger_with(situation.beside):
        return "rejected"
    transcript = situation.turn.transcript
    behind = [(0, transcript.shape.head(transcript.messages) - 1)]
    behind += [(chunk.first, chunk.last) for chunk in situation.chunks]
    rest = situation.state.chunks[len(situation.chunks) :]
    spans = [behind[-1], *((chunk.first, chunk.last) for chunk in rest)]
    tried = 0
    for number, (one, other) in enumerate(pairwise(spans), start=1):
        if other[0] != one[1] + 1 or other[1] + 1 >= len(transcript.messages):
            break
        names = tuple(chunk.identity for chunk in rest[:number])
        if _is_of_newer_software(context, situation.state.jobs[names[-1]].prompt):
            break
        job = _job(context, model, situation, rest[0].first, other[1], names)
        tokens = sum(transcript.tokens[job.first : job.last + 1])
        if _is_closed(job, situation):
            tried = tokens
        elif tokens >= GROWTH * tried:
            return "waiting" if _waits(job, situation) else job
    return "rejected"


def _is_of_newer_software(context: WindowContext, prompt: PromptVersion) -> bool:
    current = context.registry.current
    older = prompt.name == current.name and prompt.version < current.version
    return context.registry.verdict(prompt) == "unknown_version" and not older


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
    """The oldest chunks as one, where all have outgrown their share and that has not been in vain."""
    chunks = situation.chunks
    if context.budget.when_outgrown != REGROUP or not chunks:
        return None
    blocks = block_sizes(chunks, context.gauge.uncorrected)
    if _is_in_vain(situation, large=blocks[0] > context.budget.summaries // 2):
        return None
    tokens = situation.turn.transcript.tokens
    sources = [sum(tokens[chunk.first : chunk.last + 1]) for chunk in chunks]
    count = plan_regroup(sources, blocks, context.budget.summaries, context.budget.limit)
    if not count:
        return None
    names = tuple(chunk.identity for chunk in chunks[:count])
    return _job(context, model, situation, chunks[0].first, chunks[count - 1].last, names)


def _is_in_vain(situation: Situation, *, large: bool) -> bool:
    """Whether the oldest chunk is not regrouped any more: its blocks were left to search; it has had its
    attempts, with however many others (A3); or it is a regrouped one itself and still ``large``, so that
    no room comes of it.
    """
    oldest = situation.chunks[0].identity
    if oldest in situation.searched:
        return True
    if large and len(situation.state.jobs[oldest].replaces) > 1:
        return True
    attempts = situation.state.lifecycle.attempts
    tried = sum(
        attempts.get(identity, 0)
        for identity, job in situation.state.jobs.items()
        if len(job.replaces) > 1 and job.replaces[0] == oldest
    )
    return tried >= MAX_ATTEMPTS


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
    return identity in lifecycle.completions or lifecycle.attempts.get(identity, 0) >= MAX_ATTEMPTS


def _waits(job: ChunkJob, situation: Situation) -> bool:
    retry_at: Mapping[str, int] = situation.state.lifecycle.retry_at
    return situation.now < retry_at.get(job.identity, 0)
