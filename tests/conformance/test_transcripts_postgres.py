"""Transcripts on PostgreSQL: what the suite of every store does not reach (E4, E6, A9)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import psycopg
import pytest
from at_once import all_at_once
from backends import PostgresBackend
from histories import CONVERSATION, SCOPE, lines
from pg_bouncer import running_bouncer
from psycopg.errors import ForeignKeyViolation

from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    LedgerReadOnly,
    NotAnUpdate,
    StoreError,
    UnknownConversation,
    UnknownMessage,
)
from compaction_ledger.domain.takeover import NewThread
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Cursor, Database, Values
from compaction_ledger.infrastructure.transcripts import postgres_conversations, postgres_lines
from compaction_ledger.infrastructure.transcripts.postgres import PostgresTranscripts


@dataclass
class Bench:
    """One schema: stores on it, each with connections of its own, and what its tables hold."""

    backend: PostgresBackend

    def store(self) -> PostgresTranscripts:
        return PostgresTranscripts(self.backend.database())

    def rows(self, statement: str, *parameters: object) -> list[Values]:
        with closing(self.backend.database()) as database:
            return database.call(database.sql(statement), parameters)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection that goes past all of the ledger's software."""
        return psycopg.connect(self.backend.url.rpartition("schema=")[0][:-1])

    def sql(self, statement: str) -> bytes:
        return self.backend.database().sql(statement)

    def positions(self, conversation: str = CONVERSATION) -> list[tuple[int, str]]:
        """Every position and id of a conversation, of deleted messages, too."""
        rows = self.rows(
            "SELECT m.position, m.id FROM {schema}.messages AS m "
            "JOIN {schema}.conversations AS c ON c.key = m.conversation "
            "WHERE c.conversation = %s ORDER BY m.position",
            conversation,
        )
        return [(position, message_id) for position, message_id in rows]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    backend = PostgresBackend(tmp_path)
    yield Bench(backend)
    backend.close()


@pytest.fixture
def store(bench: Bench) -> PostgresTranscripts:
    return bench.store()


def texts(store: PostgresTranscripts, conversation: str = CONVERSATION) -> dict[str, str]:
    return {m.id: m.text for m in store.conversation(SCOPE, conversation).messages}


def at_once(*tasks: Callable[[], object]) -> None:
    """Run tasks in threads, all from the same moment; their errors come out."""

    def run(number: int, wait: Callable[[], object]) -> None:
        wait()
        tasks[number]()

    all_at_once(len(tasks), run)


# --- writers at once ----------------------------------------------------------------------------


@pytest.mark.slow
def test_twenty_writers_of_one_conversation_leave_no_gap(bench: Bench) -> None:
    def writer(number: int) -> Callable[[], None]:
        store = bench.store()

        def write() -> None:
            for n in range(50):
                name = f"w{number}-{n}"
                message = NewMessage(name, name, "user", name)
                store.append(SCOPE, CONVERSATION, [message], [NewRun(name)])

        return write

    at_once(*[writer(number) for number in range(20)])
    stored = bench.positions()
    assert [position for position, _ in stored] == list(range(1_000))
    assert {name for _, name in stored} == {f"w{w}-{n}" for w in range(20) for n in range(50)}
    for number in range(20):  # each writer's lines stand in its own order
        own = [name for _, name in stored if name.startswith(f"w{number}-")]
        assert own == [f"w{number}-{n}" for n in range(50)]
    found = bench.store().conversation(SCOPE, CONVERSATION)
    assert [m.id for m in found.messages] == [name for _, name in stored]
    assert len(found.runs) == 1_000
    assert bench.rows("SELECT revision, lines FROM {schema}.conversations") == [(1_000, 1_000)]


