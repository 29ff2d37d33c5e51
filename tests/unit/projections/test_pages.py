"""The pages of a log, the next one read while this one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.projections.pages import Pages


class Numbers:
    """A log whose facts are their own indices. Notes what is read, and by which thread."""

    def __init__(self, damaged_at: int | None = None) -> None:
        self.read_by: list[tuple[int, int, str]] = []
        self.erased = 0
        self._damaged_at = damaged_at

    def erasures(self) -> int:
        return self.erased

    def read(self, start: int, limit: int, stop: int) -> Sequence[int]:
        self.read_by.append((start, limit, threading.current_thread().name))
        end = min(start + limit, stop)
        if self._damaged_at is not None and start <= self._damaged_at < end:
            raise DamagedLog("damaged", index=self._damaged_at)
        return range(start, end)


def pages_of(log: Numbers, stop: int, size: int) -> Pages:
    return Pages(cast(Any, log), stop, size)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "pages" in thread.name]


@pytest.mark.parametrize("stop", [1, 7, 8, 9, 15, 16, 17, 100])
def test_pages_follow_each_other_to_the_end(stop: int) -> None:
    seen: list[int] = []
    with pages_of(Numbers(), stop, 8) as pages:
        while len(seen) < stop:
            page = cast("Sequence[int]", pages.at(len(seen)))
            assert 0 < len(page) <= 8
            seen += page
    assert seen == list(range(stop))
    assert threads() == []


def test_what_fits_into_one_page_is_read_at_once_and_without_a_thread() -> None:
    log = Numbers()
    with pages_of(log, 8, 8) as pages:
        assert len(pages.at(0)) == 8
        assert threads() == []
    assert [(start, limit) for start, limit, _ in log.read_by] == [(0, 8)]


def test_the_first_of_several_pages_is_short_and_the_others_are_read_ahead() -> None:
    log = Numbers()
    with pages_of(log, 100, 16) as pages:
        assert len(pages.at(0)) == 2
        assert len(pages.at(2)) == 16
    reading = threading.current_thread().name
    assert log.read_by[0] == (0, 2, reading)
    assert all(name != reading for _, _, name in log.read_by[1:])


def test_a_page_that_is_asked_for_again_is_not_read_again() -> None:
    log = Numbers()
    with pages_of(log, 100, 10) as pages:
        assert pages.at(0) is pages.at(0)
    assert sorted(start for start, _, _ in log.read_by).count(0) == 1


def test_a_jump_is_followed() -> None:
    """Another follower was faster."""
    with pages_of(Numbers(), 1_000, 10) as pages:
        for start in (0, 500, 3):
            assert next(iter(pages.at(start))) == cast(Any, start)


def test_damage_that_is_read_ahead_is_raised_when_its_page_is_asked_for() -> None:
    with pages_of(Numbers(damaged_at=5), 100, 8) as pages:
        assert len(pages.at(0)) == 1
        with pytest.raises(DamagedLog) as damage:
            pages.at(1)
        assert damage.value.index == 5
    assert threads() == []


def test_a_log_that_is_shorter_than_it_said_is_damaged() -> None:
    class Shorter(Numbers):
        def read(self, start: int, limit: int, stop: int) -> Sequence[int]:
            return super().read(start, limit, min(stop, 10))[: max(0, 10 - start)]

    with pages_of(Shorter(), 100, 10) as pages:
        assert len(pages.at(0)) == 1
        with pytest.raises(DamagedLog) as damage:
            pages.at(10)
    assert damage.value.index == 10


def test_whoever_leaves_early_leaves_no_thread_behind() -> None:
    with pages_of(Numbers(), 1_000, 10) as pages:
        pages.at(0)
    assert threads() == []


def test_what_was_read_before_an_erasure_is_read_again() -> None:  # S3
    log = Numbers()
    with pages_of(log, 100, 16) as pages:
        pages.at(0)
        assert pages.is_current()
        log.erased += 1
        assert not pages.is_current()
        assert len(pages.at(0)) == 2
        assert pages.is_current()
        assert [start for start, _, _ in log.read_by].count(0) == 2
        log.erased += 1  # the page ahead is read already, and is not used
        assert pages.at(2)
        assert pages.is_current()
        assert [start for start, _, _ in log.read_by].count(2) >= 2
