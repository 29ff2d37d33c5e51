"""The aggregate: one append-only stream per range (section 5), as two pure functions.

``decide(state, command)`` says what happens; ``evolve(state, fact)`` says what is so afterwards. Rules
are judged in ``decide`` alone: ``evolve`` accepts whatever once was legal (A10). Time and ids come in.
Claims, attempts and completions go by the rules that hold for any job (:mod:`claim_rules`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.claim_rules import (
    ALREADY_DONE,
    ALWAYS,
    CHANGES,
    LONGEST_WAIT,
    MAX_ATTEMPTS,
    MAX_WORD_CHARACTERS,
    MAX_WORDS,
    Decision,
    check_stream,
    claim,
    finish,
    release,
    renew,
    start,
    steady,
    storable,
)
from compaction_ledger.domain.claim_state import (
    EMPTY,
    Changes,
    ClaimState,
    Completion,
    EndedAttempt,
    OpenClaim,
    changed,
    completions_with,
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
from compaction_ledger.domain.errors import AlreadyCompleted, InvalidCommand
from compaction_ledger.domain.events import (
    RangeClaimed,
    RangeCompleted,
    RangeFact,
    SummaryImported,
)
from compaction_ledger.domain.finish import Answer, FinishFacts, failures, output_digest
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.identity import check_job

__all__ = [
    "ALWAYS",
    "EMPTY",
    "LONGEST_WAIT",
    "MAX_ATTEMPTS",
    "MAX_WORDS",
    "MAX_WORD_CHARACTERS",
    "Completion",
    "Decision",
    "EndedAttempt",
    "OpenClaim",
    "RangeState",
    "decide",
    "evolve",
    "fold",
    "steady",
]

RangeState = ClaimState
"""What the facts of a range say. Its ``key``: scope, conversation, first pair."""


def decide(state: RangeState, command: Command) -> Decision:
    """Judge ``command`` in ``state``. Raises :class:`InvalidInput` only for malformed commands (A7)."""
    match command:
        case ClaimRange():
            return _claim(state, command)
        case StartAttempt():
            return start(state, command)
        case RenewClaim():
            return renew(state, command)
        case FinishAttempt():
            return _finish(state, command)
        case ReleaseClaim():
            return release(state, command)
        case ImportSummary():
            return _import(state, command)


def evolve(state: RangeState, fact: RangeFact) -> RangeState:
    """The state after ``fact``. Judges nothing (A10)."""
    return changed(state, fact, _CHANGES)


def fold(facts: Iterable[RangeFact], state: RangeState = EMPTY) -> RangeState:
    """The state after all ``facts``."""
    return reduce(evolve, facts, state)


def _claim(state: RangeState, command: ClaimRange) -> Decision:
    judged = claim(state, command)
    if isinstance(judged, Decision):
        return judged
    claimed = RangeClaimed(
        claim_id=command.claim_id,
        holder=command.holder,
        identity=judged.identity,
        job=command.job,
        policy=command.policy.numbers,
        expires_at=command.now + command.lease,
    )
    return Decision((*judged.facts, claimed))


def _finish(state: RangeState, command: FinishAttempt) -> Decision:
    answer = command.answer
    judged = finish(state, command, failures(answer) or command.found, answer.text)
    if isinstance(judged, Decision):
        return judged
    completed = RangeCompleted(
        claim_id=judged.claim_id,
        attempt_id=command.attempt_id,
        identity=judged.identity,
        source_hash=judged.source_hash,
        text=answer.text,
        finish=storable(answer.finish),
        usage=answer.usage,
    )
    return Decision((completed,))


def _import(state: RangeState, command: ImportSummary) -> Decision:
    check_id(command.import_id, "import id")
    check_id(command.origin, "origin")
    check_job(command.job)
    check_stream(state, command.job)
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


def _imported(state: RangeState, fact: SummaryImported) -> dict[str, Any]:
    digest = output_digest(fact.text)
    return {
        "key": fact.job.key,
        "completions": completions_with(state, fact.identity, fact.import_id, digest),
    }


_CHANGES: Changes = {**CHANGES, SummaryImported: _imported}
