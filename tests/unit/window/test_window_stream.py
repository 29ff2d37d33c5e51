"""The decider of a window, rule by rule: A1 to A6, C1, C2, D3 as of ranges; T8, T9 and T11 of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
import scenarios
from chunk_scenarios import (
    AB,
    ABC,
    BUDGET,
    LEASE,
    NOW,
    OTHER_MODEL,
    OTHER_WINDOW,
    SUMMARY,
    UNGROUNDED,
    WINDOW,
    A,
    B,
    C,
    accept,
    chunk,
    claim,
    claimed,
    completed,
    done,
    exhausted,
    failed,
    finish,
    given,
    pin,
    release,
    released,
    renew,
    renewed,
    start,
    started,
    truncated,
    verdict,
)
from hypothesis import given as for_all
from hypothesis import strategies as st
from scenarios import UNAVAILABLE, good

from compaction_ledger.domain import events, range_stream
from compaction_ledger.domain.commands import Command
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    AttemptOutOfTurn,
    BackingOff,
    ChunkOverlaps,
    DifferentResult,
    Exhausted,
    InvalidCommand,
    InvalidId,
    InvalidInput,
    InvalidJob,
    LeaseExpired,
    NotTheHolder,
    PinRefused,
)
from compaction_ledger.domain.finish import Answer, FinishFacts, failures
from compaction_ledger.domain.window import events as window_events
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.commands import WindowCommand
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.window_stream import (
    EMPTY,
    StandingChunk,
    WindowStreamFact,
    current_pins,
    decide,
    evolve,
    fold,
    steady,
)

LATE = NOW + LEASE  # the first instant at which the lease is over


def standing(*facts: WindowStreamFact) -> list[tuple[int, int]]:
    """First and last message of the chunks that stand after ``facts``."""
    return [(chunk.first, chunk.last) for chunk in fold(facts).chunks]


# --- A1 to A6, D3: the rules of ranges, in the words of chunks ----------------------------------------


def test_a1_a_claim_on_nothing_is_made_with_the_budget_of_then() -> None:
    state = given().when(claim()).then(claimed())
    assert (state.version, state.key) == (1, WINDOW)
    assert state.open_jobs == {"c1": A}
    assert claimed().budget == BUDGET.numbers


def test_a2_the_same_claim_again_is_done_already() -> None:
    given(claimed()).when(claim()).then_already_done()


def test_a1_a_second_claim_on_the_source_is_refused_whatever_it_names() -> None:
    for job in (A, chunk(1, 5, model=OTHER_MODEL)):
        given(claimed()).when(claim(job, "c2", "w2")).then_refused(
            AlreadyClaimed, says={"holder": "w1", "expires_at": LATE, "claim_id": "c1"}
        )


def test_a1_a_completed_chunk_is_refused_with_the_place_of_its_summary() -> None:
    given(pin(), *done(A)).when(claim(A, "c2")).then_refused(
        AlreadyCompleted, says={"identity": A.identity, "version": 4}
    )


def test_a1_a_chunk_that_was_replaced_is_completed_still() -> None:
    given(*done(A, B, AB)).when(claim(A, "c2")).then_refused(AlreadyCompleted)


def test_a3_an_exhausted_chunk_is_refused_and_another_model_has_its_own_two_attempts() -> None:
    given(*exhausted()).when(claim()).then_refused(Exhausted, says={"attempts": 2})
    other = chunk(1, 5, model=OTHER_MODEL)
    given(*exhausted()).when(claim(other)).then(claimed(other))


def test_a3_the_second_failure_ends_the_claim() -> None:
    before = claimed(), started(), failed(), started(attempt_id="a2", number=2)
    given(*before).when(finish(attempt_id="a2", worth=verdict("not_smaller"))).then(
        failed(attempt_id="a2", failure="not_smaller", answer=good(SUMMARY)),
        released(reason="exhausted"),
    )


def test_a4_only_the_holder_of_the_open_claim_goes_on() -> None:
    for command in (start("c2"), renew("c2"), finish("c2"), release("c2")):
        given(claimed(), started()).when(command).then_refused(NotTheHolder)


def test_a4_attempts_come_one_after_the_other() -> None:
    given(claimed(), started()).when(start(attempt_id="a2")).then_refused(AttemptOutOfTurn)
    given(claimed()).when(finish()).then_refused(AttemptOutOfTurn)
    given(claimed(), started()).when(release()).then_refused(AttemptOutOfTurn)
    given(claimed()).when(start()).then(started())


def test_a5_a_lease_is_renewed_while_an_attempt_runs() -> None:
    given(claimed(), started()).when(renew(now=NOW + 7)).then(renewed(expires_at=NOW + 7 + LEASE))


def test_a5_whoever_takes_over_records_the_expiry() -> None:
    given(claimed()).when(claim(A, "c2", "w2", now=LATE)).then(
        released(reason="expired"), claimed(A, "c2", "w2", LATE + LEASE)
    )


def test_a6_an_expiry_costs_an_attempt_only_if_one_had_started() -> None:
    state = (
        given(claimed(), started())
        .when(claim(A, "c2", "w2", now=LATE))
        .then(
            failed(failure="lease_expired"),
            released(reason="expired"),
            claimed(A, "c2", "w2", LATE + LEASE),
        )
    )
    assert state.lifecycle.attempts == {A.identity: 1}


@pytest.mark.slow
def test_a4_a_perfect_summary_that_comes_too_late_is_refused() -> None:
    given(claimed(), started()).when(finish(now=LATE)).then_refused(
        LeaseExpired,
        recording=[
            failed(failure="lease_expired", answer=good(SUMMARY)),
            released(reason="expired"),
        ],
    )


def test_d3_the_second_attempt_waits() -> None:
    waits = failed(failure="provider_unavailable", answer=UNAVAILABLE, retry_at=NOW + 50)
    given(claimed(), started()).when(
        finish(worth=verdict("provider_unavailable"), answer=UNAVAILABLE, retry_at=NOW + 50)
    ).then(replace(waits, also=()))
    given(claimed(), started(), waits).when(start(attempt_id="a2", now=NOW + 49)).then_refused(
        BackingOff, says={"retry_at": NOW + 50}
    )


def test_a5_decisions_are_steady_between_the_ends_of_leases() -> None:
    state = fold([claimed(A), claimed(B, "c2", expires_at=LATE + LEASE)])
    assert steady(state, NOW)[1] == LATE
    assert steady(state, LATE) == (LATE, LATE + LEASE)


PAIRS = [
    (events.AttemptStarted, window_events.ChunkAttemptStarted),
    (events.ClaimRenewed, window_events.ChunkClaimRenewed),
    (events.AttemptFailed, window_events.ChunkAttemptFailed),
    (events.ClaimReleased, window_events.ChunkClaimReleased),
]


@pytest.mark.parametrize(("of_range", "of_chunk"), PAIRS)
def test_facts_that_are_told_in_the_words_of_chunks_have_the_same_members(
    of_range: Any, of_chunk: Any
) -> None:
    assert [(f.name, f.type) for f in fields(of_range)] == [
        (f.name, f.type) for f in fields(of_chunk)
    ]


# --- C1, C2, T7, T12, T13: what an attempt brought ------------------------------------------------------


def test_t7_a_summary_is_recorded_with_what_its_source_does_not_say() -> None:
    state = given(claimed(), started()).when(finish()).then(completed())
    assert completed().ungrounded == UNGROUNDED
    assert state.chunks == (StandingChunk(1, 5, A.identity, A.source_hash, 3),)


def test_c4_the_first_code_decides_and_the_others_stand_beside_it() -> None:
    worth = verdict("invalid_structure", "ungrounded")
    given(claimed(), started()).when(finish(worth=worth)).then(
        failed(failure="invalid_structure", also=("ungrounded",), answer=good(SUMMARY))
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (truncated(SUMMARY), "truncated"),
        (Answer(SUMMARY, FinishFacts(("stop",), tool_calls=1)), "tool_call"),
        (Answer(SUMMARY, FinishFacts(("stop",), refusal=True)), "refusal"),
        (Answer(SUMMARY), "missing_finish"),
    ],
)
def test_case_a_an_answer_that_ended_badly_is_a_failure_whatever_the_verdict(
    answer: Answer, code: Any
) -> None:
    given(claimed(), started()).when(finish(answer=answer)).then(
        failed(failure=code, answer=answer)
    )


def test_a_long_answer_is_no_failure_by_itself() -> None:
    answer = good("x" * 7_000)
    given(claimed(), started()).when(finish(answer=answer)).then(completed())


def test_an_accepted_summary_has_text() -> None:
    given(claimed(), started()).when(finish(worth=verdict(text=" "))).then_invalid(InvalidCommand)


def test_a2_the_same_result_again_is_done_already_and_another_is_refused() -> None:
    given(*done(A)).when(finish("done-1-5-0", "done-1-5-0")).then_already_done()
    given(*done(A)).when(
        finish("done-1-5-0", "done-1-5-0", verdict(text='{"other":[]}'))
    ).then_refused(DifferentResult)
    before = claimed(), started(), failed(failure="not_smaller")
    given(*before).when(finish(worth=verdict("not_smaller"))).then_already_done()
    given(*before).when(finish()).then_refused(DifferentResult)


# --- T8, T11: where a new chunk may stand --------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, 7])
def test_t8_the_first_chunk_may_begin_anywhere(first: int) -> None:
    job = chunk(first, 9)
    given().when(claim(job)).then(claimed(job))


def test_t8_the_next_one_begins_right_behind() -> None:
    given(*done(A)).when(claim(B)).then(claimed(B))
    refusal = (
        given(*done(A))
        .when(claim(chunk(7, 9)))
        .then_refused(ChunkOverlaps, says={"first": 7, "last": 9})
    )
    assert "begins with 6" in str(refusal)


@pytest.mark.parametrize(("first", "last"), [(5, 9), (0, 1), (2, 3), (0, 30), (1, 4)])
def test_t8_it_reaches_into_no_other(first: int, last: int) -> None:
    refusal = given(*done(A)).when(claim(chunk(first, last))).then_refused(ChunkOverlaps)
    assert "1 to 5 are summarized" in str(refusal)


def test_t8_every_chunk_that_stands_counts_and_the_newest_says_where_to_go_on() -> None:
    for inside in (chunk(6, 9, model=OTHER_MODEL), chunk(9, 12), chunk(4, 7)):
        given(*done(A, B)).when(claim(inside)).then_refused(ChunkOverlaps)
    given(*done(A, B)).when(claim(C)).then(claimed(C))
    given(*done(A, B)).when(claim(chunk(11, 20))).then_refused(ChunkOverlaps)


def test_t11_a_chunk_is_fixed_by_its_claim() -> None:
    refusal = given(claimed(A)).when(claim(chunk(1, 9), "c2")).then_refused(ChunkOverlaps)
    assert "1 to 5 are claimed" in str(refusal)
    given(claimed(A)).when(claim(B, "c2")).then(claimed(B, "c2"))
    given(claimed(A)).when(claim(C, "c2")).then_refused(ChunkOverlaps)


def test_t8_nothing_goes_in_front_of_the_first_chunk() -> None:
    refusal = given(*done(A)).when(claim(chunk(0, 0))).then_refused(ChunkOverlaps)
    assert "began with 1" in str(refusal)
    given(claimed(A)).when(claim(chunk(0, 0), "c2")).then_refused(ChunkOverlaps)


@pytest.mark.parametrize("in_vain", [[claimed(A), released()], exhausted(A)])
def test_t8_messages_that_were_claimed_in_vain_are_free(in_vain: list[WindowStreamFact]) -> None:
    for job in (chunk(1, 9), chunk(1, 3), chunk(0, 3), chunk(3, 8)):
        given(*in_vain).when(claim(job, "c2")).then(claimed(job, "c2"))


def test_t8_a_gap_that_a_claim_in_vain_left_may_be_filled_and_nothing_else() -> None:
    gap = claimed(B, "c2"), claimed(C, "c3"), released(B, "c2")
    history = (*done(A), *gap)
    other = chunk(6, 8)
    for job in (B, other):
        given(*history).when(claim(job, "c4")).then(claimed(job, "c4"))
    given(*history).when(claim(chunk(7, 9), "c4")).then_refused(ChunkOverlaps)
    given(*history).when(claim(chunk(6, 10), "c4")).then_refused(ChunkOverlaps)
    in_front = (*exhausted(A), *done(B))
    again = chunk(1, 5, model=OTHER_MODEL)
    given(*in_front).when(claim(again, "c4")).then(claimed(again, "c4"))
    given(*in_front).when(claim(chunk(0, 5), "c4")).then_refused(ChunkOverlaps)


def test_a5_a_claim_past_its_lease_stands_in_nobodys_way() -> None:
    longer = chunk(1, 9)
    given(claimed(A), started()).when(claim(longer, "c2", "w2", now=LATE)).then(
        failed(failure="lease_expired"),
        released(reason="expired"),
        claimed(longer, "c2", "w2", LATE + LEASE),
    )


@pytest.mark.parametrize(("first", "last"), [(9, 12), (2, 5), (6, 7), (3, 10)])
def test_a5_the_expiry_of_whatever_has_a_message_in_common_is_recorded(
    first: int, last: int
) -> None:
    over, job = chunk(5, 9), chunk(first, last)
    given(claimed(over)).when(claim(job, "c2", now=LATE)).then(
        released(over, reason="expired"), claimed(job, "c2", expires_at=LATE + LEASE)
    )


@pytest.mark.parametrize(("first", "last"), [(10, 12), (2, 4)])
def test_a5_the_expiry_of_anything_else_is_left_to_those_who_need_its_messages(
    first: int, last: int
) -> None:
    job = chunk(first, last)
    given(claimed(chunk(5, 9))).when(claim(job, "c2", now=LATE)).then(
        claimed(job, "c2", expires_at=LATE + LEASE)
    )


def test_a5_what_comes_behind_a_claim_past_its_lease_has_to_wait_for_its_messages() -> None:
    given(*done(A), claimed(B, "c2")).when(claim(C, "c3", now=LATE)).then_refused(ChunkOverlaps)


def test_a5_an_expiry_that_is_found_is_recorded_also_where_the_place_is_refused() -> None:
    history = *done(A), claimed(B, "c2", expires_at=LATE)
    given(*history).when(claim(chunk(5, 8), "c3", now=LATE)).then_refused(
        ChunkOverlaps, recording=[released(B, "c2", "expired")]
    )


# --- T8: chunks in the place of others -----------------------------------------------------------------


def test_t8_a_bigger_chunk_takes_the_place_of_the_oldest_ones() -> None:
    state = given(*done(A, B, C)).when(claim(AB)).then(claimed(AB))
    assert [one.identity for one in state.chunks] == [A.identity, B.identity, C.identity]
    state = fold([started(AB), completed(AB)], state)
    assert [one.identity for one in state.chunks] == [AB.identity, C.identity]
    assert state.replaced == {A.identity, B.identity}
    given(*done(A, B, C, AB)).when(claim(ABC)).then(claimed(ABC))
    state = fold(done(A, B, C, AB, ABC))
    assert [one.identity for one in state.chunks] == [ABC.identity]
    assert state.replaced == {A.identity, B.identity, AB.identity, C.identity}


@pytest.mark.parametrize("after", [[failed(AB)], exhausted(AB), [released(AB)]])
def test_t8_as_long_as_it_has_no_summary_the_old_ones_stand(after: list[WindowStreamFact]) -> None:
    assert standing(*done(A, B), claimed(AB), started(AB), *after) == [(1, 5), (6, 9)]


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (chunk(1, 9, [B, A]), "not chunks that stand side by side"),
        (chunk(1, 20, [A, C]), "not chunks that stand side by side"),
        (chunk(1, 9, [A, chunk(6, 9, model=OTHER_MODEL)]), "not chunks that stand side by side"),
        (chunk(1, 30, [A, B, C, chunk(21, 30)]), "not chunks that stand side by side"),
        (chunk(1, 8, [A, B]), "are messages 1 to 9"),
        (chunk(1, 10, [A, B]), "are messages 1 to 9"),
        (chunk(0, 9, [A, B]), "are messages 1 to 9"),
    ],
)
def test_t8_it_takes_all_of_those_it_names_and_no_more(job: ChunkJob, why: str) -> None:
    refusal = given(*done(A, B, C)).when(claim(job)).then_refused(ChunkOverlaps)
    assert why in str(refusal)


@pytest.mark.parametrize("job", [chunk(6, 9, [B]), chunk(6, 20, [B, C]), chunk(10, 20, [C])])
def test_t8_what_may_not_be_used_any_more_is_replaced_where_it_stands(job: ChunkJob) -> None:
    """V2: one of them, too."""
    state = given(*done(A, B, C)).when(claim(job)).then(claimed(job))
    state = fold([started(job), completed(job)], state)
    spans = {(one.first, one.last) for one in (A, B, C) if one.identity not in job.replaces}
    assert {(one.first, one.last) for one in state.chunks} == {*spans, (job.first, job.last)}


def test_t8_what_was_replaced_cannot_be_replaced_again() -> None:
    again = chunk(1, 9, [A, B], model=OTHER_MODEL)
    given(*done(A, B, AB)).when(claim(again)).then_refused(ChunkOverlaps)


def test_t8_no_messages_are_left_out_in_between() -> None:
    history = claimed(B, "gap"), *done(A, C), released(B, "gap")
    refusal = given(*history).when(claim(chunk(1, 20, [A, C]))).then_refused(ChunkOverlaps)
    assert "in between" in str(refusal)


def test_t8_two_regroupings_do_not_overlap() -> None:
    whole = chunk(1, 20, [A, B, C])
    history = *done(A, B, C), claimed(AB, "c2")
    refusal = given(*history).when(claim(whole, "c3")).then_refused(ChunkOverlaps)
    assert "1 to 9 are claimed" in str(refusal)
    given(*history).when(claim(whole, "c3", now=LATE)).then(
        released(AB, "c2", "expired"), claimed(whole, "c3", expires_at=LATE + LEASE)
    )


def test_t11_the_next_chunk_does_not_wait_for_a_regrouping() -> None:
    given(*done(A, B), claimed(AB, "c2")).when(claim(C, "c3")).then(claimed(C, "c3"))


# --- A7: malformed commands ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "error"),
    [
        (replace(A, first=-1), InvalidJob),
        (replace(A, first=6), InvalidJob),
        (replace(A, source_hash="x"), InvalidJob),
        (replace(A, replaces=(B.identity, B.identity)), InvalidJob),
        (replace(A, window=replace(WINDOW, run="")), InvalidId),
    ],
)
def test_a7_a_malformed_job_is_no_command(job: ChunkJob, error: type[InvalidInput]) -> None:
    given().when(claim(job)).then_invalid(error)


def test_a7_a_job_of_another_window_is_no_command() -> None:
    elsewhere = chunk(6, 9, window=OTHER_WINDOW)
    given(*done(A)).when(claim(elsewhere)).then_invalid(InvalidCommand)
    given(pin()).when(claim(elsewhere)).then_invalid(InvalidCommand)


# --- T9: pins ------------------------------------------------------------------------------------------


def test_t9_a_pin_is_held_and_counts_in_the_stream() -> None:
    state = given().when(accept(pin())).then(pin())
    assert (state.version, state.key) == (1, WINDOW)
    assert current_pins(state) == (pin(),)


def test_t9_the_same_words_again_are_done_already_under_whatever_id() -> None:
    for again in (pin(), pin("p2"), replace(pin("p2"), proposer="model")):
        given(pin()).when(accept(again)).then_already_done()
    given(pin("p0", 1), pin("p1", 3, "p0")).when(accept(pin("p2", 3, "p0"))).then_already_done()
    given(pin()).when(accept(pin("p2", supersedes="p1"))).then_already_done()


@pytest.mark.parametrize(
    "other",
    [
        pin("p1", 4),
        replace(pin(), part=1),
        replace(pin(), start=5, quote="no nuts, o"),
        replace(pin(), end=14, quote="no nuts, o"),
        replace(pin(), digest="ef" * 32),
        pin("p1", 3, "p0"),
    ],
)
def test_t9_an_id_stands_for_one_pin(other: PinAccepted) -> None:
    given(pin("p0", 1), pin()).when(accept(other)).then_refused(
        PinRefused, says={"reason": "pin_id_used"}
    )


def test_t9_a_correction_supersedes_and_both_stay() -> None:
    state = given(pin(), pin("p2", 5)).when(accept(pin("p3", 7, "p1"))).then(pin("p3", 7, "p1"))
    assert list(state.pins) == ["p1", "p2", "p3"]
    assert state.superseded == {"p1": "p3"}
    assert current_pins(state) == (pin("p2", 5), pin("p3", 7, "p1"))


def test_t9_words_that_were_held_already_may_correct_others_later() -> None:
    later = pin("p3", 5, "p1")
    state = given(pin(), pin("p2", 5)).when(accept(later)).then(later)
    assert current_pins(state) == (pin("p2", 5), later)


@pytest.mark.parametrize("corrected", ["p9", "p1", "p4"])
def test_t9_only_a_current_pin_can_be_corrected(corrected: str) -> None:
    given(pin(), pin("p2", 5, "p1")).when(accept(pin("p4", 7, corrected))).then_refused(
        PinRefused, says={"reason": "unknown_pin"}
    )


@pytest.mark.parametrize(
    "malformed",
    [
        replace(pin(), pin_id=""),
        replace(pin(), supersedes=""),
        replace(pin(), window=replace(WINDOW, scope="")),
        replace(pin(), start=-1, end=10),
        replace(pin(), start=15, quote=""),
        replace(pin(), quote="no nuts"),
        replace(pin(), quote="\ud800o nuts, ok"),
        replace(pin(), quote=" " * 11),
        replace(pin(), message=-1),
        replace(pin(), part=-1),
        replace(pin(), exchange=-1),
        replace(pin(), digest="x"),
    ],
)
def test_a7_a_malformed_pin_is_no_command(malformed: PinAccepted) -> None:
    with pytest.raises(InvalidInput):
        given().when(accept(malformed)).then()


def test_t9_a_pin_of_another_window_is_no_command() -> None:
    given(pin()).when(accept(replace(pin("p2", 5), window=OTHER_WINDOW))).then_invalid(
        InvalidCommand
    )


# --- A10: history loads for ever -----------------------------------------------------------------------


def test_a10_what_no_rule_would_allow_today_is_read() -> None:
    overlapping = chunk(3, 30)
    state = fold([*done(A, overlapping), *done(B), pin(), pin("p2", 4, "p1"), pin("p3", 5, "p1")])
    assert [(one.first, one.last) for one in state.chunks] == [(1, 5), (3, 30), (6, 9)]
    assert state.superseded == {"p1": "p3"}
    assert state.version == 12


def test_a10_every_fact_moves_the_version_by_one() -> None:
    history = [*done(A), *exhausted(B), pin(), claimed(C), renewed(C)]
    state = EMPTY
    for number, fact in enumerate(history, start=1):
        state = evolve(state, fact)
        assert state.version == number


# --- the rules are those of ranges, whatever comes -----------------------------------------------------

STEPS = st.tuples(
    st.sampled_from(["claim", "claim", "start", "renew", "good", "cut", "gone", "release"]),
    st.integers(0, 2),  # which claim
    st.integers(0, 3),  # which attempt
    st.booleans(),  # which model
    st.integers(0, LEASE),  # how much later
)


def commands_of(step: tuple[str, int, int, bool, int], now: int) -> tuple[Command, WindowCommand]:
    """The same command of a range and of a chunk."""
    what, number, attempt, other, _ = step
    name, called = f"c{number}", f"a{attempt}"
    match what:
        case "claim":
            of_range = scenarios.OTHER_MODEL_JOB if other else scenarios.JOB
            of_chunk = chunk(1, 5, model=OTHER_MODEL) if other else A
            return scenarios.claim(name, name, of_range, now), claim(of_chunk, name, name, now)
        case "start":
            starting = start(name, called, now)
            return starting, starting
        case "renew":
            renewing = renew(name, now)
            return renewing, renewing
        case "release":
            releasing = release(name, now=now)
            return releasing, releasing
        case _:
            answer, worth, wait = {
                "good": (good(SUMMARY), verdict(), None),
                "cut": (truncated(), verdict("truncated"), None),
                "gone": (UNAVAILABLE, verdict(*failures(UNAVAILABLE)), now + 300),
            }[what]
            return (
                scenarios.finish(name, called, answer, now, wait),
                finish(name, called, worth, answer, now, wait),
            )


def told(facts: Sequence[Any]) -> list[tuple[object, ...]]:
    """What facts of either kind say alike."""
    skipped = {"identity", "job", "policy", "budget", "source_hash", "ungrounded"}
    return [
        tuple(getattr(fact, f.name) for f in fields(fact) if f.name not in skipped)
        for fact in facts
    ]


@pytest.mark.slow
@for_all(st.lists(STEPS, max_size=25))
def test_a_chunk_is_decided_as_a_range_is_whatever_comes(
    steps: list[tuple[str, int, int, bool, int]],
) -> None:
    of_range, of_chunk, now = range_stream.EMPTY, EMPTY, NOW
    for step in steps:
        now += step[-1]
        commands = commands_of(step, now)
        ours = range_stream.decide(of_range, commands[0])
        theirs = decide(of_chunk, commands[1])
        assert told(ours.facts) == told(theirs.facts)
        assert type(ours.refusal) is type(theirs.refusal)
        assert ours.already == theirs.already
        assert range_stream.steady(of_range, now) == steady(of_chunk, now)
        of_range, of_chunk = range_stream.fold(ours.facts, of_range), fold(theirs.facts, of_chunk)
