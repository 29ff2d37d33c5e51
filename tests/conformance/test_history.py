"""Searching and rereading the complete transcript, on every store (T14, T15)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from backends import START
from history_cases import (
    CONVERSATION,
    RUN,
    SCOPE,
    SECOND,
    SPOKEN,
    handle,
    history,
    ids,
    keep,
    quotes,
    search,
    user,
    write_pairs,
)

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidId, InvalidInput, UnknownMessage
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.window.keys import WindowKey

KEY = WindowKey(SCOPE, CONVERSATION, RUN)


@pytest.fixture
def spoken(parts: Parts) -> Parts:
    keep(parts, SPOKEN)
    return parts


# --- exact quotes, in several languages ---


QUERIES: Sequence[tuple[str, str | None, str]] = (
    ("4,000", "m1", "I can spend at most 4,000 EUR."),
    ("at most 4,000 eur", "m1", "at most 4,000 EUR"),
    ("2026-11-30", "m4", "2026-11-30"),
    ("inv-0107", "m4", "INV-0107"),
    ("INV-0042", "m4", "INV-0042"),
    ("0.25 %", "m3", "0.25 %"),
    ("find_funds", None, ""),
    ("max_fee", "m2", '{"max_fee": 0.3, "kind": "bond"}'),
    ("预算上限", "m5", "预算上限是四千欧元"),
    ("卢森堡 基金", "m5", "只要卢森堡基金"),
    ("东京", None, ""),
    ("東京", "m6", "東京タワー"),
    ("ﾀﾜｰ", "m6", "タワー"),
    ("ユーロ", "m6", "ユーロ"),
    ("会", "m6", "会いましょう"),
    ("صناديق", "m7", "صناديقَ"),
    ("الاقصي", "m7", "الأقصى"),
    ("4000", "m8", "۴۰۰۰"),
    ("يورو", "m8", "یورو"),
    ("میخواهم", "m8", "می‌خواهم"),
)


def test_finds_what_was_written_and_quotes_it_exactly(spoken: Parts) -> None:
    for query, message, quote in QUERIES:
        found = search(spoken, query)
        assert ids(found)[:1] == ([message] if message else []), query
        for hit in found.hits:
            wire: dict[str, Any] = SPOKEN[int(hit.message_id[1:])]
            text = wire["content"] or wire["tool_calls"][0]["function"]["arguments"]
            assert text[hit.start : hit.end] == hit.quote
            assert (hit.source, hit.run) == ("run", RUN)
        assert not message or quote in found.hits[0].quote


def test_a_hit_names_its_message_role_pair_and_time(spoken: Parts) -> None:
    (hit,) = search(spoken, "卢森堡").hits
    assert (hit.source, hit.run, hit.message_id, hit.part) == ("run", RUN, "m5", 0)
    assert (hit.role, hit.pair, hit.at) == ("user", 1, START + 5 * SECOND)


def test_a_long_text_is_quoted_around_the_match(parts: Parts) -> None:
    text = "wörd " * 400 + "the needle stands here" + " e\u0301nd" * 400
    keep(parts, [user(text)])
    (hit,) = search(parts, "needle").hits
    assert text[hit.start : hit.end] == hit.quote
    assert "the needle stands here" in hit.quote
    assert 150 < len(hit.quote) < 250
    assert not hit.quote.startswith(("ö", "\u0301"))
    assert text[hit.end] != "\u0301"


def test_a_number_is_not_found_in_a_longer_one(parts: Parts) -> None:
    keep(parts, [user("It is 14,000 or 4.000 or 4 of 000."), user("It is $4,000.50.")])
    assert ids(search(parts, "4,000")) == ["m1"]
    assert ids(search(parts, "000")) == ["m1", "m0"]


def test_an_exact_phrase_comes_first_then_the_newest(parts: Parts) -> None:
    keep(
        parts,
        [
            user("the second flight, please"),
            user("a flight, the second best one"),
            user("again: the SECOND\n flight"),
            user("flight second"),
        ],
    )
    assert ids(search(parts, "second flight")) == ["m2", "m0", "m3", "m1"]
    assert ids(search(parts, '"second flight"')) == ["m2", "m0"]
    assert ids(search(parts, 'best "second"')) == ["m1"]
    assert ids(search(parts, "second train")) == []


def test_pages_go_through_all_hits_once(parts: Parts) -> None:
    keep(parts, [user(f"offer number {number}") for number in range(25)])
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        found = search(parts, "offer", limit=7, offset=offset)
        seen += ids(found)
        offset = found.next_offset
    assert seen == [f"m{number}" for number in reversed(range(25))]
    assert not search(parts, "offer", offset=25).hits


# --- filters ---


def test_filters_by_role(spoken: Parts) -> None:
    assert ids(search(spoken, "inv-0042", roles=frozenset({"tool"}))) == ["m3"]
    assert ids(search(spoken, "inv-0042", roles=frozenset({"assistant"}))) == ["m4"]
    assert ids(search(spoken, "EUR", roles=frozenset({"system"}))) == ["m0"]
    assert ids(search(spoken, "EUR", roles=frozenset({"system", "user"}))) == ["m1", "m0"]
    assert ids(search(spoken, "EUR", roles=frozenset())) == []


def test_filters_by_exchange(spoken: Parts) -> None:
    assert ids(search(spoken, "四千")) == ["m6", "m5"]
    assert ids(search(spoken, "EUR", first=0)) == ["m1"]
    assert ids(search(spoken, "EUR", last=-1)) == ["m0"]
    assert ids(search(spoken, "bond", first=0, last=0)) == ["m4", "m3", "m2", "m1"]
    assert ids(search(spoken, "bond", first=1)) == []


def test_filters_by_time(spoken: Parts) -> None:
    write_pairs(spoken, [("Is there a bond?", "There is.")])
    at = START + 3 * SECOND
    assert ids(search(spoken, "bond", since=at)) == ["m4", "m3"]
    assert ids(search(spoken, "bond", until=at)) == ["m2", "m1"]
    assert ids(search(spoken, "bond", since=at, until=at + 1)) == ["m3"]
    assert ids(search(spoken, "bond")) == ["m4", "m3", "m2", "m1", "u0"]


# --- two sources ---


def test_lines_of_the_conversation_are_found_with_their_pair(parts: Parts) -> None:
    write_pairs(parts, [("First question", "An answer about Luxembourg"), ("Other", "Reply")])
    parts.transcripts.revise(SCOPE, CONVERSATION, "a1", "Reply about Luxembourg")
    found = search(parts, "luxembourg")
    assert [(hit.source, hit.run, hit.message_id, hit.pair, hit.at) for hit in found.hits] == [
        ("conversation", None, "a1", 1, None),
        ("conversation", None, "a0", 0, None),
    ]
    assert quotes(found) == ["Reply about Luxembourg", "An answer about Luxembourg"]


def test_a_line_that_makes_no_pair_is_found_without_one(parts: Parts) -> None:
    write_pairs(parts, [("First question", "Reply")])
    parts.transcripts.set_run(SCOPE, CONVERSATION, "r0", "failed")
    assert [hit.pair for hit in search(parts, "question").hits] == [-1]


def test_runs_stand_before_lines_and_the_newest_run_first(parts: Parts) -> None:
    write_pairs(parts, [("offer one", "yes")])
    keep(parts, [user("offer two")], run="old", at=START)
    keep(parts, [user("offer three")], run="new", at=START + 60 * SECOND)
    found = search(parts, "offer")
    assert [(hit.run, hit.message_id) for hit in found.hits] == [
        ("new", "m0"),
        ("old", "m0"),
        (None, "u0"),
    ]


# --- one conversation and no other ---


def test_another_conversation_or_scope_is_never_searched(parts: Parts) -> None:
    keep(parts, [user("the secret is amber")])
    keep(parts, [user("the secret is cobalt")], conversation="other")
    keep(parts, [user("the secret is sienna")], scope="globex")
    assert quotes(history(parts).search(HistoryQuery("secret"))) == ["the secret is amber"]
    assert quotes(history(parts, "other").search(HistoryQuery("secret"))) == [
        "the secret is cobalt"
    ]
    assert quotes(history(parts, scope="globex").search(HistoryQuery("secret"))) == [
        "the secret is sienna"
    ]
    assert history(parts, "none").search(HistoryQuery("secret")).hits == []
    with pytest.raises(InvalidId):
        history(parts, "")


# --- reading again ---


@pytest.mark.slow_on("postgres")
def test_a_message_is_read_exactly_page_by_page(spoken: Parts) -> None:
    one = history(spoken)
    text = SPOKEN[3]["content"]
    first = one.read_message("m3", RUN, 0, 20)
    assert (first.parts[0].text, first.next_start, first.length) == (text[:20], 20, len(text))
    assert (first.role, first.pair, first.at) == ("tool", 0, START + 3 * SECOND)
    rest = one.read_message("m3", RUN, 20)
    assert (rest.parts[0].start, rest.parts[0].text, rest.next_start) == (20, text[20:], None)
    whole = one.read_message("m2")
    assert [(part.kind, part.name) for part in whole.parts] == [("call", "find_funds")]


def test_the_pages_of_a_message_of_several_parts_are_its_text(parts: Parts) -> None:
    blocks = [{"type": "text", "text": text} for text in ("première ", "二", "", " trois")]
    wires = [{"role": "user", "content": blocks}]
    keep(parts, wires, shape="anthropic")
    one = history(parts)
    pieces: list[tuple[int, int, str]] = []
    start: int | None = 0
    while start is not None:
        page = one.read_message("m0", start=start, length=4)
        assert sum(len(part.text) for part in page.parts) <= 4
        pieces += [(part.part, part.start, part.text) for part in page.parts]
        start = page.next_start
    for number, block in enumerate(blocks):
        mine = [piece for piece in pieces if piece[0] == number]
        assert "".join(text for _, _, text in mine) == block["text"]
        for _, at, text in mine:
            assert block["text"][at : at + len(text)] == text


def test_a_line_is_read_as_it_is_now(parts: Parts) -> None:
    write_pairs(parts, [("question", "reply")])
    parts.transcripts.revise(SCOPE, CONVERSATION, "a0", "reply \ud800 with a lone surrogate")
    page = history(parts).read_message("a0", start=6, length=1)
    assert (page.parts[0].text, page.source, page.pair) == ("\ud800", "conversation", 0)


def test_ids_without_a_run_are_of_the_run_that_asks(parts: Parts) -> None:
    keep(parts, [user("one")], run="a")
    keep(parts, [user("two")], run="b")
    assert history(parts, run="b").read_message("m0").parts[0].text == "two"
    assert history(parts, run="b").read_message("m0", "a").parts[0].text == "one"
    with pytest.raises(InvalidInput, match="several runs"):
        history(parts).read_message("m0")


def test_a_message_that_is_not_there(spoken: Parts) -> None:
    for message in ("m9", "m00", "x", "m-1", "m1 OR 1=1", "m999999999"):
        for run in (None, RUN, "unknown"):
            with pytest.raises(UnknownMessage):
                history(spoken).read_message(message, run)


def test_a_page_that_cannot_be_asked_for(spoken: Parts) -> None:
    one = history(spoken)
    pages: Any = ((-1, 5), (0, 0), (0, 20_001), (10_000, 5), (True, 5), (0, 1.5))
    for start, length in pages:
        with pytest.raises(InvalidInput):
            one.read_message("m1", RUN, start, length)


def test_a_tool_result_is_read_exactly_and_in_its_conversation_alone(parts: Parts) -> None:
    text = "line one\n" + "第二行 " * 3000 + "\ud800 end"
    content = text.encode("utf-8", "surrogatepass")
    parts.originals.keep_result(SCOPE, CONVERSATION, content)
    one = history(parts)
    read, start = "", 0
    while True:
        page = one.read_tool_result(handle(content), start)
        read += page.text
        assert page.length == len(text)
        if page.next_start is None:
            break
        start = page.next_start
    assert read == text
    for other in (history(parts, "other"), history(parts, scope="globex")):
        with pytest.raises(InvalidInput, match="no such tool result"):
            other.read_tool_result(handle(content))
    for bad in ("", "tr_", handle(content)[:-1], handle(content).upper(), handle(content) + "0"):
        with pytest.raises(InvalidInput):
            one.read_tool_result(bad)
    with pytest.raises(InvalidInput, match="no such"):
        one.read_tool_result("tr_" + "0" * 64)


def test_messages_of_every_shape_are_found_and_read(parts: Parts) -> None:
    cases: dict[str, list[dict[str, Any]]] = {
        "anthropic": [
            {"role": "user", "content": "Find quartz"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "quartz, hm", "signature": "x"},
                    {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": "quartz"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "quartz is here"},
                    {"type": "text", "text": "And quartz there?"},
                ],
            },
        ],
        "converse": [
            {"role": "user", "content": [{"text": "Find quartz"}]},
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "t1", "name": "find", "input": {"q": "quartz"}}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "t1", "content": [{"text": "quartz is here"}]}}
                ],
            },
        ],
    }
    for shape, wires in cases.items():
        keep(parts, wires, shape=shape, conversation=shape)
        found = history(parts, shape).search(HistoryQuery("quartz"))
        assert [(hit.message_id, hit.part) for hit in found.hits][-2:] == [
            ("m1", 1 if shape == "anthropic" else 0),
            ("m0", 0),
        ]
        results = [hit for hit in found.hits if hit.role == "tool"]
        assert [hit.quote for hit in results] == ["quartz is here"]
        assert not any("hm" in hit.quote for hit in found.hits)
        arguments = history(parts, shape).read_message("m1").parts[-1]
        assert (arguments.name, json.loads(arguments.text)) == ("find", {"q": "quartz"})
