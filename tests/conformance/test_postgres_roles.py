"""Least privilege: what a writer and a reader of a ledger on PostgreSQL can do, and above all cannot.

A real server, with three roles that log in: the owner of the tables (no superuser), a writer and a reader.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from backends import everyday_database
from histories import CONVERSATION, SCOPE, lines
from originals_messages import SHAPE, messages
from pg_servers import drop_schemas
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from compaction_ledger import ExtractiveSummarizer, Ledger, Pace, Settings
from compaction_ledger.domain.errors import InvalidSetting, LedgerReadOnly, StoreError
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.postgres.address import parse_address
from compaction_ledger.infrastructure.postgres.database import Database, in_schema
from compaction_ledger.infrastructure.postgres.migrating import migrate
from compaction_ledger.infrastructure.postgres.roles import role_statements
from compaction_ledger.projections.generations import LAYOUT

PASSWORD = "for a test"


@dataclass(frozen=True)
class World:
    """A ledger whose roles have been granted what they may do, and how each of them reaches it."""

    schema: str
    superuser_plain: str
    """A superuser's URL as it came, without a schema."""
    superuser: str
    owner: str
    writer: str
    reader: str
    """URLs, with the ledger's schema."""

    @contextmanager
    def connected(self, url: str, **values: Any) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """A bare connection, as somebody who goes past all of this software."""
        with psycopg.connect(parse_address(url).conninfo, autocommit=True, **values) as connection:
            yield connection

    def execute(self, url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as somebody, in a transaction."""
        with self.connected(url) as connection, connection.transaction():
            cursor = connection.execute(self.named(statement), values or None)
            return cursor.fetchall() if cursor.description else []

    def named(self, statement: str) -> bytes:
        """With the names of the schemas in it, and those of the roles."""
        for role in ("owner", "writer", "reader"):
            statement = statement.replace(f"{{{role}}}", f'"{role_of(getattr(self, role))}"')
        if "{n}" in statement:
            [(serving,)] = self.execute(
                self.owner, "SELECT generation FROM {read_models}.generations WHERE active"
            )
            statement = statement.replace("{n}", str(serving))
        return in_schema(statement, parse_address(self.owner))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A ledger that a writer has worked with."""
    superuser = everyday_database()
    mark = uuid4().hex[:8]
    names = [f"{role} {mark}" for role in ("Owner", "Writer", "Reader")]  # that have to be quoted
    schema = f"roles_{mark}"
    owner, writer, reader = (_url_of(superuser, name, schema) for name in names)
    with psycopg.connect(superuser, autocommit=True) as connection:
        _make_roles(connection, *names)
        try:
            made = World(schema, superuser, f"{superuser}?schema={schema}", owner, writer, reader)
            database = Database(parse_address(owner))
            migrate(database)
            database.close()
            grant(made)
            _work(made)
            yield made
        finally:
            drop_schemas(superuser, schema, f"{schema}_read_models")
            for name in names:
                role = sql.Identifier(name)
                connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
            for name in names:
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def _url_of(superuser: str, name: str, schema: str) -> str:
    parts = urlsplit(superuser)
    place = parts.netloc.rpartition("@")[2]
    user = f"{quote(name)}:{quote(PASSWORD)}"
    return urlunsplit(parts._replace(netloc=f"{user}@{place}", query=f"schema={schema}"))


def _make_roles(
    connection: psycopg.Connection[tuple[Any, ...]], owner: str, writer: str, reader: str
) -> None:
    for name in (owner, writer, reader):
        make = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        connection.execute(make.format(sql.Identifier(name), PASSWORD))
    database = sql.Identifier(connection.info.dbname)
    connection.execute(
        sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, sql.Identifier(owner))
    )


def grant(world: World) -> None:
    """As the owner would after a migration."""
    names = [str(role_of(url)) for url in (world.writer, world.reader)]
    statements = role_statements(parse_address(world.owner), *names)
    with world.connected(world.owner) as connection:
        connection.execute(statements.encode())


def role_of(url: str) -> str:
    """Who connects."""
    return str(conninfo_to_dict(parse_address(url).conninfo)["user"])


def _work(world: World) -> None:
    """Something for everybody to look at, done by the writer."""
    with Ledger.open(world.writer, summarizer=ExtractiveSummarizer()) as ledger:
        ledger.transcripts.append(SCOPE, CONVERSATION, *lines(40))
        assert ledger.compact(CONVERSATION, scope=SCOPE).completed == 2


