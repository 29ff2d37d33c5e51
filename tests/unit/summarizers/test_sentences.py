"""Sentence boundaries and tokens in several scripts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.infrastructure.summarizers.sentences import sentences, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Fee 1.20% p.a. in 2024. Then more.", ["Fee 1.20% p.a. in 2024.", "Then more."]),
        ("See Dr. Roe, e.g. on p. 3. Fine.", ["See Dr. Roe, e.g. on p. 3.", "Fine."]),
        ("By J. Roe at v1.2.3. End.", ["By J. Roe at v1.2.3.", "End."]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("1. First\n2. Second\n- third", ["1. First", "2. Second", "- third"]),
        ("Wait... what? Really?!", ["Wait...", "what?", "Really?!"]),
        ("费用为1.2%。净值下跌！真的？好", ["费用为1.2%。", "净值下跌！", "真的？", "好"]),
        ("「はい。」次です。", ["「はい。」", "次です。"]),
        ("الرسوم 1.2٪. هل هذا صحيح؟ نعم.", ["الرسوم 1.2٪.", "هل هذا صحيح؟", "نعم."]),
        ("यह सच है। ठीक है।", ["यह सच है।", "ठीक है।"]),
        ("Комиссия 1,2 %, т.е. мало. Да.", ["Комиссия 1,2 %, т.е. мало.", "Да."]),
        ("Die Gebühr, z.B. 1,2 %, steigt. Ja.", ["Die Gebühr, z.B. 1,2 %, steigt.", "Ja."]),
        ("a\u2028b\x85c\r\nd\x0be", ["a", "b", "c", "d", "e"]),
        ("🎉🎉", ["🎉🎉"]),
        (" \n\t ", []),
    ],
)
def test_given_a_text_when_split_then_these_are_its_sentences(
    text: str, expected: list[str]
) -> None:
    assert list(sentences(text)) == expected


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_given_any_text_when_split_then_each_sentence_is_a_part_of_it_in_order(text: str) -> None:
    place = 0
    for sentence in sentences(text):
        place = text.index(sentence, place) + len(sentence)
        assert sentence == sentence.strip()
        assert sentence


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Fee: 1.2 EUR, FEE!", {"fee", "1", "2", "eur"}),
        ("管理费", {"管理", "理费"}),
        ("费", {"费"}),
        ("NAV是12元", {"nav", "是", "12", "元"}),
        ("ค่าธรรม", {"ค่", "่า", "าธ", "ธร", "รร", "รม"}),
        ("الرسوم", {"الرسوم"}),
        ("🎉 —", set[str]()),
    ],
)
def test_given_a_sentence_when_tokenized_then_these_are_its_tokens(
    sentence: str, expected: set[str]
) -> None:
    assert tokens(sentence) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "." * 1_000_000,
        "a." * 500_000,
        "a" + " " * 1_000_000 + "b.",
        '"' * 500_000 + "." + '"' * 500_000,
        '!"' * 500_000,
        ". " * 500_000,
        "A. " * 300_000,
        "1. " * 300_000,
        "。」" * 300_000,
        "\n" * 1_000_000,
    ],
    ids=[
        "dots",
        "words",
        "spaces",
        "quotes",
        "bangs",
        "dots apart",
        "initials",
        "numbers",
        "CJK",
        "lines",
    ],
)
def test_given_a_pathological_megabyte_when_split_then_it_takes_no_time_to_speak_of(
    text: str,
) -> None:
    started = time.perf_counter()

    for _ in sentences(text):
        pass

    assert time.perf_counter() - started < 10
