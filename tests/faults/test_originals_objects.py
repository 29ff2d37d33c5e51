"""S3 and DynamoDB when they fail: answers that are lost (A9), writers that die, and what is not allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import boto3
import pytest
from aws_proxy import LosingProxy, losing
from aws_servers import answering, running_aws
from originals_messages import KEY, SHAPE, messages
from originals_stores import DynamoDBStore, S3Store

from compaction_ledger.domain.errors import (
    ConcurrentAppend,
    InvalidInput,
    InvalidSetting,
    LedgerReadOnly,
    StoreError,
    StoreUnavailable,
)
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.infrastructure.originals.dynamodb import DynamoDBOriginals
from compaction_ledger.infrastructure.originals.s3 import S3Originals

PLACE = (KEY.scope, KEY.conversation)
ObjectStore = S3Store | DynamoDBStore
LARGE = b"0123456789" * 90_000  # three parts beside the item, on DynamoDB


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[], str]]:
    """The address of a server of S3 and DynamoDB."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_aws()))


@pytest.fixture(params=[S3Store, DynamoDBStore], ids=["s3", "dynamodb"])
def store(request: pytest.FixtureRequest, aws: Callable[[], str]) -> Iterator[ObjectStore]:
    made: ObjectStore = request.param(aws())
    yield made
    made.close()


@pytest.fixture
def s3(aws: Callable[[], str]) -> Iterator[S3Store]:
    made = S3Store(aws())
    yield made
    made.close()


def on(store: ObjectStore, client: Any) -> Originals:
    """The originals of a store, through this client."""
    if isinstance(store, S3Store):
        return S3Originals(client, store.bucket)
    return DynamoDBOriginals(client, store.table)


@contextmanager
def behind_a_proxy(store: ObjectStore, *, tries: int) -> Iterator[tuple[LosingProxy, Originals]]:
    """A session whose answers can be lost; each request is tried so often."""
    with losing(store.url) as proxy:
        yield proxy, on(store, store.new_client(url=proxy.url, tries=tries))


# --- answers that are lost (A9) ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("tries", [1, 3])
def test_what_was_stored_though_nobody_heard_of_it_is_found(store: ObjectStore, tries: int) -> None:
    with behind_a_proxy(store, tries=tries) as (proxy, originals):
        originals.append(KEY, SHAPE, 0, messages(0, 2))
        if isinstance(store, S3Store):
            proxy.to_lose += [b"PUT "]
            originals.append(KEY, SHAPE, 2, messages(2, 4))
        else:
            with lost_put_item(store, proxy, tries) as broken:
                broken.append(KEY, SHAPE, 2, messages(2, 4))
        assert proxy.lost == 1
    assert [m.position for m in store.open().read(KEY)] == [0, 1, 2, 3]
    assert list(store.open().digests(KEY)) == [m.digest for m in messages(0, 4)]


@contextmanager
def lost_put_item(store: DynamoDBStore, proxy: LosingProxy, tries: int) -> Iterator[Originals]:
    """The next answer to a PutItem is lost: every request of DynamoDB begins alike."""
    client = store.new_client(url=proxy.url, tries=tries)
    planned: list[bytes] = [b"POST "]

    def plan(**_: object) -> None:
        while planned:
            proxy.to_lose.append(planned.pop())

    client.meta.events.register("before-send.dynamodb.PutItem", plan)
    yield on(store, client)


def test_another_who_was_first_is_no_success(store: ObjectStore) -> None:
    """The answer that is lost is a refusal."""
    client = store.new_client(tries=1)
    operation = "PutObject" if isinstance(store, S3Store) else "PutItem"
    mine, other = on(store, client), store.open()
    other.append(KEY, SHAPE, 0, messages(0, 1))
    mine.append(replace(KEY, run="warm"), SHAPE, 0, messages(0, 1))
    done: list[object] = []

    def overtake(**_: object) -> None:
        if not done:
            done.append(1)
            other.append(KEY, SHAPE, 1, messages(1, 3, "the other's"))

    client.meta.events.register(f"before-send.*.{operation}", overtake)
    with pytest.raises(ConcurrentAppend):
        mine.append(KEY, SHAPE, 1, messages(1, 2))
    assert done
    assert mine.count(KEY) == 3
    assert list(mine.digests(KEY))[1:] == [m.digest for m in messages(1, 3, "the other's")]