# --- the names -----------------------------------------------------------------------------------------

ADDRESS = parse_address("postgresql://host/db?schema=s")


def test_names_are_quoted() -> None:
    statements = role_statements(ADDRESS, 'wri"ter', "{writer} {schema}")
    assert 'TO "wri""ter"' in statements
    assert '"{writer} {schema}"' in statements
    assert '"s_read_models"' in statements


@pytest.mark.parametrize(
    ("writer", "reader", "place"),
    [
        ("", "r", "writer"),
        ("w", "", "reader"),
        ("w\x00", "r", "writer"),
        ("\ud800", "r", "writer"),
        ("w", "ö" * 32, "reader"),
        ("public", "r", "writer"),
        ("w", "none", "reader"),
        ("pg_monitor", "r", "writer"),
        ("same", "same", "roles"),
    ],
)
def test_a_name_that_no_role_can_have_is_refused(writer: str, reader: str, place: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        role_statements(ADDRESS, writer, reader)
    assert refusal.value.place == place


# --- what the writer can do ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_writer_can_do_the_whole_job(world: World) -> None:
    settings = Settings(shared_attempts_at_once=1)
    with Ledger.open(world.writer, settings=settings) as ledger:
        conversation = f"c-{uuid4().hex}"
        messages, runs = lines(50)
        ledger.transcripts.append(SCOPE, conversation, messages, runs)
        ledger.transcripts.revise(SCOPE, conversation, messages[99].id, "Another answer.")
        ledger.transcripts.delete(SCOPE, conversation, messages[98].id)
        ledger.transcripts.set_run(SCOPE, conversation, "run-48", "failed")
        assert ledger.notice([(SCOPE, conversation)]) == 1
        assert ledger.backlog().due >= 1
        served = ledger.work(pace=Pace(threads=2, until_idle=True))
        assert not served.stopped
        assert [row.status for row in ledger.ranges(conversation, scope=SCOPE)] == ["done"] * 2

        request = ledger.assemble(conversation, scope=SCOPE, budget=100_000)
        assert request.manifest.summaries
        index = ledger.record_delivery(request, run="next")
        assert ledger.catch_up() == index + 1
        assert ledger.rebuild() == ledger.size()
        assert ledger.rebuild() == ledger.size()  # and away with what it made itself
        assert len(ledger.deliveries(conversation, scope=SCOPE)) == 1
        assert not list(ledger.verify().findings)
        shared = ledger._parts.shared_admission
        assert shared is not None
        assert (shared.in_use(), shared.waiting()) == (0, 0)


def test_the_writer_indexes_and_the_reader_searches_without_it(world: World) -> None:
    """T15: the index is changed by the writer alone; a reader makes its own in memory."""
    conversation = f"c-{uuid4().hex}"
    with Ledger.open(world.writer) as ledger:
        ledger.transcripts.append(SCOPE, conversation, *lines(3))
        history = ledger.history_search(conversation, scope=SCOPE)
        found = history.search(HistoryQuery("fund 14"))
        assert len(found.hits) == 1
        ledger.transcripts.revise(SCOPE, conversation, found.hits[0].message_id, "Other words.")
        assert not history.search(HistoryQuery("fund 14")).hits
        again = history.search(HistoryQuery("other words"))
        assert ledger._parts.history.marks(SCOPE, conversation)
    with Ledger.open(world.reader, read_only=True) as ledger:
        read = ledger.history_search(conversation, scope=SCOPE)
        assert read.search(HistoryQuery("other words")) == again
    with Ledger.open(world.reader) as ledger, pytest.raises(StoreError):
        ledger._parts.history.forget(SCOPE, conversation)
    with Ledger.open(world.writer) as ledger:
        ledger._parts.history.forget(SCOPE, conversation)
        assert not ledger._parts.history.marks(SCOPE, conversation)


def test_granting_again_disturbs_nobody(world: World) -> None:
    with world.connected(world.writer) as connection, connection.transaction(force_rollback=True):
        connection.execute(world.named(WRITING["append"]))
        grant(world)  # waits for nothing
        connection.execute(world.named(WRITING["name a subject"]))


def test_the_writer_takes_over_tables_that_the_owner_made(world: World) -> None:
    with Ledger.open(world.owner) as ledger:
        ledger.rebuild()
    with Ledger.open(world.writer) as ledger:
        ledger.record_delivery(ledger.assemble(CONVERSATION, scope=SCOPE, budget=100_000))
        assert ledger.catch_up() == ledger.rebuild()
    with Ledger.open(world.owner) as ledger:
        assert not list(ledger.verify().findings)
        ledger.rebuild()


def test_the_writer_keeps_originals_that_the_reader_reads(world: World) -> None:
    key = WindowKey(SCOPE, f"c-{uuid4().hex}", "run-1")
    given = messages(0, 3)
    with (
        Ledger.open(world.writer) as writer,
        Ledger.open(world.reader, read_only=True) as reader,
    ):
        kept, seen = writer._parts.originals, reader._parts.originals
        kept.append(key, SHAPE, 0, given)
        digest = kept.keep_result(SCOPE, key.conversation, b"x")
        assert [m.wire for m in seen.read(key)] == [m.wire for m in given]
        assert seen.result(SCOPE, key.conversation, digest) == b"x"
        for write in (
            lambda: seen.append(key, SHAPE, 3, messages(3, 4)),
            lambda: seen.keep_result(SCOPE, key.conversation, b"y"),
            lambda: seen.forget(SCOPE, key.conversation),
        ):
            with pytest.raises(LedgerReadOnly):
                write()
        kept.forget(SCOPE, key.conversation)
        assert seen.count(key) == 0


def test_the_writer_signs_and_the_reader_proves(world: World, tmp_path: Path) -> None:
    places = Settings(keys_folder=tmp_path / "k", checkpoints_folder=tmp_path / "c")
    with (
        Ledger.open(world.writer, settings=places) as writer,
        Ledger.open(world.reader, read_only=True, settings=places) as reader,
    ):
        signed = writer.checkpoint().checkpoint
        assert reader.newest_checkpoint() == signed
        assert signed.size == reader.size() > 0
        assert [proof.index for proof in reader.prove(0, signed.size - 1)] == [0, signed.size - 1]
        with pytest.raises(LedgerReadOnly):
            reader.checkpoint()


# --- what it cannot ------------------------------------------------------------------------------------

TABLES = (
    "log_head",
    "stored_events",
    "subjects",
    "last_commits",
    "schema_migrations",
    "admission",
    "admission_slots",
    "admission_tickets",
    "work_items",
    "work_scopes",
    "work_periods",
    "window_runs",
    "window_messages",
    "window_results",
    "tree_nodes",
    "signer",
)
"""What is changed through functions alone."""

TAMPERING = {
    **{
        f"{verb} {table}": statement.format(table="{schema}." + table)
        for table in TABLES
        for verb, statement in {
            "delete from": "DELETE FROM {table}",
            "truncate": "TRUNCATE {table} CASCADE",
            "insert into": "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {table}",
            "copy into": "COPY {table} FROM STDIN",
            "lock": "LOCK TABLE {table} IN ROW EXCLUSIVE MODE",
            "lock rows of": "SELECT * FROM {table} FOR UPDATE",
            "share rows of": "SELECT * FROM {table} FOR KEY SHARE",
            "drop": "DROP TABLE {table} CASCADE",
            "change": "ALTER TABLE {table} ADD COLUMN more text",
            "disable triggers of": "ALTER TABLE {table} DISABLE TRIGGER ALL",
            "own": "ALTER TABLE {table} OWNER TO {{writer}}",
            "put a trigger on": "CREATE TRIGGER t BEFORE UPDATE ON {table} FOR EACH ROW"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "put a rule on": "CREATE RULE r AS ON INSERT TO {table} DO INSTEAD NOTHING",
            "guard rows of": "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "index": "CREATE INDEX ON {table} ((true))",
        }.items()
    },
    "update stored_events": "UPDATE {schema}.stored_events SET state = ''",
    "update a column": "UPDATE {schema}.stored_events SET topic = topic",
    "move the head": "UPDATE {schema}.log_head SET size = size - 1",
    "change the head": "UPDATE {schema}.log_head SET origin = 'mine'",
    "change a subject": "UPDATE {schema}.subjects SET state = 'erased'",
    "change a slot": "UPDATE {schema}.admission_slots SET lease = 1",
    "settle": "SELECT {schema}.settle_admission(0)",
    "ripen": "SELECT {schema}.ripen_work(0)",
    "change the work list": "UPDATE {schema}.work_items SET due_at = 0",
    "drop the trigger": "DROP TRIGGER append_only ON {schema}.stored_events",
    "switch all triggers off": "SET session_replication_role = replica",
    "replace a function": "CREATE OR REPLACE FUNCTION {schema}.store_clock() RETURNS bigint"
    " LANGUAGE sql AS 'SELECT 1::bigint'",
    "replace a function of the trigger": "CREATE OR REPLACE FUNCTION {schema}.refuse_change()"
    " RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "change a function": "ALTER FUNCTION {schema}.append_event SECURITY INVOKER",
    "drop a function": "DROP FUNCTION {schema}.append_event CASCADE",
    "own a function": "ALTER FUNCTION {schema}.append_event OWNER TO {writer}",
    "make a function": "CREATE FUNCTION {schema}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "make a table": "CREATE TABLE {schema}.mine (a int)",
    "rename the schema": "ALTER SCHEMA {schema} RENAME TO mine",
    "drop the schema": "DROP SCHEMA {schema} CASCADE",
    "become the owner": "SET ROLE {owner}",
    "become the owner's member": "GRANT {owner} TO {writer}",
    "own all": "REASSIGN OWNED BY {owner} TO {writer}",
    "read files": "COPY {schema}.stored_events TO '/tmp/stolen'",
    "run programs": "COPY {schema}.stored_events TO PROGRAM 'cat'",
    "change a message": "UPDATE {schema}.messages SET text = ''",
    "delete a message": "DELETE FROM {schema}.messages",
    "change a revision": "UPDATE {schema}.message_revisions SET text = ''",
    "change a run": "UPDATE {schema}.runs SET state = 'failed'",
    "rename a conversation": "UPDATE {schema}.conversations SET scope = 'mine'",
    "delete a conversation": "DELETE FROM {schema}.conversations",
    "delete generations": "DELETE FROM {read_models}.generations",
    "truncate generations": "TRUNCATE {read_models}.generations",
    "delete rows of read models": "DELETE FROM {read_models}.summaries_{n}",
    "drop tables of read models": "DROP TABLE {read_models}.summaries_{n}",
    "make a table among read models": "CREATE TABLE {read_models}.mine (a int)",
    "drop the read models": "DROP SCHEMA {read_models} CASCADE",
}
WRITING = {
    "append": "SELECT {schema}.append_event(0, 9000000000000000000, 'a', 1, 'b', '', '', '')",
    "append several": "SELECT {schema}.append_events(0, 9, '{}', '{}', '{}', '{}', '{}', '{}')",
    "name a subject": "SELECT {schema}.subject_of('a', 'b', 'c')",
    "mark a transaction": f"SELECT {{schema}}.mark_transaction('{uuid4()}', 1)",
    "take a slot": f"SELECT {{schema}}.take_slot('{uuid4()}', '{uuid4()}', 'a', 1, 1, 1)",
    "renew slots": "SELECT {schema}.renew_slots('{}')",
    "give slots back": "SELECT {schema}.give_back_slots('{}', NULL)",
    "make a conversation": "SELECT {schema}.make_conversations('{}', 'a', '{}', '{}')",
    "insert a conversation": "INSERT INTO {schema}.conversations (name, scope, conversation,"
    " revision, lines) VALUES ('a', 'a', 'a', 1, 0)",
    "insert a run": "INSERT INTO {schema}.runs SELECT * FROM {schema}.runs LIMIT 0",
    "put a generation forward": "UPDATE {read_models}.generations SET position = position + 1",
    "hold generations": "SELECT {read_models}.hold_generations()",
    "begin a generation": f"SELECT {{read_models}}.begin_generation({LAYOUT}, '')",
    "index a generation": "SELECT {read_models}.index_generation({n})",
    "switch the generation": "SELECT {read_models}.switch_generation({n})",
    "drop generations": "SELECT {read_models}.drop_generations()",
    "change rows of read models": "UPDATE {read_models}.summaries_{n} SET attempts = 9",
    "notice": "SELECT {schema}.notice_work('{a}', '{b}')",
    "notice what changed": "SELECT {schema}.notice_changed_work('{a}', '{b}', '{c}', NULL)",
    "take work": "SELECT {schema}.take_work(1, false, 'a', 1, 1)",
    "note a look": "SELECT {schema}.note_look('a', 'b', 1, NULL, NULL, '', 0)",
    "forget work": "SELECT {schema}.forget_work('a', 'b', NULL)",
    "append originals": "SELECT {schema}.append_originals('a', 'b', 'c', 'd', 0,"
    " '{}', '{}', '{}', '{}', '{}')",
    "keep a result": "SELECT {schema}.keep_result('a', 'b', '')",
    "forget originals": "SELECT {schema}.forget_originals('a', 'b')",
    "begin a period": "SELECT {schema}.begin_work_period('a', 1)",
    "extend a period": "SELECT {schema}.extend_work_period('a', 1)",
    "become the signer": "SELECT {schema}.begin_signing('a')",
    "announce": "SELECT {schema}.announce_signing(0, 'a', 0, '')",
    "keep hashes": "SELECT {schema}.keep_tree_nodes('{8}', '{0}', '{a}')",
    "forget hashes": "SELECT {schema}.forget_tree_nodes()",
    "count a conversation's changes": "UPDATE {schema}.conversations SET revision = revision + 1",
}


REFUSED = (pg.InsufficientPrivilege, pg.InvalidGrantOperation)


@pytest.mark.parametrize("name", TAMPERING)
def test_the_writer_cannot(world: World, name: str) -> None:
    with pytest.raises(REFUSED):
        world.execute(world.writer, TAMPERING[name])


@pytest.mark.parametrize("name", [*TAMPERING, *WRITING])
def test_the_reader_cannot(world: World, name: str) -> None:
    statement = (TAMPERING | WRITING)[name].replace("{writer}", "{reader}")
    with pytest.raises(REFUSED):
        world.execute(world.reader, statement)


@pytest.mark.parametrize("name", WRITING)
def test_what_the_reader_cannot_do_the_writer_can(world: World, name: str) -> None:
    """So the reader is refused for want of a privilege, not because a statement is wrong."""
    with world.connected(world.writer) as connection, connection.transaction(force_rollback=True):
        connection.execute(world.named(WRITING[name]))


@pytest.mark.slow
def test_whoever_else_connects_can_do_nothing(world: World) -> None:
    with other_role(world) as (name, nobody):
        statements = {**TAMPERING, **WRITING, "look": "SELECT size FROM {schema}.log_head"}
        for statement in statements.values():
            with pytest.raises(REFUSED):
                world.execute(nobody, statement.replace("{writer}", name))
        # Also if somebody lets it into the schema: nothing in there is for everybody.
        world.execute(world.owner, f"GRANT USAGE ON SCHEMA {{schema}}, {{read_models}} TO {name}")
        for statement in statements.values():
            with pytest.raises(REFUSED):
                world.execute(nobody, statement.replace("{writer}", name))


@contextmanager
def other_role(world: World) -> Iterator[tuple[str, str]]:
    """One more role that may log in: its name, quoted, and the URL by which it comes."""
    name = f"Nobody {uuid4().hex[:8]}"
    world.execute(world.superuser, f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{PASSWORD}'")
    try:
        yield f'"{name}"', _url_of(world.superuser, name, world.schema)
    finally:
        world.execute(world.superuser, f'DROP OWNED BY "{name}"')
        world.execute(world.superuser, f'DROP ROLE "{name}"')


FUNCTIONS = """
SELECT p.oid::regproc::text, proname, array_remove(ARRAY[
    CASE WHEN has_function_privilege(%s, p.oid, 'EXECUTE') THEN 'writer' END,
    CASE WHEN has_function_privilege(%s, p.oid, 'EXECUTE') THEN 'reader' END,
    CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN 'all' END
], NULL) FROM pg_proc AS p WHERE pronamespace = ANY (%s::regnamespace[])
"""


def test_every_function_is_granted_by_name_or_to_nobody(world: World) -> None:
    """What a later migration makes cannot be forgotten: it has to stand here or in ``roles.sql``."""
    roles = [role_of(world.writer), role_of(world.reader)]
    schemas = [world.schema, f"{world.schema}_read_models"]
    granted = {name: to for _, name, to in world.execute(world.owner, FUNCTIONS, *roles, schemas)}
    assert {name for name, to in granted.items() if not to} == {
        "refuse_change",
        "refuse_change_of_event",
        "mark_erased",
        "forget_name",
        "forget_conversation",
        "blank_payloads",
        "may_take_slot",
        "settle_admission",
        "ripen_work",
        "generation_tables",
    }
    assert {name for name, to in granted.items() if "reader" in to} == {
        "store_clock",
        "conversation_name",
        "conversation_now",
        "window_name",
    }
    assert not [name for name, to in granted.items() if "all" in to]


def test_of_a_new_ledger_nothing_is_for_everybody(world: World) -> None:
    """Before ``roles.sql`` is run: nobody may execute anything yet."""
    schema = f"{world.schema}_new"
    try:
        with closing(
            Database(parse_address(world.owner.replace(world.schema, schema)))
        ) as database:
            migrate(database)
        roles = [role_of(world.writer), role_of(world.reader)]
        schemas = [schema, f"{schema}_read_models"]
        rows = world.execute(world.owner, FUNCTIONS, *roles, schemas)
        assert rows
        assert not [name for name, _, to in rows if to]
    finally:
        drop_schemas(world.superuser_plain, schema, f"{schema}_read_models")


# --- the owner -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {schema}.stored_events SET state = ''",
        "UPDATE {schema}.stored_events SET idx = idx WHERE idx = 0",
        "DELETE FROM {schema}.stored_events",
        "TRUNCATE {schema}.stored_events",
    ],
)
def test_the_owner_meets_the_trigger(world: World, statement: str) -> None:
    """Mistakes are stopped. Who disables the trigger is found by ``verify``."""
    with pytest.raises(psycopg.Error, match="stored_events is append-only"):
        world.execute(world.owner, statement)


