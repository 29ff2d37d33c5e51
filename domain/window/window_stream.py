"""The aggregate of a running agent: one append-only stream per window, as two pure functions.

``decide(state, command)`` says what happens, ``evolve(state, fact)`` what is so afterwards; rules are judged
in ``decide`` alone (A10). Claims, attempts and completions of chunks go by the same rules as those of ranges
(:mod:`claim_rules`), told in the words of chunks. What chunks have of their own is where they may stand (T8,
T11: :mod:`chunk_places`), and pins (T9: :mod:`pin_acceptance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import attrgetter
from typing import Any

from compaction_ledger.domain import claim_rules, claim_state
from compaction_ledger.domain.claim_rules import Decision
from compaction_ledger.domain.claim_state import Changes
from compaction_ledger.domain.commands import ReleaseClaim, RenewClaim, StartAttempt
from compaction_ledger.domain.errors import InvalidCommand, Refused
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeFact,
)
from compaction_ledger.domain.finish import Answer, FailureCode, failures
from compaction_ledger.domain.identifiers import is_blank
from compaction_ledger.domain.window.chunk_places import place
from compaction_ledger.domain.window.commands import (
    AcceptPin,
    ClaimChunk,
    FinishChunk,
    WindowCommand,
)
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkClaimReleased,
    ChunkClaimRenewed,
    ChunkCompleted,
    ChunkFact,
    PinAccepted,
)
from compaction_ledger.domain.window.pin_acceptance import accept
from compaction_ledger.domain.window.window_state import (
    EMPTY,
    StandingChunk,
    WindowState,
    current_pins,
    with_chunk,
    with_pin,
)

__all__ = [
    "EMPTY",
    "StandingChunk",
    "WindowDecision",
    "WindowState",
    "WindowStreamFact",
    "current_pins",
    "decide",
    "evolve",
    "fold",
    "steady",
]

WindowStreamFact = ChunkFact | PinAccepted
"""What stands in the stream of a window. Deliveries have streams of their own."""


@dataclass(frozen=True, slots=True)
class WindowDecision:
    """As :class:`Decision` of ranges: the facts to append, and the refusal to raise once they are stored."""

    facts: tuple[WindowStreamFact, ...] = ()
    refusal: Refused | None = None
    already: bool = False


def decide(state: WindowState, command: WindowCommand) -> WindowDecision:
    """Judge ``command`` in ``state``. Raises :class:`InvalidInput` only for malformed commands (A7)."""
    match command:
        case ClaimChunk():
            return _claim(state, command)
        case StartAttempt():
            return _told(claim_rules.start(state.lifecycle, command))
        case RenewClaim():
            return _told(claim_rules.renew(state.lifecycle, command))
        case FinishChunk():
            return _finish(state, command)
        case ReleaseClaim():
            return _told(claim_rules.release(state.lifecycle, command))
        case AcceptPin():
            return _accept(state, command.pin)


def evolve(state: WindowState, fact: WindowStreamFact) -> WindowState:
    """The state after ``fact``. Judges nothing (A10)."""
    if isinstance(fact, PinAccepted):
        return with_pin(state, fact)
    lifecycle = claim_state.changed(state.lifecycle, fact, _CHANGES)
    if isinstance(fact, ChunkClaimed):
        return replace(state, lifecycle=lifecycle, jobs={**state.jobs, fact.identity: fact.job})
    if isinstance(fact, ChunkCompleted):
        return with_chunk(replace(state, lifecycle=lifecycle), fact)
    return replace(state, lifecycle=lifecycle)


def fold(facts: Iterable[WindowStreamFact], state: WindowState = EMPTY) -> WindowState:
    """The state after all ``facts``."""
    return reduce(evolve, facts, state)


def steady(state: WindowState, now: int) -> tuple[int, int]:
    """From when until when (exclusive) every decision on ``state`` falls out as it does at ``now`` (A5)."""
    return claim_rules.steady(state.lifecycle, now)


# --- decide -----------------------------------------------------------------------------------------


def _claim(state: WindowState, command: ClaimChunk) -> WindowDecision:
    judged = claim_rules.claim(state.lifecycle, command)
    if isinstance(judged, Decision):
        return _told(judged)
    placed = place(state, command.job, command.now)
    ended = tuple(fact for fact in placed.expired if fact not in judged.facts)
    facts = tuple(map(_in_words_of_chunks, (*judged.facts, *ended)))
    if placed.refusal is not None:
        return WindowDecision(facts, placed.refusal)
    claimed = ChunkClaimed(
        claim_id=command.claim_id,
        holder=command.holder,
        identity=judged.identity,
        job=command.job,
        budget=command.budget.numbers,
        expires_at=command.now + command.lease,
    )
    return WindowDecision((*facts, claimed))


def _finish(state: WindowState, command: FinishChunk) -> WindowDecision:
    answer, verdict = command.answer, command.verdict
    codes = verdict.codes or _badly_ended(answer)
    if not codes and is_blank(verdict.text):
        raise InvalidCommand("an accepted summary has text", place="verdict")
    judged = claim_rules.finish(state.lifecycle, command, codes, verdict.text)
    if isinstance(judged, Decision):
        return _told(judged)
    completed = ChunkCompleted(
        claim_id=judged.claim_id,
        attempt_id=command.attempt_id,
        identity=judged.identity,
        source_hash=judged.source_hash,
        text=verdict.text,
        ungrounded=verdict.ungrounded,
        finish=claim_rules.storable(answer.finish),
        usage=answer.usage,
    )
    return WindowDecision((completed,))


_OF_TEXT: frozenset[FailureCode] = frozenset({"malformed_text", "empty", "too_long"})


def _badly_ended(answer: Answer) -> tuple[FailureCode, ...]:
    """Ways in which an answer did not end as one should (C1, C2): Case A holds whoever gave the verdict.

    What its text is worth is not judged here: it is not the text of the summary.
    """
    return tuple(code for code in failures(answer) if code not in _OF_TEXT)


def _accept(state: WindowState, pin: PinAccepted) -> WindowDecision:
    refused = accept(state, pin)
    if refused is None:
        return WindowDecision((pin,))
    return WindowDecision(already=True) if refused == "already" else WindowDecision(refusal=refused)


# --- the words of chunks ----------------------------------------------------------------------------

_WORDS: dict[type[Any], type[Any]] = {
    AttemptStarted: ChunkAttemptStarted,
    ClaimRenewed: ChunkClaimRenewed,
    AttemptFailed: ChunkAttemptFailed,
    ClaimReleased: ChunkClaimReleased,
}
"""Facts of ranges and the facts of chunks that say the same, in the same members."""

_MEMBERS: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {
    fact: attrgetter(*(member.name for member in fields(fact))) for fact in _WORDS
}

_CHANGES: Changes = {
    ChunkClaimed: claim_state.claimed,
    ChunkCompleted: claim_state.completed,
    **{word: claim_rules.CHANGES[fact] for fact, word in _WORDS.items()},
}


def _in_words_of_chunks(fact: RangeFact) -> ChunkFact:
    kind = type(fact)
    told: ChunkFact = _WORDS[kind](*_MEMBERS[kind](fact))
    return told


def _told(decision: Decision) -> WindowDecision:
    facts = tuple(map(_in_words_of_chunks, decision.facts))
    return WindowDecision(facts, decision.refusal, decision.already)
