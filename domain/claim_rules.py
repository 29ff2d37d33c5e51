"""The rules of claims, attempts and completions (A1 to A6, D3), once for ranges and for chunks.

Pure functions from a state and a command to a :class:`Decision`, in the words of ranges; the stream of
another kind of job tells it in its own. Time and ids come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.claim_state import (
    Changes,
    Claimable,
    ClaimState,
    OpenClaim,
    changed,
    claimed,
    completed,
    failed,
    released,
    renewed,
    started,
)
from compaction_ledger.domain.commands import (
    GIVE_BACK_REASONS,
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
)
from compaction_ledger.domain.finish import (
    Answer,
    FailureCode,
    FinishFacts,
    Usage,
    output_digest,
)
from compaction_ledger.domain.identifiers import check_id, replace_surrogates

MAX_ATTEMPTS = 2

MAX_WORDS = 8
LONGEST_WAIT = 7_200_000_000  # two hours, in microseconds
MAX_WORD_CHARACTERS = 64
ALWAYS = (-(2**63), 2**63)  # no clock of a store goes beyond

CHANGES: Changes = {
    RangeClaimed: claimed,
    AttemptStarted: started,
    ClaimRenewed: renewed,
    AttemptFailed: failed,
    RangeCompleted: completed,
    ClaimReleased: released,
}


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


@dataclass(frozen=True, slots=True)
class Granted:
    """A job may be claimed. ``facts`` come before the claim: the ends of others that are past their lease."""

    identity: str
    facts: tuple[RangeFact, ...]


class Claiming(Protocol):
    """A command that claims a job."""

    @property
    def claim_id(self) -> str: ...
    @property
    def holder(self) -> str: ...
    @property
    def job(self) -> Claimable: ...
    @property
    def now(self) -> int: ...
    @property
    def lease(self) -> int: ...


class Finishing(Protocol):
    """A command that ends an attempt."""

    @property
    def claim_id(self) -> str: ...
    @property
    def attempt_id(self) -> str: ...
    @property
    def answer(self) -> Answer: ...
    @property
    def now(self) -> int: ...
    @property
    def retry_at(self) -> int | None: ...


def claim(state: ClaimState, command: Claiming) -> Decision | Granted:
    """Whether the job may be claimed (A1, A3, A5, D3)."""
    check_id(command.claim_id, "claim id")
    check_id(command.holder, "holder")
    command.job.check()
    check_stream(state, command.job)
    _check_lease(command.now, command.lease)
    identity = command.job.identity
    held = state.open.get(command.claim_id)
    if held is not None and (held.identity, held.holder) == (identity, command.holder):
        return ALREADY_DONE
    if command.claim_id in state.open or command.claim_id in state.closed:
        return Decision(refusal=NotTheHolder(command.claim_id, "this claim id was used before"))
    done = state.completions.get(identity)
    if done is not None:
        return Decision(refusal=AlreadyCompleted(identity, done.version))
    expired: tuple[RangeFact, ...] = ()
    for other in state.open.values():
        if other.source_hash != command.job.source_hash:
            continue
        if command.now < other.expires_at:
            return Decision(refusal=AlreadyClaimed(other.holder, other.expires_at, other.claim_id))
        expired += expiry(other)
    state = _behind(expired, state)
    refusal = _closed_identity(state, identity) or _waiting(state, identity, command.now)
    return Granted(identity, expired) if refusal is None else Decision(expired, refusal)


def start(state: ClaimState, command: StartAttempt) -> Decision:
    """Begin an attempt under an open claim (A3, A4)."""
    check_id(command.attempt_id, "attempt id")
    _check_lease(command.now, command.lease)
    held = state.open.get(command.claim_id)
    if held is None:
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= held.expires_at:
        return _expired(held)
    if held.attempt_id == command.attempt_id:
        return ALREADY_DONE
    if held.attempt_id is not None:
        return Decision(
            refusal=AttemptOutOfTurn(f"attempt {held.attempt_id} of this claim is open")
        )
    if _attempt_was_used(state, command.attempt_id):
        return Decision(
            refusal=AttemptOutOfTurn(f"attempt id {command.attempt_id} was used before")
        )
    refusal = _closed_identity(state, held.identity)
    if refusal is not None:
        return _closed_meanwhile(held, refusal)
    waiting = _waiting(state, held.identity, command.now)
    if waiting is not None:
        return Decision(refusal=waiting)
    number = state.attempts.get(held.identity, 0) + 1
    begun = AttemptStarted(
        command.claim_id, command.attempt_id, held.identity, number, command.now + command.lease
    )
    return Decision((begun,))


def renew(state: ClaimState, command: RenewClaim) -> Decision:
    """Only an attempt that runs keeps its lease, and only as long as something can come of it."""
    _check_lease(command.now, command.lease)
    held = state.open.get(command.claim_id)
    if held is None:
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= held.expires_at:
        return _expired(held)
    if held.attempt_id is None:
        return Decision(refusal=AttemptOutOfTurn(f"no attempt of claim {held.claim_id} is open"))
    done = state.completions.get(held.identity)
    if done is not None:  # imported while the attempt runs
        return _closed_meanwhile(held, AlreadyCompleted(held.identity, done.version))
    expires_at = command.now + command.lease
    if expires_at <= held.expires_at:
        return ALREADY_DONE
    return Decision((ClaimRenewed(held.claim_id, held.identity, expires_at),))


def finish(
    state: ClaimState, command: Finishing, codes: tuple[FailureCode, ...], text: str
) -> Decision | OpenClaim:
    """End an attempt that failed by these ``codes``, or by none: then ``text`` is the summary.

    The claim is the answer where it may be completed: the completion of its job is what follows.
    """
    held = state.open.get(command.claim_id)
    if held is None:
        return _finished_before(state, command, codes, text)
    if _ended_under(state, command) is not None:
        return _finished_before(state, command, codes, text)
    if held.attempt_id != command.attempt_id:
        return Decision(refusal=AttemptOutOfTurn(f"attempt {command.attempt_id} is not open"))
    if command.now >= held.expires_at:
        return _expired(held, command.answer)
    if codes:
        return _attempt_failed(state, held, command, codes)
    done = state.completions.get(held.identity)
    if done is not None:  # imported while the attempt ran
        return _closed_meanwhile(held, AlreadyCompleted(held.identity, done.version))
    return held


def release(state: ClaimState, command: ReleaseClaim) -> Decision:
    """Give a claim back that has no attempt under way."""
    if command.reason not in GIVE_BACK_REASONS:
        raise InvalidCommand(f"{command.reason!r} is no reason to give back", place="reason")
    held = state.open.get(command.claim_id)
    if held is None:
        if state.closed.get(command.claim_id) == command.reason:
            return ALREADY_DONE
        return Decision(refusal=_not_open(state, command.claim_id))
    if command.now >= held.expires_at:
        return _expired(held)
    if held.attempt_id is not None:
        return Decision(
            refusal=AttemptOutOfTurn(
                f"attempt {held.attempt_id} is open and must be finished first"
            )
        )
    return Decision((ClaimReleased(held.claim_id, held.identity, command.reason),))


def steady(state: ClaimState, now: int) -> tuple[int, int]:
    """From when until when (exclusive) every decision on ``state`` falls out as it does at ``now`` (A5).

    Between two moments that the rules compare the time with: ends of leases, beginnings and ends of waits.
    (Whether a lease that holds is renewed or holds as long already, nobody has to be quick to store.)
    """
    not_before, not_after = ALWAYS
    for moment in _moments(state):
        if moment <= now:
            not_before = max(not_before, moment)
        else:
            not_after = min(not_after, moment)
    return not_before, not_after


def expiry(held: OpenClaim, answer: Answer | None = None) -> tuple[RangeFact, ...]:
    """The end of a claim that is past its lease, and of its attempt (A5, A6)."""
    over = ClaimReleased(held.claim_id, held.identity, "expired")
    if held.attempt_id is None:
        return (over,)
    return (_failure(held, held.attempt_id, answer, ("lease_expired",), None), over)


def storable(facts: FinishFacts) -> FinishFacts:
    """Finish facts whose words can be stored, whatever a provider calls its finishes."""
    return replace(
        facts, provider_words=tuple(map(_storable_word, facts.provider_words[:MAX_WORDS]))
    )


def check_stream(state: ClaimState, job: Claimable) -> None:
    """Raise :class:`InvalidCommand` where the job is of another stream."""
    if state.key is not None and state.key != job.key:
        raise InvalidCommand(f"the job is of {job.key}, the stream of {state.key}", place="stream")


# --- inside -----------------------------------------------------------------------------------------


def _behind(facts: Iterable[RangeFact], state: ClaimState) -> ClaimState:
    return reduce(lambda before, fact: changed(before, fact, CHANGES), facts, state)


def _attempt_failed(
    state: ClaimState, held: OpenClaim, command: Finishing, codes: tuple[FailureCode, ...]
) -> Decision:
    """The failure; and the end of the claim, where that was the last attempt of its identity (A3)."""
    wait = None if command.retry_at is None else min(command.retry_at, command.now + LONGEST_WAIT)
    failure = _failure(held, command.attempt_id, command.answer, codes, wait)
    if state.attempts.get(held.identity, 0) < MAX_ATTEMPTS:
        return Decision((failure,))
    return Decision((failure, ClaimReleased(held.claim_id, held.identity, "exhausted")))


def _closed_meanwhile(held: OpenClaim, refusal: AlreadyCompleted | Exhausted) -> Decision:
    """Refuse a holder whose identity is closed by now, by an import mostly, and free its source."""
    reason: ReleaseReason = "outdone" if isinstance(refusal, AlreadyCompleted) else "exhausted"
    return Decision((ClaimReleased(held.claim_id, held.identity, reason),), refusal)


def _finished_before(
    state: ClaimState, command: Finishing, codes: tuple[FailureCode, ...], text: str
) -> Decision:
    """The attempt or its claim is over: the same result sent again is already done (A2, A4)."""
    ended = _ended_under(state, command)
    if ended == (codes[0] if codes else output_digest(text)):
        return ALREADY_DONE
    if state.closed.get(command.claim_id) == "completed" or ended not in (None, "lease_expired"):
        return Decision(refusal=DifferentResult(f"claim {command.claim_id} has another result"))
    return Decision(refusal=_not_open(state, command.claim_id))


def _ended_under(state: ClaimState, command: Finishing) -> str | None:
    """The result of this attempt, if it is over and was made under this claim."""
    ended = state.ended.get(command.attempt_id)
    return ended.result if ended is not None and ended.claim_id == command.claim_id else None


def _attempt_was_used(state: ClaimState, attempt_id: str) -> bool:
    return attempt_id in state.ended or any(
        held.attempt_id == attempt_id for held in state.open.values()
    )


def _check_lease(now: int, lease: int) -> None:
    if now < 0 or lease <= 0 or now + lease > MAX_INTEGER:
        raise InvalidCommand(
            f"now {now} and lease {lease} must be microseconds, the lease above zero", place="lease"
        )


def _closed_identity(state: ClaimState, identity: str) -> AlreadyCompleted | Exhausted | None:
    done = state.completions.get(identity)
    if done is not None:
        return AlreadyCompleted(identity, done.version)
    attempts = state.attempts.get(identity, 0)
    return Exhausted(identity, attempts) if attempts >= MAX_ATTEMPTS else None


def _waiting(state: ClaimState, identity: str, now: int) -> Refused | None:
    """D3: the second attempt waits. No clock that was set back makes it wait longer than any wait."""
    retry_at = state.retry_at.get(identity, 0)
    return BackingOff(identity, retry_at) if now < retry_at <= now + LONGEST_WAIT else None


def _moments(state: ClaimState) -> Iterator[int]:
    """Every time at which a decision changes: whatever a lease or a wait (D3) is compared with."""
    for held in state.open.values():
        yield held.expires_at
    for retry_at in state.retry_at.values():
        yield retry_at - LONGEST_WAIT
        yield retry_at


def _not_open(state: ClaimState, claim_id: str) -> NotTheHolder:
    return NotTheHolder(claim_id, state.closed.get(claim_id, "no such claim"))


def _expired(held: OpenClaim, answer: Answer | None = None) -> Decision:
    """Refuse the holder that came too late, and record the expiry (A5)."""
    return Decision(expiry(held, answer), LeaseExpired(held.claim_id, held.expires_at))


def _failure(
    held: OpenClaim,
    attempt_id: str,
    answer: Answer | None,
    codes: tuple[FailureCode, ...],
    retry_at: int | None,
) -> AttemptFailed:
    first, *also = codes
    return AttemptFailed(
        claim_id=held.claim_id,
        attempt_id=attempt_id,
        identity=held.identity,
        failure=first,
        also=tuple(also),
        finish=storable(answer.finish) if answer else FinishFacts(),
        usage=answer.usage if answer else Usage(),
        output_digest=output_digest(answer.text) if answer and answer.text else None,
        retry_at=retry_at,
        detail=_storable_word(answer.detail) if answer and answer.detail else None,
    )


def _storable_word(word: str) -> str:
    return replace_surrogates(word[:MAX_WORD_CHARACTERS])[0]
