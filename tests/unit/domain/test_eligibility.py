"""E1 to E6: which lines count, in which order, and that none is lost silently."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios import CONVERSATION, SCOPE, conversation, lines_of, make_pairs, message, run

from compaction_ledger.domain.conversation import (
    MESSAGE_KINDS,
    MESSAGE_STATUSES,
    ROLES,
    Conversation,
    Message,
    Run,
    RunState,
)
from compaction_ledger.domain.eligibility import Eligibility, LeftOutReason, eligible
from compaction_ledger.domain.errors import DuplicateMessageId, InvalidId, InvalidInput
from compaction_ledger.domain.identifiers import (
    WHITE_SPACE,
    check_id,
    check_ids,
    is_blank,
    is_hash,
    is_well_formed,
    replace_surrogates,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines

# PropList.txt of the Unicode Character Database, property White_Space, written out from the file.
UNICODE_WHITE_SPACE = [
    *range(0x0009, 0x000E),
    0x0020,
    0x0085,
    0x00A0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
]

ASKED = message("u", "r", "user")
REPLIED = message("a", "r", "assistant")


def reasons(*lines: Message, runs: list[Run] | None = None) -> dict[str, str]:
    """Message id to the reason for which it was left out."""
    found = eligible(conversation(lines, runs))
    return {line.message_id: line.reason for line in found.left_out}


# --- E1, E2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["completed", "partial", "clarify_pending"])
def test_e1_a_settled_run_makes_a_pair(state: Any) -> None:
    found = eligible(conversation([ASKED, REPLIED], [run("r", state)]))
    assert [(p.index, p.run, p.user, p.assistant) for p in found.pairs] == [
        (0, "r", ASKED, REPLIED)
    ]
    assert not found.left_out


@pytest.mark.parametrize("status", ["completed", "streaming", "failed"])
def test_e1_asks_of_the_answer_alone_that_it_is_completed(status: Any) -> None:
    found = eligible(conversation([ASKED._replace(status=status), REPLIED]))
    assert [pair.user.status for pair in found.pairs] == [status]
    assert not found.left_out


REASONS: dict[str, tuple[list[Message], list[Run] | None, dict[str, str]]] = {
    "run not settled: queued": (
        [ASKED, REPLIED],
        [run("r", "queued")],
        {"u": "run_not_settled", "a": "run_not_settled"},
    ),
    "run not settled: running": (
        [ASKED, REPLIED],
        [run("r", "running")],
        {"u": "run_not_settled", "a": "run_not_settled"},
    ),
    "run not settled: failed": (
        [ASKED, REPLIED],
        [run("r", "failed")],
        {"u": "run_not_settled", "a": "run_not_settled"},
    ),
    "run not settled: cancelled": (
        [ASKED, REPLIED],
        [run("r", "cancelled")],
        {"u": "run_not_settled", "a": "run_not_settled"},
    ),
    "streaming answer": (
        [ASKED, REPLIED._replace(status="streaming")],
        None,
        {"u": "no_answer", "a": "streaming"},
    ),
    "failed answer": (
        [ASKED, REPLIED._replace(status="failed")],
        None,
        {"u": "no_answer", "a": "failed"},
    ),
    "no such run": ([ASKED, REPLIED], [], {"u": "run_missing", "a": "run_missing"}),
    "run of another conversation": (
        [ASKED, REPLIED],
        [run("r", conversation="c-2")],
        {"u": "run_elsewhere", "a": "run_elsewhere"},
    ),
    "run of another scope": (
        [ASKED, REPLIED],
        [run("r", scope="tenant-2")],
        {"u": "run_elsewhere", "a": "run_elsewhere"},
    ),
    "tool call": (
        [ASKED, message("t", "r", "assistant", kind="tool"), REPLIED],
        None,
        {"t": "tool"},
    ),
    "tool result": ([ASKED, message("t", "r", "tool"), REPLIED], None, {"t": "tool"}),
    "trace": ([ASKED, message("t", "r", "assistant", kind="trace"), REPLIED], None, {"t": "trace"}),
    "effect": (
        [ASKED, message("t", "r", "assistant", kind="effect"), REPLIED],
        None,
        {"t": "effect"},
    ),
    "system line": ([message("s", "r", "system"), ASKED, REPLIED], None, {"s": "wrong_role"}),
    "line of another conversation": (
        [ASKED, REPLIED._replace(conversation="c-2")],
        None,
        {"u": "no_answer", "a": "other_conversation"},
    ),
    "line of another scope": (
        [ASKED._replace(scope="tenant-2"), REPLIED],
        None,
        {"u": "other_scope", "a": "no_user_message"},
    ),
    "two answers": (
        [ASKED, REPLIED, REPLIED._replace(id="b")],
        None,
        {"u": "ambiguous_run", "a": "ambiguous_run", "b": "ambiguous_run"},
    ),
    "two questions": (
        [ASKED, ASKED._replace(id="v"), REPLIED],
        None,
        {"u": "ambiguous_run", "v": "ambiguous_run", "a": "ambiguous_run"},
    ),
    "two answers to nothing": (
        [REPLIED, REPLIED._replace(id="b")],
        None,
        {"a": "ambiguous_run", "b": "ambiguous_run"},
    ),
    "three answers to nothing": (
        [REPLIED, REPLIED._replace(id="b"), REPLIED._replace(id="c")],
        None,
        {"a": "ambiguous_run", "b": "ambiguous_run", "c": "ambiguous_run"},
    ),
    "no question": ([REPLIED], None, {"a": "no_user_message"}),
    "no answer": ([ASKED], None, {"u": "no_answer"}),
    "blank question": (
        [ASKED._replace(text=" \u3000\t"), REPLIED],
        None,
        {"u": "empty_text", "a": "empty_text"},
    ),
    "empty answer": (
        [ASKED, REPLIED._replace(text="")],
        None,
        {"u": "empty_text", "a": "empty_text"},
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_e2_every_way_to_be_left_out_has_its_reason(name: str) -> None:
    lines, runs, expected = REASONS[name]
    assert reasons(*lines, runs=runs) == expected


def test_e2_every_reason_code_is_reached() -> None:
    reached = {reason for _, _, expected in REASONS.values() for reason in expected.values()}
    assert reached == set(get_args(LeftOutReason))


def test_e2_a_failed_answer_beside_a_completed_one_makes_no_run_ambiguous() -> None:
    broken = REPLIED._replace(id="b", status="failed")
    found = eligible(conversation([ASKED, broken, REPLIED]))
    assert [pair.assistant.id for pair in found.pairs] == ["a"]
    assert [(line.position, line.reason) for line in found.left_out] == [(1, "failed")]


# --- E3 -------------------------------------------------------------------------------------------


def test_e3_the_position_of_the_user_message_decides() -> None:
    first, second = make_pairs(2)
    found = eligible(conversation([first.user, second.user, second.assistant, first.assistant]))
    assert [(pair.index, pair.user.id) for pair in found.pairs] == [(0, "u0"), (1, "u1")]


def test_e3_there_is_no_time_in_a_message_or_run_that_could_decide() -> None:
    for record in (Message, Run, Conversation):
        fields = set(record.__annotations__)
        assert not {name for name in fields if "time" in name or name.endswith("_at")}


def test_e3_the_order_in_which_runs_are_given_is_irrelevant() -> None:
    thread = conversation(lines_of(make_pairs(12)))
    backwards = replace(thread, runs=dict(reversed(list(thread.runs.items()))))
    assert eligible(backwards) == eligible(thread)


def test_w5_a_late_run_in_the_middle_shifts_the_pairs_behind_it() -> None:
    pairs = make_pairs(3)
    late = [run("run-0"), run("run-1", "running"), run("run-2")]
    before = eligible(conversation(lines_of(pairs), late))
    after = eligible(conversation(lines_of(pairs)))
    assert [pair.run for pair in before.pairs] == ["run-0", "run-2"]
    assert [pair.run for pair in after.pairs] == ["run-0", "run-1", "run-2"]


# --- property: nothing is lost, nothing is doubled ------------------------------------------------

SCOPES = st.sampled_from([SCOPE, SCOPE, SCOPE, "tenant-2"])
CONVERSATIONS = st.sampled_from([CONVERSATION, CONVERSATION, CONVERSATION, "c-2"])
RUN_STATE: st.SearchStrategy[RunState] = st.sampled_from(get_args(RunState))
RUN_IDS = st.sampled_from(["r0", "r1", "r2", "r3", "r4"])


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Conversations in which anything may be wrong."""
    lines = draw(
        st.lists(
            st.builds(
                Message,
                id=st.just(""),
                run=RUN_IDS,
                role=st.sampled_from(["user", "assistant", "user", "assistant", *sorted(ROLES)]),
                status=st.sampled_from(["completed", "completed", *sorted(MESSAGE_STATUSES)]),
                kind=st.sampled_from(["chat", "chat", "chat", *sorted(MESSAGE_KINDS)]),
                text=st.sampled_from(["a", "b", " ", "\u2003", "\x1c", "\u200b", "\ud800"]),
                conversation=CONVERSATIONS,
                scope=SCOPES,
            ),
            max_size=12,
        )
    )
    named = draw(st.lists(RUN_IDS, unique=True))
    runs = {
        name: Run(
            name,
            draw(RUN_STATE),
            draw(CONVERSATIONS),
            draw(SCOPES),
        )
        for name in named
    }
    numbered = [line._replace(id=f"m{place}") for place, line in enumerate(lines)]
    return Conversation(SCOPE, CONVERSATION, numbered, runs)


