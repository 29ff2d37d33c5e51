"""Folding and terms: alike what reads alike, and every place known in the original (T15)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.terms import LONGEST_TERM, fold, fold_text, is_single, search_terms

ODD = st.sampled_from(
    [
        *"aB .-'\"",
        *(
            "\n",
            "  ",
            "\u00e9",
            "e\u0301",
            "\u304c",
            "\u304b\u3099",
            "ｶﾞ",
            "한",
            "\u1112\u1161\u11ab",
        ),
        *(
            "\u200c",
            "\u200d",
            "م\u064e",
            "ـ",
            "ى",
            "ی",
            "ک",
            "أ",
            "٤",
            "۴",
            "４",
            "İ",
            "ß",
            "ﬁ",
            "ﷺ",
        ),
        *(
            "\ud800",
            "\0",
            "\u2011",
            "\u2013",
            "「",
            "」",
            "ー",
            "・",
            "\U0001f600",
            "\u0301",
            "ไ",
            "ท",
        ),
    ]
)
TEXTS = st.one_of(st.lists(ODD, max_size=12).map("".join), st.text(max_size=30))


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("Budget: at most 4,000 EUR", ["budget", "at", "most", "4", "000", "eur"]),
        ("INV-0042 of 2026-11-30", ["inv", "0042", "of", "2026", "11", "30"]),
        ("user_id=7", ["user", "id", "7"]),
        ("预算上限", ["预算", "算上", "上限"]),
        ("茶", ["茶"]),
        ("东京 茶", ["东京", "茶"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ジョン・スミス", ["ジョ", "ョン", "スミ", "ミス"]),
        ("iPhone手机壳", ["iphone", "手机", "机壳"]),
        ("11月30日", ["11", "月", "30", "日"]),
        ("مُحَمَّدـــ", ["محمد"]),
        ("می‌خواهم", ["ميخواهم"]),
        ("كتاب کتاب", ["كتاب", "كتاب"]),
        ("إلى الى الي", ["الي", "الي", "الي"]),
        ("۴۰۰۰ ٤٠٠٠ ４０００", ["4000", "4000", "4000"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("ไทย", ["ไท", "ทย"]),
        ("Straße CAFÉ Cafe\u0301", ["strasse", "caf\u00e9", "caf\u00e9"]),
        ("\ud800 \0 \U0001f600 …!", []),
        ("x" * 70, ["x" * LONGEST_TERM]),
    ],
)
def test_terms(text: str, sequence: list[str]) -> None:
    assert search_terms(text).sequence == sequence


def test_characters_are_those_of_scripts_without_spaces_once() -> None:
    assert search_terms("茶 and 茶叶 ไ").characters == ["茶", "叶", "ไ"]
    assert (is_single("茶"), is_single("a"), is_single("茶叶")) == (True, False, False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ｂｏｎｄ", "bond"),
        ("a \t\r\n b", "a b"),
        ("a\u00a0b", "a b"),
        ("INV\u20110042", "inv-0042"),
        ("“quoted” ‘it’s’", "\"quoted\" 'it's'"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("\u304b\u3099", "\u304c"),
        ("\u1112\u1161\u11ab", "한"),
        ("İstanbul", "istanbul"),
        ("so\u00adft", "soft"),
    ],
)
def test_what_reads_alike_is_folded_alike(one: str, other: str) -> None:
    assert fold_text(one) == fold_text(other)


def test_what_is_different_stays_different() -> None:
    for one, other in (("が", "か"), ("é", "e"), ("4,000", "4.000"), ("한", "하"), ("は", "ば")):
        assert fold_text(one) != fold_text(other)


@given(TEXTS)
def test_the_two_ways_of_folding_are_one_and_every_place_is_known(text: str) -> None:
    folded = fold(text)
    assert folded.text == fold_text(text)
    assert len(folded.starts) == len(folded.ends) == len(folded.text)
    assert list(folded.starts) == sorted(folded.starts)
    for start, end in zip(folded.starts, folded.ends, strict=True):
        assert 0 <= start < end <= len(text)


@given(TEXTS)
def test_the_original_of_a_stretch_folds_to_it(text: str) -> None:
    folded = fold(text)
    for at in range(len(folded.text)):
        start, end = folded.original(at, at + 1)
        assert folded.text[at] in fold_text(text[start:end])


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=60))
def test_ascii_is_folded_to_lower_case_and_single_spaces(text: str) -> None:
    spaces = dict.fromkeys(map(ord, "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"), " ")
    expected = text.lower().translate(spaces)
    while "  " in expected:
        expected = expected.replace("  ", " ")
    assert fold_text(text) == expected


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll"], max_codepoint=0x24F), max_size=40))
def test_latin_is_folded_as_unicode_has_it(text: str) -> None:
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    assert fold_text(text) == composed.replace("i\u0307", "i").replace("\u02bc", "'")


@given(TEXTS)
def test_terms_are_letters_digits_and_marks(text: str) -> None:
    terms = search_terms(text)
    for term in (*terms.sequence, *terms.characters):
        for character in term:
            assert unicodedata.category(character)[0] in "LNM" or is_single(character)


def test_what_is_dropped_does_not_part_a_letter_from_its_mark() -> None:
    assert fold_text("a\u200b\u0301") == fold_text("a\u0301") == "\u00e1"
    assert fold_text("\u1100\u200b\u1161") == "\uac00"
    assert fold("x a\u200b\u0301b").original(2, 3) == (2, 5)


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)
