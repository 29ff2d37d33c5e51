"""What a query asks for, and where it stands in the original, character for character (T15)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.matching import inner, locate, lone, quote_around, wanted
from compaction_ledger.domain.terms import fold_text, search_terms

WORDS = st.text(alphabet="abcdXY", min_size=1, max_size=4)


def found(text: str, query: str) -> str | None:
    place = locate(text, query)
    return None if place is None else text[slice(*place)]


@pytest.mark.parametrize(
    ("text", "query", "match"),
    [
        ("I can spend at most 4,000  EUR.", "4,000 eur", "4,000  EUR"),
        ("At most 4.000 EUR.", "4,000 eur", None),
        ("At most 14,000 EUR.", "4,000", None),
        ("At most $4,000.50.", "4,000", "4,000"),
        ("Euro first, then 4,000.", "4,000 euro", "4,000"),
        ("INV\u20110042 is paid", "inv-0042", "INV\u20110042"),
        ("INV 0042 is paid", "inv-0042", None),
        ("on 2026-11-30T12:00", "2026-11-30", None),
        ("on 2026-11-30, noon", "2026-11-30", "2026-11-30"),
        ("The budget: at most", "budget at", "budget: at"),
        ("The budget: at most", '"budget at"', None),
        ("The budget: at most", '"budget: at"', "budget: at"),
        ("The “budget at” hand", '"budget at"', "budget at"),
        ("concatenate", "cat", None),
        ("预算上限是四千欧元", "上限是四千", "上限是四千"),
        ("四千欧元是上限", "上限 四千", "上限"),
        ("上限：四千欧元", "上限，四千", "上限：四千"),
        ("价格:4,000元。", "价格：4,000元", "价格:4,000元"),
        ("东京是首都", "北京", None),
        ("喝茶", "茶", "茶"),
        ("من مُحَمَّد إلى", "محمد الى", "مُحَمَّد إلى"),
        ("می‌خواهم کتاب", "میخواهم", "می‌خواهم"),
        ("بودجه ۴۰۰۰ یورو", "4000", "۴۰۰۰"),
        ("ｶﾞｲﾄﾞを買う", "ガイド", "ｶﾞｲﾄﾞ"),
        ("cafe\u0301 noir", "caf\u00e9", "cafe\u0301"),
        ("cafe\u0301 noir", "cafe", None),
        ("what's this", "what’s", "what's"),
        ("a\ud800b", "a\ud800b", "a\ud800b"),
        ("a\0b", '"a\0b"', "a\0b"),
        ("C++ and (x*)", '"(x*)"', "(x*)"),
    ],
)
def test_locate(text: str, query: str, match: str | None) -> None:
    assert found(text, query) == match


@pytest.mark.slow
@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_words_that_stand_there_are_found_where_they_stand(
    words: list[str], data: st.DataObject
) -> None:
    text = "  ".join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    query = " ".join(words[first : last + 1])
    place = locate(text, f'"{query}"')
    assert place is not None
    assert fold_text(text[slice(*place)]) == fold_text(query)


@pytest.mark.slow
@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_query_with_a_word_is_found_in_itself(before: str, query: str, after: str) -> None:
    assume(search_terms(query).sequence and '"' not in fold_text(query))
    assert locate(f"{before} . {query} . {after}", query) is not None


@given(st.text(max_size=80), st.integers(0, 80), st.integers(1, 20), st.integers(0, 30))
def test_a_quote_holds_the_match_and_is_not_much_longer(
    text: str, start: int, size: int, context: int
) -> None:
    assume(start + size <= len(text))
    first, last = quote_around(text, start, start + size, context)
    assert 0 <= first <= start
    assert start + size <= last <= len(text)
    marks = sum(len(fold_text("a" + character)) < 2 for character in text)
    assert last - first <= size + 2 * context + 2 * marks + text.count("\u200d")


def test_a_quote_cuts_no_word_and_no_character() -> None:
    text = "alpha beta e\u0301e\u0301e\u0301e\u0301 needle gamma delta"
    start = text.index("needle")
    first, last = quote_around(text, start, start + 6, 7)
    assert text[first:last] == "e\u0301e\u0301e\u0301 needle gamma "
    assert quote_around("x" * 500, 250, 251, 10) == (240, 261)


def test_what_may_be_half_of_a_pair_is_looked_for_as_a_character() -> None:
    assert inner(("a", "月", "b")) == ("a", "月", "b")
    assert (inner(("茶", "b", "茶")), lone(("茶", "b", "茶"))) == (("b",), ("茶",))
    assert (inner(("茶",)), lone(("茶",))) == ((), ("茶",))
    assert (inner(()), lone(())) == ((), ())


def test_a_query_of_one_need_has_no_sequence() -> None:
    assert wanted("budget").sequence == ()
    assert wanted("budget budget").sequence == ("budget", "budget")
    assert [need.terms for need in wanted('a "b c" d-e').needs] == [("a",), ("b", "c"), ("d", "e")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"text": ""}, "text"),
        ({"text": "…!? \ud800"}, "text"),
        ({"text": '""'}, "text"),
        ({"text": "x" * 1_001}, "text"),
        ({"text": " ".join(f"w{n}" for n in range(65))}, "text"),
        ({"text": 7}, "text"),
        ({"limit": 0}, "limit"),
        ({"limit": 51}, "limit"),
        ({"limit": True}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 1_001}, "offset"),
        ({"first": 1 << 60}, "first"),
        ({"last": "1"}, "last"),
        ({"since": 1.5}, "since"),
        ({"until": -(1 << 60)}, "until"),
        ({"roles": frozenset({"robot"})}, "roles"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, object], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        HistoryQuery(**{"text": "word", **options})  # type: ignore[arg-type]
    assert refused.value.place == place
