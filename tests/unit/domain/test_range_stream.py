"""The decider, rule by rule: A1 to A7 and A10 of the specification, section 5."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from scenarios import (
    GOOD,
    JOB,
    LEASE,
    MIXED,
    NOW,
    OLDER_SOURCE_JOB,
    OTHER_MODEL_JOB,
    OTHER_PROMPT_JOB,
    UNAVAILABLE,
    bring_in,
    claim,
    claimed,
    completed,
    exhausted_by,
    failed,
    finish,
    given,
    good,
    imported,
    make_job,
    make_pairs,
    release,
    released,
    renew,
    renewed,
    start,
    started,
    truncated,
)

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    AttemptOutOfTurn,
    DifferentResult,
    Exhausted,
    InvalidCommand,
    InvalidId,
    InvalidInput,
    InvalidJob,
    LeaseExpired,
    NotTheHolder,
)
from compaction_ledger.domain.events import AttemptFailed, RangeFact
from compaction_ledger.domain.finish import Answer, FinishFacts, FinishSignal, Usage
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion
from compaction_ledger.domain.range_stream import EMPTY, decide, evolve, fold
from compaction_ledger.domain.windows import PolicyNumbers

LATE = NOW + LEASE  # the first instant at which the lease is over


# --- A1: one open claim per range and source ------------------------------------------------------


def test_a1_a_claim_on_nothing_is_made() -> None:
    state = given().when(claim("c1", "w1")).then(claimed("c1", "w1"))
    assert state.open["c1"].holder == "w1"
    assert state.version == 1


def test_w2_the_policy_is_recorded_with_the_claim() -> None:
    assert claimed().policy == PolicyNumbers(30, 10, 20)
    given().when(claim()).then(claimed())


@pytest.mark.parametrize("job", [JOB, OTHER_MODEL_JOB, OTHER_PROMPT_JOB])
def test_a1_a_second_claim_on_the_source_is_refused_whatever_it_names(job: Job) -> None:
    given(claimed("c1", "w1")).when(claim("c2", "w2", job)).then_refused(
        AlreadyClaimed,
        says={"holder": "w1", "expires_at": NOW + LEASE, "claim_id": "c1"},
    )


def test_a1_a_claim_on_an_older_source_stands_in_nobodys_way() -> None:
    state = (
        given(claimed("c1", "w1", OLDER_SOURCE_JOB))
        .when(claim("c2", "w2"))
        .then(claimed("c2", "w2"))
    )
    assert set(state.open) == {"c1", "c2"}


def test_a1_an_expired_claim_on_an_older_source_is_left_to_its_own_source() -> None:
    given(claimed("c1", "w1", OLDER_SOURCE_JOB, expires_at=NOW - 1)).when(claim("c2", "w2")).then(
        claimed("c2", "w2")
    )


def test_a1_a_completed_identity_is_refused_with_the_place_of_its_summary() -> None:
    history = claimed(), started(), completed()
    given(*history).when(claim("c2", "w2")).then_refused(
        AlreadyCompleted, says={"identity": JOB.identity, "version": 3}
    )


def test_a1_an_imported_identity_is_completed_too() -> None:
    given(imported()).when(claim()).then_refused(AlreadyCompleted, says={"version": 1})


@pytest.mark.parametrize("job", [OTHER_MODEL_JOB, OTHER_PROMPT_JOB, OLDER_SOURCE_JOB])
def test_a1_another_identity_of_a_completed_range_can_be_claimed(job: Job) -> None:
    given(claimed(), started(), completed()).when(claim("c2", "w2", job)).then(
        claimed("c2", "w2", job)
    )


def test_a1_an_exhausted_identity_is_refused() -> None:
    given(*exhausted_by()).when(claim("c2", "w2")).then_refused(
        Exhausted, says={"identity": JOB.identity, "attempts": 2}
    )


def test_a1_a_claim_id_serves_once() -> None:
    given(claimed(), released()).when(claim("c1", "w1")).then_refused(NotTheHolder)
    given(claimed("c1", "w1")).when(claim("c1", "w1", OLDER_SOURCE_JOB)).then_refused(NotTheHolder)


def test_a4_somebody_elses_claim_id_is_not_a_resent_claim() -> None:
    given(claimed("c1", "w1")).when(claim("c1", "w2")).then_refused(NotTheHolder)


def test_a1_a_claim_sent_again_by_its_holder_is_already_done() -> None:
    given(claimed()).when(claim(now=NOW + 5)).then_already_done()
    given(claimed(), started()).when(claim()).then_already_done()


# --- A2: one completion per identity, for ever ----------------------------------------------------


def test_a2_a_good_answer_completes() -> None:
    state = given(claimed(), started()).when(finish()).then(completed())
    assert not state.open
    assert state.completions[JOB.identity].version == 3
    assert state.completions[JOB.identity].by == "c1"


def test_a2_the_same_result_sent_again_is_already_done() -> None:
    given(claimed(), started(), completed()).when(finish(now=LATE + 99)).then_already_done()


@pytest.mark.parametrize("answer", [good("another text"), truncated(), UNAVAILABLE])
def test_a2_a_second_different_result_is_refused(answer: Answer) -> None:
    given(claimed(), started(), completed()).when(finish(answer=answer)).then_refused(
        DifferentResult
    )


def test_a2_the_same_text_under_another_attempt_is_another_result() -> None:
    given(claimed(), started(), completed()).when(finish("c1", "a2")).then_refused(DifferentResult)


def test_a2_a_failed_attempt_does_not_turn_into_a_success() -> None:
    history = claimed(), started(), failed(answer=truncated())
    given(*history).when(finish()).then_refused(DifferentResult)
    given(*history, started("c1", "a2", 2)).when(finish("c1", "a1")).then_refused(DifferentResult)
    given(*exhausted_by()).when(finish("c1", "c1-a2")).then_refused(DifferentResult)


def test_a2_a_failed_attempt_keeps_its_code() -> None:
    history = claimed(), started(), failed(answer=truncated())
    given(*history).when(finish(answer=UNAVAILABLE)).then_refused(DifferentResult)


def test_a2_a_failure_sent_again_is_already_done() -> None:
    history = claimed(), started(), failed(answer=truncated())
    given(*history).when(finish(answer=truncated())).then_already_done()
    given(*exhausted_by()).when(finish("c1", "c1-a2", truncated())).then_already_done()


def test_a2_an_import_never_replaces_a_completion() -> None:
    given(claimed(), started(), completed()).when(bring_in(text="another")).then_refused(
        AlreadyCompleted, says={"version": 3}
    )
    given(imported()).when(bring_in("i2", text="another")).then_refused(
        AlreadyCompleted, says={"version": 1}
    )


def test_a2_the_same_import_sent_again_is_already_done() -> None:
    given(imported()).when(bring_in()).then_already_done()
    given(claimed(), started(), completed()).when(bring_in(text=GOOD)).then_already_done()


def test_a2_a_summary_that_comes_after_an_import_of_its_identity_is_refused() -> None:
    state = (
        given(claimed(), started(), imported())
        .when(finish(answer=good("mine")))
        .then_refused(
            AlreadyCompleted,
            recording=[released("c1", "outdone")],
            says={"identity": JOB.identity, "version": 3},
        )
    )
    assert state.closed == {"c1": "outdone"}
    assert state.completions[JOB.identity].by == "i1"


def test_a2_the_very_text_that_was_imported_is_refused_from_an_attempt_too() -> None:
    given(claimed(), started(), imported(text=GOOD)).when(finish(answer=good(GOOD))).then_refused(
        AlreadyCompleted, recording=[released("c1", "outdone")]
    )


def test_a2_an_attempt_does_not_start_after_an_import_of_its_identity() -> None:
    state = (
        given(claimed(), imported())
        .when(start())
        .then_refused(
            AlreadyCompleted,
            recording=[released("c1", "outdone")],
            says={"identity": JOB.identity, "version": 2},
        )
    )
    assert state.closed == {"c1": "outdone"}
    assert state.attempts == {}


def test_a2_a_claim_that_was_outdone_is_over() -> None:
    history = claimed(), started(), imported(), released("c1", "outdone")
    for command in (finish(answer=good("mine")), finish(answer=truncated()), start(), release()):
        given(*history).when(command).then_refused(
            NotTheHolder, says={"claim_id": "c1", "why": "outdone"}
        )


@pytest.mark.parametrize("job", [OTHER_MODEL_JOB, OTHER_PROMPT_JOB])
def test_a1_an_outdone_claim_frees_its_source_at_once(job: Job) -> None:
    held = claimed(), started(), imported()
    given(*held).when(claim("c2", "w2", job)).then_refused(AlreadyClaimed)
    given(*held, released("c1", "outdone")).when(claim("c2", "w2", job)).then(
        claimed("c2", "w2", job)
    )


def test_a2_a_failure_after_an_import_of_its_identity_is_recorded_as_one() -> None:
    given(claimed(), started(), imported()).when(finish(answer=truncated())).then(
        failed(answer=truncated())
    )


def test_a2_an_import_names_no_claim_that_could_be_finished() -> None:
    given(imported("c1")).when(finish("c1", "a1", good())).then_refused(NotTheHolder)


def test_v2_an_older_prompt_version_enters_by_import() -> None:
    job = make_job(prompt=MIXED)
    state = given().when(bring_in(job=job)).then(imported(job=job))
    assert job.identity in state.completions


@pytest.mark.parametrize("text", ["", " \u3000\n", "\x00", "\ud800", "x" * 6001])
def test_c3_an_import_keeps_the_contract_of_a_summary(text: str) -> None:
    given().when(bring_in(text=text)).then_invalid(InvalidCommand)


# --- A3: two attempts per identity ----------------------------------------------------------------


def test_a3_the_second_attempt_is_made_under_the_same_claim() -> None:
    given(claimed(), started(), failed(answer=truncated())).when(start("c1", "a2")).then(
        started("c1", "a2", 2)
    )


def test_a3_the_second_attempt_is_made_under_another_claim() -> None:
    history = claimed(), started(), failed(answer=truncated()), released(), claimed("c2")
    given(*history).when(start("c2", "a2")).then(started("c2", "a2", 2))


def test_a3_the_second_failure_ends_the_claim() -> None:
    facts = exhausted_by()
    assert facts[-1] == released("c1", "exhausted")
    state = given(*facts[:-2]).when(finish("c1", "c1-a2", truncated())).then(*facts[-2:])
    assert not state.open
    assert state.closed == {"c1": "exhausted"}
    for command in (start("c1", "a3"), release("c1")):
        given(*facts).when(command).then_refused(NotTheHolder, says={"why": "exhausted"})


def test_a3_the_second_failure_ends_the_claim_that_it_was_made_under() -> None:
    history = claimed(), started(), failed(answer=truncated()), released(), claimed("c2")
    given(*history, started("c2", "a2", 2)).when(finish("c2", "a2", UNAVAILABLE)).then(
        failed("c2", "a2", "provider_unavailable", UNAVAILABLE, also=("missing_finish", "empty")),
        released("c2", "exhausted"),
    )


def test_a3_the_first_failure_leaves_the_claim_to_its_holder() -> None:
    state = (
        given(claimed(), started())
        .when(finish(answer=truncated()))
        .then(failed(answer=truncated()))
    )
    assert state.open["c1"].attempt_id is None
    assert state.closed == {}


@pytest.mark.parametrize("job", [OTHER_MODEL_JOB, OTHER_PROMPT_JOB])
def test_a3_an_exhausted_identity_leaves_its_source_available(job: Job) -> None:
    given(*exhausted_by()).when(claim("c2", "w2", job)).then(claimed("c2", "w2", job))


def test_a3_nobody_gives_back_as_exhausted_or_outdone() -> None:
    for reason in ("exhausted", "outdone"):
        wrong: Any = reason
        given(claimed()).when(release("c1", wrong)).then_invalid(InvalidCommand)


@pytest.mark.parametrize("job", [OTHER_MODEL_JOB, OTHER_PROMPT_JOB, OLDER_SOURCE_JOB])
def test_a3_a_new_identity_has_its_own_two(job: Job) -> None:
    history = [*exhausted_by(), claimed("c2", job=job)]
    given(*history).when(start("c2", "a1")).then(started("c2", "a1", 1, job))


def test_a3_an_attempt_id_serves_once() -> None:
    history = claimed(), started(), failed(answer=truncated())
    given(*history).when(start("c1", "a1")).then_refused(AttemptOutOfTurn)
    elsewhere = claimed("c0", job=OLDER_SOURCE_JOB), started("c0", "a1", job=OLDER_SOURCE_JOB)
    given(*elsewhere, claimed()).when(start("c1", "a1")).then_refused(AttemptOutOfTurn)


def test_a3_one_attempt_at_a_time() -> None:
    given(claimed(), started()).when(start("c1", "a2")).then_refused(AttemptOutOfTurn)


def test_a3_a_start_sent_again_is_already_done() -> None:
    given(claimed(), started()).when(start(now=LATE - 1)).then_already_done()


def test_a5_a_start_sent_again_past_its_lease_is_refused_and_costs_the_attempt() -> None:
    state = (
        given(claimed(), started())
        .when(start(now=LATE))
        .then_refused(
            LeaseExpired,
            recording=[failed(failure="lease_expired"), released("c1", "expired")],
            says={"claim_id": "c1", "expired_at": LATE},
        )
    )
    assert not state.open
    assert state.attempts == {JOB.identity: 1}


def test_a3_the_lease_begins_anew_with_the_attempt() -> None:
    given(claimed()).when(start(now=NOW + 10, lease=77)).then(started(expires_at=NOW + 87))


# --- A4: only the holder of the open claim --------------------------------------------------------


@pytest.mark.parametrize("command", [start("c9"), renew("c9"), finish("c9"), release("c9")])
def test_a4_a_claim_that_was_never_made_is_not_the_open_one(command: Any) -> None:
    given(claimed(), started()).when(command).then_refused(
        NotTheHolder, says={"claim_id": "c9", "why": "no such claim"}
    )


def test_a4_nobody_ends_an_attempt_of_another_claim() -> None:
    history = claimed("c0", job=OLDER_SOURCE_JOB), started("c0", "a0", job=OLDER_SOURCE_JOB)
    both = *history, claimed(), started()
    given(*both).when(finish("c1", "a0")).then_refused(AttemptOutOfTurn)
    given(*both).when(finish("c0", "a1")).then_refused(AttemptOutOfTurn)
    over = *both, failed(answer=truncated())
    given(*over).when(finish("c0", "a1", truncated())).then_refused(AttemptOutOfTurn)
    given(*over).when(finish("c9", "a1", truncated())).then_refused(NotTheHolder)


def test_a4_a_paused_worker_that_was_taken_over_is_refused_with_a_perfect_summary() -> None:
    taken_over = (
        claimed("c1", "w1"),
        started("c1", "a1"),
        failed("c1", "a1", "lease_expired"),
        released("c1", "expired"),
        claimed("c2", "w2", expires_at=LATE + LEASE),
    )
    for command in (finish("c1", "a1", now=LATE), start("c1", "a9"), release("c1")):
        given(*taken_over).when(command).then_refused(
            NotTheHolder, says={"claim_id": "c1", "why": "expired"}
        )


def test_a4_a_late_failure_is_not_the_recorded_one() -> None:
    history = claimed(), started(), failed(failure="lease_expired"), released("c1", "expired")
    given(*history).when(finish(answer=truncated())).then_refused(NotTheHolder)


def test_a4_an_attempt_is_finished_only_after_it_started() -> None:
    given(claimed()).when(finish()).then_refused(AttemptOutOfTurn)


# --- A5, A6: leases -------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [JOB, OTHER_MODEL_JOB])
def test_a5_the_taker_records_the_expiry_and_no_attempt_is_lost_before_the_start(job: Job) -> None:
    state = (
        given(claimed("c1"))
        .when(claim("c2", "w2", job, now=LATE))
        .then(released("c1", "expired"), claimed("c2", "w2", job, expires_at=LATE + LEASE))
    )
    assert state.attempts == {}


def test_a6_an_expiry_after_the_start_costs_the_attempt() -> None:
    state = (
        given(claimed("c1"), started())
        .when(claim("c2", "w2", now=LATE))
        .then(
            failed(failure="lease_expired"),
            released("c1", "expired"),
            claimed("c2", "w2", expires_at=LATE + LEASE),
        )
    )
    assert state.attempts == {JOB.identity: 1}


def test_a6_an_expiry_between_two_attempts_costs_none() -> None:
    history = claimed("c1"), started(), failed(answer=truncated())
    state = (
        given(*history)
        .when(claim("c2", "w2", now=LATE))
        .then(released("c1", "expired"), claimed("c2", "w2", expires_at=LATE + LEASE))
    )
    assert state.attempts == {JOB.identity: 1}


def test_a5_a_claim_stands_until_the_last_instant_of_its_lease() -> None:
    given(claimed("c1")).when(claim("c2", "w2", now=LATE - 1)).then_refused(AlreadyClaimed)
    given(claimed(), started()).when(finish(now=LATE - 1)).then(completed())


def test_a5_an_expiry_that_exhausts_is_recorded_and_the_taker_is_refused() -> None:
    history = claimed("c1"), started(), failed(answer=truncated()), started("c1", "a2", 2)
    state = (
        given(*history)
        .when(claim("c2", "w2", now=LATE))
        .then_refused(
            Exhausted,
            recording=[failed("c1", "a2", "lease_expired"), released("c1", "expired")],
            says={"attempts": 2},
        )
    )
    assert not state.open
    assert state.closed == {"c1": "expired"}


def test_a5_an_expiry_that_exhausts_leaves_the_source_to_another_model() -> None:
    history = claimed("c1"), started(), failed(answer=truncated()), started("c1", "a2", 2)
    given(*history).when(claim("c2", "w2", OTHER_MODEL_JOB, now=LATE)).then(
        failed("c1", "a2", "lease_expired"),
        released("c1", "expired"),
        claimed("c2", "w2", OTHER_MODEL_JOB, expires_at=LATE + LEASE),
    )


def test_a5_the_late_holder_records_its_own_expiry() -> None:
    before: list[RangeFact] = [claimed()]
    after: list[RangeFact] = [claimed(), started()]
    given(*before).when(start(now=LATE)).then_refused(
        LeaseExpired,
        recording=[released("c1", "expired")],
        says={"claim_id": "c1", "expired_at": LATE},
    )
    given(*before).when(release(now=LATE)).then_refused(
        LeaseExpired, recording=[released("c1", "expired")]
    )
    given(*after).when(release(now=LATE)).then_refused(
        LeaseExpired,
        recording=[failed(failure="lease_expired"), released("c1", "expired")],
    )


def test_a4_a_late_perfect_summary_is_recorded_as_expired_with_its_digest_alone() -> None:
    state = (
        given(claimed(), started())
        .when(finish(now=LATE))
        .then_refused(
            LeaseExpired,
            recording=[
                failed(failure="lease_expired", answer=good()),
                released("c1", "expired"),
            ],
        )
    )
    assert state.completions == {}
    assert state.attempts == {JOB.identity: 1}


def test_a5_a_clock_that_jumps_back_lets_nobody_in_twice() -> None:
    state = (
        given(claimed("c1"), started())
        .when(claim("c2", "w2", now=LATE))
        .then(
            failed(failure="lease_expired"),
            released("c1", "expired"),
            claimed("c2", "w2", expires_at=LATE + LEASE),
        )
    )
    assert set(state.open) == {"c2"}
    again = (failed(failure="lease_expired"), released("c1", "expired"))
    past = given(claimed("c1"), started(), *again, claimed("c2", "w2", expires_at=LATE + LEASE))
    past.when(finish(now=0)).then_refused(NotTheHolder)
    past.when(claim("c3", "w3", now=0)).then_refused(AlreadyClaimed)


@pytest.mark.parametrize(("now", "lease"), [(-1, 5), (5, 0), (5, -1), (MAX_INTEGER, 1)])
def test_a5_times_are_microseconds_and_leases_last(now: int, lease: int) -> None:
    assert given().when(claim(now=now, lease=lease)).then_invalid(InvalidCommand).place == "lease"
    given(claimed()).when(start(now=now, lease=lease)).then_invalid(InvalidCommand)
    given(claimed(), started()).when(renew(now=now, lease=lease)).then_invalid(InvalidCommand)


def test_a5_times_end_where_json_numbers_are_no_longer_exact() -> None:
    assert MAX_INTEGER == 9_007_199_254_740_991
    given().when(claim(now=0, lease=MAX_INTEGER)).then(claimed(expires_at=MAX_INTEGER))


# --- A5: renewing a lease -------------------------------------------------------------------------


def test_a5_a_running_attempt_renews_its_lease() -> None:
    state = (
        given(claimed(), started())
        .when(renew(now=NOW + 1))
        .then(renewed(expires_at=NOW + 1 + LEASE))
    )
    assert state.open["c1"].expires_at == NOW + 1 + LEASE
    assert state.open["c1"].attempt_id == "a1"
    assert state.attempts == {JOB.identity: 1}


def test_a5_a_renewed_lease_is_the_lease() -> None:
    history = claimed(), started(), renewed(expires_at=LATE + 50)
    given(*history).when(finish(now=LATE + 49)).then(completed())
    given(*history).when(claim("c2", "w2", now=LATE + 49)).then_refused(
        AlreadyClaimed, says={"expires_at": LATE + 50}
    )
    given(*history).when(finish(now=LATE + 50)).then_refused(
        LeaseExpired,
        recording=[failed(failure="lease_expired", answer=good()), released("c1", "expired")],
        says={"expired_at": LATE + 50},
    )


def test_a5_a_lease_can_be_renewed_until_its_last_instant() -> None:
    given(claimed(), started()).when(renew(now=LATE - 1)).then(renewed(expires_at=LATE - 1 + LEASE))
    given(claimed(), started()).when(renew(now=LATE)).then_refused(
        LeaseExpired,
        recording=[failed(failure="lease_expired"), released("c1", "expired")],
        says={"claim_id": "c1", "expired_at": LATE},
    )


@pytest.mark.parametrize(("now", "lease"), [(NOW, LEASE), (NOW, 1), (0, LEASE)])
def test_a5_a_renewal_never_cuts_a_lease_short(now: int, lease: int) -> None:
    given(claimed(), started()).when(renew(now=now, lease=lease)).then_already_done()


def test_a5_a_renewal_sent_again_is_already_done() -> None:
    given(claimed(), started(), renewed(expires_at=LATE + 9)).when(
        renew(now=NOW + 9)
    ).then_already_done()


def test_a5_nothing_is_renewed_without_an_attempt() -> None:
    given(claimed()).when(renew(now=NOW + 1)).then_refused(AttemptOutOfTurn)
    given(claimed(), started(), failed(answer=truncated())).when(renew(now=NOW + 1)).then_refused(
        AttemptOutOfTurn
    )
    given(claimed()).when(renew(now=LATE)).then_refused(
        LeaseExpired, recording=[released("c1", "expired")]
    )


@pytest.mark.parametrize("end", [released(), released("c1", "expired"), completed()])
def test_a4_a_claim_that_is_over_is_not_renewed(end: RangeFact) -> None:
    given(claimed(), started(), end).when(renew(now=NOW + 1)).then_refused(NotTheHolder)


def test_a1_a_claim_on_what_was_imported_meanwhile_is_not_renewed() -> None:
    state = (
        given(claimed(), started(), imported())
        .when(renew(now=NOW + 1))
        .then_refused(
            AlreadyCompleted,
            recording=[released("c1", "outdone")],
            says={"identity": JOB.identity, "version": 3},
        )
    )
    assert not state.open


def test_a3_the_last_attempt_of_an_identity_is_renewed_too() -> None:
    history = claimed(), started(), failed(answer=truncated()), started("c1", "a2", 2)
    given(*history).when(renew(now=NOW + 1)).then(renewed(expires_at=LATE + 1))


# --- A6: giving back ------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["given_back", "source_changed", "backing_off", "stopped"])
def test_a6_a_claim_given_back_costs_nothing(reason: Any) -> None:
    state = given(claimed()).when(release("c1", reason)).then(released("c1", reason))
    assert not state.open
    assert state.attempts == {}
    given(claimed(), released("c1", reason)).when(claim("c2", "w2")).then(claimed("c2", "w2"))
    given(claimed(), released("c1", reason)).when(release("c1", reason)).then_already_done()


def test_a6_an_open_attempt_is_finished_before_the_claim_is_given_back() -> None:
    given(claimed(), started()).when(release()).then_refused(AttemptOutOfTurn)
    given(claimed(), started(), failed(answer=truncated())).when(release()).then(released())


def test_a6_a_claim_given_back_for_another_reason_is_not_the_same_command() -> None:
    given(claimed(), released("c1", "stopped")).when(release("c1", "given_back")).then_refused(
        NotTheHolder, says={"why": "stopped"}
    )


def test_a5_nobody_gives_back_as_expired() -> None:
    reason: Any = "expired"
    given(claimed()).when(release("c1", reason)).then_invalid(InvalidCommand)


# --- A7: what a job must be -----------------------------------------------------------------------

TWENTY = JOB.messages


@pytest.mark.parametrize(
    ("job", "error"),
    [
        (replace(JOB, from_pair=5, to_pair=14), InvalidJob),
        (replace(JOB, from_pair=-10, to_pair=-1), InvalidJob),
        (replace(JOB, to_pair=8), InvalidJob),
        (replace(JOB, to_pair=19), InvalidJob),
        (replace(JOB, messages=TWENTY[:-2]), InvalidJob),
        (replace(JOB, messages=()), InvalidJob),
        (replace(JOB, messages=(*TWENTY, "u10", "a10")), InvalidJob),
        (replace(JOB, messages=(*TWENTY[:-1], TWENTY[0])), InvalidJob),
        (replace(JOB, messages=(*TWENTY, TWENTY[0])), InvalidJob),
        (replace(JOB, messages=(*TWENTY[:-1], "")), InvalidId),
        (replace(JOB, messages=(*TWENTY[:-1], "\ud800")), InvalidId),
        (replace(JOB, source_hash="ab"), InvalidJob),
        (replace(JOB, source_hash=JOB.source_hash.upper()), InvalidJob),
        (replace(JOB, source_hash=JOB.source_hash + "\n"), InvalidJob),
        (replace(JOB, scope=""), InvalidId),
        (replace(JOB, conversation="a\x00"), InvalidId),
        (replace(JOB, model=ModelIdentity("", "x")), InvalidId),
        (replace(JOB, model=ModelIdentity("x", "y", (("b", "1"), ("a", "1")))), InvalidJob),
        (replace(JOB, model=ModelIdentity("x", "y", (("a", "1"), ("a", "1")))), InvalidJob),
        (replace(JOB, model=ModelIdentity("x", "y", (("a", "\ud800"),))), InvalidInput),
        (replace(JOB, prompt=PromptVersion("a@1", 2)), InvalidInput),
        (replace(JOB, prompt=PromptVersion("a", 0)), InvalidInput),
    ],
)
def test_a7_a_malformed_job_is_refused(job: Job, error: type[InvalidInput]) -> None:
    given().when(claim(job=job)).then_invalid(error)
    given().when(bring_in(job=job)).then_invalid(error)


@pytest.mark.parametrize("bad", ["", "x" * 513, "a\nb", "\x7f", "\x9f", "\udfff"])
def test_e4_the_ids_of_commands_are_ids(bad: str) -> None:
    given().when(claim(bad)).then_invalid(InvalidId)
    given().when(claim("c1", bad)).then_invalid(InvalidId)
    given(claimed()).when(start("c1", bad)).then_invalid(InvalidId)
    given().when(bring_in(bad)).then_invalid(InvalidId)
    given().when(bring_in(origin=bad)).then_invalid(InvalidId)


def test_a7_a_stream_keeps_to_its_range() -> None:
    second = make_job(pairs=make_pairs(10, start=10))
    for history in ([claimed()], [imported()]):
        given(*history).when(claim("c2", job=second)).then_invalid(InvalidCommand)
        given(*history).when(bring_in("i2", second)).then_invalid(InvalidCommand)
    other_scope = replace(JOB, scope="tenant-2")
    given(claimed()).when(claim("c2", job=other_scope)).then_invalid(InvalidCommand)


# --- C4: how a failure is recorded ----------------------------------------------------------------


def test_c4_a_failure_keeps_every_code_and_a_digest_but_no_output() -> None:
    answer = Answer("", FinishFacts(("length", "tool_call"), tool_calls=1), detail="HTTP 200")
    given(claimed(), started()).when(finish(answer=answer)).then(
        failed(
            failure="tool_call",
            also=("truncated", "multiple_finishes", "empty"),
            answer=answer,
        )
    )
    recorded = failed(answer=truncated("secret words"))
    given(claimed(), started()).when(finish(answer=truncated("secret words"))).then(recorded)
    assert recorded.output_digest is not None
    assert "secret words" not in repr(recorded)


def test_case_a_a_tool_call_beside_excellent_prose_fails() -> None:
    answer = Answer(GOOD, FinishFacts(("stop",), tool_calls=1))
    state = (
        given(claimed(), started())
        .when(finish(answer=answer))
        .then(failed(failure="tool_call", answer=answer))
    )
    assert state.completions == {}


def worded(words: tuple[str, ...], signal: FinishSignal = "length") -> Answer:
    """An answer whose provider named its finish in ``words``."""
    return Answer(GOOD, FinishFacts((signal,), provider_words=words))


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        (("max_tokens",), ("max_tokens",)),
        (("\ud800length\udfff",), ("\ufffdlength\ufffd",)),
        (("你好", "😀", "", "\x00"), ("你好", "😀", "", "\x00")),
        (("x" * 64, "y" * 65), ("x" * 64, "y" * 64)),
        (("x" * 63 + "\ud800y",), ("x" * 63 + "\ufffd",)),
        (tuple("abcdefgh"), tuple("abcdefgh")),
        (tuple("abcdefghij"), tuple("abcdefgh")),
    ],
)
def test_c4_a_providers_words_are_made_storable(
    words: tuple[str, ...], stored: tuple[str, ...]
) -> None:
    given(claimed(), started()).when(finish(answer=worded(words))).then(
        failed(answer=worded(stored))
    )
    given(claimed(), started()).when(finish(answer=worded(words), now=LATE)).then_refused(
        LeaseExpired,
        recording=[
            failed(failure="lease_expired", answer=worded(stored)),
            released("c1", "expired"),
        ],
    )
    state = (
        given(claimed(), started())
        .when(finish(answer=worded(words, "stop")))
        .then(replace(completed(), finish=worded(stored, "stop").finish, usage=Usage()))
    )
    assert state.completions[JOB.identity].by == "c1"


@pytest.mark.parametrize(
    ("detail", "stored"),
    [
        ("HTTP 503", "HTTP 503"),
        ("caf\udce9", "caf\ufffd"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 64),
        ("", None),
        (None, None),
    ],
)
def test_c4_the_detail_of_a_failure_is_made_storable(
    detail: str | None, stored: str | None
) -> None:
    answer, kept = (replace(UNAVAILABLE, detail=word) for word in (detail, stored))
    given(claimed(), started()).when(finish(answer=answer)).then(
        failed(failure="provider_unavailable", also=("missing_finish", "empty"), answer=kept)
    )


@for_all(st.lists(st.text(), max_size=12), st.text(), st.integers(0, 1))
def test_c4_whatever_a_provider_calls_its_finish_can_be_stored(
    words: list[str], detail: str, late: int
) -> None:
    answer = replace(worded(tuple(words)), detail=detail)
    state = fold([claimed(), started()])
    fact = decide(state, finish(answer=answer, now=NOW + late * LEASE)).facts[0]
    assert isinstance(fact, AttemptFailed)
    for word in (*fact.finish.provider_words, fact.detail or ""):
        word.encode()
        assert len(word) <= 64
    assert len(fact.finish.provider_words) == min(len(words), 8)


def test_d3_the_time_of_the_second_attempt_is_recorded() -> None:
    given(claimed(), started()).when(finish(answer=UNAVAILABLE, retry_at=NOW + 9)).then(
        failed(
            failure="provider_unavailable",
            also=("missing_finish", "empty"),
            answer=UNAVAILABLE,
            retry_at=NOW + 9,
        )
    )


# --- A10: history loads for ever ------------------------------------------------------------------


def test_a10_three_attempts_of_one_claim_load() -> None:
    state = fold([*exhausted_by(), started("c1", "a3", 3), failed("c1", "a3", answer=truncated())])
    assert state.attempts == {JOB.identity: 3}
    assert state.version == 8
    given(*exhausted_by(), started("c1", "a3", 3), completed("c1", "a3")).when(
        claim("c2")
    ).then_refused(AlreadyCompleted, says={"version": 8})


def test_a10_a_last_failure_alone_ends_no_claim_when_it_is_replayed() -> None:
    history = exhausted_by()[:-1]
    assert set(fold(history).open) == {"c1"}
    given(*history).when(claim("c2", "w2", OTHER_MODEL_JOB)).then_refused(AlreadyClaimed)
    given(*history).when(start("c1", "a3")).then_refused(
        Exhausted, recording=[released("c1", "exhausted")], says={"attempts": 2}
    )
    given(*history).when(claim("c2", "w2", now=LATE)).then_refused(
        Exhausted, recording=[released("c1", "expired")], says={"attempts": 2}
    )


def test_a10_an_unaligned_job_of_two_pairs_loads() -> None:
    odd = replace(JOB, from_pair=3, to_pair=4, messages=("u", "a", "u", "a"), source_hash="")
    state = fold([claimed(job=odd), started(job=odd), completed(job=odd)])
    assert odd.identity in state.completions
    assert state.key == (odd.scope, odd.conversation, 3)


def test_a10_a_completion_that_the_contract_would_refuse_today_loads() -> None:
    state = fold([claimed(), started(), completed(text="x" * 9000)])
    assert state.completions[JOB.identity].version == 3


def test_a10_two_open_claims_of_one_source_load_and_both_expire_on_take_over() -> None:
    history = claimed("c1"), claimed("c2"), started("c2", "a2")
    given(*history).when(claim("c3", now=LATE)).then(
        released("c1", "expired"),
        failed("c2", "a2", "lease_expired"),
        released("c2", "expired"),
        claimed("c3", expires_at=LATE + LEASE),
    )


def test_a10_a_renewal_that_the_rules_would_refuse_today_loads() -> None:
    assert fold([claimed(), renewed(expires_at=1)]).open["c1"].expires_at == 1
    assert not fold([claimed(), released(), renewed()]).open
    assert fold([renewed("c9")]).version == 1


EVERY_FACT: list[RangeFact] = [
    *(claimed(c, job=job) for c in ("c1", "c2") for job in (JOB, OTHER_MODEL_JOB)),
    *(started(c, a, n) for c in ("c1", "c2") for a, n in (("a1", 1), ("a2", 2), ("a3", 7))),
    *(renewed(c, NOW + n) for c in ("c1", "c2") for n in (-5, 5 * LEASE)),
    *(failed(c, a) for c in ("c1", "c2") for a in ("a1", "a2", "a3")),
    failed("c1", "a1", "lease_expired"),
    *(completed(c, "a1", text) for c in ("c1", "c2") for text in (GOOD, "")),
    *(released(c, r) for c in ("c1", "c2") for r in ("expired", "given_back", "exhausted")),
    released("c1", "outdone"),
    imported(job=OLDER_SOURCE_JOB),
]


@for_all(st.lists(st.sampled_from(EVERY_FACT), max_size=14))
def test_a10_evolve_judges_nothing(facts: list[RangeFact]) -> None:
    state = EMPTY
    for place, fact in enumerate(facts, start=1):
        state = evolve(state, fact)
        assert state.version == place
    assert fold(facts) == state


def test_a10_deciding_changes_no_state() -> None:
    state = fold([claimed(), started()])
    before = repr(state)
    given_state = given(claimed(), started())
    given_state.when(finish()).then(completed())
    given_state.when(claim("c2", job=OTHER_MODEL_JOB)).then_refused(AlreadyClaimed)
    assert repr(given_state.state) == before