@pytest.mark.slow
def test_a_new_conversation_is_made_once_by_all_who_begin_it(bench: Bench) -> None:
    stores = [bench.store() for _ in range(6)]
    for round_ in range(10):
        name = f"c{round_}"

        def begin(number: int, name: str = name) -> None:
            message = NewMessage(f"m{number}", "r", "user", "t")
            if number % 2:
                stores[number].append(SCOPE, name, [message])
            else:
                stores[number].take_over(SCOPE, [NewThread(name, [message])])

        at_once(*[lambda n=number: begin(n) for number in range(6)])
        assert sorted(texts(stores[0], name)) == [f"m{number}" for number in range(6)]
        assert [position for position, _ in bench.positions(name)] == list(range(6))


@pytest.mark.slow
def test_imports_of_the_same_conversations_in_opposite_order(bench: Bench) -> None:
    """All of them come through: nobody is told of a deadlock, and nobody sees half of another's."""
    names = [f"c{n}" for n in range(12)]
    bench.store().take_over(SCOPE, [NewThread(name, lines(1)[0]) for name in names[::2]])

    def importer(number: int) -> Callable[[], None]:
        store, own = bench.store(), names if number % 2 else names[::-1]

        def take_over() -> None:
            for n in range(8):
                message = NewMessage(f"w{number}-{n}", "r", "user", "t")
                store.take_over(SCOPE, [NewThread(name, [message]) for name in own])

        return take_over

    at_once(*[importer(number) for number in range(6)])
    expected = {f"w{w}-{n}" for w in range(6) for n in range(8)}
    orders = {tuple(name for _, name in bench.positions(c) if name[0] == "w") for c in names}
    assert {frozenset(order) for order in orders} == {frozenset(expected)}
    assert len(orders) == 1  # the transactions came in one order, in every conversation


@pytest.mark.slow
def test_appends_and_imports_of_the_same_conversations(bench: Bench) -> None:
    names = [f"c{n}" for n in range(6)]

    def worker(number: int) -> Callable[[], None]:
        store, chance = bench.store(), random.Random(number)

        def work() -> None:
            for n in range(15):
                message = NewMessage(f"w{number}-{n}", "r", "user", "t")
                some = chance.sample(names, 3)
                if number % 2:
                    store.take_over(SCOPE, [NewThread(name, [message]) for name in some])
                else:
                    store.append(SCOPE, some[0], [message], [NewRun("r")])

        return work

    at_once(*[worker(number) for number in range(6)])
    for name in names:
        stored = bench.positions(name)
        assert [position for position, _ in stored] == list(range(len(stored)))


def test_of_updates_at_once_the_second_sees_the_first(bench: Bench) -> None:
    first, second = bench.store(), bench.store()
    first.append(SCOPE, CONVERSATION, *lines(1))
    grown = NewThread(CONVERSATION, *lines(3))
    counts: list[int] = []

    def update(store: PostgresTranscripts) -> None:
        [changes] = store.take_over(SCOPE, [grown], update=True)
        counts.append(len(changes.appended))

    at_once(lambda: update(first), lambda: update(second))
    assert sorted(counts) == [0, 4]
    assert len(bench.positions()) == 6


@pytest.mark.slow
def test_a_conversation_that_is_being_changed_keeps_nobody_from_another(bench: Bench) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.append(SCOPE, "another", *lines(1))
    with bench.connect() as holder, ThreadPoolExecutor(1) as pool:
        holder.execute(
            bench.sql("SELECT FROM {schema}.conversations WHERE conversation = %s FOR UPDATE"),
            [CONVERSATION],
        )
        store.append(SCOPE, "another", *lines(1, start=1))
        store.append(SCOPE, "new", *lines(1))
        assert len(texts(store)) == 2  # and readers wait for nobody
        waiting: Future[None] = pool.submit(store.append, SCOPE, CONVERSATION, *lines(1, start=1))
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        holder.rollback()
        waiting.result(timeout=10)
    assert len(texts(store)) == 4


