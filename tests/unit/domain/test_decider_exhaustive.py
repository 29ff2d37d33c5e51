"""Every interleaving of three workers to a stated depth (docs/explanation/decider-check.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import small_scope
from small_scope import Report, explore

from compaction_ledger.domain.commands import (
    ClaimRange,
    Command,
    FinishAttempt,
    ImportSummary,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.events import ClaimReleased, ClaimRenewed, ReleaseReason
from compaction_ledger.domain.range_stream import Decision, OpenClaim, RangeState, decide

# Depth to the states and transitions that are visited. The documentation names the same numbers.
VISITED = {6: (11_716, 78_120), 9: (258_386, 2_538_985)}

# Everything that can come of a command.
OUTCOMES = {
    *(f"ClaimRange: {end}" for end in ("done", "already", "AlreadyClaimed", "AlreadyCompleted")),
    *(f"ClaimRange: {end}" for end in ("Exhausted", "NotTheHolder")),
    *(f"StartAttempt: {end}" for end in ("done", "already", "AlreadyCompleted", "LeaseExpired")),
    *(f"StartAttempt: {end}" for end in ("AttemptOutOfTurn", "NotTheHolder")),
    *(f"RenewClaim: {end}" for end in ("done", "already", "AlreadyCompleted", "LeaseExpired")),
    *(f"RenewClaim: {end}" for end in ("AttemptOutOfTurn", "NotTheHolder")),
    *(f"FinishAttempt: {end}" for end in ("done", "already", "AlreadyCompleted", "LeaseExpired")),
    *(f"FinishAttempt: {end}" for end in ("DifferentResult", "NotTheHolder")),
    *(f"ReleaseClaim: {end}" for end in ("done", "already", "LeaseExpired", "NotTheHolder")),
    "ReleaseClaim: AttemptOutOfTurn",
    *(f"ImportSummary: {end}" for end in ("done", "already", "AlreadyCompleted")),
    "time passes",
}


def check(depth: int) -> Report:
    """Explore, and say what was visited."""
    report = explore(depth)
    assert (report.states, report.transitions) == VISITED[depth]
    assert report.deepest == depth
    assert sum(report.outcomes.values()) == report.transitions
    return report


def test_every_interleaving_of_three_workers() -> None:
    assert set(check(6).outcomes) == OUTCOMES


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_interleaving_of_three_workers_deeper() -> None:
    assert set(check(9).outcomes) == OUTCOMES


def test_the_documentation_names_these_numbers(repo_root: Path) -> None:
    page = (repo_root / "docs" / "explanation" / "decider-check.md").read_text("utf-8")
    for depth, (states, transitions) in VISITED.items():
        assert f"| {depth} | {states:,} | {transitions:,} |" in page


# --- the check notices what it is there for -------------------------------------------------------


def blind_to_claims(state: RangeState, command: Command) -> Decision:
    """Lets everybody claim."""
    return decide(replace(state, open={}) if isinstance(command, ClaimRange) else state, command)


def blind_to_completions(state: RangeState, command: Command) -> Decision:
    """Imports over a completion."""
    blind = isinstance(command, ImportSummary)
    return decide(replace(state, completions={}) if blind else state, command)


def blind_to_leases(state: RangeState, command: Command) -> Decision:
    """Accepts late results."""
    return decide(state, replace(command, now=0) if isinstance(command, FinishAttempt) else command)


def blind_to_attempts(state: RangeState, command: Command) -> Decision:
    """Starts without counting."""
    blind = isinstance(command, StartAttempt)
    return decide(replace(state, attempts={}) if blind else state, command)


def keeping_the_last_claim(state: RangeState, command: Command) -> Decision:
    """Leaves the claim open when its identity is exhausted."""
    return without_the_end(decide(state, command), "exhausted")


def keeping_an_outdone_claim(state: RangeState, command: Command) -> Decision:
    """Refuses a holder whose identity was imported, and lets it hold its source."""
    return without_the_end(decide(state, command), "outdone")


def without_the_end(decision: Decision, reason: ReleaseReason) -> Decision:
    """The decision without the ends of claims for ``reason``."""
    kept = [
        fact
        for fact in decision.facts
        if not (isinstance(fact, ClaimReleased) and fact.reason == reason)
    ]
    return replace(decision, facts=tuple(kept))


def repeating_late_starts(state: RangeState, command: Command) -> Decision:
    """Says of an open attempt that it goes on, also past its lease."""
    if isinstance(command, StartAttempt):
        claim = state.open.get(command.claim_id)
        if claim is not None and claim.attempt_id == command.attempt_id:
            return Decision(already=True)
    return decide(state, command)


def renewing_late(state: RangeState, command: Command) -> Decision:
    """Renews a lease that is over, as long as nobody has noticed."""
    if isinstance(command, RenewClaim) and command.claim_id in state.open:
        claim = state.open[command.claim_id]
        if command.now >= claim.expires_at:
            return renewing_anyway(claim, command)
    return decide(state, command)


def renewing_early(state: RangeState, command: Command) -> Decision:
    """Renews a claim without an attempt."""
    if isinstance(command, RenewClaim) and command.claim_id in state.open:
        claim = state.open[command.claim_id]
        if claim.attempt_id is None:
            return renewing_anyway(claim, command)
    return decide(state, command)


def renewing_at_once(state: RangeState, command: Command) -> Decision:
    """Renews whether or not it makes a difference."""
    decision = decide(state, command)
    if isinstance(command, RenewClaim) and decision.already:
        return renewing_anyway(state.open[command.claim_id], command)
    return decision


def renewing_anyway(claim: OpenClaim, command: RenewClaim) -> Decision:
    """The renewal, whatever the rules say of it."""
    return Decision((ClaimRenewed(claim.claim_id, claim.identity, command.now + command.lease),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "depth", "rule"),
    [
        (blind_to_claims, 2, "A1"),
        (blind_to_completions, 2, "A2"),
        (blind_to_leases, 5, "A4"),
        (blind_to_attempts, 4, "A3"),
        (keeping_the_last_claim, 5, "A3: an exhausted identity holds its source"),
        (keeping_an_outdone_claim, 3, "A1: a refused holder holds its source"),
        (repeating_late_starts, 5, "A5"),
        (renewing_late, 4, "A4: past the lease"),
        (renewing_early, 2, "A5: renewed without an attempt"),
        (renewing_at_once, 3, "A5: cut short"),
    ],
)
def test_a_broken_decider_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[RangeState, Command], Decision],
    depth: int,
    rule: str,
) -> None:
    monkeypatch.setattr(small_scope, "decide", broken)
    with pytest.raises(AssertionError, match=rule):
        explore(depth)
