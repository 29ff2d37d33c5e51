"""T9: what may be a pin, and what may not."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pin_adversaries import PinCase, adversaries
from pin_good import good_quotes
from planted import CONSTRAINTS, lost, plant, spread

from compaction_ledger.domain.errors import PinRefused
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.pins import (
    RulePinProposer,
    check_pin,
    pin_id,
    propose_by_rules,
    prove,
    superseded_by_rules,
)

KEY = WindowKey("scope", "conversation", "run")


def refusal(quote: str, text: str, start: int | None = None) -> str:
    with pytest.raises(PinRefused) as caught:
        prove(quote, text, start)
    return caught.value.reason


def certified(case: PinCase) -> bool:
    try:
        start, end = prove(case.quote, case.text)
    except PinRefused:
        return False
    return case.text[start:end] == case.quote


def pin_of(text: str, quote: str, message: int = 0, supersedes: str | None = None) -> PinAccepted:
    start, end = prove(quote, text)
    name = pin_id(KEY, message, 0, start, end, supersedes)
    return PinAccepted(KEY, name, message, "0" * 64, 0, start, end, quote, 0, "caller", supersedes)


# --- the two collections ----------------------------------------------------------------------------


@pytest.mark.slow
def test_no_quote_of_the_adversaries_is_certified() -> None:
    cases = adversaries()
    assert len(cases) > 5_000
    assert min(Counter(case.kind for case in cases).values()) >= 4
    assert [case for case in cases if certified(case)] == []


def test_every_good_quote_is_certified() -> None:
    cases = good_quotes()
    assert len(cases) > 800
    assert [case for case in cases if not certified(case)] == []


# --- reasons ----------------------------------------------------------------------------------------

REASONS = [
    ("$500", "at most $5,000", "not_found"),
    ("$5", "at most $5,000", "part_of_a_token"),
    ("$500", "at most $500.50", "part_of_a_token"),
    ("500 EUR", "at most 1 500 EUR", "part_of_a_token"),
    ("refundable", "non-refundable", "part_of_a_token"),
    ("超过五千", "不要超过五千", "part_of_a_token"),
    ("cafe", "No cafe\u0301", "part_of_a_token"),
    ("4,000 EUR", "My budget is at most 4,000 EUR.", "out_of_context"),
    ("hotels over $500.", "I do not want hotels over $500.", "out_of_context"),
    ("ナッツを", "ナッツを 入れないでください。", "out_of_context"),
    ("No nuts.", "> No nuts.", "out_of_context"),
    ("No nuts.", "No nuts. Unless they are roasted.", "out_of_context"),
    ("no nuts", "No nuts.", "not_found"),
    ("", "No nuts.", "not_text"),
    (" No nuts.", "Hi. No nuts.", "not_text"),
    ("No\x00nuts.", "No\x00nuts.", "not_text"),
    ("\ud800", "\ud800", "not_text"),
    ("\u202eNo nuts.", "\u202eNo nuts.", "not_text"),
    ("x" * 2_001, "x" * 2_001, "not_text"),
]


@pytest.mark.parametrize(("quote", "text", "reason"), REASONS)
def test_a_refusal_says_why(quote: str, text: str, reason: str) -> None:
    assert refusal(quote, text) == reason


def test_the_first_place_that_can_be_proven_counts_or_the_one_that_is_named() -> None:
    text = "Never say no nuts. No nuts. Thanks. No nuts."
    assert prove("No nuts.", text) == (19, 27)
    assert prove("No nuts.", text, 36) == (36, 44)
    assert refusal("No nuts.", text, 35) == "not_found"
    assert refusal("No nuts.", text, -8) == "not_found"
    assert refusal("no nuts.", text, 10) == "out_of_context"


def test_a_quote_of_2000_characters_is_the_longest() -> None:
    sentence = "No " + "x" * 1_996 + "."
    assert prove(sentence, f"Hi. {sentence}") == (4, 2_004)


# --- properties -------------------------------------------------------------------------------------

ANY_TEXT = st.text(
    st.one_of(
        st.sampled_from(
            "no nuts, at most 500 EUR. $5,000 Only\n-!?\"'“”«»()><`*:;~不要超过。、ない\u0301\u200b\u202e"
        ),
        st.characters(),
    ),
    max_size=120,
)


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT, st.integers(0, 120), st.integers(1, 60))
def test_what_is_certified_stands_there_on_boundaries_of_tokens(
    text: str, start: int, size: int
) -> None:
    """Judged by the categories of Unicode alone, in other words than the rules'."""
    quote = text[start : start + size]
    try:
        found, end = prove(quote, text)
    except PinRefused:
        return
    assert text[found:end] == quote
    before, after = text[:found][-1:], text[end:][:1]
    for beside, edge in ((before, quote[0]), (after, quote[-1])):
        if beside:
            joined = unicodedata.category(beside)[0] in "LNM" and edge.isalnum()
            assert not joined
            assert unicodedata.category(beside) not in {"Cf", "Mn", "Me", "Mc", "Sc", "Sm", "Pc"}