@pytest.mark.slow
def test_a_conversation_that_is_deleted_meanwhile_is_begun_anew(bench: Bench) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(2))
    before = store.revision(SCOPE, CONVERSATION)
    with bench.connect() as eraser, ThreadPoolExecutor(1) as pool:
        for table in ("messages", "runs", "conversations"):
            eraser.execute(bench.sql(f"DELETE FROM {{schema}}.{table}"))
        waiting = pool.submit(store.take_over, SCOPE, [NewThread(CONVERSATION, *lines(2))])
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        eraser.commit()
        [changes] = waiting.result(timeout=10)
    assert len(changes.appended) == 4
    assert [position for position, _ in bench.positions()] == list(range(4))
    # Both were changed once; what was read of the first is still known to be out of date.
    assert store.revision(SCOPE, CONVERSATION) != before


def test_through_a_pooler_that_hands_connections_on(bench: Bench) -> None:
    """Nothing that is needed stays behind in a session (transaction mode)."""
    direct, _, schema = bench.backend.url.rpartition("schema=")
    with running_bouncer(direct[:-1], pool_size=2) as bouncer, ExitStack() as stack:
        pooled = f"{bouncer.url(urlsplit(direct).path[1:])}?schema={schema}"
        stores = [
            PostgresTranscripts(stack.enter_context(closing(Database(parse_address(pooled)))))
            for _ in range(5)
        ]

        def write(number: int) -> None:
            store = stores[number]
            for n in range(10):
                name = f"w{number}-{n}"
                store.append(SCOPE, CONVERSATION, [NewMessage(name, name, "user", "t")])
                store.revise(SCOPE, CONVERSATION, name, name)
                assert texts(store)[name] == name

        at_once(*[lambda n=number: write(n) for number in range(5)])
        assert len(texts(stores[0])) == 50
    assert [position for position, _ in bench.positions()] == list(range(50))


