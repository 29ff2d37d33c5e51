"""W1 and W2: when a range becomes a target."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import InvalidPolicy
from compaction_ledger.domain.windows import PolicyNumbers, Range, WindowPolicy


@pytest.mark.parametrize(
    ("pairs", "ranges"), [(0, 0), (29, 0), (30, 1), (39, 1), (40, 2), (50, 3), (1000, 98)]
)
def test_w1_the_reference_policy(pairs: int, ranges: int) -> None:
    assert WindowPolicy().count(pairs) == ranges


def test_w1_the_targets_are_the_oldest_ranges() -> None:
    assert WindowPolicy().targets(50) == [Range(0, 9), Range(10, 19), Range(20, 29)]
    assert str(Range.at(20)) == "20-29"


@st.composite
def policies(draw: st.DrawFn) -> WindowPolicy:
    """Policies that fit together."""
    keep = draw(st.integers(0, 60))
    return WindowPolicy(keep + 10 + draw(st.integers(0, 50)), 10, keep)


@given(policies(), st.integers(0, 2_000))
def test_w1_targets_are_whole_aligned_and_leave_the_newest(policy: WindowPolicy, n: int) -> None:
    targets = policy.targets(n)
    assert bool(targets) == (n >= policy.minimum_pairs)
    assert [target.from_pair for target in targets] == [10 * k for k in range(len(targets))]
    assert all(target.is_aligned for target in targets)
    if targets:
        outside = n - 1 - targets[-1].to_pair
        assert policy.keep_newest <= outside < policy.keep_newest + 10


@pytest.mark.parametrize(
    "numbers",
    [(29, 10, 20), (30, 9, 20), (30, 20, 10), (-1, 10, 20), (30, 10, -1), (True, 10, 0)],
)
def test_w2_numbers_that_do_not_fit_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidPolicy):
        WindowPolicy(*numbers)


@pytest.mark.parametrize("odd", [30.0, "30", None])
def test_w2_numbers_are_whole(odd: Any) -> None:
    with pytest.raises(InvalidPolicy):
        WindowPolicy(minimum_pairs=odd)


def test_w2_a_policy_is_one_frozen_value() -> None:
    policy = WindowPolicy(45, 10, 35)
    assert policy.numbers == PolicyNumbers(45, 10, 35)
    assert policy == WindowPolicy(45, 10, 35)
    name = "keep_newest"
    with pytest.raises(FrozenInstanceError):
        setattr(policy, name, 0)


@pytest.mark.parametrize(
    ("window", "aligned"),
    [
        (Range(0, 9), True),
        (Range(10, 19), True),
        (Range(5, 14), False),
        (Range(0, 19), False),
        (Range(10, 25), False),
        (Range(-10, -1), False),
        (Range(-20, -11), False),
    ],
)
def test_a7_an_aligned_range(window: Range, aligned: bool) -> None:
    assert window.is_aligned is aligned
