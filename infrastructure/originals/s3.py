"""Originals in Amazon S3, or in whatever speaks its protocol and knows conditional writes. Needs an extra.

An object is its head and body, one behind the other; their digests are in its metadata and are checked
whenever it is read. It is made with ``If-None-Match: *``: of two who write one name, one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Lock
from time import sleep
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from compaction_ledger.domain.errors import DamagedOriginal, InvalidSetting, StoreError
from compaction_ledger.infrastructure.originals.aws_errors import (
    ClientError,
    boto3,
    code_of,
    translated,
)
from compaction_ledger.infrastructure.originals.batches import Blob
from compaction_ledger.infrastructure.originals.checking import sha256
from compaction_ledger.infrastructure.originals.objects import ObjectOriginals

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 8
"""Requests at once: fewer than the connections that a client keeps by default."""

HEAD_BYTES = 65_536
"""How much of an object is read for its head; for a longer head, all of it."""

HEADS_KEPT = 10_000
DELETED_AT_ONCE = 1_000
_CONFLICTS = 5


class S3Client(Protocol):
    """What is used of ``boto3.client("s3")``."""

    def put_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def get_object(self, **arguments: Any) -> Mapping[str, Any]: ...
    def list_objects_v2(self, **arguments: Any) -> Mapping[str, Any]: ...
    def list_object_versions(self, **arguments: Any) -> Mapping[str, Any]: ...
    def delete_objects(self, **arguments: Any) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


class S3Originals(ObjectOriginals):
    """The transcripts of running agents in a bucket: the port ``Originals``.

    ``client`` is one of ``boto3.client("s3")``, which threads may share. ``prefix`` stands before the names
    of all objects.
    """

    def __init__(self, client: S3Client, bucket: str, prefix: str = "") -> None:
        super().__init__(S3Objects(client, bucket, prefix))
        self._client = client

    @classmethod
    def open(
        cls,
        bucket: str,
        *,
        prefix: str = "",
        endpoint_url: str | None = None,
        region_name: str | None = None,
    ) -> Self:
        """With a client of its own, which finds its credentials as boto3 does."""
        with translated("S3"):
            client = boto3("s3").client(
                "s3", endpoint_url=endpoint_url, region_name=region_name, config=_config()
            )
        return cls(client, bucket, prefix)

    def close(self) -> None:
        """Close the connections of the client."""
        self._client.close()


class _Found(NamedTuple):
    """An object as it is listed; its tag is another one when its bytes are."""

    name: str
    tag: str


class S3Objects:
    """Objects in a bucket."""

    def __init__(self, client: S3Client, bucket: str, prefix: str = "") -> None:
        if not bucket:
            raise InvalidSetting("must not be empty", place="bucket")
        self._client = client
        self._bucket = bucket
        self._prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        self._name = f"s3://{bucket}/{self._prefix}"
        self._known: dict[_Found, bytes] = {}
        self._lock = Lock()
        self._is_conditional = False

    # --- writing ---

    def create(self, name: str, blob: Blob) -> bool:
        """Store an object, wholly or not at all; False where there is one of this name already."""
        if not self._is_conditional:
            self._check_conditions()
        facts = {
            "head-bytes": str(len(blob.head)),
            "head-sha256": sha256(blob.head),
            "sha256": sha256(blob.head + blob.body),
        }
        tag = self._put(name, blob.head + blob.body, facts)
        if tag is None:
            return False
        self._keep_head(_Found(name, tag), blob.head)
        return True

    def _check_conditions(self) -> None:
        """Raises :class:`StoreError` where conditions are passed over: then writers would lose messages."""
        name = "conditional-writes"
        if self._put(name, b"", {}) is not None and self._put(name, b"", {}) is not None:
            raise StoreError(f"{self._name} does not know conditional writes (If-None-Match)")
        self._is_conditional = True

    def _put(self, name: str, content: bytes, facts: Mapping[str, str]) -> str | None:
        """The tag of the object that was made; ``None`` where there is one of this name already."""
        for attempt in range(1, _CONFLICTS + 1):
            with translated(self._name + name, writing=True):
                try:
                    answer = self._client.put_object(
                        **self._at(name),
                        Body=content,
                        Metadata=facts,
                        IfNoneMatch="*",
                        ContentType="application/octet-stream",
                    )
                except ClientError as error:
                    if code_of(error) in ("PreconditionFailed", "412"):
                        return None
                    if code_of(error) != "ConditionalRequestConflict" or attempt == _CONFLICTS:
                        raise
                else:
                    return str(answer.get("ETag", ""))
            sleep(0.02 * attempt)  # another writes it at this moment
        raise AssertionError  # the last attempt returns or raises

    def delete(self, folder: str) -> None:
        """Delete every object in a folder, with all versions of it that the bucket keeps."""
        while found := self._some_to_delete(folder):
            with translated(self._name, writing=True):
                answer = self._client.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": found, "Quiet": True}
                )
            for error in answer.get("Errors", ()):
                raise StoreError(
                    f"s3://{self._bucket}/{error.get('Key')} was not deleted: {error.get('Code')}"
                )
        with self._lock:
            for known in [known for known in self._known if known.name.startswith(folder)]:
                del self._known[known]

    def _some_to_delete(self, folder: str) -> list[dict[str, str]]:
        """The next objects in a folder, in the words of a request to delete them."""
        wanted = {
            "Bucket": self._bucket,
            "Prefix": self._prefix + folder,
            "MaxKeys": DELETED_AT_ONCE,
        }
        with translated(self._name):
            try:
                answer = self._client.list_object_versions(**wanted)
            except ClientError as error:
                if code_of(error) not in ("NotImplemented", "501"):
                    raise
                answer = self._client.list_objects_v2(**wanted)  # a store without versions
        listed = [
            *answer.get("Versions", ()),
            *answer.get("DeleteMarkers", ()),
            *answer.get("Contents", ()),
        ]
        return [
            {field: one[field] for field in ("Key", "VersionId") if field in one} for one in listed
        ]

    # --- reading ---

    def read(self, names: Sequence[str]) -> list[Blob | None]:
        """The objects of these names, several at once."""
        return _at_once(self._read_one, names)

    def _read_one(self, name: str) -> Blob | None:
        found = self._get(name)
        if found is None:
            return None
        facts, content = found
        head_bytes = _head_bytes(facts)
        if sha256(content) != facts.get("sha256") or head_bytes is None:
            raise self._damaged(name)
        return Blob(content[:head_bytes], content[head_bytes:])

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        """The names of the objects in a folder, in order, page by page."""
        return (found.name for found in self._listed(folder, after))

    def heads(self, folder: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The names and heads of the first objects in a folder. What was read once is not read again."""
        found = self._listed(folder) if limit is None else self._listed(folder, page=limit)
        wanted = [one for one, _ in zip(found, range(limit or 1 << 62), strict=False)]
        return list(zip((one.name for one in wanted), _at_once(self._head, wanted), strict=True))

    def _head(self, found: _Found) -> bytes:
        with self._lock:
            head = self._known.get(found)
        if head is None:
            head = self._read_head(found.name)
            self._keep_head(found, head)
        return head

    def _keep_head(self, found: _Found, head: bytes) -> None:
        with self._lock:
            while len(self._known) >= HEADS_KEPT:
                del self._known[next(iter(self._known))]
            self._known[found] = head

    def _read_head(self, name: str) -> bytes:
        found = self._get(name, Range=f"bytes=0-{HEAD_BYTES - 1}")
        if found is None:
            raise DamagedOriginal(f"{self._name}{name} was deleted while it was read")
        facts, content = found
        head_bytes = _head_bytes(facts)
        if head_bytes is not None and head_bytes > len(content):
            whole = self._read_one(name)
            return b"" if whole is None else whole.head
        if head_bytes is None or sha256(content[:head_bytes]) != facts.get("head-sha256"):
            raise self._damaged(name)
        return content[:head_bytes]

    def folders(self, folder: str) -> set[str]:
        """The names of the folders in a folder."""
        before = len(self._prefix + folder)
        return {
            str(each["Prefix"])[before:].rstrip("/")
            for page in self._pages(folder, Delimiter="/")
            for each in page.get("CommonPrefixes", ())
        }

    # --- inside ---

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}

    def _get(self, name: str, **more: str) -> tuple[Mapping[str, str], bytes] | None:
        """The metadata and bytes of an object; ``None`` where there is none."""
        with translated(self._name + name):
            try:
                answer = self._client.get_object(**self._at(name), **more)
            except ClientError as error:
                if code_of(error) == "NoSuchKey":
                    return None
                if code_of(error) in ("InvalidRange", "416"):  # it is empty
                    raise self._damaged(name) from error
                raise
            with answer["Body"] as body:
                return answer.get("Metadata", {}), body.read()

    def _listed(self, folder: str, after: str = "", page: int = 1_000) -> Iterator[_Found]:
        begun = {"StartAfter": self._prefix + after} if after else {}
        before = len(self._prefix)
        for answer in self._pages(folder, MaxKeys=page, **begun):
            for each in answer.get("Contents", ()):
                yield _Found(str(each["Key"])[before:], str(each["ETag"]))

    def _pages(self, folder: str, **more: Any) -> Iterator[Mapping[str, Any]]:
        behind: dict[str, str] = {}
        while True:
            with translated(self._name):
                answer = self._client.list_objects_v2(
                    Bucket=self._bucket, Prefix=self._prefix + folder, **more, **behind
                )
            yield answer
            if not answer.get("IsTruncated"):
                return
            behind = {"ContinuationToken": answer["NextContinuationToken"]}

    def _damaged(self, name: str) -> DamagedOriginal:
        return DamagedOriginal(f"{self._name}{name} is not what was stored")


def _head_bytes(facts: Mapping[str, str]) -> int | None:
    text = facts.get("head-bytes", "")
    return int(text) if text.isdecimal() and text.isascii() else None


def _at_once(action: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What ``action`` returns for each, several of them done at once."""
    if len(items) < 2:
        return [action(item) for item in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items))) as pool:
        return list(pool.map(action, items))


def _config() -> Any:
    return import_module("botocore.config").Config(
        connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5}
    )