# --- the reader ----------------------------------------------------------------------------------------


def test_the_reader_can_assemble_and_verify(world: World) -> None:
    with Ledger.open(world.reader, read_only=True) as ledger:
        assert ledger.size() > 0
        request = ledger.assemble(CONVERSATION, scope=SCOPE, budget=100_000)
        assert request.manifest.summaries
        assert not list(ledger.verify().findings)
        assert ledger.summaries(CONVERSATION, scope=SCOPE)
        assert ledger.ranges()
        assert ledger.status().backlog.due >= 0
        assert ledger.at(index=0).position() == 1
        with pytest.raises(LedgerReadOnly):
            ledger.record_delivery(request)
        with pytest.raises(LedgerReadOnly):
            ledger.transcripts.append(SCOPE, "new", *lines(1))
        with pytest.raises(LedgerReadOnly):
            ledger.rebuild()


def test_the_reader_reads_what_the_writer_builds_later(world: World) -> None:
    for url in (world.writer, world.owner):
        with Ledger.open(url) as ledger:
            ledger.rebuild()
        with Ledger.open(world.reader, read_only=True) as ledger:
            assert ledger.summaries(CONVERSATION, scope=SCOPE)


# --- hijacking -----------------------------------------------------------------------------------------


def test_what_runs_as_the_owner_has_a_path_of_its_own(world: World) -> None:
    rows = world.execute(
        world.owner,
        "SELECT oid::regproc::text, proconfig FROM pg_proc"
        " WHERE pronamespace = ANY (%s::regnamespace[]) AND prosecdef",
        [world.schema, f"{world.schema}_read_models"],
    )
    assert rows
    path = "search_path=pg_catalog, pg_temp"
    assert not [name for name, settings in rows if path not in (settings or ())]


