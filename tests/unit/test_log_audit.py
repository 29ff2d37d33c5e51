"""The auditor of a competition objects to what must not be, and its journals survive a kill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from claim_register import Asked, Claim, Finish, Refusal, Release, Start, Told
from journals import About, Answer, Entry, Journal, read_journals
from log_audit import (
    Stored,
    as_asked_and_told,
    as_recorded,
    check_acknowledged,
    check_ends,
    check_log,
    check_times,
    settle,
)
from pg_competitor import effect
from scenarios import (
    JOB,
    OTHER_MODEL_JOB,
    claimed,
    completed,
    exhausted_by,
    failed,
    released,
    started,
)

from compaction_ledger.domain.events import RangeFact

ABOUT = About(0, 0, JOB.source_hash, JOB.identity)


def log_of(*facts: RangeFact) -> list[Stored]:
    """A log of these facts, a microsecond apart."""
    return [
        Stored(index, index, f"digest of {fact}", fact, effect(fact))
        for index, fact in enumerate(facts)
    ]


def entry(
    asked: Asked,
    stored: Sequence[Stored] = (),
    refusal: Refusal | None = None,
    *,
    process: str = "p",
    at: int = 0,
) -> Entry:
    """A command that was answered: with what it stored, and how it was refused."""
    told = Told(tuple(one.effect for one in stored), refusal)
    answer = Answer(at, [(one.index, one.digest) for one in stored], told)
    return Entry(process, ABOUT, asked, at, at, (at, at), answer)


def unanswered(asked: Asked, at: int = 0) -> Entry:
    return Entry("killed", ABOUT, asked, at, None, None, None)


# --- the log by itself --------------------------------------------------------------------------

WHOLE: list[RangeFact] = [claimed(), started(), completed()]


def test_a_good_log() -> None:
    check_log(log_of(*WHOLE, claimed("c2", job=OTHER_MODEL_JOB), released("c2")))
    ends = check_ends(
        log_of(*WHOLE, *exhausted_by("c2", OTHER_MODEL_JOB)),
        [JOB.identity, OTHER_MODEL_JOB.identity],
    )
    assert ends == {"completed": 1, "exhausted": 1}


@pytest.mark.parametrize(
    "facts",
    [
        [claimed(), claimed("c2")],
        [claimed(), claimed("c2", job=OTHER_MODEL_JOB)],
        [*WHOLE, claimed("c2")],
        [claimed(), started(), completed(), completed()],
        [claimed(), started("c1", "a1"), started("c1", "a2"), started("c1", "a3")],
        [claimed(), released(), claimed("c2"), released()],
    ],
)
def test_a_log_that_must_not_be(facts: list[RangeFact]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_log(log_of(*facts))


def test_a_hole() -> None:
    stored = log_of(*WHOLE)
    with pytest.raises(AssertionError):
        check_log([stored[0], stored[2]])


def test_an_identity_that_nobody_ended() -> None:
    with pytest.raises(AssertionError):
        check_ends(log_of(claimed(), started(), failed()), [JOB.identity])


# --- the log and the journals -------------------------------------------------------------------

CLAIM = Claim("c1", "w1", JOB.identity)


def test_what_was_acknowledged_is_there_once() -> None:
    stored = log_of(*WHOLE)
    assert check_acknowledged(stored, [entry(CLAIM, stored[:1])]) == 1
    for wrong in (
        [replace(stored[1], index=0), *stored[1:]],
        [replace(stored[0], digest="another"), *stored[1:]],
        [*stored, replace(stored[0], index=3)],
    ):
        with pytest.raises(AssertionError):
            check_acknowledged(wrong, [entry(CLAIM, stored[:1])])
    with pytest.raises(IndexError):
        check_acknowledged([], [entry(CLAIM, stored[:1])])
    with pytest.raises(AssertionError, match="told to two"):
        check_acknowledged(stored, [entry(CLAIM, stored[:1])] * 2)


def test_a_command_is_judged_while_it_runs() -> None:
    one = replace(entry(CLAIM, at=5_000), wall=(10_000, 12_000))
    with pytest.raises(AssertionError):
        check_times([one])
    check_times([replace(one, wall=(7_000, 9_000))])  # behind by as long as an answer took


def test_an_expiry_that_two_wanted_to_store_is_given_to_one() -> None:
    expired = released(reason="expired")
    stored = log_of(claimed(), expired, claimed("c2"))
    late = entry(Start("c1", "a1"), stored[1:2], ("lease_expired", "c1", 9), at=1)
    taker = entry(Claim("c2", "w2", JOB.identity), stored[1:], at=2)
    first, settled = entry(CLAIM, stored[:1]), Told(refusal=("not_the_holder", "expired"))
    entries, found = settle([first, late, taker])
    assert (found, entries[0], entries[2]) == (1, first, taker)
    assert (entries[1].told, entries[1].answer and entries[1].answer.places) == (settled, ())
    again = entry(
        Claim("c3", "w3", JOB.identity), stored[1:2], ("exhausted", JOB.identity, 2), at=0
    )
    entries, found = settle([late, again])
    assert (found, entries[1]) == (1, again)  # it was called first
    with pytest.raises(AssertionError, match="told to two"):
        settle([taker, replace(taker, process="another")])


def test_who_was_killed_is_given_what_only_it_can_have_stored() -> None:
    expiry: list[RangeFact] = [failed(failure="lease_expired"), released(reason="expired")]
    stored = log_of(
        claimed(), started(), *expiry, claimed("c2"), started("c2", "a2", 2),
        failed("c2", "a2"), released("c2", "exhausted"),
    )  # fmt: skip
    commands = [
        unanswered(CLAIM, 1),
        entry(Start("c1", "a1"), stored[1:2], at=2),
        unanswered(Claim("c2", "w2", JOB.identity), 3),
        unanswered(Start("c2", "a2"), 4),
        unanswered(Finish("c2", "a2", "truncated"), 5),
        unanswered(Release("c2", "given_back"), 6),
    ]
    (history,) = as_recorded(commands, stored).values()
    assert [call.place for call in history] == [0, 1, 4, 5, 7, None]
    assert [len(call.what.told.effects) if call.what.told else 0 for call in history] == [
        1, 1, 3, 1, 2, 0,
    ]  # fmt: skip
    (plain,) = as_asked_and_told(commands).values()
    assert [call.what.told is None for call in plain] == [True, False, *[True] * 4]


def test_an_expiry_of_nobody_is_that_of_whoever_can_have_wanted_it() -> None:
    stored = log_of(claimed(), released(reason="expired"))
    first = entry(CLAIM, stored[:1])
    for killed in (Start("c1", "a1"), Claim("c2", "w2", JOB.identity)):
        (history,) = as_recorded([first, unanswered(killed, 1)], stored).values()
        assert [call.place for call in history] == [0, 1]
    with pytest.raises(AssertionError, match="nobody recorded"):
        as_recorded([first, unanswered(Start("c9", "a1"), 1)], stored)


# --- journals -----------------------------------------------------------------------------------


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "p1.journal"
    told = Told((("released", "c0", "expired"), ("claimed", "c1")), until=9)
    refused = Told(refusal=("already_claimed", "c1", "w1", 9))
    with path.open("w", encoding="ascii") as file:
        journal = Journal(file)
        for answer in (
            Answer(5, [(0, "ab"), (1, "cd")], told, beaten=2),
            Answer(6, told=refused),
            Answer(7, error="store_unavailable"),
        ):
            journal.calling(ABOUT, CLAIM)
            journal.answered(journal.returned(), answer)
        journal.calling(ABOUT, Finish("c1", "a1", "truncated", 8))
    *answered, last = read_journals(tmp_path)
    assert [one.told for one in answered] == [told, refused, None]
    assert [one.answer.places if one.answer else None for one in answered] == [
        [(0, "ab"), (1, "cd")],
        [],
        [],
    ]
    assert [one.answer.error if one.answer else None for one in answered][2] == "store_unavailable"
    assert all(one.returned and one.called <= one.returned for one in answered)
    assert {(one.process, one.about, one.asked) for one in answered} == {("p1", ABOUT, CLAIM)}
    assert (last.asked, last.answer) == (Finish("c1", "a1", "truncated", 8), None)


@pytest.mark.slow
def test_a_line_that_was_cut_short_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p1.journal"
    with path.open("w", encoding="ascii") as file:
        journal = Journal(file)
        journal.calling(ABOUT, CLAIM)
        journal.answered(journal.returned(), Answer(5, told=Told()))
    whole = path.read_text()
    first, second = whole.splitlines(keepends=True)
    for size in range(len(whole) + 1):
        path.write_text(whole[:size])
        entries = read_journals(tmp_path)
        assert len(entries) == (size >= len(first))
        assert [one.told is not None for one in entries] == [size == len(whole)] * len(entries)
    assert json.loads(second)["answer"]["now"] == 5
