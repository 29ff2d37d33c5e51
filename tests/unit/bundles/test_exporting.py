"""K5: bounds of an export, and what it tells on its way."""

from __future__ import annotations

import pytest
from bundles import Keeper, Written, check, zipped

from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.usecases import exporting
from compaction_ledger.usecases.exporting import Selection, Stated, export_bundle


def test_a_line_that_no_verifier_would_read_is_refused(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "MAX_LINE", 100)
    with pytest.raises(InvalidInput, match=r"^event 0: the event takes \d+ bytes") as caught:
        keeper.export()
    assert caught.value.place == "event 0"


def test_of_many_checkpoints_the_newest_are_taken(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "MAX_CHECKPOINTS", 1)
    assert check(zipped(keeper.export()), [keeper.key]).manifest.checkpoints == [34]


@pytest.mark.parametrize("name", [None, "a"])
def test_progress_is_told_up_to_the_end(keeper: Keeper, name: str | None) -> None:
    told: list[tuple[int, int]] = []
    made = export_bundle(
        keeper.source(),
        keeper.published[-1],
        keeper.published,
        Selection(None if name is None else keeper.subject(name)),
        Stated([keeper.key], [], WindowPolicy(), DEFAULT_REGISTRY),
        Written(),
        lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (made.events, made.events)
    assert (made.size, made.checkpoints) == (44, 2)


def test_checkpoints_of_other_logs_are_passed_over(keeper: Keeper) -> None:
    other = Keeper(type(keeper.recorder)(lambda: 0))  # type: ignore[call-arg] # in memory
    other.sign()
    members = keeper.export()
    keeper.published.insert(0, other.published[0])
    try:
        assert keeper.export() == members
    finally:
        keeper.published.pop(0)