# In a schema of the writer's own. The owner is let in: else the server would pass over what is there.
TRAPS = """
GRANT USAGE ON SCHEMA {own} TO PUBLIC;
CREATE FUNCTION {own}.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT 'f'::bytea $$;
CREATE FUNCTION {own}.convert_to(text, name) RETURNS bytea LANGUAGE sql AS $$ SELECT 'f'::bytea $$;
CREATE FUNCTION {own}.encode(bytea, text) RETURNS text LANGUAGE sql AS $$ SELECT 'f' $$;
CREATE FUNCTION {own}.store_clock() RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint $$;
CREATE FUNCTION {own}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$;
CREATE FUNCTION {own}.wrong(bytea, bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT 'f'::bytea $$;
CREATE FUNCTION {own}.wrong(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'f' $$;
CREATE FUNCTION {own}.wrong(text, bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'f' $$;
CREATE FUNCTION {own}.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE FUNCTION {own}.nothing(bigint, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$;
CREATE FUNCTION {own}.nothing(bigint, integer) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$;
CREATE FUNCTION {own}.nothing(numeric, integer) RETURNS numeric LANGUAGE sql AS $$ SELECT 0::numeric $$;
CREATE OPERATOR {own}.|| (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = {own}.wrong);
CREATE OPERATOR {own}.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = {own}.wrong);
CREATE OPERATOR {own}.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = {own}.wrong);
CREATE OPERATOR {own}.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {own}.never);
CREATE OPERATOR {own}.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = {own}.nothing);
CREATE OPERATOR {own}.- (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = {own}.nothing);
CREATE OPERATOR {own}.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {own}.never);
CREATE OPERATOR {own}.- (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {own}.nothing);
CREATE OPERATOR {own}.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = {own}.nothing);
CREATE TABLE {own}.stored_events (LIKE {schema}.stored_events);
CREATE TABLE {own}.log_head AS TABLE {schema}.log_head;
CREATE DOMAIN {own}.int8 AS integer CHECK (VALUE = 0);
"""
PATH = "SET search_path = {own}, pg_temp, {schema}, pg_catalog"
APPEND = (
    "SELECT idx, recorded FROM {schema}.append_event(0, 9000000000000000000, %s, %s, 'T@1', '\\x7b7d',"
    " '{\"previous\":\"', '}')"
)


