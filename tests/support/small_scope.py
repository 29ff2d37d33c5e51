"""Every interleaving of three workers' commands on one range, to a given depth.

Breadth first over canonical states. Two states are taken for one when no later command could
tell them apart: ids are renamed by who remembers them, leases are counted from now, and
what nobody remembers any more is dropped. Each step is checked against A1 to A6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scenarios import (
    JOB,
    OLDER_SOURCE_JOB,
    OTHER_MODEL_JOB,
    POLICY,
    good,
    truncated,
)

from compaction_ledger.domain.commands import (
    ClaimRange,
    Command,
    FinishAttempt,
    ImportSummary,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.errors import AlreadyCompleted
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    RangeFact,
    SummaryImported,
)
from compaction_ledger.domain.range_stream import EMPTY, Decision, RangeState, decide, evolve

LEASE = 2
JOBS = (JOB, OTHER_MODEL_JOB, OLDER_SOURCE_JOB)
IDENTITIES = {job.identity: place for place, job in enumerate(JOBS)}
SOURCES = {job.source_hash: place for place, job in enumerate((JOB, OLDER_SOURCE_JOB))}
ANSWERS = (good("one text"), good("another text"), truncated())
# The third worker's clock is one tick behind: it sees leases, its own too, as longer than they are.
SKEWS = (0, 0, -1)


@dataclass(frozen=True, slots=True)
class Worker:
    """What one worker remembers: its last claim, start and finish that were carried out."""

    claim: ClaimRange | None = None
    start: StartAttempt | None = None
    finish: FinishAttempt | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """The range, the true time, and the workers."""

    state: RangeState = EMPTY
    now: int = 10
    workers: tuple[Worker, ...] = (Worker(),) * len(SKEWS)


@dataclass
class Report:
    """What was visited."""

    states: int = 1
    transitions: int = 0
    deepest: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


def explore(depth: int) -> Report:
    """Visit all that can be reached in ``depth`` steps; raises on the first breach of a rule."""
    report = Report()
    frontier = [Node()]
    seen = {canonical(frontier[0])}
    for level in range(1, depth + 1):
        following: list[Node] = []
        for node in frontier:
            for name, after in successors(node):
                report.transitions += 1
                report.outcomes[name] += 1
                if after is node:
                    continue
                key = canonical(after)
                if key not in seen:
                    seen.add(key)
                    following.append(after)
        if following:
            report.deepest = level
        frontier = following
    report.states = len(seen)
    return report


# --- what can happen ------------------------------------------------------------------------------


def successors(node: Node) -> Iterator[tuple[str, Node]]:
    """Every next step, by the name of its outcome."""
    yield "time passes", replace(node, now=node.now + 1)
    for answer in ANSWERS[:2]:
        yield _carry_out(node, None, ImportSummary("i1", JOB, answer.text, "old-store"))
    for place in range(len(node.workers)):
        for command in _commands(node, place):
            yield _carry_out(node, place, command)


def _commands(node: Node, place: int) -> Iterator[Command]:
    """What worker ``place`` may send, new and again. Fresh ids name the version: all differ."""
    worker, now = node.workers[place], node.now + SKEWS[place]
    fresh = f"{place}-{node.state.version}"
    for job in JOBS:
        yield ClaimRange(f"c{fresh}", f"w{place}", job, POLICY, now, LEASE)
    if worker.claim is None:
        return
    yield replace(worker.claim, now=now)
    yield StartAttempt(worker.claim.claim_id, f"a{fresh}", now, LEASE)
    yield RenewClaim(worker.claim.claim_id, now, LEASE)
    yield ReleaseClaim(worker.claim.claim_id, "given_back", now)
    if worker.start is None:
        return
    yield replace(worker.start, now=now)
    for answer in ANSWERS:
        yield FinishAttempt(worker.start.claim_id, worker.start.attempt_id, answer, now)
    if worker.finish is not None:
        yield replace(worker.finish, now=now)


def _carry_out(node: Node, place: int | None, command: Command) -> tuple[str, Node]:
    decision = decide(node.state, command)
    state = node.state
    for fact in decision.facts:
        check_fact(state, command, fact)
        state = evolve(state, fact)
    check_step(node.state, command, decision, state)
    outcome = type(decision.refusal).__name__ if decision.refusal else "done"
    name = f"{type(command).__name__}: {'already' if decision.already else outcome}"
    if not decision.facts:
        return name, node
    workers = node.workers
    if place is not None and decision.refusal is None:
        remembered = _remember(workers[place], command)
        workers = (*workers[:place], remembered, *workers[place + 1 :])
    return name, Node(state, node.now, workers)


def _remember(worker: Worker, command: Command) -> Worker:
    match command:
        case ClaimRange():
            return replace(worker, claim=command)
        case StartAttempt():
            return replace(worker, start=command)
        case FinishAttempt():
            return replace(worker, finish=command)
        case _:
            return worker


# --- what must hold -------------------------------------------------------------------------------


def check_fact(state: RangeState, command: Command, fact: RangeFact) -> None:
    """One fact, in the state before it."""
    match fact:
        case RangeClaimed():
            assert isinstance(command, ClaimRange)
            rivals = [c for c in state.open.values() if c.source_hash == fact.job.source_hash]
            assert not rivals, "A1: a second open claim on one source"
            assert fact.identity not in state.completions, "A1: a claim on what is completed"
            assert state.attempts.get(fact.identity, 0) < 2, "A1: a claim on what is exhausted"
            assert fact.claim_id not in state.open.keys() | state.closed.keys(), "A4: a used token"
        case AttemptStarted():
            assert state.attempts.get(fact.identity, 0) + 1 == fact.number <= 2, "A3"
            _check_holder(state, command, fact.claim_id)
            assert state.open[fact.claim_id].attempt_id is None, "A3: two attempts at once"
        case ClaimRenewed():
            _check_renewed(state, command, fact)
        case AttemptFailed(failure="lease_expired"):
            assert state.open[fact.claim_id].attempt_id == fact.attempt_id, "A6"
            _check_expired(state, command, fact.claim_id)
        case AttemptFailed():
            _check_holder(state, command, fact.claim_id)
            assert state.open[fact.claim_id].attempt_id == fact.attempt_id, "A4"
        case RangeCompleted():
            _check_holder(state, command, fact.claim_id)
            assert state.open[fact.claim_id].attempt_id == fact.attempt_id, "A4"
            assert fact.identity not in state.completions, "A2: a second completion"
            assert fact.source_hash == state.open[fact.claim_id].source_hash
        case ClaimReleased():
            _check_released(state, command, fact)
        case SummaryImported():
            assert isinstance(command, ImportSummary)
            assert fact.identity not in state.completions, "A2: a second completion"


def _check_holder(state: RangeState, command: Command, claim_id: str) -> None:
    """A4: the command shows the token of this open claim, within its lease."""
    assert isinstance(command, (StartAttempt, RenewClaim, FinishAttempt, ReleaseClaim))
    assert command.claim_id == claim_id, "A4: another claim's token"
    assert command.now < state.open[claim_id].expires_at, "A4: past the lease"


def _check_renewed(state: RangeState, command: Command, fact: ClaimRenewed) -> None:
    """A5: a running attempt keeps its lease for longer, and nobody else has anything of it."""
    _check_holder(state, command, fact.claim_id)
    claim = state.open[fact.claim_id]
    assert isinstance(command, RenewClaim)
    assert claim.attempt_id is not None, "A5: renewed without an attempt"
    assert claim.identity == fact.identity
    assert fact.identity not in state.completions, "A1: renewed at what is completed"
    assert command.now + command.lease == fact.expires_at > claim.expires_at, "A5: cut short"


def _check_released(state: RangeState, command: Command, fact: ClaimReleased) -> None:
    """A claim ends for the reason that is given, and its attempt was recorded before."""
    if fact.reason == "expired":
        _check_expired(state, command, fact.claim_id)
    else:
        _check_holder(state, command, fact.claim_id)
    if fact.reason == "exhausted":
        assert state.attempts[fact.identity] == 2, "A3: exhausted before its second attempt"
    if fact.reason == "outdone":
        assert fact.identity in state.completions, "A2: outdone by nothing"
    else:
        assert state.open[fact.claim_id].attempt_id is None, "A6: its attempt was not recorded"


def _check_expired(state: RangeState, command: Command, claim_id: str) -> None:
    """A5: a claimer of this source or the late holder records an expiry, and it is one."""
    claim = state.open[claim_id]
    assert not isinstance(command, ImportSummary)
    assert command.now >= claim.expires_at, "A5: not expired by the sender's clock"
    if isinstance(command, ClaimRange):
        assert command.job.source_hash == claim.source_hash
    else:
        assert command.claim_id == claim_id


def check_step(before: RangeState, command: Command, decision: Decision, after: RangeState) -> None:
    """One command, from before to after."""
    open_sources = [claim.source_hash for claim in after.open.values()]
    assert len(set(open_sources)) == len(open_sources), "A1: two open claims on one source"
    assert after.version == before.version + len(decision.facts)
    for identity, completion in before.completions.items():
        assert after.completions[identity] == completion, "A2: a completion changed"
    begun = Counter(f.identity for f in decision.facts if isinstance(f, AttemptStarted))
    for identity in IDENTITIES:
        attempts = after.attempts.get(identity, 0)
        assert attempts == before.attempts.get(identity, 0) + begun[identity] <= 2, "A3"
    for claim in after.open.values():
        used = after.attempts.get(claim.identity, 0)
        assert used < 2 or claim.attempt_id is not None, (
            "A3: an exhausted identity holds its source"
        )
    if decision.already:
        assert not decision.facts
        assert decision.refusal is None
        _check_repeated(before, command)
    if decision.refusal is not None:
        _check_refused(command, decision, after)


def _check_repeated(state: RangeState, command: Command) -> None:
    """A5: nobody is told that an attempt goes on whose lease is over, or ends sooner than is told."""
    if isinstance(command, StartAttempt):
        claim = state.open[command.claim_id]
        assert claim.attempt_id == command.attempt_id
        assert command.now < claim.expires_at, "A5: past the lease"
    if isinstance(command, RenewClaim):
        claim = state.open[command.claim_id]
        assert claim.attempt_id is not None
        assert command.now < command.now + command.lease <= claim.expires_at, "A5: past the lease"


def _check_refused(command: Command, decision: Decision, after: RangeState) -> None:
    """A refusal only records that a claim is over; and nobody holds what is completed and then knows it."""
    for fact in decision.facts:
        ended = isinstance(fact, ClaimReleased) and fact.reason in ("expired", "outdone")
        lapsed = isinstance(fact, AttemptFailed) and fact.failure == "lease_expired"
        assert ended or lapsed, "a refusal that did more than record the end of a claim"
    if isinstance(decision.refusal, AlreadyCompleted) and isinstance(
        command, StartAttempt | RenewClaim | FinishAttempt
    ):
        assert command.claim_id not in after.open, "A1: a refused holder holds its source"


# --- telling states apart -------------------------------------------------------------------------


def canonical(node: Node) -> object:
    """Equal for two nodes only if no command to come can tell them apart.

    The first two workers have the same clock and are interchangeable: they are put in an order by
    what they remember. Where they remember alike, one state may count twice, never two as one.
    """
    state = node.state
    names: dict[str, int] = {}
    memories = [_memory(node, worker) for worker in node.workers]
    order = [*sorted((0, 1), key=memories.__getitem__), 2]
    remembered = tuple(_renamed(node.workers[place], names) for place in order)
    rest = sorted(_open_facts(node, claim_id) for claim_id in state.open if claim_id not in names)
    return (
        tuple(memories[place] for place in order),
        remembered,
        tuple(rest),
        tuple(sorted((IDENTITIES[i], count) for i, count in state.attempts.items())),
        tuple(sorted((IDENTITIES[i], c.text_digest) for i, c in state.completions.items())),
    )


def _memory(node: Node, worker: Worker) -> tuple[object, ...]:
    """What a worker remembers, without ids: its commands, and what has become of their claims."""
    state, claim, start, finish = node.state, worker.claim, worker.start, worker.finish
    return (
        -1 if claim is None else IDENTITIES[claim.job.identity],
        "" if claim is None else _claim_status(node, claim.claim_id),
        "" if start is None else _claim_status(node, start.claim_id),
        "" if start is None else _attempt_status(state, start.attempt_id),
        "" if finish is None else finish.answer.text,
        "" if finish is None else _claim_status(node, finish.claim_id),
        "" if finish is None else _attempt_status(state, finish.attempt_id),
    )


def _renamed(worker: Worker, names: dict[str, int]) -> tuple[int, ...]:
    """The ids that a worker remembers, as numbers in the order of their first appearance."""
    ids = [worker.claim.claim_id if worker.claim else ""]
    for command in (worker.start, worker.finish):
        ids += [command.claim_id, command.attempt_id] if command else ["", ""]
    return tuple(names.setdefault(name, len(names)) for name in ids)


def _claim_status(node: Node, claim_id: str) -> str:
    closed = node.state.closed.get(claim_id)
    return closed or repr(_open_facts(node, claim_id))


def _open_facts(node: Node, claim_id: str) -> tuple[int, int, bool]:
    """Identity, ticks left (from -1 on every clock says that it is over), attempt or not."""
    claim = node.state.open[claim_id]
    left = max(claim.expires_at - node.now, min(SKEWS))
    return IDENTITIES[claim.identity], left, claim.attempt_id is not None


def _attempt_status(state: RangeState, attempt_id: str) -> str:
    ended = state.ended.get(attempt_id)
    return "open" if ended is None else ended.result
