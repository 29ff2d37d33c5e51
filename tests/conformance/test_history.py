"""Searching and rereading the complete transcript, on every store (T14, T15)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from backends import START, Backend, PostgresBackend, SQLiteBackend
from history_cases import (
    CONVERSATION,
    RUN,
    SCOPE,
    SECOND,
    assistant,
    call,
    handle,
    history,
    ids,
    keep,
    quotes,
    result,
    search,
    user,
    write_pairs,
)

from compaction_ledger import Ledger
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidId, InvalidInput, UnknownMessage
from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.infrastructure.postgres.address import parse_address

KEY = WindowKey(SCOPE, CONVERSATION, RUN)

SPOKEN = [
    {"role": "system", "content": "You advise on funds. Quote prices in EUR."},
    user("Which bond funds cost less than 0.3 % a year? I can spend at most 4,000 EUR."),
    call("c1", "find_funds", '{"max_fee": 0.3, "kind": "bond"}'),
    result("c1", "INV-0042 | Global Bond | 0.25 %\nINV-0107 | Euro Bond | 0.29 %"),
    assistant("Two do: Global Bond (INV-0042) and Euro Bond (INV-0107), as of 2026-11-30."),
    user("请记住：预算上限是四千欧元，只要卢森堡基金。"),
    assistant("東京タワーの近くで会いましょう。予算は四千ユーロです。"),
    user("لا أريد صناديقَ الأسهم، وحدي الأقصى أربعة آلاف يورو"),
    assistant("بودجه شما ۴۰۰۰ یورو است و می‌خواهم آن را نگه دارم."),
]


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


# --- keeping up ---


def test_what_comes_later_is_found(backend: Backend) -> None:
    parts, other = backend.open(), backend.open()
    assert ids(search(parts, "offer")) == []
    keep(other, [user("offer one")])
    one = history(parts)
    assert ids(one.search(HistoryQuery("offer"))) == ["m0"]
    keep(other, [assistant("offer two")])
    write_pairs(other, [("offer three", "yes")])
    assert ids(one.search(HistoryQuery("offer"))) == ["m1", "m0", "u0"]
    assert ids(search(other, "offer")) == ["m1", "m0", "u0"]


def test_an_edit_and_a_deletion_are_followed(parts: Parts) -> None:
    write_pairs(parts, [(f"question {number}", "reply") for number in range(300)])
    one = history(parts)
    assert len(one.search(HistoryQuery("question", limit=50)).hits) == 50
    parts.transcripts.revise(SCOPE, CONVERSATION, "u7", "another wording")
    assert ids(one.search(HistoryQuery("wording"))) == ["u7"]
    assert ids(one.search(HistoryQuery('"question 7"'))) == []
    parts.transcripts.delete(SCOPE, CONVERSATION, "u7")
    assert ids(one.search(HistoryQuery("wording"))) == []
    assert ids(one.search(HistoryQuery('"question 299"'))) == ["u299"]


def test_nothing_is_indexed_twice(parts: Parts) -> None:
    keep(parts, SPOKEN)
    write_pairs(parts, [("offer", "yes")])
    history(parts).catch_up()
    marks = dict(parts.history.marks(SCOPE, CONVERSATION))
    puts: list[str] = []

    class Watched:
        def put(self, scope: str, conversation: str, shelf: str, *rest: Any, **more: Any) -> bool:
            puts.append(shelf)
            return parts.history.put(scope, conversation, shelf, *rest, **more)

        def __getattr__(self, name: str) -> Any:
            return getattr(parts.history, name)

    watched = replace(parts, history=Watched())
    assert ids(search(watched, "offer")) == ["u0"]
    assert puts == []
    assert parts.history.marks(SCOPE, CONVERSATION) == marks
    keep(parts, [user("an offer")])
    assert ids(search(watched, "offer")) == ["m9", "u0"]
    assert puts == [f"run:{RUN}"]


def test_several_at_once_index_everything_once(backend: Backend) -> None:
    sessions = [backend.open() for _ in range(4)]
    keep(sessions[0], [user(f"offer {number}") for number in range(700)])
    write_pairs(sessions[0], [(f"offer {number}", "yes") for number in range(300)])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda parts: search(parts, "offer", limit=50), sessions))
    assert all(len(one.hits) == 50 and one == found[0] for one in found)
    index = sessions[0].history
    places = index.candidates(SCOPE, CONVERSATION, HistoryQuery("offer"), 0, 5_000)
    assert len(places) == len(set(places)) == 1_000


def test_an_index_that_is_forgotten_is_made_anew(spoken: Parts) -> None:
    before = search(spoken, "四千")
    spoken.history.forget(SCOPE, CONVERSATION)
    assert spoken.history.marks(SCOPE, CONVERSATION) == {}
    assert not spoken.history.candidates(SCOPE, CONVERSATION, HistoryQuery("四千"), 0, 10)
    assert search(spoken, "四千") == before
    spoken.history.forget(SCOPE, "unknown")


def test_a_forgotten_run_is_no_hit_and_one_begun_anew_is(spoken: Parts) -> None:
    assert ids(search(spoken, "inv-0042"))
    spoken.originals.forget(SCOPE, CONVERSATION)
    assert search(spoken, "inv-0042").hits == []
    keep(spoken, [*SPOKEN[:4], assistant("Nothing."), *SPOKEN[5:], user("INV-0042 again")])
    assert ids(search(spoken, "inv-0042")) == ["m9", "m3"]


def test_an_index_that_lags_behind_its_originals_quotes_nothing_that_is_not_there(
    spoken: Parts,
) -> None:
    """What is stored is checked when it is used: the index alone never makes a hit."""
    history(spoken).catch_up()
    mark = spoken.history.marks(SCOPE, CONVERSATION)[f"run:{RUN}"]
    spoken.originals.forget(SCOPE, CONVERSATION)
    keep(spoken, [user(f"other {number}") for number in range(len(SPOKEN))])
    found = search(spoken, "inv-0042")
    assert spoken.history.marks(SCOPE, CONVERSATION)[f"run:{RUN}"] == mark
    assert (found.hits, found.unreadable) == ([], 2)


def test_a_shelf_is_changed_only_by_who_knows_its_mark(spoken: Parts) -> None:
    index = spoken.history
    assert not index.put(SCOPE, CONVERSATION, "lines:0", [], before="other", after="mine")
    assert index.put(SCOPE, CONVERSATION, "lines:0", [], before=None, after="mine")
    assert not index.put(SCOPE, CONVERSATION, "lines:0", [], before=None, after="other")
    assert index.marks(SCOPE, CONVERSATION) == {"lines:0": "mine"}
    assert index.put(SCOPE, CONVERSATION, "lines:0", [], before="mine", after=None)
    assert index.marks(SCOPE, CONVERSATION) == {}


def test_more_messages_at_one_moment_than_it_has_slots(parts: Parts) -> None:
    wires = [user(f"offer {number}") for number in range(1100)]
    for start in range(0, 1100, 550):
        keep(parts, wires[start : start + 550], at=START - start * SECOND)
    places = [
        Place("run", "big", f"m{number}", number, 0, "user", 0, START) for number in range(2500)
    ]
    documents = [Document(place, "thing") for place in places]
    for start in range(0, 2500, 500):
        before = None if not start else str(start)
        assert parts.history.put(
            SCOPE,
            "other",
            "run:big",
            documents[start : start + 500],
            before=before,
            after=str(start + 500),
        )
    found = parts.history.candidates(SCOPE, "other", HistoryQuery("thing"), 0, 3000)
    assert list(found) == places[::-1]
    assert len(search(parts, "offer", limit=50).hits) == 50


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


def test_a_ledger_that_is_only_read_is_searched_by_an_index_in_memory(
    sqlite_store: SQLiteBackend,
) -> None:
    parts = sqlite_store.open()
    keep(parts, SPOKEN)
    with Ledger.open(sqlite_store.path, read_only=True) as ledger:
        found = ledger.history_search(CONVERSATION, scope=SCOPE).search(HistoryQuery("四千"))
    assert ids(found) == ["m6", "m5"]
    assert parts.history.marks(SCOPE, CONVERSATION) == {}


def test_what_is_forgotten_leaves_no_word_in_the_index(sqlite_store: SQLiteBackend) -> None:
    """S3: also not in what SQLite keeps of an index until it is merged."""
    parts = sqlite_store.open()
    keep(parts, [user("the pass phrase is zq7kestrel")])
    keep(parts, [user("nothing to see")], conversation="other")
    history(parts).catch_up()
    history(parts, "other").catch_up()

    def stored() -> bytes:
        with sqlite_store.database().transaction(commit=False) as cursor:
            blocks = cursor.execute("SELECT block FROM history_terms_data").fetchall()
            texts = cursor.execute("SELECT c0 FROM history_terms_content").fetchall()
        return b"".join(row[0] for row in blocks) + "".join(row[0] for row in texts).encode()

    assert b"zq7kestrel" in stored()
    parts.history.forget(SCOPE, CONVERSATION)
    assert b"zq7" not in stored()
    assert b"nothing" in stored()


def test_after_a_crash_of_the_server_the_index_is_made_anew(tmp_path: Path) -> None:
    """The server empties what it keeps out of its log: all of the index at once."""
    backend = PostgresBackend(tmp_path)
    try:
        parts = backend.open()
        keep(parts, SPOKEN)
        before = search(parts, "四千")
        address = parse_address(backend.url)
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            unlogged = connection.execute(
                "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' "
                "AND relnamespace = %s::regnamespace ORDER BY relname",
                (address.schema,),
            ).fetchall()
            assert [name for (name,) in unlogged] == [
                "history_conversations",
                "history_places",
                "history_shelves",
            ]
            tables = ", ".join(f'"{address.schema}".{name}' for (name,) in unlogged)
            connection.execute(f"TRUNCATE {tables} RESTART IDENTITY".encode())
        assert search(parts, "四千") == before
    finally:
        backend.close()