def test_a_search_path_of_the_writers_own_changes_nothing(world: World) -> None:
    own = f"{world.schema}_own"
    with world.connected(world.superuser) as connection:
        connection.execute(world.named(f"CREATE SCHEMA {own} AUTHORIZATION {{writer}}"))
    try:
        with world.connected(world.writer) as connection:
            for statement in (TRAPS, PATH):
                connection.execute(world.named(statement.replace("{own}", own)))
            connection.execute("CREATE TEMP TABLE stored_events (idx bigint)")
            connection.execute("CREATE TEMP TABLE log_head AS SELECT 0 AS id, 5::bigint AS size")
            assert connection.execute("SELECT 'a' || 'b'::text").fetchone() == ("f",)  # they work
            check_append(world, connection)
            address = parse_address(f"{world.writer}&options=-csearch_path%3D{own}%2Cpg_catalog")
            with closing(Database(address)) as database:
                admission = SharedAdmission(database, 1, "hijacker")
                leave = admission.admit()
                assert leave is not None
                assert admission.admit() is None
                leave()
                admission.close()
    finally:
        drop_schemas(world.superuser_plain, own)


def check_append(world: World, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Append two events of one stream, look at all that the database put into them, and take them back."""
    stream = uuid4().hex
    with connection.transaction(force_rollback=True):
        ((size,),) = world.execute(world.owner, "SELECT size FROM {schema}.log_head")
        ((before,),) = world.execute(world.owner, "SELECT {schema}.store_clock()")
        appended = [
            connection.execute(world.named(APPEND), (stream, version)).fetchall()[0]
            for version in (1, 2)
        ]
        stored = connection.execute(
            world.named(
                "SELECT idx, leaf, envelope FROM {schema}.stored_events WHERE originator_id"
                " OPERATOR(pg_catalog.=) %s ORDER BY originator_version USING OPERATOR(pg_catalog.<)"
            ),
            (stream,),
        ).fetchall()
    assert [idx for idx, _ in appended] == [size, size + 1] == [idx for idx, *_ in stored]
    (_, first), (_, second) = appended
    assert before <= first <= second
    (_, leaf, envelope), (_, _, next_envelope) = stored
    assert envelope == b'{"previous":"","recorded":%d}' % first
    assert next_envelope == b'{"previous":"%s","recorded":%d}' % (leaf.hex().encode(), second)
    for _, leaf, envelope in stored:
        assert leaf == hashlib.sha256(b"\x00" + envelope).digest()


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_only_the_owner_erases(world: World, role: str) -> None:
    """S3: it is refused before anything is noted, since that cannot be taken back."""
    url = getattr(world, role)
    with Ledger.open(url, create=False, read_only=role == "reader") as ledger:
        with pytest.raises(LedgerReadOnly, match="owner"):
            ledger.erase(CONVERSATION, scope=SCOPE)
        with pytest.raises(LedgerReadOnly, match="owner"):
            ledger.resume_erasures()
        assert ledger.plan(CONVERSATION, scope=SCOPE).ranges
    with Ledger.open(world.owner, create=False) as ledger:
        ledger.transcripts.append(SCOPE, f"gone, not by a {role}", *lines(1))
        assert ledger.resume_erasures().erasures == ()
        ledger.erase(f"gone, not by a {role}", scope=SCOPE)
