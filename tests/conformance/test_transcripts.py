"""The embedded transcript stores: append-only with revisions, text bit for bit (E4, E6)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from backends import Backend, SQLiteBackend
from histories import CONVERSATION, SCOPE, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import run_all, worker

from compaction_ledger.composition import Parts
from compaction_ledger.domain.conversation import Message, Run
from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidId,
    InvalidInput,
    NotAnUpdate,
    UnknownConversation,
    UnknownMessage,
)
from compaction_ledger.domain.ports import TranscriptStore
from compaction_ledger.domain.takeover import NewThread
from compaction_ledger.domain.transcript import NewMessage, NewRun

USER = NewMessage("u1", "r1", "user", "What does it cost?", created_at=5)
ANSWER = NewMessage("a1", "r1", "assistant", "0.3 % a year.", "streaming")
TOOL = NewMessage("t1", "r1", "tool", "{}", kind="tool")


@pytest.fixture
def store(parts: Parts) -> TranscriptStore:
    return parts.transcripts


def texts(store: TranscriptStore, conversation: str = CONVERSATION) -> dict[str, str]:
    return {m.id: m.text for m in store.conversation(SCOPE, conversation).messages}


# --- append and read back -----------------------------------------------------------------------


def test_lines_come_back_in_order_as_they_were(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER, ANSWER, TOOL], [NewRun("r1", "running")])
    found = store.conversation(SCOPE, CONVERSATION)
    where = (CONVERSATION, SCOPE)
    assert (found.scope, found.id) == (SCOPE, CONVERSATION)
    assert list(found.messages) == [
        Message("u1", "r1", "user", "completed", "chat", "What does it cost?", *where),
        Message("a1", "r1", "assistant", "streaming", "chat", "0.3 % a year.", *where),
        Message("t1", "r1", "tool", "completed", "tool", "{}", *where),
    ]
    assert found.runs == {"r1": Run("r1", "running", *where)}


def test_another_session_reads_the_same(backend: Backend) -> None:
    backend.open().transcripts.append(SCOPE, CONVERSATION, *lines(3))
    other = backend.open().transcripts
    assert [m.id for m in other.conversation(SCOPE, CONVERSATION).messages] == [
        "u0",
        "a0",
        "u1",
        "a1",
        "u2",
        "a2",
    ]


def test_appending_goes_on_where_it_ended(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, *lines(2))
    store.append(SCOPE, CONVERSATION, *lines(2, start=2))
    store.append(SCOPE, CONVERSATION, [], [NewRun("run-0", "partial")])
    found = store.conversation(SCOPE, CONVERSATION)
    assert [m.id for m in found.messages] == [f"{side}{n}" for n in range(4) for side in "ua"]
    assert found.runs["run-0"].state == "partial"


def test_conversations_and_scopes_are_kept_apart(store: TranscriptStore) -> None:
    places = [("s1", "c1"), ("s1", "c2"), ("s2", "c1")]
    for scope, conversation in places:
        store.append(scope, conversation, [NewMessage("m", "r", "user", f"{scope}/{conversation}")])
    store.revise("s1", "c1", "m", "changed")
    store.delete("s1", "c2", "m")
    assert [m.text for m in store.conversation("s1", "c1").messages] == ["changed"]
    assert list(store.conversation("s1", "c2").messages) == []
    assert [m.text for m in store.conversation("s2", "c1").messages] == ["s2/c1"]
    assert sorted(store.conversations()) == places
    assert list(store.conversations()) == list(store.conversations())


def test_a_conversation_without_lines_is_there(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [])
    assert list(store.conversation(SCOPE, CONVERSATION).messages) == []
    assert list(store.conversations()) == [(SCOPE, CONVERSATION)]


# --- bit for bit (E6) ---------------------------------------------------------------------------

DIFFICULT = {
    "nothing": "",
    "nul": "a\x00b\x00",
    "only nul": "\x00",
    "high surrogate": "a\ud83d",
    "low surrogate": "\ude00a",
    "reversed surrogates": "\ude00\ud83d",
    "surrogate pair by halves": "\ud83d" + "\ude00",
    "emoji": "\U0001f600",
    "nfc": unicodedata.normalize("NFC", "é"),
    "nfd": unicodedata.normalize("NFD", "é"),
    "right to left": "\u202eabc\u202c שלום مرحبا",
    "zero width": "a\u200bb\u200d\ufeffc",
    "line ends": "a\r\nb\rc\nd\u2028e\x85f",
    "white space": " \t\u3000text\u00a0 ",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "chinese": "你好，世界",
    "looks like bytes": "b'\\x00'",
    "looks like a number": "0123",
    "sql": "'; DROP TABLE messages; --",
}


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("text", DIFFICULT.values(), ids=DIFFICULT)
def test_text_is_kept_bit_for_bit(backend: Backend, text: str) -> None:
    store = backend.open().transcripts
    store.append(
        SCOPE, CONVERSATION, [NewMessage("m", "r", "user", text), NewMessage("n", "r", "user", "x")]
    )
    store.revise(SCOPE, CONVERSATION, "n", text)
    kept = texts(backend.open().transcripts)
    assert [list(map(ord, kept[name])) for name in "mn"] == [list(map(ord, text))] * 2


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.slow_on("postgres")
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(written=st.lists(ANY_TEXT, min_size=1, max_size=4), edited=ANY_TEXT)
def test_any_text_is_kept_bit_for_bit(parts: Parts, written: list[str], edited: str) -> None:
    store = parts.transcripts
    name = f"c-{sum(1 for _ in store.conversations())}"
    store.append(SCOPE, name, [NewMessage(f"m{n}", "r", "user", t) for n, t in enumerate(written)])
    assert list(texts(store, name).values()) == written
    store.revise(SCOPE, name, "m0", edited)
    assert list(texts(store, name).values()) == [edited, *written[1:]]


@pytest.mark.slow_on("postgres")
def test_ten_megabytes_in_one_message(store: TranscriptStore) -> None:
    big = "0123456789" * 1_000_000
    bigger = "\ud800" + "你" * 3_400_000
    store.append(SCOPE, CONVERSATION, [NewMessage("m", "r", "user", big)])
    assert texts(store)["m"] == big
    store.revise(SCOPE, CONVERSATION, "m", bigger)
    assert texts(store)["m"] == bigger


def test_ids_in_any_script(store: TranscriptStore) -> None:
    longest = "x" * 512
    names = ["消息", "ü", "u\u0308", "😀", "a b", "'", '"', "%", longest]
    for scope in names:
        store.append(
            scope, scope, [NewMessage(n, n, "user", n) for n in names], [NewRun(n) for n in names]
        )
    for scope in names:
        found = store.conversation(scope, scope)
        assert [m.id for m in found.messages] == names
        assert set(found.runs) == set(names)


# --- revisions ----------------------------------------------------------------------------------


def test_an_edit_takes_the_place_of_the_text_and_of_nothing_else(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER, ANSWER, TOOL], [NewRun("r1")])
    before = store.conversation(SCOPE, CONVERSATION).messages
    store.revise(SCOPE, CONVERSATION, "a1", "first")
    store.revise(SCOPE, CONVERSATION, "a1", "second")
    after = store.conversation(SCOPE, CONVERSATION).messages
    assert [m.text for m in after] == [before[0].text, "second", before[2].text]
    assert [m.id for m in after] == ["u1", "a1", "t1"]
    assert [(m.run, m.role, m.status, m.kind) for m in after] == [
        (m.run, m.role, m.status, m.kind) for m in before
    ]


def test_a_status_changes_as_a_text_does(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER, ANSWER])
    store.revise(SCOPE, CONVERSATION, "a1", status="completed")
    store.revise(SCOPE, CONVERSATION, "a1", "final text")
    store.revise(SCOPE, CONVERSATION, "u1", "failed after all", status="failed")
    after = [(m.id, m.status, m.text) for m in store.conversation(SCOPE, CONVERSATION).messages]
    assert after == [("u1", "failed", "failed after all"), ("a1", "completed", "final text")]
    before = store.revision(SCOPE, CONVERSATION)
    with pytest.raises(InvalidInput):
        store.revise(SCOPE, CONVERSATION, "a1", status="done")  # type: ignore[arg-type]
    assert store.revision(SCOPE, CONVERSATION) == before


def test_a_deletion_takes_the_line_out_of_the_conversation_as_it_is_now(
    store: TranscriptStore,
) -> None:
    store.append(SCOPE, CONVERSATION, *lines(2))
    store.revise(SCOPE, CONVERSATION, "a0", "edited")
    store.delete(SCOPE, CONVERSATION, "a0")
    assert list(texts(store)) == ["u0", "u1", "a1"]
    with pytest.raises(UnknownMessage):
        store.delete(SCOPE, CONVERSATION, "a0")
    with pytest.raises(UnknownMessage):
        store.revise(SCOPE, CONVERSATION, "a0", "text")
    with pytest.raises(DuplicateMessageId):  # an id is never used for a second message
        store.append(SCOPE, CONVERSATION, [NewMessage("a0", "run-0", "assistant", "again")])
    store.append(SCOPE, CONVERSATION, *lines(1, start=2))
    assert list(texts(store)) == ["u0", "u1", "a1", "u2", "a2"]


def test_a_run_is_as_it_was_last_said_to_be(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER], [NewRun("r1", "running")])
    store.set_run(SCOPE, CONVERSATION, "r1", "completed")
    store.set_run(SCOPE, CONVERSATION, "r2", "queued")
    store.append(SCOPE, CONVERSATION, [], [NewRun("r2", "failed"), NewRun("r2", "cancelled")])
    runs = store.conversation(SCOPE, CONVERSATION).runs
    assert {run.id: run.state for run in runs.values()} == {"r1": "completed", "r2": "cancelled"}


def test_the_revision_changes_with_every_change(store: TranscriptStore) -> None:
    changes: list[Callable[[], object]] = [
        lambda: store.append(SCOPE, CONVERSATION, [USER, ANSWER]),
        lambda: store.append(SCOPE, CONVERSATION, [], [NewRun("r1", "running")]),
        lambda: store.set_run(SCOPE, CONVERSATION, "r1", "completed"),
        lambda: store.revise(SCOPE, CONVERSATION, "u1", "edited"),
        lambda: store.revise(SCOPE, CONVERSATION, "u1", "What does it cost?"),
        lambda: store.delete(SCOPE, CONVERSATION, "u1"),
    ]
    seen: list[str | None] = []
    for change in changes:
        change()
        revision = store.revision(SCOPE, CONVERSATION)
        assert revision is not None
        assert revision == store.revision(SCOPE, CONVERSATION)
        assert revision not in seen
        seen.append(revision)
    store.append(SCOPE, "another", [USER])
    assert store.revision(SCOPE, CONVERSATION) == seen[-1]


def test_a_refused_change_leaves_the_revision(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER])
    before = store.revision(SCOPE, CONVERSATION)
    with pytest.raises(DuplicateMessageId):
        store.append(SCOPE, CONVERSATION, [ANSWER, USER])
    with pytest.raises(UnknownMessage):
        store.delete(SCOPE, CONVERSATION, "nobody")
    assert store.revision(SCOPE, CONVERSATION) == before


# --- taking conversations over ------------------------------------------------------------------


def grown(*changes: tuple[int, str], pairs: int = 3) -> NewThread:
    """A conversation of so many pairs, with other texts at some places."""
    messages, runs = lines(pairs)
    for place, text in changes:
        messages[place] = replace(messages[place], text=text)
    return NewThread(CONVERSATION, messages, runs)


def test_what_is_taken_over_is_as_if_it_were_appended(backend: Backend) -> None:
    store = backend.open().transcripts
    [found] = store.take_over(SCOPE, [grown()])
    store.append(SCOPE, "appended", *lines(3))
    taken, appended = (store.conversation(SCOPE, name) for name in (CONVERSATION, "appended"))
    assert [m[:6] for m in taken.messages] == [m[:6] for m in appended.messages]
    assert [run[:2] for run in taken.runs.values()] == [run[:2] for run in appended.runs.values()]
    assert (len(found.appended), len(found.revised), found.unchanged) == (6, 0, 0)
    assert backend.open().transcripts.conversation(SCOPE, CONVERSATION) == taken


def test_an_empty_conversation_is_taken_over_too(store: TranscriptStore) -> None:
    store.take_over(SCOPE, [NewThread(CONVERSATION, [])])
    assert list(store.conversations()) == [(SCOPE, CONVERSATION)]


def test_an_update_appends_revises_and_records(backend: Backend) -> None:
    store = backend.open().transcripts
    store.append(SCOPE, CONVERSATION, [USER, ANSWER], [NewRun("r1", "running"), NewRun("r0")])
    store.revise(SCOPE, CONVERSATION, "a1", "0.4 % a year.")
    now = NewThread(
        CONVERSATION,
        [USER, replace(ANSWER, status="completed", text="0.5 \ud83d"), TOOL],
        [NewRun("r1"), NewRun("r0"), NewRun("r2", "queued")],
    )
    [found] = store.take_over(SCOPE, [now], update=True)
    assert [(m.id, m.status, m.text) for m in store.conversation(SCOPE, CONVERSATION).messages] == [
        ("u1", "completed", USER.text),
        ("a1", "completed", "0.5 \ud83d"),
        ("t1", "completed", "{}"),
    ]
    runs = backend.open().transcripts.conversation(SCOPE, CONVERSATION).runs
    assert {run.id: run.state for run in runs.values()} == {
        "r0": "completed",
        "r1": "completed",
        "r2": "queued",
    }
    assert (len(found.appended), len(found.revised), found.unchanged) == (1, 1, 1)
    assert found.runs == [NewRun("r1"), NewRun("r2", "queued")]


def test_an_update_without_any_change_leaves_the_revision(store: TranscriptStore) -> None:
    store.take_over(SCOPE, [grown()])
    before = store.revision(SCOPE, CONVERSATION)
    [found] = store.take_over(SCOPE, [grown()], update=True)
    assert (found.any, found.unchanged) == (False, 6)
    assert store.revision(SCOPE, CONVERSATION) == before
    store.take_over(SCOPE, [grown((1, "another reply"))], update=True)
    assert store.revision(SCOPE, CONVERSATION) != before


def test_only_one_side_of_an_update_is_enough(store: TranscriptStore) -> None:
    store.take_over(SCOPE, [grown(pairs=2)])
    changes = [grown((0, "edited"), pairs=2), grown((0, "edited"))]
    counts = [store.take_over(SCOPE, [change], update=True)[0] for change in changes]
    assert [(len(c.revised), len(c.appended)) for c in counts] == [(1, 0), (0, 2)]
    assert texts(store)["u0"] == "edited"
    assert len(texts(store)) == 6


REFUSED: dict[str, tuple[list[NewThread], bool, type[InvalidInput]]] = {
    "known": ([grown()], False, DuplicateMessageId),
    "missing": ([grown(pairs=1)], True, NotAnUpdate),
    "deleted": ([grown(pairs=3)], True, NotAnUpdate),
    "kind": (
        [NewThread(CONVERSATION, [replace(lines(2)[0][0], kind="trace"), *lines(2)[0][1:]])],
        True,
        NotAnUpdate,
    ),
    "twice": ([grown(), grown()], True, InvalidInput),
    "one id twice": ([NewThread(CONVERSATION, [USER, USER])], True, DuplicateMessageId),
    "bad id": ([NewThread(CONVERSATION, [replace(USER, id="")])], True, InvalidId),
}


@pytest.mark.parametrize("name", REFUSED)
def test_of_an_import_that_is_refused_nothing_is_stored(store: TranscriptStore, name: str) -> None:
    threads, update, error = REFUSED[name]
    store.append(SCOPE, CONVERSATION, *lines(3))
    for side in ("u2", "a2"):
        store.delete(SCOPE, CONVERSATION, side)
    before = store.conversation(SCOPE, CONVERSATION), store.revision(SCOPE, CONVERSATION)
    # What comes before it in the same import is in order.
    first = NewThread("another", [USER, ANSWER], [NewRun("r1")])
    with pytest.raises(error):
        store.take_over(SCOPE, [first, *threads], update=update)
    assert list(store.conversations()) == [(SCOPE, CONVERSATION)]
    after = store.conversation(SCOPE, CONVERSATION), store.revision(SCOPE, CONVERSATION)
    assert after == before


def test_an_import_into_another_scope_is_another_conversation(store: TranscriptStore) -> None:
    store.take_over(SCOPE, [grown()])
    store.take_over("other", [grown((0, "other text"))])
    assert texts(store)["u0"] == lines(1)[0][0].text
    assert len(list(store.conversations())) == 2


# --- what is refused ----------------------------------------------------------------------------


def test_an_id_that_stands_twice_names_both_places_and_stores_nothing(
    store: TranscriptStore,
) -> None:
    twice = [NewMessage(name, "r", "user", "t") for name in ("m1", "m2", "m1")]
    with pytest.raises(DuplicateMessageId) as refusal:
        store.append(SCOPE, CONVERSATION, twice)
    assert refusal.value.message_id == "m1"
    assert (refusal.value.first, refusal.value.second) == ("position 0", "position 2")
    assert "position 0" in str(refusal.value)
    assert "position 2" in str(refusal.value)
    with pytest.raises(UnknownConversation):
        store.conversation(SCOPE, CONVERSATION)
    assert list(store.conversations()) == []


def test_an_id_that_is_there_already_names_both_places_and_stores_nothing(
    store: TranscriptStore,
) -> None:
    store.append(SCOPE, CONVERSATION, *lines(2))
    with pytest.raises(DuplicateMessageId) as refusal:
        store.append(
            SCOPE,
            CONVERSATION,
            [NewMessage("new", "r", "user", "t"), NewMessage("u1", "r", "user", "t")],
            [NewRun("r")],
        )
    assert (refusal.value.first, refusal.value.second) == ("position 2", "position 5")
    found = store.conversation(SCOPE, CONVERSATION)
    assert len(found.messages) == 4
    assert "r" not in found.runs


def test_what_is_not_there_is_named(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER])
    for ask in (store.conversation, store.revision):
        for place in (("nobody", CONVERSATION), (SCOPE, "nothing"), (CONVERSATION, SCOPE)):
            with pytest.raises(UnknownConversation):
                ask(*place)
    with pytest.raises(UnknownConversation):
        store.set_run(SCOPE, "nothing", "r", "completed")
    with pytest.raises(UnknownConversation):
        store.delete(SCOPE, "nothing", "u1")
    with pytest.raises(UnknownMessage):
        store.revise(SCOPE, CONVERSATION, "nobody", "t")


BAD_IDS: list[Any] = ["", "x" * 513, "a\nb", "\x00", "\x7f", "\x85", "\ud800", 7, None, b"id"]


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
def test_an_id_that_is_none_is_refused_everywhere(store: TranscriptStore, bad: Any) -> None:
    store.append(SCOPE, CONVERSATION, [USER])
    attempts: list[Callable[[], object]] = [
        lambda: store.append(bad, CONVERSATION, []),
        lambda: store.append(SCOPE, bad, []),
        lambda: store.append(SCOPE, CONVERSATION, [NewMessage(bad, "r", "user", "t")]),
        lambda: store.append(SCOPE, CONVERSATION, [NewMessage("m", bad, "user", "t")]),
        lambda: store.append(
            SCOPE, CONVERSATION, [NewMessage("m", "r", "user", "t")], [NewRun(bad)]
        ),
        lambda: store.set_run(SCOPE, CONVERSATION, bad, "completed"),
        lambda: store.conversation(SCOPE, bad),
        lambda: store.revision(bad, CONVERSATION),
        lambda: store.revise(SCOPE, CONVERSATION, bad, "t"),
        lambda: store.delete(SCOPE, CONVERSATION, bad),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidId):
            attempt()
    assert list(texts(store)) == ["u1"]


BAD_LINES: list[Any] = [
    NewMessage("m", "r", "robot", "t"),  # type: ignore[arg-type]
    NewMessage("m", "r", "user", "t", "done"),  # type: ignore[arg-type]
    NewMessage("m", "r", "user", "t", kind="talk"),  # type: ignore[arg-type]
    NewMessage("m", "r", "user", b"t"),  # type: ignore[arg-type]
    NewMessage("m", "r", "user", None),  # type: ignore[arg-type]
    NewMessage("m", "r", "user", "t", created_at=2**70),
    NewMessage("m", "r", "user", "t", created_at="now"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=repr)
def test_a_malformed_line_is_refused_and_nothing_is_stored(
    store: TranscriptStore, bad: NewMessage
) -> None:
    with pytest.raises(InvalidInput):
        store.append(SCOPE, CONVERSATION, [USER, bad])
    assert list(store.conversations()) == []


def test_a_malformed_run_state_is_refused(store: TranscriptStore) -> None:
    store.append(SCOPE, CONVERSATION, [USER], [NewRun("r1")])
    with pytest.raises(InvalidInput):
        store.append(SCOPE, CONVERSATION, [], [NewRun("r1", "happy")])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        store.set_run(SCOPE, CONVERSATION, "r1", "happy")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        store.revise(SCOPE, CONVERSATION, "u1", b"t")  # type: ignore[arg-type]
    assert store.conversation(SCOPE, CONVERSATION).runs["r1"].state == "completed"
    assert texts(store) == {"u1": USER.text}


# --- at once ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_append_at_once_and_nothing_is_lost(backend: Backend) -> None:
    stores = [backend.open().transcripts for _ in range(2)] * 3

    def write(number: int) -> None:
        for n in range(20):
            name = f"m{number}-{n}"
            stores[number].append(
                SCOPE, CONVERSATION, [NewMessage(name, name, "user", name)], [NewRun(name)]
            )

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    found = stores[0].conversation(SCOPE, CONVERSATION)
    assert {m.id for m in found.messages} == {f"m{w}-{n}" for w in range(6) for n in range(20)}
    assert len(found.messages) == len(found.runs) == 120
    for number in range(6):  # each writer's lines stand in its own order
        own = [m.id for m in found.messages if m.id.startswith(f"m{number}-")]
        assert own == [f"m{number}-{n}" for n in range(20)]


def test_of_threads_with_the_same_id_one_wins(backend: Backend) -> None:
    stores = [backend.open().transcripts for _ in range(4)]

    def write(number: int) -> bool:
        try:
            stores[number].append(SCOPE, CONVERSATION, [NewMessage("m", "r", "user", str(number))])
        except DuplicateMessageId:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(write, range(4)))
    assert sum(won) == 1
    assert texts(stores[0]) == {"m": str(won.index(True))}


@pytest.mark.slow
def test_processes_append_at_once_and_nothing_is_lost(sqlite_store: SQLiteBackend) -> None:
    run_all([worker("append", sqlite_store.path, f"w{n}", 25) for n in range(4)])
    found = sqlite_store.open().transcripts.conversation(SCOPE, CONVERSATION)
    assert sorted(m.id for m in found.messages) == sorted(
        f"w{w}-{n}" for w in range(4) for n in range(25)
    )


# --- the database itself refuses ----------------------------------------------------------------

CHANGES = [
    "UPDATE messages SET text = 'other'",
    "UPDATE message_revisions SET deleted = 1",
    "UPDATE runs SET state = 'failed'",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_database_refuses_to_change_what_was_written(
    sqlite_store: SQLiteBackend, change: str
) -> None:
    store = sqlite_store.open().transcripts
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    with (
        pytest.raises(Exception, match="append-only"),
        sqlite_store.database().transaction(commit=True) as cursor,
    ):
        cursor.execute(change)
    assert len(store.conversation(SCOPE, CONVERSATION).messages) == 2


def test_a_whole_conversation_can_be_taken_out_of_the_file(sqlite_store: SQLiteBackend) -> None:
    """Triggers against mistakes must not stand in the way of an erasure (S3)."""
    store = sqlite_store.open().transcripts
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    with sqlite_store.database().transaction(commit=True) as cursor:
        for table in ("message_revisions", "messages", "runs", "conversations"):
            cursor.execute(f"DELETE FROM {table}")
    assert list(store.conversations()) == []


def test_every_revision_stays_in_the_file(sqlite_store: SQLiteBackend) -> None:
    store = sqlite_store.open().transcripts
    store.append(SCOPE, CONVERSATION, [USER])
    store.revise(SCOPE, CONVERSATION, "u1", "edited")
    store.delete(SCOPE, CONVERSATION, "u1")
    with sqlite_store.database().transaction(commit=False) as cursor:
        cursor.execute("SELECT text FROM messages")
        assert cursor.fetchall() == [(USER.text,)]
        cursor.execute("SELECT revision, text, deleted FROM message_revisions ORDER BY revision")
        assert cursor.fetchall() == [(1, "edited", 0), (2, "edited", 1)]


def test_a_string_of_a_subclass_is_text_too(store: TranscriptStore) -> None:
    class Text(str):
        __slots__ = ()

    store.append(SCOPE, CONVERSATION, [NewMessage("m", "r", "user", Text("t"))])
    store.revise(SCOPE, CONVERSATION, "m", Text("u"))
    assert texts(store) == {"m": "u"}
