"""Places in the log that are none are refused, not guessed at."""

from __future__ import annotations

import pytest

from compaction_ledger import InvalidSetting, Ledger


@pytest.mark.parametrize("index", [-2, 0, 5])
def test_there_is_no_past_at_a_place_that_is_none(index: int) -> None:
    with Ledger.in_memory() as ledger, pytest.raises(InvalidSetting, match="no event"):
        ledger.at(index=index)


def test_before_the_first_event_there_was_nothing() -> None:
    with Ledger.in_memory() as ledger:
        assert ledger.at(index=-1).ranges() == []


def test_events_begin_at_zero() -> None:
    with Ledger.in_memory() as ledger, pytest.raises(InvalidSetting, match="no place"):
        next(ledger.events(-1))
