"""Where a transcript is cut (T3, T4), regrouped or left to search (T8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.window.cutting import (
    Cut,
    first_that_fits,
    left_to_search,
    plan_cut,
    plan_regroup,
)

PLENTY = 10**9


def test_the_newest_turns_stay_as_they_are() -> None:
    tokens = [10] * 10
    assert plan_cut(tokens, [0, 2, 4, 6, 8], 0, keep=45, at_most=PLENTY) == Cut(0, 5)
    assert plan_cut(tokens, [0, 2, 4, 6, 8], 0, keep=40, at_most=PLENTY) == Cut(0, 5)
    assert plan_cut(tokens, [0, 2, 4, 6, 8], 0, keep=39, at_most=PLENTY) == Cut(0, 7)


def test_a_chunk_begins_where_the_last_one_ended() -> None:
    assert plan_cut([10] * 10, [0, 2, 4, 6, 8], 4, keep=20, at_most=PLENTY) == Cut(4, 7)


def test_the_last_exchange_stays_however_large_it_is() -> None:
    assert plan_cut([1, 1, 900], [0, 2], 0, keep=5, at_most=PLENTY) == Cut(0, 1)


def test_nothing_is_cut_where_no_place_is_safe_and_it_is_said_why() -> None:
    assert plan_cut([10] * 4, [0], 0, keep=5, at_most=PLENTY) == "one_exchange"
    assert plan_cut([10] * 4, [], 0, keep=5, at_most=PLENTY) == "one_exchange"
    assert plan_cut([10] * 4, [0, 2], 2, keep=5, at_most=PLENTY) == "nothing_new"


def test_a_long_backlog_becomes_chunks_of_a_bounded_size() -> None:
    assert plan_cut([10] * 100, list(range(0, 100, 2)), 0, keep=40, at_most=200) == Cut(0, 19)


def test_a_single_exchange_that_is_above_the_bound_is_a_chunk_by_itself() -> None:
    assert plan_cut([500, 10, 10, 10], [0, 1, 2, 3], 0, keep=10, at_most=200) == Cut(0, 0)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    tokens = draw(st.lists(st.integers(1, 500), min_size=1, max_size=40))
    boundaries = draw(st.sets(st.integers(0, len(tokens) - 1)))
    return tokens, sorted(boundaries)


@given(runs(), st.integers(1, 5_000), st.integers(1, 5_000), st.data())
def test_a_cut_is_safe_goes_on_from_the_last_one_and_leaves_the_last_exchange(
    run: tuple[list[int], list[int]], keep: int, at_most: int, data: st.DataObject
) -> None:
    tokens, boundaries = run
    first = data.draw(st.sampled_from([0, *boundaries]))
    cut = plan_cut(tokens, boundaries, first, keep, at_most)
    later = [boundary for boundary in boundaries if boundary > first]
    if not later:
        assert cut in ("one_exchange", "nothing_new")
        return
    assert isinstance(cut, Cut)
    assert cut.first == first
    assert cut.last + 1 in later
    taken = sum(tokens[cut.first : cut.last + 1])
    assert taken <= at_most or cut.last + 1 == later[0]
    before = [boundary for boundary in later if boundary < cut.last + 1]
    # no earlier place would have left so little
    assert all(sum(tokens[boundary:]) > keep for boundary in before)


@given(runs(), st.integers(0, 5_000), st.integers(0, 40))
def test_the_first_place_that_fits_is_the_first_one(
    run: tuple[list[int], list[int]], room: int, first: int
) -> None:
    tokens, boundaries = run
    fitting = [b for b in boundaries if b >= first and sum(tokens[b:]) <= room]
    assert first_that_fits(tokens, boundaries, first, room) == (fitting[0] if fitting else None)


def test_the_oldest_chunks_become_one_where_all_blocks_are_above_their_share() -> None:
    assert plan_regroup([500] * 4, [100] * 4, share=400, at_most=PLENTY) == 0
    assert plan_regroup([500] * 4, [100] * 4, share=399, at_most=PLENTY) == 4
    assert plan_regroup([500] * 8, [100] * 8, share=799, at_most=PLENTY) == 6


def test_behind_a_regroup_there_is_room_for_the_next_chunks() -> None:
    blocks = [100] * 8
    count = plan_regroup([500] * 8, blocks, share=799, at_most=PLENTY)
    blocks = [100, *blocks[count:]]
    while plan_regroup([500] * len(blocks), blocks, share=799, at_most=PLENTY) == 0:
        blocks.append(100)
    assert len(blocks) == 8


def test_a_regroup_is_bounded_by_what_a_summarizer_can_be_given() -> None:
    assert plan_regroup([500] * 6, [100] * 6, share=100, at_most=1_600) == 3
    assert plan_regroup([900] * 6, [100] * 6, share=100, at_most=1_600) == 0


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(50, 400))
def test_what_is_left_to_search_makes_room_and_stays_gone(blocks: list[int], share: int) -> None:
    gone = left_to_search(blocks, share)
    assert sum(blocks[gone:]) <= max(share, blocks[-1] if blocks else 0)
    assert left_to_search(blocks[:-1], share) <= gone


def test_several_blocks_go_at_once_so_that_the_next_ones_are_only_appended() -> None:
    gone = [left_to_search([10] * count, 100) for count in range(25)]
    assert gone == [0] * 11 + [6] * 6 + [12] * 6 + [18] * 2