def test_the_same_from_another_at_this_moment_is_a_success(store: ObjectStore) -> None:
    client = store.new_client(tries=1)
    operation = "PutObject" if isinstance(store, S3Store) else "PutItem"
    mine, other = on(store, client), store.open()
    mine.append(KEY, SHAPE, 0, messages(0, 1))
    client.meta.events.register(
        f"before-send.*.{operation}", lambda **_: other.append(KEY, SHAPE, 1, messages(1, 3))
    )
    mine.append(KEY, SHAPE, 1, messages(1, 3))
    assert mine.count(KEY) == 3


def test_where_nothing_can_be_asked_any_more_it_is_unavailable(store: ObjectStore) -> None:
    with losing(store.url) as proxy:
        originals = on(store, store.new_client(url=proxy.url, tries=1))
        originals.append(KEY, SHAPE, 0, messages(0, 1))
    attempts: list[Callable[[], object]] = [
        lambda: originals.append(KEY, SHAPE, 1, messages(1, 2)),
        lambda: originals.count(KEY),
        lambda: originals.shape(KEY),
        lambda: originals.digests(KEY),
        lambda: originals.read(KEY),
        lambda: originals.runs(*PLACE),
        lambda: originals.keep_result(*PLACE, b"x"),
        lambda: originals.result(*PLACE, "ab" * 32),
        lambda: originals.forget(*PLACE),
    ]
    for attempt in attempts:
        with pytest.raises(StoreUnavailable):
            attempt()
    assert store.open().count(KEY) == 1


# --- writers that die ----------------------------------------------------------------------------


class Died(Exception):
    """In the middle of what was done."""


def dies_at(client: Any, operation: str, nth: int) -> None:
    """The client goes no further than before its request of this kind and number."""
    seen = [0]

    def count(**_: object) -> None:
        seen[0] += 1
        if seen[0] >= nth:
            raise Died

    client.meta.events.register(f"before-send.*.{operation}", count)


@pytest.mark.parametrize("nth", [1, 2, 4, 7])
def test_a_writer_that_dies_leaves_all_or_nothing(store: ObjectStore, nth: int) -> None:
    operation = "PutObject" if isinstance(store, S3Store) else "PutItem"
    given = [replace(messages(0, 1)[0], wire=LARGE), *messages(1, 3)]
    client = store.new_client(tries=1)
    dies_at(client, operation, nth)
    try:
        on(store, client).append(KEY, SHAPE, 0, given)
    except Died:
        left = store.open()
        assert left.count(KEY) == 0
        assert left.shape(KEY) is None
        assert list(left.runs(*PLACE)) == []
        assert list(left.read(KEY)) == []
        left.append(KEY, "converse", 0, messages(5, 6))
        assert list(left.runs(*PLACE)) == [KEY.run]
        assert left.shape(KEY) == "converse"
    else:
        assert [m.wire for m in store.open().read(KEY)] == [m.wire for m in given]
        assert nth > 2
    store.open().forget(*PLACE)
    assert names_left(store) == []


def names_left(store: ObjectStore) -> list[str]:
    """What is still there, but for what is not a conversation's."""
    if isinstance(store, S3Store):
        listed = store.client.list_object_versions(Bucket=store.bucket)
        found = [*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())]
        return [one["Key"] for one in found if one["Key"] != "conditional-writes"]
    return [item["sk"]["S"] for item in store.client.scan(TableName=store.table)["Items"]]


@pytest.mark.slow
def test_half_a_deletion_is_finished_by_the_next(store: ObjectStore) -> None:
    originals = store.open()
    for at in range(26):
        originals.append(KEY, SHAPE, at, messages(at, at + 1))
    client = store.new_client(tries=1)
    if isinstance(store, S3Store):
        limit_pages(client, "ListObjectVersions", "MaxKeys", 10)
    dies_at(client, "DeleteObjects" if isinstance(store, S3Store) else "BatchWriteItem", 2)
    with pytest.raises(Died):
        on(store, client).forget(*PLACE)
    assert names_left(store)
    originals.forget(*PLACE)
    assert names_left(store) == []


# --- pages ---------------------------------------------------------------------------------------


def limit_pages(client: Any, operation: str, field: str, size: int) -> None:
    """Pages of at most so many, whatever is asked for."""

    def limit(params: dict[str, Any], **_: object) -> None:
        params[field] = min(size, params.get(field, size))

    client.meta.events.register(f"provide-client-params.*.{operation}", limit)


