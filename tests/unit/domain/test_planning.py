"""W3, W4 and W5: which ranges are due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from scenarios import (
    CONVERSATION,
    CURRENT,
    MIXED,
    MODEL,
    NOW,
    OTHER_MODEL,
    POLICY,
    SCOPE,
    SECOND,
    make_pairs,
    with_text,
)

from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.identity import Job, job_for
from compaction_ledger.domain.planning import PlannedRange, plan
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.read_models import SummaryRow
from compaction_ledger.domain.windows import Range, WindowPolicy

PAIRS = make_pairs(40)


def job_at(
    first: int, pairs: Sequence[Pair] = PAIRS, model: Any = MODEL, prompt: Any = CURRENT
) -> Job:
    """The job of the range that begins at ``first``."""
    return job_for(SCOPE, CONVERSATION, pairs[first : first + 10], model, prompt)


def row(job: Job, status: Any = "completed", **more: Any) -> SummaryRow:
    """A row of the read model."""
    values: dict[str, Any] = {
        "validity": DEFAULT_REGISTRY.verdict(job.prompt),
        "attempts": 1,
        "holder": None,
        "expires_at": None,
        "retry_at": None,
        "failure": None,
        "index": 3,
        "recorded_at": NOW,
        "origin": None,
        "input_tokens": None,
        "output_tokens": None,
    }
    return SummaryRow(
        scope=job.scope,
        conversation=job.conversation,
        from_pair=job.from_pair,
        to_pair=job.to_pair,
        identity=job.identity,
        source_hash=job.source_hash,
        model=job.model,
        prompt=job.prompt,
        status=status,
        **(values | more),
    )


def planned(
    rows: Iterable[SummaryRow] = (),
    pairs: Sequence[Pair] = PAIRS,
    *,
    upgrade: bool = False,
    policy: WindowPolicy = POLICY,
) -> list[PlannedRange]:
    """The plan for ``pairs``."""
    return plan(
        SCOPE,
        CONVERSATION,
        pairs,
        rows,
        policy=policy,
        registry=DEFAULT_REGISTRY,
        model=MODEL,
        now=NOW,
        upgrade=upgrade,
    )


def first_status(*rows: SummaryRow, upgrade: bool = False) -> str:
    """What is to be done about the range 0-9."""
    return planned(rows, upgrade=upgrade)[0].status


def test_w1_only_the_targets_of_the_policy_are_planned() -> None:
    assert [(p.window, p.status) for p in planned()] == [
        (Range(0, 9), "due"),
        (Range(10, 19), "due"),
    ]
    assert planned(pairs=make_pairs(29)) == []
    assert len(planned(policy=WindowPolicy(10, 10, 0))) == 4


def test_i2_what_is_planned_is_the_job_of_the_present_source() -> None:
    first, second = planned()
    assert first.job == job_at(0)
    assert second.job == job_at(10)
    assert first.job.prompt == CURRENT


@pytest.mark.parametrize("status", ["completed", "imported"])
def test_w4_a_range_with_a_projectable_summary_is_no_target(status: str) -> None:
    for prompt in (CURRENT, SECOND):
        for model in (MODEL, OTHER_MODEL):
            job = job_at(0, model=model, prompt=prompt)
            assert first_status(row(job, status)) == "done"


def test_w4_an_upgrade_makes_an_older_versions_range_a_target() -> None:
    older, newest = row(job_at(0, prompt=SECOND)), row(job_at(0))
    assert first_status(older, upgrade=True) == "due"
    assert first_status(newest, upgrade=True) == "done"
    assert first_status(older, newest, upgrade=True) == "done"


def test_v2_a_summary_of_mixed_input_leaves_its_range_due() -> None:
    assert first_status(row(job_at(0, prompt=MIXED), "imported")) == "due"


@pytest.mark.parametrize("status", ["claimed", "running", "failed", "released", "exhausted"])
def test_w3_nothing_but_a_completion_establishes_a_summary(status: str) -> None:
    assert first_status(row(job_at(0), status)) != "done"


def test_w5_an_edited_message_makes_the_range_a_target_again() -> None:
    rows = [row(job_at(0)), row(job_at(10))]
    edited = [*PAIRS[:3], with_text(PAIRS[3], "user", "edited"), *PAIRS[4:]]
    first, second = planned(rows, edited)
    assert (first.status, first.stale, second.status, second.stale) == ("due", 1, "done", 0)
    assert first.job == job_at(0, edited)
    assert first.job.source_hash != job_at(0).source_hash


def test_w5_a_pair_inserted_in_the_middle_shifts_every_range_behind_it() -> None:
    rows = [row(job_at(0)), row(job_at(10))]
    shifted = [*PAIRS[:12], *make_pairs(29, start=99)]
    statuses = [p.status for p in planned(rows, shifted)]
    assert statuses == ["done", "due"]


def test_a1_an_open_claim_on_the_source_is_running_whatever_it_names() -> None:
    for job in (job_at(0), job_at(0, model=OTHER_MODEL), job_at(0, prompt=SECOND)):
        for status in ("claimed", "running"):
            open_row = row(job, status, expires_at=NOW + 5)
            assert first_status(open_row) == "running"
            assert planned([open_row])[0].retry_at == NOW + 5


def test_a3_each_identity_is_judged_by_its_own_row_wherever_it_stands() -> None:
    other, own = row(job_at(0, model=OTHER_MODEL), "failed"), row(job_at(0), "exhausted")
    assert first_status(other, own) == first_status(own, other) == "exhausted"


def test_w4_a_plan_upgrades_nothing_unless_it_is_told_to() -> None:
    older = row(job_at(0, prompt=SECOND))
    targets = plan(
        SCOPE,
        CONVERSATION,
        PAIRS,
        [older],
        policy=POLICY,
        registry=DEFAULT_REGISTRY,
        model=MODEL,
        now=NOW,
    )
    assert [target.status for target in targets] == ["done", "due"]


def test_a5_an_expired_claim_hinders_nobody() -> None:
    assert first_status(row(job_at(0), "running", expires_at=NOW)) == "due"
    assert first_status(row(job_at(0), "claimed")) == "due"


def test_a1_a_claim_on_an_older_source_hinders_nobody() -> None:
    older = [with_text(PAIRS[0], "user", "as it was"), *PAIRS[1:]]
    assert first_status(row(job_at(0, older), "running", expires_at=NOW + 5)) == "due"


def test_a3_an_exhausted_identity_is_not_tried_again_but_another_is() -> None:
    assert first_status(row(job_at(0), "exhausted")) == "exhausted"
    assert first_status(row(job_at(0, model=OTHER_MODEL), "exhausted")) == "due"


def test_d3_the_second_attempt_waits() -> None:
    waiting = row(job_at(0), "failed", retry_at=NOW + 7)
    assert first_status(waiting) == "waiting"
    assert planned([waiting])[0].retry_at == NOW + 7
    assert first_status(row(job_at(0), "failed", retry_at=NOW)) == "due"
    assert first_status(row(job_at(0, model=OTHER_MODEL), "failed", retry_at=NOW + 7)) == "due"
