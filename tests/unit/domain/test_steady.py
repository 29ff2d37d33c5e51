"""For how long a decision holds (A5): between two moments that ``decide`` compares the time with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from scenarios import (
    JOB,
    LEASE,
    NOW,
    OLDER_SOURCE_JOB,
    OTHER_MODEL_JOB,
    UNAVAILABLE,
    bring_in,
    claim,
    claimed,
    failed,
    finish,
    good,
    release,
    released,
    renew,
    renewed,
    start,
    started,
    truncated,
)

from compaction_ledger.domain.commands import Command, ImportSummary, RenewClaim
from compaction_ledger.domain.events import AttemptFailed, AttemptStarted, RangeClaimed, RangeFact
from compaction_ledger.domain.range_stream import (
    ALWAYS,
    EMPTY,
    LONGEST_WAIT,
    RangeState,
    decide,
    fold,
    steady,
)

FIRST, LAST = ALWAYS
WAIT = 50 * LEASE
WAITING = fold([claimed(), started(), failed(retry_at=NOW + WAIT), released()])


# --- the moments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [0, NOW, -1, 2**60])
def test_a5_nothing_depends_on_the_time_where_nothing_is_open(now: int) -> None:
    assert steady(EMPTY, now) == ALWAYS
    assert steady(fold([claimed(), released()]), now) == ALWAYS


def test_a5_a_claim_divides_the_time_at_the_end_of_its_lease() -> None:
    state = fold([claimed(expires_at=NOW + LEASE)])
    assert steady(state, NOW) == (FIRST, NOW + LEASE)
    assert steady(state, NOW + LEASE - 1) == (FIRST, NOW + LEASE)
    assert steady(state, NOW + LEASE) == (NOW + LEASE, LAST)


def test_a5_every_open_claim_counts() -> None:
    state = fold([claimed(), claimed("c2", job=OLDER_SOURCE_JOB, expires_at=NOW + 3 * LEASE)])
    assert steady(state, NOW) == (FIRST, NOW + LEASE)
    assert steady(state, NOW + 2 * LEASE) == (NOW + LEASE, NOW + 3 * LEASE)
    assert steady(state, NOW + 4 * LEASE) == (NOW + 3 * LEASE, LAST)


def test_a5_a_renewed_lease_ends_where_it_says() -> None:
    state = fold([claimed(), started(), renewed(expires_at=NOW + 2 * LEASE)])
    assert steady(state, NOW) == (FIRST, NOW + 2 * LEASE)


def test_d3_a_wait_divides_the_time_where_it_begins_and_where_it_ends() -> None:
    ends = NOW + WAIT
    begins = ends - LONGEST_WAIT
    assert steady(WAITING, begins - 1) == (FIRST, begins)
    assert steady(WAITING, begins) == steady(WAITING, NOW) == (begins, ends)
    assert steady(WAITING, ends) == (ends, LAST)


# --- whatever happened, whatever comes ------------------------------------------------------------

ANSWERS = [good("one text"), good("another text"), truncated(), UNAVAILABLE]
BASE = 4 * LONGEST_WAIT
END = 9 * LONGEST_WAIT


def times(state: RangeState) -> st.SearchStrategy[int]:
    """Around every moment that is told of in ``state``, or where nobody expects it."""
    moments = {BASE, *(claim.expires_at for claim in state.open.values()), *state.retry_at.values()}
    near = {moment + wait for moment in moments for wait in (0, -LONGEST_WAIT, LONGEST_WAIT)}
    return st.builds(
        lambda moment, more: min(max(moment + more, 0), END - 1),
        st.sampled_from(sorted(near)),
        st.sampled_from([-1, 0, 1]) | st.integers(-2 * LEASE, 2 * LEASE),
    )


@st.composite
def commands(draw: st.DrawFn, state: RangeState) -> Command:
    """A command; mostly one that has something to do with what is open."""
    now, lease = draw(times(state)), draw(st.integers(1, 2 * LEASE))
    job, fresh = draw(st.sampled_from([JOB, JOB, OTHER_MODEL_JOB, OLDER_SOURCE_JOB])), state.version
    held = draw(st.sampled_from([*state.open, *state.open, "c1"]))
    running = state.open[held].attempt_id if held in state.open else None
    match draw(
        st.sampled_from(["claim", "claim", "start", "renew", "finish", "release", "import"])
    ):
        case "claim":
            return claim(draw(st.sampled_from([f"c{fresh}", held])), "w1", job, now, lease)
        case "start":
            return start(held, draw(st.sampled_from([f"a{fresh}", running or "a1"])), now, lease)
        case "renew":
            return renew(held, now, lease)
        case "finish":
            retry_at = draw(st.none() | times(state))
            return finish(held, running or "a1", draw(st.sampled_from(ANSWERS)), now, retry_at)
        case "release":
            return release(held, draw(st.sampled_from(["given_back", "backing_off"])), now)
        case _:
            return bring_in(job=job, text=draw(st.sampled_from(["one text", "another text"])))


@st.composite
def reachable(draw: st.DrawFn) -> RangeState:
    """A state that commands led to, each at a time of its own: often by way of an outage."""
    wait = draw(st.integers(1, LONGEST_WAIT))
    outage: list[Command] = [
        claim(now=BASE),
        start(now=BASE),
        finish(answer=UNAVAILABLE, now=BASE, retry_at=BASE + wait),
        release(now=BASE),
    ]
    state = EMPTY
    for command in outage[: draw(st.integers(0, 4))]:
        state = fold(decide(state, command).facts, state)
    for _ in range(draw(st.integers(0, 5))):
        state = fold(decide(state, draw(commands(state))).facts, state)
    return state


def at(command: Command, now: int) -> Command:
    """The command at another time."""
    return command if isinstance(command, ImportSummary) else replace(command, now=now)


def without_its_time(fact: RangeFact) -> RangeFact:
    """The fact without what was computed from the time of its command."""
    match fact:
        case RangeClaimed() | AttemptStarted():
            return replace(fact, expires_at=0)
        case AttemptFailed() if fact.retry_at is not None:
            return replace(fact, retry_at=0)
    return fact


def decided(state: RangeState, command: Command, now: int) -> tuple[Any, ...]:
    """What a decision comes to, apart from times."""
    decision = decide(state, at(command, now))
    facts = tuple(map(without_its_time, decision.facts))
    if isinstance(command, RenewClaim) and (decision.already or decision.refusal is None):
        return ("renewed",)  # as long as it was, or longer: a question of what it is renewed to
    return facts, type(decision.refusal), decision.already


@pytest.mark.slow
@settings(max_examples=150)
@for_all(st.data())
def test_a5_within_its_time_a_decision_stays_the_same(data: st.DataObject) -> None:
    state = data.draw(reachable())
    command, now = data.draw(commands(state)), data.draw(times(state))
    not_before, not_after = steady(state, now)
    assert not_before <= now < not_after
    first, last = max(not_before, 0), min(not_after, END) - 1
    other = data.draw(st.sampled_from([first, last]) | st.integers(first, last))
    assert steady(state, other) == (not_before, not_after)
    assert decided(state, command, now) == decided(state, command, other)


@pytest.mark.slow
@for_all(st.data())
def test_a5_outside_of_it_the_time_is_another_one(data: st.DataObject) -> None:
    state = data.draw(reachable())
    not_before, not_after = steady(state, data.draw(times(state)))
    assert not_before == FIRST or steady(state, not_before - 1)[1] == not_before
    assert not_after == LAST or steady(state, not_after)[0] == not_after
