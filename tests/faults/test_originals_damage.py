"""Originals that others changed, took away or moved: they are told of, never passed off as the kept ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_servers import running_aws
from backends import PostgresBackend, SQLiteBackend
from originals_messages import KEY, SHAPE, messages
from originals_stores import DynamoDBStore, LedgerStore, S3Store

from compaction_ledger.domain.errors import DamagedOriginal
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.infrastructure.originals import batches

CONTENT = b"what a tool said " * 50_000  # more than an item of DynamoDB holds
PLACE = (KEY.scope, KEY.conversation)


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[], str]]:
    """The address of a server of S3 and DynamoDB."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_aws()))


def filled(originals: Originals) -> str:
    """Three batches of two messages, and a result: its digest."""
    for at in (0, 2, 4):
        originals.append(KEY, SHAPE, at, messages(at, at + 2))
    originals.append(replace(KEY, run="other"), SHAPE, 0, messages(7, 9))
    return originals.keep_result(*PLACE, CONTENT)


def check_reading_fails(originals: Originals, *, digests: bool = True) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: originals.read(KEY),
        lambda: originals.read(KEY, 2, 4),
    ]
    if digests:
        attempts.append(lambda: originals.digests(KEY))
    for attempt in attempts:
        with pytest.raises(DamagedOriginal):
            attempt()


# --- rows ----------------------------------------------------------------------------------------


class Rows:
    """A store that keeps rows, and somebody who changes them with all triggers off."""

    def __init__(self, store: LedgerStore) -> None:
        self.originals = store.open()
        self.digest = filled(self.originals)
        self.backend: Any = store.backend

    def change(self, statement: str) -> None:
        if isinstance(self.backend, SQLiteBackend):
            with self.backend.database().transaction(commit=True) as cursor:
                for table in ("window_runs", "window_messages", "window_results"):
                    cursor.execute(f"DROP TRIGGER IF EXISTS {table}_no_update")
                cursor.execute(statement.replace("{at}", "key % 4294967296"))
            return
        database = self.backend.database()
        marked = "{schema}.window_"
        for text in (
            "ALTER TABLE {schema}.window_messages DISABLE TRIGGER append_only",
            "ALTER TABLE {schema}.window_results DISABLE TRIGGER append_only",
            statement.replace(" window_", f" {marked}").replace("{at}", "position"),
        ):
            database.call(database.sql(text))


@pytest.fixture(params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    backend = {"sqlite": SQLiteBackend, "postgres": PostgresBackend}[request.param](tmp_path)
    store = LedgerStore(backend)
    yield Rows(store)
    store.close()


def test_a_missing_row_is_found(rows: Rows) -> None:
    rows.change("DELETE FROM window_messages WHERE {at} = 2")
    check_reading_fails(rows.originals)
    with pytest.raises(DamagedOriginal, match="m2 of run 'run-1' is missing"):
        rows.originals.read(KEY, 1)
    assert [m.position for m in rows.originals.read(KEY, 3)] == [3, 4, 5]
    assert [m.position for m in rows.originals.read(KEY, 0, 2)] == [0, 1]


def test_missing_first_rows_are_found(rows: Rows) -> None:
    rows.change("DELETE FROM window_messages WHERE {at} < 3")
    check_reading_fails(rows.originals)


@pytest.mark.parametrize("change", ["role = 'robot'", "digest = 'none'"])
def test_a_row_that_cannot_be_one_is_found(rows: Rows, change: str) -> None:
    rows.change(f"UPDATE window_messages SET {change} WHERE {{at}} = 3")
    check_reading_fails(rows.originals, digests="digest" in change)


def test_a_changed_result_is_found(rows: Rows) -> None:
    other = "x'78'" if isinstance(rows.backend, SQLiteBackend) else "'x'"
    rows.change(f"UPDATE window_results SET content = {other}")
    with pytest.raises(DamagedOriginal, match=rows.digest):
        rows.originals.result(*PLACE, rows.digest)


@pytest.mark.parametrize("column", ["role", "exchange", "at", "digest", "wire"])
@pytest.mark.parametrize("value", ["x'ff00'", "'text'", "7.5"])
def test_a_value_of_the_wrong_type_is_found(tmp_path: Path, column: str, value: str) -> None:
    """SQLite keeps any type in any column."""
    store = LedgerStore(SQLiteBackend(tmp_path))
    rows = Rows(store)
    if (column, value) == (
        "wire",
        "x'ff00'",
    ):  # bytes are bytes: what they say is checked by their reader
        value = "'\u00e9'"
    rows.change(f"UPDATE window_messages SET {column} = {value} WHERE {{at}} = 3")
    with pytest.raises(DamagedOriginal, match="m3"):
        rows.originals.read(KEY)
    store.close()


# --- objects -------------------------------------------------------------------------------------


@pytest.fixture
def s3(aws: Callable[[], str]) -> Iterator[S3Store]:
    store = S3Store(aws())
    filled(store.open())
    yield store
    store.close()


@pytest.fixture
def dynamo(aws: Callable[[], str]) -> Iterator[DynamoDBStore]:
    store = DynamoDBStore(aws())
    filled(store.open())
    yield store
    store.close()


SECOND = batches.run_folder(KEY) + batches.numbered(2)
THIRD = batches.run_folder(KEY) + batches.numbered(4)
RESULT = batches.conversation_folder(*PLACE) + "results/"


def rewritten(s3: S3Store, name: str, **changes: Any) -> None:
    """Put an object again, with other bytes or facts."""
    found = s3.client.get_object(Bucket=s3.bucket, Key=name)
    with found["Body"] as body:
        content = body.read()
    fields = {"Body": content, "Metadata": found["Metadata"]} | changes
    s3.client.put_object(Bucket=s3.bucket, Key=name, **fields)


@pytest.mark.slow
def test_a_missing_object_is_found(s3: S3Store) -> None:
    s3.client.delete_object(Bucket=s3.bucket, Key=SECOND)
    originals = s3.open()
    check_reading_fails(originals)
    assert [m.position for m in originals.read(KEY, 4)] == [4, 5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"Body": b"other bytes"},
        {"Body": b""},
        {"Metadata": {}},
        {"Metadata": {"head-bytes": "-1", "sha256": "x", "head-sha256": "x"}},
    ],
)
def test_a_changed_object_is_found_also_by_who_knew_it(
    s3: S3Store, changes: dict[str, Any]
) -> None:
    originals = s3.open()
    assert len(originals.digests(KEY)) == 6
    rewritten(s3, SECOND, **changes)
    # Of an object whose bytes are the same, the digests that are known are true.
    check_reading_fails(originals, digests="Body" in changes)
    check_reading_fails(s3.open())


