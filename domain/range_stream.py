"""The aggregate: one append-only stream per range (section 5), as two pure functions.

``decide(state, command)`` says what happens; ``evolve(state, fact)`` says what is so afterwards. Rules
are judged in ``decide`` alone: ``evolve`` accepts whatever once was legal (A10). Time and ids come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.commands import (
    GIVE_BACK_REASONS,
    ClaimRange,
    Command,
    FinishAttempt,
    ImportSummary,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    AttemptOutOfTurn,
    BackingOff,
    DifferentResult,
    Exhausted,
    InvalidCommand,
    LeaseExpired,
    NotTheHolder,
    Refused,
)
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    RangeFact,
    ReleaseReason,
    SummaryImported,
)
from compaction_ledger.domain.finish import (
    Answer,
    FailureCode,
    FinishFacts,
    Usage,
    failures,
    output_digest,
)
from compaction_ledger.domain.identifiers import check_id, replace_surrogates
from compaction_ledger.domain.identity import Job, check_job

MAX_ATTEMPTS = 2

MAX_WORDS = 8
LONGEST_WAIT = 7_200_000_000  # two hours, in microseconds
MAX_WORD_CHARACTERS = 64
ALWAYS = (-(2**63), 2**63)  # no clock of a store goes beyond


@dataclass(frozen=True, slots=True)
class OpenClaim:
    """A claim that nobody has recorded the end of."""

    claim_id: str
    holder: str
    identity: str
    source_hash: str
    expires_at: int
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The one completion of an identity: by which claim or import, with which text, where in the stream."""

    by: str
    text_digest: str
    version: int


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that is over: under which claim, and its failure code or the digest of its summary."""

    claim_id: str
    result: str


@dataclass(frozen=True, slots=True)
class RangeState:
    """What the facts of a range say. ``version`` counts them; ``key``: scope, conversation, first pair."""

    version: int = 0
    key: tuple[str, str, int] | None = None
    open: Mapping[str, OpenClaim] = field(default_factory=dict[str, OpenClaim])  # by claim id
    attempts: Mapping[str, int] = field(default_factory=dict[str, int])  # by identity
    retry_at: Mapping[str, int] = field(default_factory=dict[str, int])  # by identity
    completions: Mapping[str, Completion] = field(
        default_factory=dict[str, Completion]
    )  # by identity
    closed: Mapping[str, str] = field(default_factory=dict[str, str])  # claim id to how it ended
    ended: Mapping[str, EndedAttempt] = field(
        default_factory=dict[str, EndedAttempt]
    )  # by attempt id


EMPTY = RangeState()


@dataclass(frozen=True, slots=True)
class Decision:
    """The facts to append, and the refusal to raise once they are stored.

    A refusal may come with the end of a claim that it found: expired (A5), outdone or exhausted.
    ``already`` is set when the same command has been carried out before: nothing to append, no error (A2).
    """

    facts: tuple[RangeFact, ...] = ()
    refusal: Refused | None = None
    already: bool = False


ALREADY_DONE = Decision(already=True)


def decide(state: RangeState, command: Command) -> Decision:
    """Judge ``command`` in ``state``. Raises :class:`InvalidInput` only for malformed commands (A7)."""
    match command:
        case ClaimRange():
            return _claim(state, command)
        case StartAttempt():
            return _start(state, command)
        case RenewClaim():
            return _renew(state, command)
        case FinishAttempt():
            return _finish(state, command)
        case ReleaseClaim():
            return _release(state, command)
        case ImportSummary():
            return _import(state, command)


def evolve(state: RangeState, fact: RangeFact) -> RangeState:
    """The state after ``fact``. Judges nothing (A10)."""
    return replace(state, version=state.version + 1, **_changes(state, fact))


def fold(facts: Iterable[RangeFact], state: RangeState = EMPTY) -> RangeState:
    """The state after all ``facts``."""
    return reduce(evolve, facts, state)


def steady(state: RangeState, now: int) -> tuple[int, int]:
    """From when until when (exclusive) every decision on ``state`` falls out as it does at ``now`` (A5).

    Between two moments that ``decide`` compares the time with: ends of leases, beginnings and ends of waits.
    (Whether a lease that holds is renewed or holds as long already, nobody has to be quick to store.)
    """
    not_before, not_after = ALWAYS
    for moment in _moments(state):
        if moment <= now:
            not_before = max(not_before, moment)
        else:
            not_after = min(not_after, moment)
    return not_before, not_after


# --- decide -----------------------------------------------------------------------------------------


def _claim(state: RangeState, command: ClaimRange) -> Decision:
    check_id(command.claim_id, "claim id")
    check_id(command.holder, "holder")
    check_job(command.job)
    _check_stream(state, command.job)
    _check_lease(command.now, command.lease)
    identity = command.job.identity
    held = state.open.get(command.claim_id)
    if held is not None and (held.identity, held.holder) == (identity, command.holder):
        return ALREADY_DONE
    if command.claim_id in state.open or command.claim_id in state.closed:
        return Decision(refusal=NotTheHolder(command.claim_id, "this claim id was used before"))
    completed = state.completions.get(identity)
    if completed is not None:
        return Decision(refusal=AlreadyCompleted(identity, completed.version))
    expired: tuple[RangeFact, ...] = ()
    for claim in state.open.values():
        if claim.source_hash != command.job.source_hash:
            continue
        if command.now < claim.expires_at:
            return Decision(refusal=AlreadyClaimed(claim.holder, claim.expires_at, claim.claim_id))
        expired += _expiry(claim)
    state = fold(expired, state)
    refusal = _closed_identity(state, identity) or _waiting(state, identity, command.now)
    if refusal is not None:
        return Decision(expired, refusal)
    claimed = RangeClaimed(
        claim_id=command.claim_id,
        holder=command.holder,
        identity=identity,
        job=command.job,
        policy=command.policy.numbers,
        expires_at=command.now + command.lease,
    )
    return Decision((*expired, claimed))


def _start(state: RangeState, command: StartAttempt) -> Decision:
    check_id(command.attempt_id, "attempt id")
    _check_lease(command.now, command.lease)
    claim = state.open.get(command.claim_id)
    if claim is None:
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= claim.expires_at:
        return _expired(claim)
    if claim.attempt_id == command.attempt_id:
        return ALREADY_DONE
    if claim.attempt_id is not None:
        return Decision(
            refusal=AttemptOutOfTurn(f"attempt {claim.attempt_id} of this claim is open")
        )
    if _attempt_was_used(state, command.attempt_id):
        return Decision(
            refusal=AttemptOutOfTurn(f"attempt id {command.attempt_id} was used before")
        )
    refusal = _closed_identity(state, claim.identity)
    if refusal is not None:
        return _closed_meanwhile(claim, refusal)
    waiting = _waiting(state, claim.identity, command.now)
    if waiting is not None:
        return Decision(refusal=waiting)
    number = state.attempts.get(claim.identity, 0) + 1
    started = AttemptStarted(
        command.claim_id, command.attempt_id, claim.identity, number, command.now + command.lease
    )
    return Decision((started,))


def _renew(state: RangeState, command: RenewClaim) -> Decision:
    """Only an attempt that runs keeps its lease, and only as long as something can come of it."""
    _check_lease(command.now, command.lease)
    claim = state.open.get(command.claim_id)
    if claim is None:
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= claim.expires_at:
        return _expired(claim)
    if claim.attempt_id is None:
        return Decision(refusal=AttemptOutOfTurn(f"no attempt of claim {claim.claim_id} is open"))
    completed = state.completions.get(claim.identity)
    if completed is not None:  # imported while the attempt runs
        return _closed_meanwhile(claim, AlreadyCompleted(claim.identity, completed.version))
    expires_at = command.now + command.lease
    if expires_at <= claim.expires_at:
        return ALREADY_DONE
    return Decision((ClaimRenewed(claim.claim_id, claim.identity, expires_at),))


def _finish(state: RangeState, command: FinishAttempt) -> Decision:
    codes = failures(command.answer)
    claim = state.open.get(command.claim_id)
    if claim is None:
        return _finished_before(state, command, codes)
    if _ended_under(state, command) is not None:
        return _finished_before(state, command, codes)
    if claim.attempt_id != command.attempt_id:
        return Decision(refusal=AttemptOutOfTurn(f"attempt {command.attempt_id} is not open"))
    if command.now >= claim.expires_at:
        return _expired(claim, command.answer)
    if codes:
        return _attempt_failed(state, claim, command, codes)
    completed = state.completions.get(claim.identity)
    if completed is not None:  # imported while the attempt ran
        return _closed_meanwhile(claim, AlreadyCompleted(claim.identity, completed.version))
    return Decision((_completion(claim, command.answer, command.attempt_id),))


def _attempt_failed(
    state: RangeState, claim: OpenClaim, command: FinishAttempt, codes: tuple[FailureCode, ...]
) -> Decision:
    """The failure; and the end of the claim, where that was the last attempt of its identity (A3)."""
    wait = None if command.retry_at is None else min(command.retry_at, command.now + LONGEST_WAIT)
    failed = _failure(claim, command.attempt_id, command.answer, codes, wait)
    if state.attempts.get(claim.identity, 0) < MAX_ATTEMPTS:
        return Decision((failed,))
    return Decision((failed, ClaimReleased(claim.claim_id, claim.identity, "exhausted")))


def _completion(claim: OpenClaim, answer: Answer, attempt_id: str) -> RangeCompleted:
    return RangeCompleted(
        claim_id=claim.claim_id,
        attempt_id=attempt_id,
        identity=claim.identity,
        source_hash=claim.source_hash,
        text=answer.text,
        finish=_storable(answer.finish),
        usage=answer.usage,
    )


def _closed_meanwhile(claim: OpenClaim, refusal: AlreadyCompleted | Exhausted) -> Decision:
    """Refuse a holder whose identity is closed by now, by an import mostly, and free its source."""
    reason: ReleaseReason = "outdone" if isinstance(refusal, AlreadyCompleted) else "exhausted"
    return Decision((ClaimReleased(claim.claim_id, claim.identity, reason),), refusal)


def _finished_before(
    state: RangeState, command: FinishAttempt, codes: tuple[FailureCode, ...]
) -> Decision:
    """The attempt or its claim is over: the same result sent again is already done (A2, A4)."""
    ended = _ended_under(state, command)
    if ended == (codes[0] if codes else output_digest(command.answer.text)):
        return ALREADY_DONE
    if state.closed.get(command.claim_id) == "completed" or ended not in (None, "lease_expired"):
        return Decision(refusal=DifferentResult(f"claim {command.claim_id} has another result"))
    return Decision(refusal=_not_open(state, command.claim_id))


def _ended_under(state: RangeState, command: FinishAttempt) -> str | None:
    """The result of this attempt, if it is over and was made under this claim."""
    ended = state.ended.get(command.attempt_id)
    return ended.result if ended is not None and ended.claim_id == command.claim_id else None


def _attempt_was_used(state: RangeState, attempt_id: str) -> bool:
    return attempt_id in state.ended or any(
        claim.attempt_id == attempt_id for claim in state.open.values()
    )


def _release(state: RangeState, command: ReleaseClaim) -> Decision:
    if command.reason not in GIVE_BACK_REASONS:
        raise InvalidCommand(f"{command.reason!r} is no reason to give back", place="reason")
    claim = state.open.get(command.claim_id)
    if claim is None:
        if state.closed.get(command.claim_id) == command.reason:
            return ALREADY_DONE
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= claim.expires_at:
        return _expired(claim)
    if claim.attempt_id is not None:
        return Decision(
            refusal=AttemptOutOfTurn(
                f"attempt {claim.attempt_id} is open and must be finished first"
            )
        )
    return Decision((ClaimReleased(claim.claim_id, claim.identity, command.reason),))


def _import(state: RangeState, command: ImportSummary) -> Decision:
    check_id(command.import_id, "import id")
    check_id(command.origin, "origin")
    check_job(command.job)
    _check_stream(state, command.job)
    if command.made_at is not None and not 0 <= command.made_at <= MAX_INTEGER:
        raise InvalidCommand(f"{command.made_at} is no time in microseconds", place="made_at")
    codes = failures(Answer(command.text, FinishFacts(("stop",))))
    if codes:
        raise InvalidCommand(
            f"the text is not acceptable as a summary: {', '.join(codes)}", place="summary"
        )
    identity = command.job.identity
    completed = state.completions.get(identity)
    if completed is not None:
        if completed.text_digest == output_digest(command.text):
            return ALREADY_DONE
        return Decision(refusal=AlreadyCompleted(identity, completed.version))
    return Decision(
        (
            SummaryImported(
                command.import_id,
                identity,
                command.job,
                command.text,
                command.origin,
                command.made_at,
            ),
        )
    )


def _check_stream(state: RangeState, job: Job) -> None:
    key = _key(job)
    if state.key is not None and state.key != key:
        raise InvalidCommand(f"the job is of {key}, the stream of {state.key}", place="stream")


def _check_lease(now: int, lease: int) -> None:
    if now < 0 or lease <= 0 or now + lease > MAX_INTEGER:
        raise InvalidCommand(
            f"now {now} and lease {lease} must be microseconds, the lease above zero", place="lease"
        )


def _closed_identity(state: RangeState, identity: str) -> AlreadyCompleted | Exhausted | None:
    completed = state.completions.get(identity)
    if completed is not None:
        return AlreadyCompleted(identity, completed.version)
    attempts = state.attempts.get(identity, 0)
    return Exhausted(identity, attempts) if attempts >= MAX_ATTEMPTS else None


def _waiting(state: RangeState, identity: str, now: int) -> Refused | None:
    """D3: the second attempt waits. No clock that was set back makes it wait longer than any wait."""
    retry_at = state.retry_at.get(identity, 0)
    return BackingOff(identity, retry_at) if now < retry_at <= now + LONGEST_WAIT else None


def _moments(state: RangeState) -> Iterator[int]:
    """Every time at which a decision changes: whatever a lease or a wait (D3) is compared with."""
    for claim in state.open.values():
        yield claim.expires_at
    for retry_at in state.retry_at.values():
        yield retry_at - LONGEST_WAIT
        yield retry_at


def _not_open(state: RangeState, claim_id: str) -> NotTheHolder:
    return NotTheHolder(claim_id, state.closed.get(claim_id, "no such claim"))


def _expired(claim: OpenClaim, answer: Answer | None = None) -> Decision:
    """Refuse the holder that came too late, and record the expiry (A5)."""
    return Decision(_expiry(claim, answer), LeaseExpired(claim.claim_id, claim.expires_at))


def _expiry(claim: OpenClaim, answer: Answer | None = None) -> tuple[RangeFact, ...]:
    released = ClaimReleased(claim.claim_id, claim.identity, "expired")
    if claim.attempt_id is None:
        return (released,)
    return (_failure(claim, claim.attempt_id, answer, ("lease_expired",), None), released)


def _failure(
    claim: OpenClaim,
    attempt_id: str,
    answer: Answer | None,
    codes: tuple[FailureCode, ...],
    retry_at: int | None,
) -> AttemptFailed:
    first, *also = codes
    return AttemptFailed(
        claim_id=claim.claim_id,
        attempt_id=attempt_id,
        identity=claim.identity,
        failure=first,
        also=tuple(also),
        finish=_storable(answer.finish) if answer else FinishFacts(),
        usage=answer.usage if answer else Usage(),
        output_digest=output_digest(answer.text) if answer and answer.text else None,
        retry_at=retry_at,
        detail=_storable_word(answer.detail) if answer and answer.detail else None,
    )


def _storable(finish: FinishFacts) -> FinishFacts:
    """Finish facts whose words can be stored, whatever a provider calls its finishes."""
    return replace(
        finish, provider_words=tuple(map(_storable_word, finish.provider_words[:MAX_WORDS]))
    )


def _storable_word(word: str) -> str:
    return replace_surrogates(word[:MAX_WORD_CHARACTERS])[0]


# --- evolve -----------------------------------------------------------------------------------------


def _changes(state: RangeState, fact: RangeFact) -> dict[str, Any]:
    """What ``fact`` changes in ``state``, by field."""
    match fact:
        case RangeClaimed():
            claim = OpenClaim(
                fact.claim_id, fact.holder, fact.identity, fact.job.source_hash, fact.expires_at
            )
            return {"key": _key(fact.job), "open": {**state.open, fact.claim_id: claim}}
        case AttemptStarted():
            attempt = {"attempt_id": fact.attempt_id, "expires_at": fact.expires_at}
            count = state.attempts.get(fact.identity, 0) + 1
            return {
                "open": _open_with(state, fact.claim_id, attempt),
                "attempts": {**state.attempts, fact.identity: count},
            }
        case ClaimRenewed():
            return {"open": _open_with(state, fact.claim_id, {"expires_at": fact.expires_at})}
        case AttemptFailed():
            waits = {} if fact.retry_at is None else {fact.identity: fact.retry_at}
            return {
                "open": _open_with(state, fact.claim_id, {"attempt_id": None}),
                "ended": _ended(state, fact, fact.failure),
                "retry_at": {**state.retry_at, **waits},
            }
        case RangeCompleted():
            digest = output_digest(fact.text)
            return {
                **_closed(state, fact.claim_id, "completed"),
                "ended": _ended(state, fact, digest),
                "completions": _completed(state, fact.identity, fact.claim_id, digest),
            }
        case ClaimReleased():
            return _closed(state, fact.claim_id, fact.reason)
        case SummaryImported():
            digest = output_digest(fact.text)
            return {
                "key": _key(fact.job),
                "completions": _completed(state, fact.identity, fact.import_id, digest),
            }


def _key(job: Job) -> tuple[str, str, int]:
    return (job.scope, job.conversation, job.from_pair)


def _open_with(
    state: RangeState, claim_id: str, changes: Mapping[str, Any]
) -> Mapping[str, OpenClaim]:
    """The open claims with one changed. A claim that is not open stays as it is (A10)."""
    claim = state.open.get(claim_id)
    return state.open if claim is None else {**state.open, claim_id: replace(claim, **changes)}


def _ended(
    state: RangeState, fact: AttemptFailed | RangeCompleted, result: str
) -> Mapping[str, EndedAttempt]:
    return {**state.ended, fact.attempt_id: EndedAttempt(fact.claim_id, result)}


def _completed(
    state: RangeState, identity: str, by: str, text_digest: str
) -> Mapping[str, Completion]:
    return {**state.completions, identity: Completion(by, text_digest, state.version + 1)}


def _closed(state: RangeState, claim_id: str, how: str) -> dict[str, Any]:
    still_open = {key: claim for key, claim in state.open.items() if key != claim_id}
    return {"open": still_open, "closed": {**state.closed, claim_id: how}}
