"""What is recorded of a run and holds now: read from its stream, and checked again each time (H2, B3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction_ledger.domain.claim_rules import MAX_ATTEMPTS
from compaction_ledger.domain.errors import DamagedLog, InvalidInput, PinRefused
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.messages.interface import MessageShape, Wire
from compaction_ledger.domain.window.blocks import ChunkSummary, RecordedPin
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.events import (
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkCompleted,
    PinAccepted,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.pin_sources import users_parts
from compaction_ledger.domain.window.pins import check_pin
from compaction_ledger.domain.window.placement import Holding
from compaction_ledger.domain.window.prompts import WindowPrompts
from compaction_ledger.domain.window.structure import parse_structure
from compaction_ledger.domain.window.window_stream import WindowStreamFact
from compaction_ledger.usecases.window.context import WindowContext


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """A chunk summary or pin that is recorded and not used, and why (H8)."""

    identity: str
    reason: str


@dataclass(slots=True)
class Record:
    """A run's stream, sorted: jobs and completions by identity, how often each was attempted, pins."""

    jobs: dict[str, ChunkJob] = field(default_factory=dict[str, ChunkJob])
    completed: dict[str, tuple[ChunkCompleted, Recorded]] = field(
        default_factory=dict[str, tuple[ChunkCompleted, Recorded]]
    )
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    pins: list[RecordedPin] = field(default_factory=list[RecordedPin])

    @property
    def exhausted(self) -> list[ChunkJob]:
        """The jobs that have used their two attempts and have no summary (A3)."""
        return [
            job
            for identity, job in self.jobs.items()
            if identity not in self.completed and self.attempts.get(identity, 0) >= MAX_ATTEMPTS
        ]


def window_facts(entries: Sequence[Recorded]) -> list[WindowStreamFact]:
    """The facts of a window's stream, to be folded. Raises :class:`DamagedLog` where another one is among
    them.
    """
    facts: list[WindowStreamFact] = []
    for version, entry in enumerate(entries, start=1):
        if entry.version != version:
            raise DamagedLog(f"the window's stream has no event {version}", index=entry.index)
        if not isinstance(entry.fact, WindowStreamFact):
            raise DamagedLog("a fact that is not of a window", index=entry.index)
        facts.append(entry.fact)
    return facts


def sorted_record(entries: Sequence[Recorded]) -> Record:
    """The facts of a window's stream by what they are about."""
    record = Record()
    for entry in entries:
        match entry.fact:
            case ChunkClaimed(identity=identity, job=job):
                record.jobs[identity] = job
            case ChunkAttemptStarted(identity=identity, number=number):
                record.attempts[identity] = number
            case ChunkCompleted(identity=identity) as fact:
                record.completed[identity] = (fact, entry)
            case PinAccepted() as fact:
                record.pins.append(RecordedPin(fact, entry.index))
            case _:
                pass
    return record


@dataclass(frozen=True, slots=True)
class Held:
    """What a request may use, and what not."""

    holding: Holding
    rejected: tuple[RejectedItem, ...]


def holding_now(
    context: WindowContext,
    record: Record,
    standing: Sequence[str],
    messages: Sequence[Wire],
    digests: Sequence[str],
) -> Held:
    """The chunks and pins that hold for these messages. ``standing``: the chunks' identities.

    A chunk that does not hold is not used, and none behind it, so that what follows is verbatim from there
    on.
    """
    chunks: list[ChunkSummary] = []
    behind = context.shape.head(messages)
    rejected: list[RejectedItem] = []
    for identity in standing:
        found = chunk_now(context, record, identity, digests)
        if isinstance(found, str):
            rejected.append(RejectedItem(identity, found))
        elif rejected:
            rejected.append(RejectedItem(identity, "follows_rejected"))
        elif found.first != behind:
            rejected.append(RejectedItem(identity, "leaves_a_gap"))
        elif found.last + 1 >= len(messages):  # of a process that is ahead; something must stay
            rejected.append(RejectedItem(identity, "range_missing"))
        else:
            chunks.append(found)
            behind = found.last + 1
    pins: list[RecordedPin] = []
    for recorded in record.pins:
        fault = pin_fault(context.key, context.shape, recorded.pin, messages, digests)
        if fault is None:
            pins.append(recorded)
        else:
            rejected.append(RejectedItem(recorded.pin.pin_id, fault))
    return Held(Holding(chunks, pins), tuple(rejected))


def chunk_now(
    context: WindowContext, record: Record, identity: str, digests: Sequence[str]
) -> ChunkSummary | str:
    """The chunk's summary as it may be used, or why it may not."""
    job = record.jobs.get(identity)
    completed = record.completed.get(identity)
    if job is None or completed is None:
        return "damaged"
    fact, entry = completed
    reason = job_fault(context.registry, context.key, context.shape, job, digests)
    if reason is not None:
        return reason
    if job.identity != identity:
        return "identity_mismatch"
    if fact.source_hash != job.source_hash:
        return "source_changed"
    try:
        structure = parse_structure(fact.text)
    except InvalidInput:
        return "damaged"
    return ChunkSummary(
        first=job.first,
        last=job.last,
        identity=identity,
        source_hash=job.source_hash,
        model=job.model,
        prompt=job.prompt,
        recorded_at=entry.recorded_at,
        index=entry.index,
        lines=structure.lines(),
    )


def job_fault(
    registry: WindowPrompts,
    key: WindowKey,
    shape: MessageShape,
    job: ChunkJob,
    digests: Sequence[str],
) -> str | None:
    """Why a chunk's job is not one of these messages under a version that may be used; ``None`` if it is."""
    verdict = registry.verdict(job.prompt)
    if verdict != "projectable":
        return verdict
    if job.window != key:
        return "other_window"
    if job.last >= len(digests):
        return "range_missing"
    source = chunk_source_hash(key, shape.name, job.first, digests[job.first : job.last + 1])
    return None if source == job.source_hash else "source_changed"


def pin_fault(
    key: WindowKey,
    shape: MessageShape,
    pin: PinAccepted,
    messages: Sequence[Wire],
    digests: Sequence[str],
) -> str | None:
    """Why a recorded pin is not the user's words in these messages; ``None`` if it is (T9)."""
    if pin.window != key:
        return "other_window"
    if pin.message >= len(messages) or digests[pin.message] != pin.digest:
        return "source_changed"
    (entry,) = shape.read([messages[pin.message]], pin.message)
    try:
        parts = {part.part: part for part in users_parts(shape, entry)}
        if pin.part not in parts:
            return "not_users_words"
        check_pin(pin, parts[pin.part].text)
    except PinRefused as refusal:
        return refusal.reason
    return None