WORDS = st.sampled_from(
    [
        "we",
        "eat",
        "fish",
        "book",
        "hotels",
        "never",
        "no",
        "only",
        "at most 500 EUR",
        "Rome",
        "funds",
        "green tea",
    ]
)
SENTENCE = st.builds(
    lambda words, mark: " ".join(words).capitalize() + mark,
    st.lists(WORDS, min_size=2, max_size=8).filter(lambda words: words[-1].isalpha()),
    st.sampled_from([".", "!", "?"]),
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=6), st.sampled_from([" ", "\n", "\n\n", "  "]))
@example(["No nuts.", "At most 500 EUR."], " ")
def test_whole_sentences_are_certified(sentences: list[str], between: str) -> None:
    """In a message in which no sentence takes back or narrows the one before it."""
    text = between.join(sentences)
    for sentence in sentences:
        start, end = prove(sentence, text)
        assert text[start:end] == sentence
    assert prove(text, text) == (0, len(text))


@settings(max_examples=80, deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_what_rules_propose_can_be_proven(one: str, other: str) -> None:
    text = f"{one}No nuts. {other}"
    proposed = propose_by_rules(text)
    assert len(proposed) <= 8
    for quote in proposed:
        start, end = prove(quote, text)
        assert text[start:end] == quote


HARD = {
    "dots": ".",
    "marks": '"',
    "tags": "<a>",
    "brackets": "(",
    "colons": "no: ",
    "announcements": "no:\n",
    "lines": "\n",
    "rules": "No nuts. ",
    "items": "- no nuts\n",
    "headings": "# no\n",
    "apostrophes": "'a ",
    "fences": "```\n",
    "words": "I ",
    "corrections": "Actually 5 EUR. ",
    "below": "not below. ",
}


@pytest.mark.slow
@pytest.mark.parametrize("piece", HARD.values(), ids=HARD)
def test_time_is_linear_in_the_text(piece: str) -> None:
    """Four times the text takes about four times as long, not sixteen: the bound is far from both."""

    def took(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.process_time()
        for quote in ("No nuts.", "I", "no"):
            with suppress(PinRefused):
                prove(quote, text)
        propose_by_rules(text)
        return time.process_time() - begun

    shorter, longer = (min(took(size) for _ in range(3)) for size in (5_000, 20_000))
    assert longer < 9 * shorter + 0.5


# --- proposing --------------------------------------------------------------------------------------

PROPOSED = [
    (
        "Hi! I'm allergic to nuts. My budget is at most 4,000 EUR. Why? Only Luxembourg funds, please.",
        [
            "I'm allergic to nuts.",
            "My budget is at most 4,000 EUR.",
            "Only Luxembourg funds, please.",
        ],
    ),
    (
        "Please don't:\n- book hotels over $500\n- use Ryanair\n\nThanks",
        ["Please don't:\n- book hotels over $500\n- use Ryanair"],
    ),
    ("No nuts. Unless they are roasted. Fine.", ["No nuts. Unless they are roasted."]),
    ("My colleague said:\n\nNever book Ryanair.", []),
    ("> Never book Ryanair.\n\nI like that.", []),
    ("Bitte kein Schweinefleisch. Gibt es nur Fisch?", ["Bitte kein Schweinefleisch."]),
    ("Je ne veux pas de noix. Merci !", ["Je ne veux pas de noix."]),
    ("Nunca más de 500 euros. ¿Nunca?", ["Nunca más de 500 euros."]),
    ("Non voglio noci. Grazie.", ["Non voglio noci."]),
    ("Não quero voos com escala.", ["Não quero voos com escala."]),
    ("Geen noten. Bedankt.", ["Geen noten."]),
    ("你好。不要超过五千。谢谢。天气好吗？", ["不要超过五千。"]),
    ("ナッツは入れないでください。いいですか？", ["ナッツは入れないでください。"]),
    ("견과류를 넣지 마세요. 날씨는 어때요?", ["견과류를 넣지 마세요."]),
    ("Никогда не бронируй Ryanair. Как дела?", ["Никогда не бронируй Ryanair."]),
    ("لا أريد المكسرات. كيف حالك؟", ["لا أريد المكسرات."]),
    ("هرگز رایان‌ایر رزرو نکن. حالت چطور است؟", ["هرگز رایان‌ایر رزرو نکن."]),
    ("I like pizza. Show me the second flight. I don't know. No problem.", []),
    ("no, that's the second one", []),
    ("Is it never cold there", []),
]


@pytest.mark.parametrize(("text", "quotes"), PROPOSED)
def test_rules_propose_whole_constraints_and_no_questions(text: str, quotes: list[str]) -> None:
    assert propose_by_rules(text) == quotes
    assert list(RulePinProposer().propose(text)) == quotes


def test_rules_propose_at_most_eight() -> None:
    text = " ".join(f"Never go to place {number}, please." for number in range(20))
    assert propose_by_rules(text) == [f"Never go to place {number}, please." for number in range(8)]


# --- corrections ------------------------------------------------------------------------------------

OLD = {
    "budget": "My budget is at most 4,000 EUR.",
    "funds": "Only Luxembourg funds.",
    "nuts": "No nuts.",
    "stops": "At most 3 stops.",
}

CORRECTIONS = [
    ("Actually, make it 2,500 EUR.", "Actually, make it 2,500 EUR.", "budget"),
    ("Sorry, I meant 5 stops.", "Sorry, I meant 5 stops.", "stops"),
    ("Change the budget to 5,000 EUR.", "Change the budget to 5,000 EUR.", "budget"),
    ("My limit is no longer 4,000 EUR but 3,000 EUR.", None, "budget"),
    ("Hello. Actually, only Irish funds.", "Actually, only Irish funds.", "funds"),
    ("Correction: nuts are fine.", "Correction: nuts are fine.", "nuts"),
    ("Doch lieber höchstens 3.000 Euro.", "Doch lieber höchstens 3.000 Euro.", "budget"),
    ("En fait, au plus 3 000 euros.", "En fait, au plus 3 000 euros.", "budget"),
    ("My budget is at most 5,000 EUR.", None, None),  # nothing says that it is a correction
    ("Actually, at most 300 USD.", "Actually, at most 300 USD.", None),  # another currency
    ("Actually, I like the blue one.", "Actually, I like the blue one.", None),
    ("Only Irish funds, please.", None, None),
    ("Actually, at most 2 nights in Rome.", "Actually, at most 2 nights in Rome.", None),
]


@pytest.mark.parametrize(("text", "quote", "corrected"), CORRECTIONS)
def test_only_words_of_correction_supersede_and_only_the_one_they_are_about(
    text: str, quote: str | None, corrected: str | None
) -> None:
    current = [pin_of(said, said, at) for at, said in enumerate(OLD.values())]
    expected = current[list(OLD).index(corrected)].pin_id if corrected else None
    assert superseded_by_rules(quote or text, text, current) == expected


def test_between_two_pins_about_the_same_nothing_is_guessed() -> None:
    two = [
        pin_of(said, said, at)
        for at, said in enumerate(["Flights at most 300 EUR.", "Hotels at most 900 EUR."])
    ]
    text = "Actually, make it 500 EUR."
    assert superseded_by_rules(text, text, two) is None
    assert superseded_by_rules(text, text, two[:1]) == two[0].pin_id
    other = "Actually, hotels at most 700 EUR."
    assert superseded_by_rules(other, other, two) == two[1].pin_id


# --- stored pins ------------------------------------------------------------------------------------


def test_a_stored_pin_is_checked_against_its_text_at_its_very_place() -> None:
    text = "Hi. No nuts. No nuts."
    pin = pin_of(text, "No nuts.")
    check_pin(pin, text)
    for changed, other in (
        (pin, "Hi. No nutz. No nuts."),
        (pin, "Hi.  No nuts. No nuts."),
        (pin, "Hi."),
        (replace(pin, start=3, end=11), text),
        (replace(pin, start=-8, end=-1), text),
        (replace(pin, end=11), text),
        (replace(pin, quote="No nuts!"), text),
        (replace(pin, quote="", end=4), text),
    ):
        with pytest.raises(PinRefused) as caught:
            check_pin(changed, other)
        assert caught.value.reason in {"not_found", "not_text"}


def test_a_stored_pin_that_cuts_a_word_is_refused() -> None:
    with pytest.raises(PinRefused) as caught:
        check_pin(replace(pin_of("No nuts", "No nuts"), message=3), "No nutshells")
    assert caught.value.reason == "part_of_a_token"


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_ids_tell_places_and_windows_apart(data: st.DataObject) -> None:
    text = st.text(st.characters(categories=["L"]), min_size=1, max_size=3)
    places = st.tuples(
        st.builds(WindowKey, text, text, text), *[st.integers(0, 3)] * 4, st.none() | text
    )
    one, other = data.draw(places), data.draw(places)
    assert (pin_id(*one) == pin_id(*other)) == (one == other)
    assert len(pin_id(*one)) == 16


# --- the helper for planted constraints -------------------------------------------------------------


def test_planted_constraints_are_proposed_and_proven() -> None:
    places = spread(len(CONSTRAINTS), 200)
    planted = plant(lambda turn, said: f"{said} How is case {turn}?", CONSTRAINTS, places)
    assert [each.turn for each in planted.values()] == places
    for each in planted.values():
        assert propose_by_rules(each.text) == [each.constraint]
    everything = "\n".join(each.text for each in planted.values())
    assert lost(planted, everything) == []
    assert lost(planted, everything.replace("4,000", "4.000")) == [planted[places[1]]]
