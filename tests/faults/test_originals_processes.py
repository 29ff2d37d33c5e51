"""Processes that append to one run at once: it stays dense, and each place has exactly one winner (A8)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from aws_servers import running_aws
from originals_messages import KEY, messages
from originals_stores import STORES, Store
from originals_tasks import worker
from processes import kill_all, run_all

pytestmark = pytest.mark.slow

SHARED = [
    "sqlite",
    "s3",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("dynamodb", "postgres")),
]
BATCHES = 12


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[], str]]:
    """The address of a server of S3 and DynamoDB."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_aws()))


@pytest.fixture(params=SHARED)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, aws: Callable[[], str]
) -> Iterator[Store]:
    made = STORES[request.param](tmp_path, aws)
    made.open()  # so that none of the processes has to make tables
    yield made
    made.close()


def test_each_place_has_one_winner(store: Store) -> None:
    outputs = run_all([worker("compete", store.place, f"by {n}", BATCHES) for n in range(2)])
    won: dict[int, tuple[str, int]] = {}
    for number, output in enumerate(outputs):
        for line in output.splitlines():
            at, many = map(int, line.split())
            assert at not in won
            won[at] = (f"by {number}", many)
    expected = [
        message.digest
        for at, (name, many) in sorted(won.items())
        for message in messages(at, at + many, name)
    ]
    originals = store.open()
    assert list(originals.digests(KEY)) == expected
    assert len(originals.read(KEY)) == originals.count(KEY) == len(expected) >= BATCHES
    assert list(originals.runs(KEY.scope, KEY.conversation)) == [KEY.run]


@pytest.mark.slow
def test_processes_that_are_killed_leave_whole_batches(store: Store) -> None:
    """Killed (-9) wherever they are. Behind the first message, two at a time are appended."""
    for turn in range(4):
        processes = [worker("compete", store.place, f"by {turn}-{n}", 100_000) for n in range(2)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline().strip()  # it has appended something
            time.sleep(0.03 * turn)
        finally:
            kill_all(processes)
        kept = store.open().read(KEY)
        assert len(kept) == store.open().count(KEY)
        assert len(kept) % 2 == 1
        writers = [json.loads(m.wire)["content"].rpartition(" ")[0] for m in kept]
        assert writers[1::2] == writers[2::2]
        assert {f"by {turn}-0", f"by {turn}-1"} <= set(writers)