@pytest.mark.slow
@given(conversations())
def test_e2_every_message_is_in_one_pair_or_left_out_once(thread: Conversation) -> None:
    found = eligible(thread)
    seen = Counter(line.message_id for line in found.left_out)
    seen.update(line.id for pair in found.pairs for line in (pair.user, pair.assistant))
    assert seen == Counter(line.id for line in thread.messages)
    for line in found.left_out:
        assert thread.messages[line.position].id == line.message_id
        assert thread.messages[line.position].run == line.run
    assert [line.position for line in found.left_out] == sorted(
        line.position for line in found.left_out
    )


@pytest.mark.slow
@given(conversations())
def test_e1_a_pair_has_everything_that_e1_asks_for(thread: Conversation) -> None:
    found = eligible(thread)
    assert [pair.index for pair in found.pairs] == list(range(len(found.pairs)))
    places = {line.id: place for place, line in enumerate(thread.messages)}
    order = [places[pair.user.id] for pair in found.pairs]
    assert order == sorted(order)
    for pair in found.pairs:
        owner = thread.runs[pair.run]
        assert owner.state in {"completed", "partial", "clarify_pending"}
        assert (owner.scope, owner.conversation) == (SCOPE, CONVERSATION)
        assert (pair.user.role, pair.assistant.role) == ("user", "assistant")
        assert pair.assistant.status == "completed"
        for line in (pair.user, pair.assistant):
            assert (line.scope, line.conversation, line.run) == (SCOPE, CONVERSATION, pair.run)
            assert line.kind == "chat"
            assert set(line.text) - {chr(code) for code in UNICODE_WHITE_SPACE}
            assert line is thread.messages[places[line.id]]  # E6: the text is not touched


