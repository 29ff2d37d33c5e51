"""A backfill that is killed goes on when it is run again: nothing twice, nothing lost (A2, A8, P2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import backfills
import pytest
from archives import Archive, write_archive
from backends import everyday_database
from pg_servers import Server, fresh_schema, running_server

from compaction_ledger import Ledger


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of a ledger to be."""
    url = everyday_database()
    with fresh_schema(url) as schema:
        yield f"{url}{'&' if '?' in url else '?'}schema={schema}"


@pytest.fixture(scope="module")
def safe_server() -> Iterator[Server]:
    """A server that keeps what is committed."""
    with running_server() as server:
        yield server


@pytest.mark.slow
def test_a_thousand_pairs_and_two_kills(place: str, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "archive", 1_000, each=40)
    _kill_in_the_archive(place, archive, tmp_path / "archive", 3)
    _kill_among_summaries(place, tmp_path / "archive", archive.ranges // 4)
    _finish(place, archive, tmp_path / "archive")


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_many_pairs_three_kills_and_two_at_once(safe_server: Server, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "archive", 16_000, each=200)
    url = safe_server.url()
    place = f"{url}{'&' if '?' in url else '?'}schema=backfill"
    _kill_in_the_archive(place, archive, tmp_path / "archive", 60)
    with backfills.running(place, tmp_path / "archive") as other:
        _kill_among_summaries(place, tmp_path / "archive", archive.ranges // 4)
        _kill_among_summaries(place, tmp_path / "archive", archive.ranges // 2)
        _finish(place, archive, tmp_path / "archive")
        out, err = other.communicate(timeout=600)
    assert other.returncode == 0, err
    assert json.loads(out)["summarized"]["ranges"].keys() <= _HARMLESS


_HARMLESS = {"completed", "already_completed", "claimed_elsewhere", "source_changed", "refused"}


def _kill_in_the_archive(place: str, archive: Archive, folder: Path, conversations: int) -> None:
    """Kill it when so many conversations are there, and not all of them."""
    slowly = archive.conversations < 100
    with backfills.running(place, folder, slowly=slowly) as process, Ledger.open(place) as ledger:
        backfills.wait_until(
            lambda: len(list(ledger.conversations())) >= conversations, process, 120
        )
        backfills.kill(process)
        assert len(list(ledger.conversations())) < archive.conversations
        assert ledger.size() == 0


def _kill_among_summaries(place: str, folder: Path, done: int) -> None:
    """Kill it when so many summaries are made."""
    with (
        backfills.running(place, folder) as process,
        Ledger.open(place, read_only=True) as ledger,
    ):
        backfills.wait_until(lambda: ledger.status().ranges.get("done", 0) >= done, process, 1_200)
        backfills.kill(process)


def _finish(place: str, archive: Archive, folder: Path) -> None:
    """Let it end, and see that all is well; after that there is nothing left to do."""
    with backfills.running(place, folder) as process:
        out, err = process.communicate(timeout=3_000)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert (document["stopped"], document["refused"], document["failures"]) == (False, [], [])
    counts = document["archive"]["conversations"]
    assert counts["unchanged"] == archive.conversations
    assert document["archive"]["done_before"] >= archive.ranges // 4
    with Ledger.open(place) as ledger:
        backfills.check(ledger, archive)
        size = ledger.size()
        with backfills.running(place, folder) as process:
            again, err = process.communicate(timeout=300)
        assert json.loads(again)["summarized"]["done"] == 0, err
        assert ledger.size() == size
