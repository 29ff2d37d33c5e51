"""The manipulation matrix (K4, S1, S3): each row on a real SQLite file and a real PostgreSQL, encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from manipulated import Original, original
from manipulation_rows import Manipulation
from manipulation_table import MANIPULATIONS
from requests_from import Requests, requests_from

from compaction_ledger.usecases.verifying import Verification


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pg_server: str
) -> Iterator[Original]:
    """The ledger before anything is done to it."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        yield stack.enter_context(original(request.param, folder, pg_server))


@pytest.fixture(scope="module")
def before(ledger: Original) -> Requests:
    """What is assembled from it then."""
    return requests_from(ledger.built)


def found(verification: Verification) -> set[tuple[str, int | None]]:
    return {(finding.code, finding.index) for finding in verification.findings}


@pytest.mark.parametrize("row", MANIPULATIONS, ids=lambda row: row.name)
def test_a_manipulation(
    ledger: Original, before: Requests, row: Manipulation, tmp_path: Path
) -> None:
    victim = ledger.copied(tmp_path / "copy")
    row.change(victim)
    with victim.opened(read_only=True) as opened:
        alone = found(opened.verify(witnesses=[]))
        asked = found(opened.verify(witnesses=[ledger.witness.setting]))
    assert alone >= set(row.found)
    assert bool(alone) == bool(row.found)
    assert asked >= alone | set(row.by_witness)
    assert requests_from(victim).compared_with(before) == row.requests
