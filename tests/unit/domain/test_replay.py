"""Rows as they stood: given rows, when judged at a time, then this (P5, A1, A3, A5, D3, V1, V3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenarios import CONVERSATION, CURRENT, MIXED, MODEL, SCOPE, SECOND

from compaction_ledger.domain.claim_rules import LONGEST_WAIT
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.read_models import RangeRow, RangeStatus, SummaryRow
from compaction_ledger.domain.replay import (
    RangeThen,
    RowChange,
    SummaryThen,
    ranges_then,
    summaries_then,
    validity_changes,
)

SOURCE, NEWER = "aa" * 32, "bb" * 32
RANK = DEFAULT_REGISTRY.rank


def summary(identity: str, **changed: object) -> SummaryRow:
    row = SummaryRow(
        scope=SCOPE,
        conversation=CONVERSATION,
        from_pair=0,
        to_pair=9,
        identity=identity * 32,
        source_hash=SOURCE,
        model=MODEL,
        prompt=CURRENT,
        status="completed",
        validity="projectable",
        attempts=1,
        holder=None,
        expires_at=None,
        retry_at=None,
        failure=None,
        index=2,
        recorded_at=20,
        origin=None,
        input_tokens=None,
        output_tokens=None,
    )
    return replace(row, **changed)  # type: ignore[arg-type]


def open_claim(identity: str, expires_at: int, attempts: int = 0) -> SummaryRow:
    return summary(
        identity,
        status="running",
        attempts=attempts,
        holder="w1",
        expires_at=expires_at,
        index=None,
        recorded_at=None,
    )


def range_row(status: RangeStatus, **changed: object) -> RangeRow:
    row = RangeRow(SCOPE, CONVERSATION, 0, 9, status, SOURCE, "11" * 32, None, None, 5, 50)
    return replace(row, **changed)  # type: ignore[arg-type]


def then(row: RangeRow, now: int | None, *summaries: SummaryRow) -> RangeThen:
    (found,) = ranges_then([row], summaries, now)
    return found


# --- ranges -------------------------------------------------------------------------------------


def test_a_running_range_is_its_holders_until_the_lease_is_over() -> None:  # A5
    row, claim = range_row("running", expires_at=100), open_claim("11", 100)
    assert then(row, 99, claim) == RangeThen(row, "running", claimable=False, holder="w1")
    assert then(row, 100, claim) == RangeThen(row, "lease_over", claimable=True, holder="w1")
    assert then(row, None, claim).standing == "running"


def test_past_the_lease_of_a_second_attempt_there_is_no_third() -> None:  # A3
    row = range_row("running", expires_at=100)
    assert not then(row, 100, open_claim("11", 100, attempts=2)).claimable


def test_a_failed_range_waits_for_its_time() -> None:  # D3
    row = range_row("failed", retry_at=100)
    failed = summary("11", status="failed", index=None, retry_at=100)
    assert then(row, 99, failed) == RangeThen(row, "waiting", claimable=False, holder=None)
    assert then(row, 100, failed) == RangeThen(row, "failed", claimable=True, holder=None)
    assert then(row, 100 - LONGEST_WAIT, failed).standing == "waiting"
    assert then(row, 99 - LONGEST_WAIT, failed).standing == "failed"  # a clock that was set back


def test_a_failed_range_whose_claim_is_open_is_still_its_holders() -> None:  # A1
    row = range_row("failed")
    assert then(row, 99, open_claim("11", 100)) == RangeThen(
        row, "failed", claimable=False, holder="w1"
    )


def test_an_open_claim_of_another_model_stands_in_the_way_one_of_another_source_does_not() -> None:
    row = range_row("due")  # A1
    assert not then(row, 99, open_claim("22", 100)).claimable
    assert then(row, 99, replace(open_claim("22", 100), source_hash=NEWER)).claimable


@pytest.mark.parametrize("status", ["done", "exhausted"])
def test_what_is_over_is_not_claimed(status: RangeStatus) -> None:
    assert not then(range_row(status), 99).claimable


# --- summaries ----------------------------------------------------------------------------------


def judged(*rows: SummaryRow, source: str = SOURCE) -> list[tuple[str, str | None]]:
    ranges = [range_row("done", source_hash=source)]
    return [(one.validity, one.by) for one in summaries_then(rows, ranges, RANK)]


def test_the_newest_version_stands_then_the_latest_completion() -> None:  # V3
    older = summary("11", prompt=SECOND, index=9)
    first, last = summary("22", index=3), summary("33", index=7)
    assert judged(older, first, last) == [
        ("superseded", "33" * 32),
        ("superseded", "33" * 32),
        ("valid", None),
    ]


def test_why_a_summary_is_excluded() -> None:  # V1, V2
    assert judged(
        summary("11", prompt=MIXED, validity="mixed_input"),
        summary("22", status="running", index=None),
        summary("33", validity="unknown_version"),
    ) == [("mixed_input", None), ("unfinished", None), ("unknown_version", None)]


def test_one_of_an_older_source_is_told_apart() -> None:  # W5
    assert judged(summary("22"), source=NEWER) == [("older_source", "11" * 32)]


# --- what changed -------------------------------------------------------------------------------


def changes_of(
    before: list[SummaryRow],
    after: list[SummaryRow],
    *rows: RowChange,
    source: str = SOURCE,
) -> list[tuple[str, str, int]]:
    first = summaries_then(before, [range_row("done")], RANK)
    second = summaries_then(after, [range_row("done", source_hash=source)], RANK)
    found = validity_changes(first, second, rows)
    return [(change.row.identity[:2], change.after, change.index) for change in found]


def test_a_completion_makes_valid_and_supersedes() -> None:
    old, new = summary("11", index=2), summary("22", index=8, recorded_at=80)
    assert changes_of([], [old]) == [("11", "valid", 2)]
    assert changes_of([old], [old, new]) == [("11", "superseded", 8), ("22", "valid", 8)]
    assert changes_of([old], [old]) == []


def test_a_newer_source_takes_validity_at_the_event_that_brought_it() -> None:
    old = summary("11", index=2)
    row = range_row("done", source_hash=NEWER)
    change = RowChange(range_row("done"), row, 9, 90, source_index=7, source_at=70)
    assert changes_of([old], [old], change, source=NEWER) == [("11", "older_source", 7)]


def test_what_is_not_finished_changes_no_validity() -> None:
    claim = open_claim("11", 100)
    assert changes_of([], [claim]) == []
    assert changes_of([claim], [summary("11", index=4)]) == [("11", "valid", 4)]


def test_a_verdict_is_one_of_an_identity() -> None:
    row = summary("11")
    assert summaries_then([row], [], RANK) == [SummaryThen(row, "valid")]
