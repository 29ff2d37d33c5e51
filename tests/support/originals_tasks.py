"""What processes do with a store of originals. Run as a script: task, place, arguments as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from originals_messages import KEY, SHAPE, messages

from compaction_ledger.domain.errors import ConcurrentAppend
from compaction_ledger.domain.window.originals import Originals


@contextmanager
def opened(place: str) -> Iterator[Originals]:
    """A session on the store at a place of :class:`originals_stores.Store`."""
    kind, *rest = place.split(" ")
    if kind not in ("s3", "dynamodb"):
        from compaction_ledger import Ledger  # noqa: PLC0415 - only what is needed

        with Ledger.open(place) as ledger:
            yield ledger._parts.originals
        return
    from aws_servers import client  # noqa: PLC0415

    from compaction_ledger.infrastructure.originals.dynamodb import (  # noqa: PLC0415
        DynamoDBOriginals,
    )
    from compaction_ledger.infrastructure.originals.s3 import S3Originals  # noqa: PLC0415

    url, name = rest
    with closing(client(kind, url)) as made:
        yield S3Originals(made, name) if kind == "s3" else DynamoDBOriginals(made, name)


def compete(place: str, name: str, stop: int) -> None:
    """Append one or two messages at a time until there are ``stop`` or more; say what was appended."""
    with opened(place) as originals:
        while (at := originals.count(KEY)) < stop:
            given = messages(at, at + 1 + at % 2, name)
            try:
                originals.append(KEY, SHAPE, at, given)
            except ConcurrentAppend:
                continue
            sys.stdout.write(f"{at} {len(given)}\n")
            sys.stdout.flush()


def worker(task: str, place: str, *arguments: Any) -> subprocess.Popen[str]:
    """Start a process that does ``task`` on the store at ``place``."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", __file__, task, place, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    {"compete": compete}[sys.argv[1]](sys.argv[2], *json.loads(sys.argv[3]))
