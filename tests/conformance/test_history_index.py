"""Every index finds what brute force finds, in the order of the one in memory (T15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from backends import START
from history_cases import CONVERSATION, SCOPE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.domain.messages.interface import EntryRole
from compaction_ledger.domain.terms import fold
from compaction_ledger.infrastructure.history.memory import MemoryHistoryIndex

SPOKEN = (
    "flight FLIGHT second 4,000 4 000 inv-42 inv 42 預算 算上 茶 喝茶 5月3日 東京タワー ﾀﾜｰ محمد مُحَمَّد "
    "e\u0301t \u00e9t 한국어 ไทย a_b"
)
WORDS = st.sampled_from(SPOKEN.split())
GAPS = st.sampled_from([" ", "  ", "\n", ", ", "", "。", "-", '"', "\u200c", "\ud800", "\0"])
TEXTS = st.lists(st.tuples(WORDS, GAPS), min_size=1, max_size=6).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)


FILTERS: list[dict[str, Any]] = [
    {},
    {"roles": frozenset({"user"})},
    {"first": 1},
    {"since": START},
]


def documents(texts: Sequence[str], run: str, at: int) -> list[Document]:
    roles: Sequence[EntryRole] = ("user", "assistant", "tool")
    return [
        Document(Place("run", run, f"m{n}", n, 0, roles[n % 3], n // 3, at + 10 * n), text)
        for n, text in enumerate(texts)
    ]


def lines(texts: Sequence[str]) -> list[Document]:
    return [
        Document(Place("conversation", None, f"u{n}", n, 0, "user", n, None), text)
        for n, text in enumerate(texts)
    ]


@pytest.mark.slow
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    one=st.lists(TEXTS, max_size=8),
    other=st.lists(TEXTS, max_size=8),
    spoken=st.lists(TEXTS, max_size=4),
    replaced=st.lists(TEXTS, max_size=4),
    queries=st.lists(TEXTS, min_size=3, max_size=8),
    apart=st.integers(-40, 40),
)
def test_no_index_misses_a_place_or_has_another_order(
    parts: Parts,
    one: list[str],
    other: list[str],
    spoken: list[str],
    replaced: list[str],
    queries: list[str],
    apart: int,
) -> None:
    plain = MemoryHistoryIndex()
    kept = [*documents(one, "a", START), *documents(other, "b", START + apart), *lines(replaced)]
    for index in (plain, parts.history):
        index.forget(SCOPE, CONVERSATION)
        for shelf, new in (
            ("a", documents(one, "a", START)),
            ("b", documents(other, "b", START + apart)),
            ("lines", lines(spoken)),
        ):
            assert index.put(SCOPE, CONVERSATION, shelf, new, before=None, after="1")
        assert index.put(
            SCOPE, CONVERSATION, "lines", lines(replaced), before="1", after="2", replace=True
        )
    for text in queries:
        for options in FILTERS:
            try:
                query = HistoryQuery(text, **options)
            except InvalidInput:
                continue
            found = list(parts.history.candidates(SCOPE, CONVERSATION, query, 0, 100))
            assert found == list(plain.candidates(SCOPE, CONVERSATION, query, 0, 100))
            assert found[2:5] == list(parts.history.candidates(SCOPE, CONVERSATION, query, 2, 3))
            if not options:
                must = {
                    document.place
                    for document in kept
                    if query.wanted.find(fold(document.text)) is not None
                }
                assert must <= set(found)


def test_the_words_side_by_side_come_first(parts: Parts) -> None:
    texts = ["second flight", "flight second", "the second flight", "flight, second best"]
    parts.history.put(
        SCOPE, CONVERSATION, "a", documents(texts, "a", START), before=None, after="1"
    )
    found = parts.history.candidates(SCOPE, CONVERSATION, HistoryQuery("second flight"), 0, 9)
    assert [place.message_id for place in found] == ["m2", "m0", "m3", "m1"]
    phrase = parts.history.candidates(SCOPE, CONVERSATION, HistoryQuery('"second flight"'), 0, 9)
    assert [place.message_id for place in phrase] == ["m2", "m0"]