def test_an_object_at_another_place_is_found(s3: S3Store) -> None:
    other = batches.run_folder(replace(KEY, run="other")) + batches.numbered(0)
    for source in (other, THIRD):
        s3.client.copy_object(
            Bucket=s3.bucket, Key=SECOND, CopySource={"Bucket": s3.bucket, "Key": source}
        )
        check_reading_fails(s3.open())


def test_an_object_that_is_not_ours_is_found(s3: S3Store) -> None:
    s3.client.put_object(Bucket=s3.bucket, Key=batches.run_folder(KEY) + "5", Body=b"x")
    with pytest.raises(DamagedOriginal, match="/5"):
        s3.open().read(KEY)


def test_a_changed_result_object_is_found(s3: S3Store) -> None:
    digest = s3.open().keep_result(*PLACE, CONTENT)
    rewritten(s3, RESULT + digest, Body=b"x")
    with pytest.raises(DamagedOriginal):
        s3.open().result(*PLACE, digest)


def test_a_result_of_another_conversation_is_not_taken_for_ours(s3: S3Store) -> None:
    originals = s3.open()
    digest = originals.keep_result("other", KEY.conversation, CONTENT)
    source = batches.conversation_folder("other", KEY.conversation) + f"results/{digest}"
    s3.client.copy_object(
        Bucket=s3.bucket,
        Key=RESULT + digest,
        CopySource={"Bucket": s3.bucket, "Key": source},
    )
    with pytest.raises(DamagedOriginal, match="belong"):
        originals.result(*PLACE, digest)


def key_of(name: str) -> dict[str, Any]:
    place, _, rest = name.partition("/")
    return {"pk": {"S": place}, "sk": {"S": rest}}


def set_field(dynamo: DynamoDBStore, name: str, field: str, value: dict[str, Any] | None) -> None:
    dynamo.client.update_item(
        TableName=dynamo.table,
        Key=key_of(name),
        UpdateExpression="REMOVE #f" if value is None else "SET #f = :v",
        ExpressionAttributeNames={"#f": field},
        **({} if value is None else {"ExpressionAttributeValues": {":v": value}}),
    )


def test_a_missing_item_is_found(dynamo: DynamoDBStore) -> None:
    dynamo.client.delete_item(TableName=dynamo.table, Key=key_of(SECOND))
    check_reading_fails(dynamo.open())
    assert [m.position for m in dynamo.open().read(KEY, 4)] == [4, 5]


@pytest.mark.parametrize("value", [{"B": b"x"}, {"S": "x"}, None])
@pytest.mark.parametrize("field", ["head", "body"])
def test_a_changed_item_is_found(
    dynamo: DynamoDBStore, field: str, value: dict[str, Any] | None
) -> None:
    set_field(dynamo, SECOND, field, value)
    check_reading_fails(dynamo.open(), digests=field == "head")


@pytest.mark.slow
@pytest.mark.parametrize("field", ["head_bytes", "sha256", "parts"])
def test_an_item_without_its_facts_is_found(dynamo: DynamoDBStore, field: str) -> None:
    set_field(dynamo, SECOND, field, None)
    if (
        field == "parts"
    ):  # nothing says that there are any, and the digest proves that there are none
        assert len(dynamo.open().read(KEY)) == 6
    else:
        check_reading_fails(dynamo.open(), digests=False)


@pytest.mark.slow
def test_a_missing_part_is_found(dynamo: DynamoDBStore) -> None:
    digest = dynamo.open().keep_result(*PLACE, CONTENT)
    answer = dynamo.client.query(
        TableName=dynamo.table,
        KeyConditionExpression="pk = :p AND begins_with(sk, :s)",
        ExpressionAttributeValues={":p": key_of(SECOND)["pk"], ":s": {"S": "parts/"}},
    )
    assert len(answer["Items"]) == 3
    last = {field: answer["Items"][-1][field] for field in ("pk", "sk")}
    dynamo.client.delete_item(TableName=dynamo.table, Key=last)
    with pytest.raises(DamagedOriginal):
        dynamo.open().result(*PLACE, digest)
