"""T13: what a summary says that its source does not, word for word and on token boundaries (T9's measure)."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from compaction_ledger.domain.grounding import Ungrounded, ungrounded
from compaction_ledger.domain.grounding_items import items


def missing(summary: str, *source: str) -> list[str]:
    return [found.text for found in ungrounded([summary], source)]


# --- what has to be found ---------------------------------------------------------------------------

ITEMS = [
    ("It costs 500.", [("number", "500")]),
    ("3.5, 1'000, 1’000 and 5 000 or 5\u202f000", ["3.5", "1'000", "1’000", "5 000", "5\u202f000"]),
    ("-5 to −7, not 10-20 or x-5", ["-5", "−7", "10-20", ("identifier", "x-5")]),
    ("the 2nd of 10kg in 1.5M", ["2nd", "10kg", "1.5M"]),
    ("٥٠٠ and ५०० and ５，０００ and ๕๐", ["٥٠٠", "५००", "５，０００", "๕๐"]),
    ("$500, €5.50, 500 €, 5%, 5 %", [("amount", t) for t in ("$500", "€5.50", "500 €", "5%", "5 %")]),
    ("EUR 500 or 500 USD or -$5", [("amount", t) for t in ("EUR 500", "500 USD", "-$5")]),
    ("5 million EUR, 3 Mrd., 10-20 percent", ["5 million EUR", "3 Mrd.", "10-20 percent"]),
    ("共500元，约3亿美元，５％", ["500元", "3亿美元", "５％"]),
    ("RFC 8785 and 5 EURO", [("number", "8785"), ("number", "5")]),
    ("2024-05-01, 1.5.2024, 5/1/24", [("date", t) for t in ("2024-05-01", "1.5.2024", "5/1/24")]),
    ("2024-05-01T10:30:00Z at 10:30", [("date", "2024-05-01T10:30:00Z"), ("date", "10:30")]),
    ("5 May 2024, May 5, 2024 or 1. März", [("date", t) for t in ("5 May 2024", "May 5, 2024")]
     + [("date", "1. März")]),
    ("5 de mayo de 2024, le 1er mai; 2024年5月1日, 5월 3일",
     ["5 de mayo de 2024", "1er mai", "2024年5月1日", "5월 3일"]),
    ("You may go", []),
    ("INV-0042, TICKET-7 and v2.3", [("identifier", t) for t in ("INV-0042", "TICKET-7", "v2.3")]),
    ("550e8400-e29b-41d4-a716-446655440000", [("identifier", "550e8400-e29b-41d4-a716-446655440000")]),
    ("9f86d081 in src/app_main.py", ["9f86d081", "src/app_main.py"]),
    ("/etc/hosts, ./run, ~/x and ../y", ["/etc/hosts", "./run", "~/x", "../y"]),
    ("jane.doe@example.com", [("identifier", "jane.doe@example.com")]),
    ("domain.window.keys and ALL_CAPS", ["domain.window.keys", "ALL_CAPS"]),
    ("and/or, e.g. z.B. U.S. long-term don't", []),
    ("See https://a.example/b?c=1#d.", [("url", "https://a.example/b?c=1#d")]),
    ("(www.example.org) <ftp://x.org/y>", [("url", "www.example.org"), ("url", "ftp://x.org/y")]),
    ("发票INV-0042已付", [("identifier", "INV-0042")]),
    ("INV-0042는 3개", ["INV-0042", "3"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ITEMS, ids=[text for text, _ in ITEMS])
def test_t13_what_is_looked_for(text: str, expected: list[str | tuple[str, str]]) -> None:
    found = list(items(text))

    assert [item.text for item in found] == [
        one if isinstance(one, str) else one[1] for one in expected
    ]
    for item, one in zip(found, expected, strict=True):
        assert isinstance(one, str) or item.kind == one[0]
        assert text[item.start : item.start + len(item.text)] == item.text


QUOTED = [
    ('He said "no nuts."', ["no nuts"]),
    ("He said “no nuts” and „keine Nüsse“.", ["no nuts", "keine Nüsse"]),
    ("« sans noix » ‹a› »ohne« 「不要坚果。」『x』", ["sans noix", "a", "ohne", "不要坚果", "x"]),
    ("It's 'no nuts' in the users' words, don't you see", ["no nuts"]),
    ("‘don’t’ she said", ["don’t"]),
    ('never "closed', []),
    ('5" and 6" wide', []),
    ('on "two\nlines"', []),
    ('"" and "..."', []),
    ('inner "a ‘b’ c"', ["a ‘b’ c"]),
]


@pytest.mark.parametrize(("text", "expected"), QUOTED, ids=[text for text, _ in QUOTED])
def test_t13_quotations(text: str, expected: list[str]) -> None:
    assert [item.text for item in items(text) if item.kind == "quotation"] == expected


# --- where it is found ------------------------------------------------------------------------------

FOUND = [
    ("500", "It is 500."),
    ("500", "$500"),
    ("500", "500 €"),
    ("500", "共500元"),
    ("5", "3-5"),
    ("-5", "at -5 °C"),
    ("0042", "INV-0042"),
    ("2024-05", "2024-05-01"),
    ("5 %", "5\u00a0%"),
    ("5 000", "5\n000"),
    ("$20", "$10-$20"),
    ("app_main.py", "src/app_main.py"),
    ("https://a.example/b", "(https://a.example/b)."),
    ("https://a.example/b", "https://a.example/b/"),
    ("“no nuts”", "I eat no\n nuts, please"),
    ("「不要坚果」", "我不要坚果了"),
    ("600", '{"a":[500,600,700]}'),
    ("“Zürich”", '{"city":"Z\\u00fcrich"}'),
    ("600", 'log: "x\\n600\\n"'),
    ("LG12", json.dumps({"body": json.dumps({"ids": ["LG11,LG12"]})})),
    ('“a "b"”', '["a \\"b\\""]'),
]  # fmt: skip
NOT_FOUND = [
    ("500", "5,000"),
    ("500", "1500"),
    ("500", "500.5"),
    ("500", "500k"),
    ("3.5", "13.5"),
    ("3.5", "3.55"),
    ("3.5", "3,5"),
    ("5", "-5"),
    ("5", "(-5)"),
    ("-5", "5"),
    ("$5", "-$5"),
    ("$500", "€500"),
    ("$500", "$500.50"),
    ("500 EUR", "500 USD"),
    ("5%", "5"),
    ("5 million EUR", "5 billion EUR"),
    ("3亿元", "3万元"),
    ("5,000", "5.000"),
    ("5,000", "5000"),
    ("５００", "500"),
    ("INV-0042", "INV-0043"),
    ("INV-004", "INV-0042"),
    ("2024-05-01", "2024-05-11"),
    ("5 May 2024", "May 5, 2024"),
    ("10:30", "10:30:15"),
    ("https://a.example/b", "https://a.example/bc"),
    ("https://a.example/b", "https://a.example/b/c"),
    ("https://a.example", "https://a.example.org"),
    ("“no nuts”", "no  nutshells"),
    ("“No nuts”", "no nuts"),
    ("'e'", "caf\u00e9 e\u0301"),
    ("a@b.example", "aa@b.example"),
    ("500", ""),
]


@pytest.mark.parametrize(("summary", "source"), FOUND)
def test_t13_it_is_found(summary: str, source: str) -> None:
    assert missing(summary, "first", source) == []


@pytest.mark.parametrize(("summary", "source"), NOT_FOUND)
def test_t13_it_is_not_found(summary: str, source: str) -> None:
    assert missing(f"Of {summary} or so", source) == [summary.strip("“”'")]


def test_t13_each_is_listed_once_with_its_kind_in_order_of_mention() -> None:
    found = ungrounded(["$7 for INV-1, $7", "“x y” on 1 May at www.a.example: 7"], ["none"])

    assert found == (
        Ungrounded("amount", "$7"),
        Ungrounded("identifier", "INV-1"),
        Ungrounded("quotation", "x y"),
        Ungrounded("date", "1 May"),
        Ungrounded("url", "www.a.example"),
        Ungrounded("number", "7"),
    )


def test_t13_two_texts_of_a_source_do_not_run_together() -> None:
    assert missing("“no nuts” 15", "no", "nuts", "1", "5") == ["no nuts", "15"]


def test_t13_without_anything_to_find_the_source_is_not_read() -> None:
    source = iter(["a"])

    assert ungrounded(["He may like it."], source) == ()
    assert list(source) == ["a"]


# --- properties -------------------------------------------------------------------------------------

ODD = "0157٥５aZé\u0301文ノ원ภ_.,:'’-−–/\\$€%％@#&?=()[]{}\"“”„‘«»「」。，+~\n\u00a0"
PIECES = [
    "$500", "5,000", "INV-0042", "https://a.example/b?c", "5 May 2024", "EUR", "3亿元", "don't", "May",
    "“no nuts”", "'so it is'", "x_y", "/etc/hosts", "a@b.example", "million", '{"a":5}',
]  # fmt: skip
pieces = st.lists(
    st.text(ODD, min_size=1, max_size=8) | st.sampled_from(PIECES), min_size=1, max_size=12
)


@pytest.mark.slow
@given(pieces, pieces, pieces)
@example(["最多5000元。"], ["5"] * 3, [])
def test_t13_what_is_copied_is_never_listed(
    before: list[str], copied: list[str], behind: list[str]
) -> None:
    copy = " ".join(copied)
    source = " ".join([*before, copy, *behind])

    assert ungrounded([copy], [source]) == ()
    assert ungrounded(copied, [source]) == ()


@pytest.mark.slow
@given(st.lists(pieces.map(" ".join), min_size=1, max_size=5))
def test_t13_many_things_are_found_as_few_are(texts: list[str]) -> None:
    """Beyond a number of things the words of the source are looked at first."""
    many = " ".join(f"nr{number}" for number in range(80))

    assert ungrounded([*texts, many], [" ".join(texts), f"[{many}]"]) == ()
    assert ungrounded([*texts, many], [many]) == ungrounded(texts, [many])


numbers = st.from_regex(r"[1-9][0-9]{0,3}([.,:][0-9]{2,3})?", fullmatch=True)
dressed = st.sampled_from(
    ["{}", "${}", "{} %", "EUR {}", "INV-{}", "v{}", "共{}元", "“{} or so”", "({})."]
)


@pytest.mark.slow
@given(st.lists(numbers, min_size=1, max_size=8), st.data())
def test_t13_a_changed_digit_is_always_listed(source: list[str], data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(source))
    place = data.draw(st.sampled_from([m.start() for m in re.finditer(r"\d", number)]))
    digit = data.draw(st.sampled_from("0123456789"))
    changed = number[:place] + digit + number[place + 1 :]
    assume(changed not in source)
    dress = data.draw(dressed)

    listed = missing(dress.format(changed), " and ".join(map(dress.format, source)))

    assert any(changed in text for text in listed)


@given(st.text(ODD, max_size=60))
def test_t13_every_digit_of_a_text_belongs_to_something_that_is_looked_for(text: str) -> None:
    covered = {
        place for item in items(text) for place in range(item.start, item.start + len(item.text))
    }
    assert {place for place, character in enumerate(text) if character.isdecimal()} <= covered


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["1", "1.1", "a1 ", "(", "'a ", "-", "a.a-", "www.", '"', "1 000 ", "[", "\\", '{"a":', "文1"]
)  # fmt: skip
def test_t13_large_texts_take_no_long(unit: str) -> None:
    """Far from quadratic: fifty thousand characters, compared with themselves, in a second or so."""
    text = unit * (50_000 // len(unit))
    began = time.process_time()

    ungrounded([text, text[:6_000] + "9"], [text + "x"])

    assert time.process_time() - began < 30
