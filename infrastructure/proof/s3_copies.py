"""Copies of checkpoints in Amazon S3, or in whatever speaks its protocol (K3). Needs the extra ``s3``.

An object is made with ``If-None-Match: *``, so that none is replaced. That who has the credentials cannot
delete it either is for the bucket to see to: by Object Lock, or by rights to put and to get alone.
"""

from __future__ import annotations

from importlib import import_module
from time import sleep
from typing import Any, Self

from compaction_ledger.domain.errors import InvalidSetting, StoreError, StoreUnavailable
from compaction_ledger.infrastructure.originals.aws_errors import (
    ClientError,
    boto3,
    code_of,
    translated,
)
from compaction_ledger.infrastructure.proof.write_once import MAX_KEPT

SCHEME = "s3://"
_TRIES = 5
_CONFLICT = "ConditionalRequestConflict"


class S3Copies:
    """Objects in a bucket. ``client`` is one of ``boto3.client("s3")``; ``prefix`` stands before names."""

    def __init__(self, client: Any, bucket: str, prefix: str = "") -> None:
        if not bucket:
            raise InvalidSetting("the bucket has no name", place="checkpoint_copies")
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.name = f"{SCHEME}{bucket}/{self._prefix}"

    @classmethod
    def open(cls, place: str, *, endpoint_url: str | None = None) -> Self:
        """The place ``s3://bucket/prefix``, with a client that finds its credentials as boto3 does."""
        bucket, _, prefix = place.removeprefix(SCHEME).partition("/")
        config = import_module("botocore.config").Config(
            connect_timeout=10,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": 3},
        )
        with translated("S3"):
            client = boto3("s3").client("s3", endpoint_url=endpoint_url, config=config)
        return cls(client, bucket, prefix)

    def put(self, name: str, data: bytes) -> bytes:
        """Keep ``data`` under a name; returns what is kept there, which is what came first."""
        for attempt in range(1, _TRIES + 1):
            if self._create(name, data):
                return data
            kept = self._read(name)
            if kept is not None:
                return kept
            sleep(0.02 * attempt)  # another writes it at this moment
        raise StoreUnavailable(f"{self.name}{name} can be neither made nor read")

    def _create(self, name: str, data: bytes) -> bool:
        with translated(self.name + name, writing=True):
            try:
                self._client.put_object(
                    **self._at(name), Body=data, IfNoneMatch="*", ContentType="text/plain"
                )
            except ClientError as error:
                if code_of(error) in ("PreconditionFailed", "412", _CONFLICT):
                    return False
                raise
        return True

    def _read(self, name: str) -> bytes | None:
        with translated(self.name + name):
            try:
                answer = self._client.get_object(**self._at(name))
            except ClientError as error:
                if code_of(error) == "NoSuchKey":
                    return None
                raise
            with answer["Body"] as body:
                data = bytes(body.read(MAX_KEPT + 1))
        if len(data) > MAX_KEPT:
            raise StoreError(f"{self.name}{name} is larger than {MAX_KEPT} bytes")
        return data

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}