@pytest.mark.slow
@given(conversations(), st.randoms(use_true_random=False))
def test_e3_interleaving_other_runs_changes_no_pair(
    thread: Conversation, chance: random.Random
) -> None:
    def pairs(found: Eligibility) -> set[tuple[str, str]]:
        return {(pair.user.id, pair.assistant.id) for pair in found.pairs}

    shuffled = list(thread.messages)
    chance.shuffle(shuffled)
    assert pairs(eligible(replace(thread, messages=shuffled))) == pairs(eligible(thread))


# --- E1: white space ------------------------------------------------------------------------------


def test_e1_white_space_is_unicodes_and_nothing_else() -> None:
    assert sorted(WHITE_SPACE) == sorted(map(chr, UNICODE_WHITE_SPACE))
    blank = [code for code in range(0x110000) if is_blank(chr(code))]
    assert blank == UNICODE_WHITE_SPACE


@pytest.mark.parametrize("text", ["\x1c", "\x1f", "\u200b", "\ufeff", "\u2060", "\x00", "\u180e"])
def test_e1_what_merely_looks_empty_is_text(text: str) -> None:
    assert not is_blank(f" {text} ")


# --- E4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x", "x" * 512, "租户", "a b", "😀" * 512, "\u200b", "\u2028"])
def test_e4_an_id_is_1_to_512_characters(value: str) -> None:
    assert check_id(value, "id") == value
    check_ids(["a", value], "id")


