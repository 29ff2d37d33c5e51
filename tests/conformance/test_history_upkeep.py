"""The index of the history keeps up with what it is made from, and is never believed (T15)."""

from __future__ import annotations

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
    SPOKEN,
    assistant,
    history,
    ids,
    keep,
    search,
    user,
    write_pairs,
)

from compaction_ledger import Ledger
from compaction_ledger.composition import Parts
from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.infrastructure.postgres.address import parse_address


@pytest.fixture
def spoken(parts: Parts) -> Parts:
    keep(parts, SPOKEN)
    return parts


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


@pytest.mark.slow_on("postgres")
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


@pytest.mark.slow
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


@pytest.mark.slow_on("postgres")
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
