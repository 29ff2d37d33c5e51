"""D1 and D2 within one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.ports import Admission
from compaction_ledger.infrastructure.admission.local import LocalAdmission


def test_given_all_slots_taken_when_admitted_then_not_now() -> None:
    admission: Admission = LocalAdmission(2)
    first, second = admission.admit(), admission.admit()

    assert first is not None
    assert second is not None
    assert admission.admit() is None
    first()
    assert admission.admit() is not None


def test_given_a_slot_given_back_twice_when_admitted_then_the_bound_still_holds() -> None:
    admission = LocalAdmission(2)
    first = admission.admit()
    admission.admit()
    assert first is not None

    first()
    first()

    assert admission.in_use == 1
    assert admission.admit() is not None
    assert admission.admit() is None


def test_given_many_threads_when_they_rush_then_the_bound_holds() -> None:
    admission = LocalAdmission(5)
    start = Barrier(16)
    most: list[int] = []

    def rush(_: int) -> None:
        start.wait(20)
        for _ in range(200):
            release = admission.admit()
            most.append(admission.in_use)
            if release is not None:
                release()

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(rush, range(16)))

    assert max(most) <= 5
    assert admission.in_use == 0


@pytest.mark.parametrize("limit", [0, -1])
def test_given_no_slot_at_all_when_made_then_it_is_refused(limit: int) -> None:
    with pytest.raises(InvalidSetting, match="admission limit"):
        LocalAdmission(limit)
