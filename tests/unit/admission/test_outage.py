"""D3: an outage must not burn the attempts of every range."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.infrastructure.admission.outage import (
    FIRST_WAIT,
    LONGEST_RETRY_AFTER,
    LONGEST_WAIT,
    PROBE_LEASE,
    SECOND,
    OutageGate,
    retry_delay,
)


def gate(threshold: int = 3) -> OutageGate:
    return OutageGate(threshold, random=lambda: 0.0)


def broken(now: int = 0) -> tuple[OutageGate, int]:
    """A gate in an outage, and when it lets the probe through."""
    broken_gate = gate()
    retry_at = max(broken_gate.unavailable(now) for _ in range(3))
    return broken_gate, retry_at


def test_given_fewer_refusals_than_the_threshold_when_claiming_then_yes() -> None:
    closed = gate()
    closed.unavailable(0)
    closed.unavailable(0)

    assert closed.state == "closed"
    assert closed.may_claim(0)


def test_given_an_answer_in_between_when_counting_then_it_starts_anew() -> None:
    closed = gate()
    for _ in range(5):
        closed.unavailable(0)
        closed.unavailable(0)
        closed.succeeded()

    assert closed.state == "closed"
    assert closed.failures_in_a_row == 0


def test_given_three_refusals_in_a_row_when_claiming_then_not_before_the_wait_is_over() -> None:
    opened, retry_at = broken()

    assert opened.state == "open"
    assert not opened.may_claim(0)
    assert not opened.may_claim(retry_at - 1)


def test_given_the_wait_is_over_when_many_claim_at_once_then_one_probe_is_let_through() -> None:
    opened, retry_at = broken()

    with ThreadPoolExecutor(8) as threads:
        let_through = list(threads.map(opened.may_claim, [retry_at] * 64))

    assert let_through.count(True) == 1
    assert opened.state == "half_open"


def test_given_a_probe_that_succeeds_when_claiming_then_all_may() -> None:
    opened, retry_at = broken()
    opened.may_claim(retry_at)

    opened.succeeded()

    assert opened.state == "closed"
    assert all(opened.may_claim(retry_at) for _ in range(5))


def test_given_a_probe_that_is_refused_when_claiming_then_the_wait_is_longer() -> None:
    opened, retry_at = broken()
    opened.may_claim(retry_at)

    again = opened.unavailable(retry_at)

    assert opened.state == "open"
    assert again - retry_at > retry_at
    assert not opened.may_claim(again - 1)
    assert opened.may_claim(again)


def test_given_a_probe_that_was_not_used_when_claiming_then_the_next_caller_has_it() -> None:
    opened, retry_at = broken()
    opened.may_claim(retry_at)

    opened.released_unused()

    assert opened.may_claim(retry_at)
    assert not opened.may_claim(retry_at)


def test_given_a_closed_gate_when_a_claim_is_not_used_then_it_stays_closed() -> None:
    closed = gate()
    closed.unavailable(0)
    closed.released_unused()

    assert closed.state == "closed"
    assert closed.failures_in_a_row == 1


def test_given_a_probe_that_was_lost_when_its_lease_is_over_then_another_is_let_through() -> None:
    opened, retry_at = broken()
    opened.may_claim(retry_at)

    assert not opened.may_claim(retry_at + PROBE_LEASE - 1)
    assert opened.may_claim(retry_at + PROBE_LEASE)
    assert not opened.may_claim(retry_at + PROBE_LEASE)


def test_given_a_straggler_from_before_when_it_is_refused_then_the_wait_never_shrinks() -> None:
    opened = gate()
    opened.unavailable(0)
    opened.unavailable(0)
    asked = opened.unavailable(0, retry_after=600.0)

    opened.unavailable(0)

    assert not opened.may_claim(asked - 1)
    assert opened.may_claim(asked)


def test_given_a_clock_set_back_when_claiming_then_the_gate_does_not_stay_shut_for_ever() -> None:
    opened, _ = broken(now=10**15)

    assert not opened.may_claim(0)
    assert opened.may_claim(2 * LONGEST_RETRY_AFTER)


def test_given_no_threshold_when_made_then_it_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="threshold"):
        OutageGate(0)


jitters = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 10**9), jitters)
def test_given_refusals_when_waiting_then_it_doubles_within_bounds(
    count: int, jitter: float
) -> None:
    delay = retry_delay(count, None, jitter)
    full = min(FIRST_WAIT * 2 ** (min(max(count, 1), 30) - 1), LONGEST_WAIT)

    assert full // 2 <= delay <= full


@given(st.integers(1, 100), st.floats(allow_nan=True), jitters)
def test_given_a_retry_after_when_waiting_then_it_is_never_undercut(
    count: int, asked: float, jitter: float
) -> None:
    delay = retry_delay(count, asked, jitter)

    assert 0 < delay <= LONGEST_RETRY_AFTER + LONGEST_WAIT
    if asked > 0:
        assert delay >= min(int(min(asked, 10**6) * SECOND), LONGEST_RETRY_AFTER)
