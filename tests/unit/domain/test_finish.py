"""C1 to C4: the contract of a finish, in every combination."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.finish import (
    FAILURE_CODES,
    MAX_SUMMARY_CHARACTERS,
    Answer,
    Fault,
    FinishFacts,
    FinishSignal,
    failures,
    output_digest,
)

# The order of C4, copied from the specification.
C4 = [
    "provider_unavailable",
    "provider_error",
    "timeout",
    "cancelled",
    "tool_call",
    "refusal",
    "content_filter",
    "truncated",
    "multiple_finishes",
    "missing_finish",
    "abnormal_finish",
    "malformed_text",
    "empty",
    "too_long",
]
BEHIND_C4 = ["invalid_structure", "not_smaller", "ungrounded"]  # T7, T12, T13: the source is needed

STOP = FinishFacts(("stop",))
CODE_OF_SIGNAL = {
    "length": "truncated",
    "content_filter": "content_filter",
    "tool_call": "tool_call",
    "refusal": "refusal",
    "error": "provider_error",
    "cancelled": "cancelled",
    "other": "abnormal_finish",
}
TEXTS: dict[str, set[str]] = {
    "fine": set(),
    "": {"empty"},
    "\u2003\n": {"empty"},
    "a\x00": {"malformed_text"},
    "\ud800": {"malformed_text"},
    "x" * 6_001: {"too_long"},
    " " * 6_001: {"empty", "too_long"},
    "\ud800" * 6_001: {"malformed_text", "too_long"},
}


def test_c4_the_codes_and_their_order() -> None:
    assert list(FAILURE_CODES) == [*C4, *BEHIND_C4, "lease_expired"]


def test_c1_a_normal_stop_with_plain_text_succeeds() -> None:
    assert failures(Answer("Fine.", STOP)) == ()


def test_c4_every_combination_has_exactly_its_codes_in_order() -> None:
    signals = get_args(FinishSignal)
    finishes = [*((), *((one,) for one in signals)), *combinations_with_replacement(signals, 2)]
    seen = 0
    reached = set()
    for finish, tools, refusal, fault, text in product(
        finishes, (0, 2), (False, True), (None, *get_args(Fault)), TEXTS
    ):
        expected = {CODE_OF_SIGNAL[one] for one in finish if one != "stop"} | TEXTS[text]
        expected |= {"tool_call"} if tools else set()
        expected |= {"refusal"} if refusal else set()
        expected |= {fault} if fault else set()
        expected |= {"missing_finish"} if not finish else set()
        expected |= {"multiple_finishes"} if len(finish) > 1 else set()
        found = failures(Answer(text, FinishFacts(finish, tools, refusal), fault=fault))
        assert list(found) == [code for code in C4 if code in expected]
        reached |= expected
        seen += 1
    assert reached == set(C4)
    assert seen == 45 * 2 * 2 * 5 * len(TEXTS)


def test_c1_two_normal_stops_are_one_too_many() -> None:
    assert failures(Answer("Fine.", FinishFacts(("stop", "stop")))) == ("multiple_finishes",)


def test_c3_six_thousand_code_points_are_allowed_whatever_they_weigh() -> None:
    assert MAX_SUMMARY_CHARACTERS == 6_000
    for character in ("x", "你", "😀", "\u0301"):
        assert failures(Answer(character * 6_000, STOP)) == ()
        assert failures(Answer(character * 6_001, STOP)) == ("too_long",)


@given(st.text(st.characters(), max_size=50))
def test_c3_a_text_is_accepted_exactly_if_it_is_well_formed_and_not_blank(text: str) -> None:
    spaces = {chr(code) for code in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))}
    spaces |= set("\u2028\u2029\u202f\u205f\u3000")
    broken = any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text)
    assert (failures(Answer(text, STOP)) == ()) == (not broken and bool(set(text) - spaces))


def test_c4_the_ledgers_own_code_is_never_found_in_an_answer() -> None:
    assert "lease_expired" not in failures(Answer("", FinishFacts(), fault="timeout"))


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("", " "), ("\ud800", "\ufffd")])
def test_c4_a_refused_output_is_known_by_its_digest(one: str, other: str) -> None:
    assert output_digest(one) != output_digest(other)
    assert len(output_digest(one)) == 64
