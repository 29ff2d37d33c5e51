"""T2, T4: calls and results of any shape, against a slow model that looks at every prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_ledger.domain.messages.interface import Answered, Call, Entry
from compaction_ledger.domain.messages.structure import (
    Walk,
    boundaries,
    open_calls,
    structural_problems,
)

IDS = ("a", "b", "")


def user(position: int) -> Entry:
    return Entry(position, "user", {}, (), (), True)


def calling(position: int, *ids: str) -> Entry:
    calls = [Call(each, "tool", part) for part, each in enumerate(ids)]
    return Entry(position, "assistant", {}, calls, (), False)


def answering(position: int, *ids: str) -> Entry:
    results = [Answered(each, part) for part, each in enumerate(ids)]
    return Entry(position, "tool", {}, (), results, False)


def transcript(text: str) -> list[Entry]:
    """``u`` a user, ``s`` an answer, ``>ab`` calls, ``<ab`` results; ``.`` is the empty id."""
    entries: list[Entry] = []
    for position, word in enumerate(text.split()):
        ids = ["" if each == "." else each for each in word[1:]]
        make = {"u": lambda at, *_: user(at), "s": calling, ">": calling, "<": answering}[word[0]]
        entries.append(make(position, *ids))
    return entries


def told(text: str) -> list[tuple[str, str]]:
    return [(each.code, each.place) for each in structural_problems(transcript(text))]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("", []),
        ("u", [0]),
        ("u u s u", [0, 1, 3]),
        ("s u s", [1]),
        ("u >ab <a <b s u", [0, 5]),
        ("u >ab <a u <b u", [0, 5]),  # a user speaks while a result is still to come
        ("u >ab <ba s u", [0, 4]),
        ("u >a >b <b <a u", [0, 5]),
        ("u >a u s u", [0]),  # never answered: nothing behind it
        ("u >a <a u >a <a u >a u", [0, 3, 6]),  # an id that is used again
        ("u >.. <. u <. u", [0, 5]),
        ("<a u", [1]),
    ],
)
def test_t4_a_cut_is_safe_where_a_user_begins_and_no_call_is_open(
    text: str, safe: list[int]
) -> None:
    assert boundaries(transcript(text)) == safe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u >a <a >a <a u", []),
        ("u >a", []),
        ("u >a u s", [("unanswered_call", "message 1 part 0")]),
        ("u >ab <b u >c", [("unanswered_call", "message 1 part 0")]),
        ("u >a u <a", []),  # late, and there
        ("<a u", [("result_without_call", "message 0 part 0")]),
        ("u <a >a <a", [("result_before_call", "message 1 part 0")]),
        ("u >a <aa", [("result_again", "message 2 part 1")]),
        ("u >a <a u <a", [("result_again", "message 4 part 0")]),
        ("u >aa <aa", [("duplicate_call", "message 1 part 1")]),
        ("u >a >a <a <a", [("duplicate_call", "message 2 part 0")]),
        ("u >a <a >b <c", [("result_without_call", "message 4 part 0")]),
        # The empty id.
        ("u >. <. u >. <.", []),
        ("u >.. <..", []),
        ("u >.. <. <.", []),
        ("u >..a <.a. s", []),
        ("u >..", []),
        ("u >.. <.", []),
        (
            "u >.. <. u",
            [("duplicate_call", "message 1 part 1"), ("unanswered_call", "message 1 part 1")],
        ),
        ("u >... <.. >b", [("duplicate_call", "message 1 part 1")]),
        ("u >. >. <..", [("duplicate_call", "message 2 part 0")]),
        ("u >.. <...", [("result_again", "message 2 part 2")]),
        ("<. u", [("result_without_call", "message 0 part 0")]),
    ],
)
def test_t2_what_is_broken_is_told_by_code_and_place(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert told(text) == expected


def test_the_open_calls_are_those_that_wait_in_order() -> None:
    entries = transcript("u >ab <b >c u >.. <.")
    assert [(entry.position, call.id, call.part) for entry, call in open_calls(entries)] == [
        (1, "a", 0),
        (3, "c", 0),
        (5, "", 1),
    ]
    assert open_calls(transcript("u >a <a")) == []


@pytest.mark.parametrize(
    "text", ["", "u", "u s u s", "u >ab <a <b s u", "u >ab <ba >a <a s", "s >. <. u"]
)
def test_t2_a_walk_tells_what_is_sound(text: str) -> None:
    walk = Walk()
    walk.add(transcript(text))
    assert walk.is_sound
    assert told(text) == []


@pytest.mark.parametrize(
    "text", ["<a", "u >a", "u >a <a <a", "u >a >a <a <a", "u >.. <. <.", "<a >a"]
)
def test_t2_of_all_else_a_walk_asks_to_look_closer(text: str) -> None:
    walk = Walk()
    walk.add(transcript(text))
    assert not walk.is_sound


@st.composite
def any_transcript(draw: st.DrawFn) -> list[Entry]:
    ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=3)
    words = st.tuples(st.sampled_from("us><"), ids)
    makers = {"s": calling, ">": calling, "<": answering}
    return [
        user(at) if kind == "u" else makers[kind](at, *(given if kind != "s" else ()))
        for at, (kind, given) in enumerate(draw(st.lists(words, max_size=14)))
    ]


def waiting(entries: Sequence[Entry]) -> Counter[str]:
    """What is open behind these entries: each result takes away one call that stood before it."""
    found: Counter[str] = Counter()
    for entry in entries:
        for result in entry.results:
            if found[result.call_id]:
                found[result.call_id] -= 1
        found.update(call.id for call in entry.calls)
    return +found


@given(any_transcript())
@settings(max_examples=150)
def test_t4_the_boundaries_are_those_of_the_slow_model(entries: list[Entry]) -> None:
    slow = [
        index
        for index, entry in enumerate(entries)
        if entry.begins_turn and not waiting(entries[:index])
    ]
    assert boundaries(entries) == slow
    walk = Walk()
    for first in range(0, len(entries), 3):  # a few at a time is the same as all at once
        walk.add(entries[first : first + 3])
    assert walk.boundaries == slow
    assert Counter(call.id for _, call in open_calls(entries)) == waiting(entries)


@given(any_transcript())
@settings(max_examples=150)
def test_t2_the_problems_are_those_of_the_slow_model(entries: list[Entry]) -> None:
    """But for parallel calls with the empty id, which have their own examples."""
    expected: set[tuple[str, str]] = set()
    called = {call.id for entry in entries for call in entry.calls}
    for index, entry in enumerate(entries):
        place = f"message {index} part"
        free = waiting(entries[:index])
        before = {call.id for each in entries[:index] for call in each.calls}
        for result in entry.results:
            if free[result.call_id]:
                free[result.call_id] -= 1
            elif result.call_id in before:
                expected.add(("result_again", f"{place} {result.part}"))
            else:
                kind = "before" if result.call_id in called else "without"
                expected.add((f"result_{kind}_call", f"{place} {result.part}"))
        for call in entry.calls:
            if free[call.id] and call.id:
                expected.add(("duplicate_call", f"{place} {call.part}"))
            free[call.id] += 1
    problems = structural_problems(entries)
    walk = Walk()
    walk.add(entries)
    assert not (walk.is_sound and problems)
    last = max((entry.position for entry in entries if entry.begins_turn), default=-1)
    unanswered = [each.place for each in problems if each.code == "unanswered_call"]
    assert unanswered == [
        f"message {entry.position} part {call.part}"
        for entry, call in open_calls(entries)
        if entry.position < last
    ]
    found = {(each.code, each.place) for each in problems if each.code != "unanswered_call"}
    nameless = {
        ("duplicate_call", f"message {entry.position} part {call.part}")
        for entry in entries
        for call in entry.calls
        if not call.id
    }
    assert found - nameless == expected
