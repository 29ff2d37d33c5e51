"""Where a chunk may stand (T8, T11): behind the others without a gap, or in the place of some that stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from compaction_ledger.domain.claim_rules import expiry
from compaction_ledger.domain.errors import ChunkOverlaps
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.window_state import WindowState


@dataclass(frozen=True, slots=True)
class Placed:
    """Whether a chunk may stand there. ``expired`` ends claims in its way that are past their lease (A5)."""

    expired: tuple[RangeFact, ...] = ()
    refusal: ChunkOverlaps | None = None


def place(state: WindowState, job: ChunkJob, now: int) -> Placed:
    """Judge the place of a chunk that may be claimed otherwise.

    A claim past its lease stands in nobody's way; that it is over is recorded by whoever needs its messages.
    """
    expired: tuple[RangeFact, ...] = ()
    held: list[ChunkJob] = []
    for claim in state.lifecycle.open.values():
        other = state.jobs[claim.identity]
        if now < claim.expires_at:
            held.append(other)
        elif _overlap(job, other):
            expired += expiry(claim)
    judge = _why_not_instead if job.replaces else _why_not_behind
    why = judge(state, job, held)
    return Placed(expired, None if why is None else ChunkOverlaps(job.first, job.last, why))


def _why_not_behind(state: WindowState, job: ChunkJob, held: list[ChunkJob]) -> str | None:
    """A new chunk begins right behind the one before it and reaches into none.

    The first one may begin anywhere, as instructions at the head are never summarized; from then on nothing
    goes in front of it. Messages that were claimed in vain are free, also between chunks.
    """
    for first, last, what in _taken(state, held):
        if job.first <= last and first <= job.last:
            return f"{first} to {last} are {what}"
    before = max((last for _, last, _ in _taken(state, held) if last < job.first), default=None)
    if before is not None:
        begins = before + 1
        return None if job.first == begins else f"what is not summarized begins with {begins}"
    begins = min((known.first for known in state.jobs.values()), default=job.first)
    if job.first < begins and (state.chunks or held):
        return f"the first chunk began with {begins}"
    return None


def _why_not_instead(state: WindowState, job: ChunkJob, held: list[ChunkJob]) -> str | None:
    """A chunk in the place of others takes ones that stand side by side, all their messages and no more.

    The oldest, to be one bigger chunk; or, wherever it stands, what may not be used any more (V2).
    """
    names = [chunk.identity for chunk in state.chunks]
    start = names.index(job.replaces[0]) if job.replaces[0] in names else len(names)
    taken = state.chunks[start : start + len(job.replaces)]
    if tuple(chunk.identity for chunk in taken) != job.replaces:
        return "what it replaces are not chunks that stand side by side, in order"
    if any(one.last + 1 != other.first for one, other in pairwise(taken)):
        return "what it replaces leaves messages out in between"
    if (taken[0].first, taken[-1].last) != (job.first, job.last):
        return f"what it replaces are messages {taken[0].first} to {taken[-1].last}"
    for other in held:
        if _overlap(job, other):
            return f"{other.first} to {other.last} are claimed"
    return None


def _taken(state: WindowState, held: list[ChunkJob]) -> Iterator[tuple[int, int, str]]:
    """First and last message of whatever is summarized, or being so, and which of the two."""
    for chunk in state.chunks:
        yield chunk.first, chunk.last, "summarized"
    for job in held:
        yield job.first, job.last, "claimed"


def _overlap(one: ChunkJob, other: ChunkJob) -> bool:
    return one.first <= other.last and other.first <= one.last