@pytest.mark.slow
def test_what_takes_several_pages_is_read_whole(store: ObjectStore) -> None:
    for at in range(7):
        store.open().append(KEY, SHAPE, at, messages(at, at + 1))
    for number in range(5):
        store.open().append(replace(KEY, run=f"run-{number + 2}"), SHAPE, 0, messages(0, 1))
    client = store.new_client()
    if isinstance(store, S3Store):
        for operation in ("ListObjectsV2", "ListObjectVersions"):
            limit_pages(client, operation, "MaxKeys", 2)
    else:
        limit_pages(client, "Query", "Limit", 2)
    originals = on(store, client)
    assert [m.position for m in originals.read(KEY)] == list(range(7))
    assert [m.position for m in originals.read(KEY, 1, 4)] == [1, 2, 3]
    assert len(originals.digests(KEY)) == originals.count(KEY) == 7
    assert list(originals.runs(*PLACE)) == [f"run-{number}" for number in range(1, 7)]
    originals.forget(*PLACE)
    assert names_left(store) == []


# --- what is refused -----------------------------------------------------------------------------


def xml(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


@pytest.mark.parametrize(
    ("kind", "status", "code", "writing", "reading"),
    [
        ("s3", 403, "AccessDenied", LedgerReadOnly, StoreUnavailable),
        ("s3", 403, "InvalidAccessKeyId", StoreUnavailable, StoreUnavailable),
        ("s3", 404, "NoSuchBucket", StoreUnavailable, StoreUnavailable),
        ("s3", 503, "SlowDown", StoreUnavailable, StoreUnavailable),
        ("s3", 500, "InternalError", StoreUnavailable, StoreUnavailable),
        ("s3", 409, "ConditionalRequestConflict", StoreUnavailable, StoreUnavailable),
        ("s3", 400, "KeyTooLongError", StoreError, StoreError),
        ("dynamodb", 400, "AccessDeniedException", LedgerReadOnly, StoreUnavailable),
        ("dynamodb", 400, "UnrecognizedClientException", StoreUnavailable, StoreUnavailable),
        ("dynamodb", 400, "ResourceNotFoundException", StoreUnavailable, StoreUnavailable),
        ("dynamodb", 400, "ThrottlingException", StoreUnavailable, StoreUnavailable),
        ("dynamodb", 400, "ProvisionedThroughputExceededException", StoreUnavailable, StoreUnavailable),
        ("dynamodb", 500, "InternalServerError", StoreUnavailable, StoreUnavailable),
        ("dynamodb", 400, "ValidationException", StoreError, StoreError),
    ],
)  # fmt: skip
def test_what_the_service_says_is_an_error_of_ours(
    aws: Callable[[], str], kind: str, status: int, code: str, writing: type, reading: type
) -> None:
    store: ObjectStore = S3Store(aws()) if kind == "s3" else DynamoDBStore(aws())
    body = xml(code) if kind == "s3" else f'{{"__type":"x#{code}","message":"no"}}'.encode()
    with answering(status, body) as url:
        originals = on(store, store.new_client(url=url, tries=1))
        for attempt in (
            lambda: originals.append(KEY, SHAPE, 0, messages(0, 1)),
            lambda: originals.read(KEY),
            lambda: originals.runs(*PLACE),
            lambda: originals.result(*PLACE, "ab" * 32),
        ):
            with pytest.raises(StoreError) as refusal:
                attempt()
            assert type(refusal.value) is reading
            assert code in str(refusal.value)
        with pytest.raises(StoreError) as refusal:
            originals.keep_result(*PLACE, b"x")
        assert type(refusal.value) is writing
    store.close()


def test_without_credentials_it_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, aws: Callable[[], str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for opened in (
        S3Originals.open("bucket", endpoint_url=aws(), region_name="eu-central-1"),
        DynamoDBOriginals.open("table", endpoint_url=aws(), region_name="eu-central-1"),
    ):
        with pytest.raises(StoreUnavailable, match=r"[Cc]redentials"):
            opened.count(KEY)
        opened.close()
    with pytest.raises(StoreUnavailable, match="region"):
        DynamoDBOriginals.open("table")


def test_it_is_opened_with_the_credentials_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, store: ObjectStore
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    settings = {"endpoint_url": store.url, "region_name": "eu-central-1", "prefix": "windows"}
    opened = (
        S3Originals.open(store.bucket, **settings)
        if isinstance(store, S3Store)
        else DynamoDBOriginals.open(store.table, **settings)
    )
    opened.append(KEY, SHAPE, 0, messages(0, 1))
    assert opened.count(KEY) == store.open("windows").count(KEY) == 1
    opened.close()


def test_prefixes_are_kept_apart(store: ObjectStore) -> None:
    one, two, none = store.open("one"), store.open("one/two"), store.open()
    one.append(KEY, SHAPE, 0, messages(0, 1))
    assert (two.count(KEY), none.count(KEY)) == (0, 0)
    two.append(KEY, SHAPE, 0, messages(0, 2))
    one.forget(*PLACE)
    assert (one.count(KEY), two.count(KEY)) == (0, 2)


@pytest.mark.parametrize("kind", [S3Originals, DynamoDBOriginals])
def test_a_name_is_needed(kind: Any) -> None:
    with pytest.raises(InvalidSetting):
        kind(None, "")


def test_a_store_that_passes_conditions_over_is_refused(s3: S3Store) -> None:
    """Some that speak the protocol of S3 do: there, one writer would write over another."""
    client = s3.new_client()

    def drop(params: dict[str, Any], **_: object) -> None:
        params["headers"].pop("If-None-Match", None)

    client.meta.events.register("before-call.s3.PutObject", drop)
    with pytest.raises(StoreError, match="conditional writes"):
        S3Originals(client, s3.bucket).append(KEY, SHAPE, 0, messages(0, 1))
    assert s3.open().count(KEY) == 0


def test_all_versions_are_forgotten(s3: S3Store) -> None:
    s3.client.put_bucket_versioning(Bucket=s3.bucket, VersioningConfiguration={"Status": "Enabled"})
    originals = s3.open()
    originals.append(KEY, SHAPE, 0, messages(0, 2))
    originals.keep_result(*PLACE, b"x")
    first = names_left(s3)[0]
    s3.client.delete_object(Bucket=s3.bucket, Key=first)  # leaves a mark, and the bytes
    originals.forget(*PLACE)
    assert names_left(s3) == []


def test_what_may_not_be_deleted_is_named(s3: S3Store) -> None:
    originals = s3.open()
    originals.append(KEY, SHAPE, 0, messages(0, 1))
    client = s3.new_client()
    answer = b"<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    client.meta.events.register(
        "before-send.s3.DeleteObjects", lambda request, **_: _response(request.url, answer)
    )
    with pytest.raises(StoreError, match=r"/k was not deleted: AccessDenied"):
        S3Originals(client, s3.bucket).forget(*PLACE)


def _response(url: str, body: bytes) -> Any:
    from io import BytesIO  # noqa: PLC0415

    from botocore.awsrequest import AWSResponse  # noqa: PLC0415

    class Raw(BytesIO):
        def stream(self) -> Iterator[bytes]:
            yield self.read()

    return AWSResponse(url, 200, {"Content-Type": "application/xml"}, Raw(body))


def test_a_store_without_versions_is_forgotten_in(s3: S3Store) -> None:
    originals = s3.open()
    originals.append(KEY, SHAPE, 0, messages(0, 2))
    client = s3.new_client()

    def none(request: Any, **_: object) -> Any:
        answer = _response(request.url, xml("NotImplemented"))
        answer.status_code = 501
        return answer

    client.meta.events.register("before-send.s3.ListObjectVersions", none)
    S3Originals(client, s3.bucket).forget(*PLACE)
    assert originals.count(KEY) == 0
    assert names_left(s3) == []


@pytest.mark.slow
def test_a_table_is_made_once(store: ObjectStore) -> None:
    if isinstance(store, S3Store):
        pytest.skip("there is no table")
    store.open().append(KEY, SHAPE, 0, messages(0, 1))
    store.open().make_table()
    assert store.open().count(KEY) == 1


def test_another_shape_by_one_who_was_first_is_told_of(store: ObjectStore) -> None:
    client = store.new_client(tries=1)
    operation = "PutObject" if isinstance(store, S3Store) else "PutItem"
    mine, other = on(store, client), store.open()
    mine.keep_result(*PLACE, b"warm")
    client.meta.events.register(
        f"before-send.*.{operation}", lambda **_: other.append(KEY, "converse", 0, messages(0, 1))
    )
    with pytest.raises(InvalidInput, match="shape"):
        mine.append(KEY, SHAPE, 0, messages(0, 1))


@pytest.mark.slow
def test_clients_are_shared_by_threads(store: ObjectStore) -> None:
    originals = store.open()
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: originals.append(replace(KEY, run=f"r{n}"), SHAPE, 0, messages(0, 2)),
                range(8),
            )
        )
    assert sorted(originals.runs(*PLACE)) == [f"r{n}" for n in range(8)]