# --- much at once -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_messages_in_one_append(bench: Bench, count: int) -> None:
    store = bench.store()
    many = [NewMessage(f"m{n}", f"r{n // 2}", "user", f"text {n}") for n in range(count)]
    store.append(SCOPE, CONVERSATION, iter(many), (NewRun(f"r{n}") for n in range(count // 2)))
    found = store.conversation(SCOPE, CONVERSATION)
    assert [(m.id, m.run, m.text) for m in found.messages] == [(m.id, m.run, m.text) for m in many]
    assert len(found.runs) == count // 2
    with pytest.raises(DuplicateMessageId) as refusal:
        store.append(SCOPE, CONVERSATION, [NewMessage("new", "r", "user", "t"), many[17_777]])
    assert (refusal.value.first, refusal.value.second) == (
        "position 17777",
        f"position {count + 1}",
    )


def test_a_long_transcript_goes_in_by_several_statements(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number and by size, the same comes out; and what is refused behind it takes it all back."""
    monkeypatch.setattr(postgres_lines, "LINES_AT_ONCE", 7)
    monkeypatch.setattr(postgres_lines, "BYTES_AT_ONCE", 1_000)
    store = bench.store()
    messages, runs = lines(30)
    big = [NewMessage(f"b{n}", "r", "user", "x" * (400 * n)) for n in range(9)]
    store.append(SCOPE, CONVERSATION, [*messages, *big], runs)
    assert texts(store) == {m.id: m.text for m in (*messages, *big)}
    assert len(store.conversation(SCOPE, CONVERSATION).runs) == 30
    changed = [NewMessage(m.id, m.run, m.role, m.text + "!") for m in messages]
    now = NewThread(CONVERSATION, [*changed, *big, NewMessage("last", "r", "user", "t")], runs)
    [changes] = store.take_over(SCOPE, [now], update=True)
    assert (len(changes.revised), len(changes.appended)) == (60, 1)
    assert [m.text for m in store.conversation(SCOPE, CONVERSATION).messages] == [
        m.text for m in now.messages
    ]


def test_ids_that_stand_twice_are_named_by_the_first_of_them(store: PostgresTranscripts) -> None:
    store.append(SCOPE, CONVERSATION, *lines(2))
    one = [NewMessage(name, "r", "user", "t") for name in ("n1", "n2", "n1", "u1", "u0")]
    other = [NewMessage(name, "r", "user", "t") for name in ("n1", "u1", "u0", "n1")]
    for messages, message_id, places in (
        (one, "n1", ("position 4", "position 6")),
        (other, "u1", ("position 2", "position 5")),
    ):
        with pytest.raises(DuplicateMessageId) as refusal:
            store.append(SCOPE, CONVERSATION, messages)
        assert refusal.value.message_id == message_id
        assert (refusal.value.first, refusal.value.second) == places
    assert len(texts(store)) == 4


def test_conversations_are_listed_page_by_page_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_conversations, "NAMES_AT_ONCE", 4)
    store = bench.store()
    names = ["a", "A", "á", "aa", "a b", "Z", "消息", "😀", "\ufffd", "%", "'"]
    places = [(scope, name) for scope in ("s", "S", "ſ") for name in names]
    for scope in ("s", "S", "ſ"):
        store.take_over(scope, [NewThread(name, []) for name in names])
    found = store.conversations()
    assert list(found) == sorted(places)
    assert list(found) == sorted(places)  # asked again, it answers again
    assert list(islice(store.conversations(), 4)) == sorted(places)[:4]
    assert all(a < b for a, b in pairwise(found))


# --- bit for bit, and ids of every length (E4, E6) ----------------------------------------------


def test_no_two_texts_become_one(bench: Bench) -> None:
    difficult = ["\x00", "", "\ud83d\ude00", "\U0001f600", "\ud83d", "\ude00", "\ufffd", "\\x00"]
    store = bench.store()
    messages = [NewMessage(f"m{n}", "r", "user", text) for n, text in enumerate(difficult)]
    store.append(SCOPE, CONVERSATION, messages)
    assert [m.text for m in store.conversation(SCOPE, CONVERSATION).messages] == difficult
    for n, text in enumerate(difficult):
        store.revise(SCOPE, CONVERSATION, f"m{n}", text[::-1])
    assert [m.text for m in store.conversation(SCOPE, CONVERSATION).messages] == [
        text[::-1] for text in difficult
    ]


def test_the_longest_ids_that_there_are(store: PostgresTranscripts) -> None:
    """Four bytes for each character, and nothing that could be compressed: more than an index takes."""
    chance = random.Random(7)

    def name() -> str:
        return "".join(chr(chance.randrange(0x1_0000, 0x11_0000)) for _ in range(512))

    scope, conversations, ids = name(), [name(), name()], [name() for _ in range(4)]
    for conversation in conversations:
        messages = [NewMessage(i, i, "user", conversation) for i in ids]
        store.append(scope, conversation, messages, [NewRun(i) for i in ids])
        store.revise(scope, conversation, ids[1], "edited")
        store.set_run(scope, conversation, ids[2], "failed")
    for conversation in conversations:
        found = store.conversation(scope, conversation)
        assert [(m.id, m.run) for m in found.messages] == [(i, i) for i in ids]
        assert found.messages[1].text == "edited"
        assert found.runs[ids[2]].state == "failed"
    assert sorted(store.conversations()) == sorted((scope, c) for c in conversations)


def test_what_is_between_scope_and_conversation_is_no_part_of_either(
    store: PostgresTranscripts,
) -> None:
    for place in (("a", "bc"), ("ab", "c")):
        store.append(*place, [NewMessage("m", "r", "user", "".join(place))])
    assert list(store.conversations()) == [("a", "bc"), ("ab", "c")]
    with pytest.raises(UnknownConversation):
        store.conversation("abc", "c")


def test_values_of_subclasses_of_text_among_others(store: PostgresTranscripts) -> None:
    class Text(str):
        __slots__ = ()

    mixed = [
        NewMessage(Text("m1"), "r", "user", "t"),
        NewMessage("m2", Text("r"), Text("assistant"), Text("u")),  # type: ignore[arg-type]
    ]
    store.take_over(Text(SCOPE), [NewThread(Text(CONVERSATION), mixed, [NewRun(Text("r"))])])
    store.append(SCOPE, Text(CONVERSATION), [NewMessage(Text("m3"), "r", "user", "t")])
    found = store.conversation(SCOPE, CONVERSATION)
    assert [(m.id, m.role, m.text) for m in found.messages] == [
        ("m1", "user", "t"),
        ("m2", "assistant", "u"),
        ("m3", "user", "t"),
    ]
    assert list(found.runs) == ["r"]


# --- revisions ----------------------------------------------------------------------------------


def test_every_revision_stays_under_the_number_of_its_change(bench: Bench) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    store.set_run(SCOPE, CONVERSATION, "run-0", "failed")
    store.revise(SCOPE, CONVERSATION, "u0", status="failed")
    store.delete(SCOPE, CONVERSATION, "u0")
    revisions = bench.rows(
        "SELECT position, revision, status, text, deleted FROM {schema}.message_revisions "
        "ORDER BY revision"
    )
    assert revisions == [
        (0, 2, "completed", b"edited", False),
        (0, 4, "failed", b"edited", False),
        (0, 5, "failed", b"edited", True),
    ]
    runs = bench.rows("SELECT id, revision, state FROM {schema}.runs ORDER BY revision")
    assert runs == [("run-0", 1, "completed"), ("run-0", 3, "failed")]
    assert bench.rows("SELECT revision, lines FROM {schema}.conversations") == [(5, 2)]
    [(text,)] = bench.rows("SELECT text FROM {schema}.messages WHERE id = 'u0'")
    assert text == lines(1)[0][0].text.encode()


def test_many_revisions_of_many_messages(store: PostgresTranscripts) -> None:
    """Each message by its own newest one, whichever of them were revised how often."""
    chance = random.Random(3)
    store.append(SCOPE, CONVERSATION, *lines(40))
    expected = texts(store)
    for step in range(120):
        message_id = chance.choice(list(expected))
        if step % 10 == 9:
            store.delete(SCOPE, CONVERSATION, message_id)
            del expected[message_id]
        else:
            expected[message_id] = f"text {step}"
            store.revise(SCOPE, CONVERSATION, message_id, expected[message_id])
    assert list(texts(store).items()) == list(expected.items())


def test_a_deleted_message_in_an_update(store: PostgresTranscripts) -> None:
    store.append(SCOPE, CONVERSATION, *lines(2))
    store.delete(SCOPE, CONVERSATION, "a1")
    with pytest.raises(NotAnUpdate, match="was deleted"):
        store.take_over(SCOPE, [NewThread(CONVERSATION, *lines(2))], update=True)
    with pytest.raises(UnknownMessage):
        store.revise(SCOPE, CONVERSATION, "a1", "t")
    messages, runs = lines(2)
    now = NewThread(
        CONVERSATION, [*messages[:3], NewMessage("a2", "run-1", "assistant", "t")], runs
    )
    store.take_over(SCOPE, [now], update=True)
    assert list(texts(store)) == ["u0", "a0", "u1", "a2"]


# --- the database itself refuses ----------------------------------------------------------------

CHANGES = [
    "UPDATE {schema}.messages SET text = 'other'",
    "UPDATE {schema}.message_revisions SET deleted = true",
    "UPDATE {schema}.runs SET state = 'failed'",
]


def change(bench: Bench, *statements: str) -> None:
    database: Database = bench.backend.database()

    def work(cursor: Cursor) -> None:
        for statement in statements:
            cursor.execute(database.sql(statement))

    database.run(work, commit=True)


@pytest.mark.parametrize("statement", CHANGES)
def test_the_database_refuses_to_change_what_was_written(bench: Bench, statement: str) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    with pytest.raises(StoreError, match="append-only"):
        change(bench, statement)
    assert len(store.conversation(SCOPE, CONVERSATION).messages) == 2


def test_a_whole_conversation_can_be_taken_out_but_none_of_its_lines_forgotten(
    bench: Bench,
) -> None:
    """Triggers against mistakes must not stand in the way of an erasure (S3)."""
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(1))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    tables = ("message_revisions", "messages", "runs", "conversations")
    for forgotten in tables[:3]:
        others = [f"DELETE FROM {{schema}}.{table}" for table in tables if table != forgotten]
        with pytest.raises(StoreError) as refusal:
            change(bench, *others)
        assert isinstance(refusal.value.__cause__, ForeignKeyViolation)
    change(bench, *[f"DELETE FROM {{schema}}.{table}" for table in tables])
    assert list(store.conversations()) == []
    with pytest.raises(UnknownConversation):
        store.conversation(SCOPE, CONVERSATION)


def test_bytes_that_are_no_text_are_no_message(bench: Bench) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(1))
    change(
        bench,
        "INSERT INTO {schema}.messages SELECT key, 2, 'm', 'r', 'user', 'completed', 'chat', '\\xff' "
        "FROM {schema}.conversations",
    )
    with pytest.raises(StoreError, match="no text"):
        store.conversation(SCOPE, CONVERSATION)


# --- what a role needs --------------------------------------------------------------------------

READING = [
    "USAGE ON SCHEMA {schema}",
    "SELECT ON {schema}.conversations, {schema}.messages, {schema}.message_revisions, {schema}.runs",
    "EXECUTE ON FUNCTION {schema}.conversation_now",
]
WRITING = [
    *READING,
    "INSERT ON {schema}.conversations, {schema}.messages, {schema}.message_revisions, {schema}.runs",
    "UPDATE (revision, lines) ON {schema}.conversations",
    "EXECUTE ON FUNCTION {schema}.make_conversations, {schema}.change_conversation",
    "EXECUTE ON FUNCTION {schema}.mark_transaction, {schema}.last_commit_of",
    "EXECUTE ON FUNCTION {schema}.write_lines, {schema}.write_runs, {schema}.write_revisions",
]


@contextmanager
def role_with(bench: Bench, grants: list[str]) -> Iterator[PostgresTranscripts]:
    """A store whose connections have a role that may do this and nothing else."""
    name = f"role_{uuid4().hex}"
    change(
        bench,
        f"CREATE ROLE {name}",
        "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC",
    )
    change(bench, *[f"GRANT {grant} TO {name}" for grant in grants])
    try:
        url = f"{bench.backend.url}&{urlencode({'options': f'-crole={name}'})}"
        with closing(Database(parse_address(url))) as database:
            yield PostgresTranscripts(database)
    finally:
        change(bench, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_role_that_only_reads(bench: Bench) -> None:
    store = bench.store()
    store.append(SCOPE, CONVERSATION, *lines(2))
    store.revise(SCOPE, CONVERSATION, "u0", "edited")
    with role_with(bench, READING) as reader:
        found = reader.conversation(SCOPE, CONVERSATION)
        assert found == store.conversation(SCOPE, CONVERSATION)
        assert reader.revision(SCOPE, CONVERSATION) == store.revision(SCOPE, CONVERSATION)
        assert list(reader.conversations()) == [(SCOPE, CONVERSATION)]
        attempts: list[Callable[[], object]] = [
            lambda: reader.append(SCOPE, CONVERSATION, *lines(1, start=2)),
            lambda: reader.take_over(SCOPE, [NewThread("new", *lines(1))]),
            lambda: reader.revise(SCOPE, CONVERSATION, "u0", "t"),
            lambda: reader.set_run(SCOPE, CONVERSATION, "run-0", "failed"),
        ]
        for attempt in attempts:
            with pytest.raises(LedgerReadOnly):
                attempt()


def test_a_role_that_writes_can_change_nothing_that_was_written(bench: Bench) -> None:
    with role_with(bench, WRITING) as writer:
        writer.append(SCOPE, CONVERSATION, *lines(2))
        writer.take_over(SCOPE, [NewThread(CONVERSATION, *lines(3))], update=True)
        writer.revise(SCOPE, CONVERSATION, "u0", "edited")
        writer.delete(SCOPE, CONVERSATION, "a2")
        writer.set_run(SCOPE, CONVERSATION, "run-0", "failed")
        assert list(texts(writer)) == ["u0", "a0", "u1", "a1", "u2"]
        database = writer._database
        for statement in (*CHANGES, "DELETE FROM {schema}.messages", "TRUNCATE {schema}.runs"):
            with pytest.raises(LedgerReadOnly):
                database.call(database.sql(statement))