@pytest.mark.parametrize(
    "value",
    ["", "x" * 513, "\x00", "a\n", "\x1f", "\x7f", "\x80", "\x9f", "\ud800", "a\udfff", 7, None],
)
def test_e4_anything_else_is_no_id(value: Any) -> None:
    with pytest.raises(InvalidId) as one:
        check_id(value, "the place")
    assert one.value.place == "the place"
    with pytest.raises(InvalidId) as many:
        check_ids(["a", value, "b"], "id at position")
    assert many.value.place == "id at position 1"


@given(st.lists(st.text(st.characters(), max_size=3), max_size=4))
def test_e4_ids_checked_together_are_as_those_checked_one_by_one(values: list[str]) -> None:
    def passes(check: Any, value: Any) -> bool:
        try:
            check(value, "id")
        except InvalidId:
            return False
        return True

    assert passes(check_ids, values) == all(passes(check_id, value) for value in values)


def test_e4_an_id_seen_twice_names_both_places() -> None:
    lines = lines_of(make_pairs(3))
    lines[4] = lines[4]._replace(id="u0")
    with pytest.raises(DuplicateMessageId) as raised:
        conversation(lines)
    assert raised.value.message_id == "u0"
    assert (raised.value.first, raised.value.second) == ("position 0", "position 4")


def test_e4_a_conversation_checks_each_of_its_ids() -> None:
    for scope, name in (("", "c"), ("s", "\x00")):
        with pytest.raises(InvalidId):
            Conversation(scope, name, [], {})
    with pytest.raises(InvalidId, match="position 1"):
        conversation([ASKED, REPLIED._replace(id="\ud800")])
    with pytest.raises(InvalidId, match="run id at place 0"):
        conversation([ASKED._replace(run="a\n")])
    empty = Conversation("s", "c", [], {})
    assert eligible(empty) == Eligibility([], [])


def test_e4_new_lines_are_checked_before_they_are_stored() -> None:
    check_lines([NewMessage("m", "r", "user", "\ud800\x00")], [NewRun("r")])
    odd: Any = "odd"
    for line in (
        NewMessage("", "r", "user", "t"),
        NewMessage("m", "\n", "user", "t"),
        NewMessage("m", "r", odd, "t"),
        NewMessage("m", "r", "user", "t", status=odd),
        NewMessage("m", "r", "user", "t", kind=odd),
        NewMessage("m", "r", "user", b"t"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput):
            check_lines([line], [])
    for bad in (NewRun(""), NewRun("r", odd)):
        with pytest.raises(InvalidInput):
            check_lines([], [bad])


# --- E6 -------------------------------------------------------------------------------------------


@given(st.text(st.characters()))
def test_e6_lone_surrogates_are_replaced_one_for_one(text: str) -> None:
    clean, count = replace_surrogates(text)
    assert len(clean) == len(text)
    assert count == sum(0xD800 <= ord(c) <= 0xDFFF for c in text)
    assert is_well_formed(clean)
    assert is_well_formed(text) == (count == 0)
    assert clean == text or count


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("0" * 64, True), ("0" * 63, False), ("0" * 64 + "\n", False), ("A" * 64, False)],
)
def test_b1_a_hash_is_64_lower_case_hexadecimal_digits(text: str, is_one: bool) -> None:
    assert is_hash(text) is is_one
