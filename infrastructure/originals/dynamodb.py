"""Originals in an Amazon DynamoDB table. Needs an extra.

The table has a partition key ``pk`` and a sort key ``sk``, both strings; a conversation is one partition. An
object is one item, put on the condition that there is none: of two who write one name, one wins. What does
not fit into the item (400 KB) is in parts, written before the item that names them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from time import sleep
from typing import Any, Protocol, Self

from compaction_ledger.domain.errors import DamagedOriginal, InvalidSetting, StoreUnavailable
from compaction_ledger.infrastructure.originals.aws_errors import (
    ClientError,
    boto3,
    code_of,
    translated,
)
from compaction_ledger.infrastructure.originals.batches import Blob
from compaction_ledger.infrastructure.originals.checking import sha256
from compaction_ledger.infrastructure.originals.objects import ObjectOriginals

IN_ITEM = 300_000
"""Bytes of head and body that are kept in the item itself."""

IN_PART = 380_000
DELETED_AT_ONCE = 25
_PATIENCE = 8
_BEFORE_ALL, _BEHIND_ALL = " ", "~"  # what sorts before and behind every name

Item = Mapping[str, Mapping[str, Any]]


class DynamoDBClient(Protocol):
    """What is used of ``boto3.client("dynamodb")``."""

    def put_item(self, **arguments: Any) -> Mapping[str, Any]: ...
    def get_item(self, **arguments: Any) -> Mapping[str, Any]: ...
    def query(self, **arguments: Any) -> Mapping[str, Any]: ...
    def batch_write_item(self, **arguments: Any) -> Mapping[str, Any]: ...
    def create_table(self, **arguments: Any) -> Mapping[str, Any]: ...
    def get_waiter(self, waiter_name: str) -> Any: ...
    def close(self) -> None: ...


class DynamoDBOriginals(ObjectOriginals):
    """The transcripts of running agents in a table: the port ``Originals``.

    ``client`` is one of ``boto3.client("dynamodb")``, which threads may share. ``prefix`` stands before the
    partition keys.
    """

    def __init__(self, client: DynamoDBClient, table: str, prefix: str = "") -> None:
        super().__init__(DynamoDBObjects(client, table, prefix))
        self._client = client
        self._table = table

    @classmethod
    def open(
        cls,
        table: str,
        *,
        prefix: str = "",
        endpoint_url: str | None = None,
        region_name: str | None = None,
    ) -> Self:
        """With a client of its own, which finds its credentials as boto3 does."""
        with translated("DynamoDB"):
            client = boto3("dynamodb").client(
                "dynamodb", endpoint_url=endpoint_url, region_name=region_name, config=_config()
            )
        return cls(client, table, prefix)

    def make_table(self) -> None:
        """Make the table, paid for by request, and wait until it is there. Does nothing where there is one.

        Raises kinds of :class:`StoreError`.
        """
        names = {"pk": "HASH", "sk": "RANGE"}
        with translated(f"DynamoDB table {self._table}", writing=True):
            try:
                self._client.create_table(
                    TableName=self._table,
                    KeySchema=[
                        {"AttributeName": name, "KeyType": kind} for name, kind in names.items()
                    ],
                    AttributeDefinitions=[
                        {"AttributeName": name, "AttributeType": "S"} for name in names
                    ],
                    BillingMode="PAY_PER_REQUEST",
                )
            except ClientError as error:
                if code_of(error) != "ResourceInUseException":
                    raise
            self._client.get_waiter("table_exists").wait(
                TableName=self._table, WaiterConfig={"Delay": 1, "MaxAttempts": 120}
            )

    def close(self) -> None:
        """Close the connections of the client."""
        self._client.close()


class DynamoDBObjects:
    """Objects in a table. Reads are consistent: what was stored before is seen."""

    def __init__(self, client: DynamoDBClient, table: str, prefix: str = "") -> None:
        if not table:
            raise InvalidSetting("must not be empty", place="table")
        self._client = client
        self._table = table
        self._prefix = prefix
        self._name = f"DynamoDB table {table}"

    # --- writing ---

    def create(self, name: str, blob: Blob) -> bool:
        """Store an object, wholly or not at all; False where there is one of this name already."""
        content = blob.head + blob.body
        digest = sha256(content)
        inside = len(content) if len(content) <= IN_ITEM else min(len(blob.head), IN_ITEM)
        parts = range(inside, len(content), IN_PART)
        # The same bytes are the same part, whoever writes it.
        for number, start in enumerate(parts):
            part = {"body": {"B": content[start : start + IN_PART]}}
            self._put({**self._key(_part_name(name, digest, number)), **part})
        item = {
            **self._key(name),
            "head": {"B": content[: min(inside, len(blob.head))]},
            "body": {"B": content[min(inside, len(blob.head)) : inside]},
            "head_bytes": {"N": str(len(blob.head))},
            "head_sha256": {"S": sha256(blob.head)},
            "sha256": {"S": digest},
            "parts": {"N": str(len(parts))},
        }
        return self._put(item, ConditionExpression="attribute_not_exists(pk)")

    def _put(self, item: Item, **condition: str) -> bool:
        with translated(self._name, writing=True):
            try:
                self._client.put_item(TableName=self._table, Item=item, **condition)
            except ClientError as error:
                if code_of(error) == "ConditionalCheckFailedException":
                    return False
                raise
        return True

    def delete(self, folder: str) -> None:
        """Delete every object in a folder, with all its parts."""
        keys = [
            {"DeleteRequest": {"Key": {field: item[field] for field in ("pk", "sk")}}}
            for item in self._items(folder, "pk, sk")
        ]
        for start in range(0, len(keys), DELETED_AT_ONCE):
            self._write_all(keys[start : start + DELETED_AT_ONCE])

    def _write_all(self, requests: Sequence[Any]) -> None:
        left: Mapping[str, Any] = {self._table: requests}
        for attempt in range(_PATIENCE):
            with translated(self._name, writing=True):
                left = self._client.batch_write_item(RequestItems=left).get("UnprocessedItems", {})
            if not left:
                return
            sleep(0.05 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - not all at once
        raise StoreUnavailable(f"{self._name} is asked too often: not all was deleted")

    # --- reading ---

    def read(self, names: Sequence[str]) -> list[Blob | None]:
        """The objects of these names."""
        return [self._read_one(name) for name in names]

    def _read_one(self, name: str) -> Blob | None:
        with translated(self._name):
            item: Item | None = self._client.get_item(
                TableName=self._table, Key=self._key(name), ConsistentRead=True
            ).get("Item")
        if item is None:
            return None
        content = self._content(name, item)
        if sha256(content) != _text(item, "sha256"):
            raise self._damaged(name)
        head_bytes = _number(item, "head_bytes")
        return Blob(content[:head_bytes], content[head_bytes:])

    def _content(self, name: str, item: Item) -> bytes:
        """Head and body of an object, with its parts."""
        pieces = [_bytes(item, "head"), _bytes(item, "body")]
        if _number(item, "parts") > 0:
            folder = _parts_folder(name, _text(item, "sha256"))
            pieces += [_bytes(part, "body") for part in self._items(folder, "body")]
        return b"".join(pieces)

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        """The names of the objects in a folder, in order, page by page."""
        place, _, _ = folder.partition("/")
        return (f"{place}/{_text(item, 'sk')}" for item in self._items(folder, "sk", after=after))

    def heads(self, folder: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The names and heads of the first objects in a folder, in order."""
        place, _, _ = folder.partition("/")
        found: list[tuple[str, bytes]] = []
        wanted = "sk, head, head_bytes, head_sha256"
        for item in self._items(folder, wanted, limit=limit):
            name, head = f"{place}/{_text(item, 'sk')}", _bytes(item, "head")
            if len(head) < _number(item, "head_bytes"):
                whole = self._read_one(name)
                head = b"" if whole is None else whole.head
            if sha256(head) != _text(item, "head_sha256"):
                raise self._damaged(name)
            found.append((name, head))
        return found

    def folders(self, folder: str) -> set[str]:
        """The names of the folders in a folder; each is stepped over at its first object."""
        found: set[str] = set()
        after = folder
        while item := next(self._items(folder, "sk", after=after, limit=1), None):
            name = f"{folder.partition('/')[0]}/{_text(item, 'sk')}"
            inner = name[len(folder) :].partition("/")[0]
            found.add(inner)
            after = f"{folder}{inner}/{_BEHIND_ALL}"
        return found

    # --- inside ---

    def _key(self, name: str) -> dict[str, dict[str, Any]]:
        place, _, rest = name.partition("/")
        return {"pk": {"S": self._prefix + place}, "sk": {"S": rest}}

    def _items(
        self, folder: str, wanted: str, *, after: str = "", limit: int | None = None
    ) -> Iterator[Item]:
        """The items of a folder in order, behind ``after``; with ``limit`` so many at most."""
        first = self._key(after or f"{folder}{_BEFORE_ALL}")
        last = self._key(folder + _BEHIND_ALL)["sk"]
        question: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {":pk": first["pk"], ":first": first["sk"], ":last": last},
            "ProjectionExpression": wanted,
            "ConsistentRead": True,
            **({} if limit is None else {"Limit": limit}),
        }
        while True:
            with translated(self._name):
                answer = self._client.query(**question)
            yield from answer.get("Items", ())
            if limit is not None or "LastEvaluatedKey" not in answer:
                return
            question["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _damaged(self, name: str) -> DamagedOriginal:
        return DamagedOriginal(f"{name} in {self._name} is not what was stored")


def _parts_folder(name: str, digest: str) -> str:
    return f"{name.partition('/')[0]}/parts/{digest}/"


def _part_name(name: str, digest: str, number: int) -> str:
    return f"{_parts_folder(name, digest)}{number:06d}"


def _bytes(item: Item, field: str) -> bytes:
    found = item.get(field, {}).get("B", b"")
    return bytes(found) if isinstance(found, (bytes, bytearray)) else b""


def _text(item: Item, field: str) -> str:
    return str(item.get(field, {}).get("S", ""))


def _number(item: Item, field: str) -> int:
    text = str(item.get(field, {}).get("N", ""))
    return int(text) if text.isdecimal() and text.isascii() else -1


def _config() -> Any:
    return import_module("botocore.config").Config(
        connect_timeout=10, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 8}
    )
