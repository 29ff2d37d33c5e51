"""The manipulation matrix (K4, S1, S3): each row on a real SQLite file and a real PostgreSQL, encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from manipulated import SIGNED, SIZE, Original, original
from manipulation_page import PAGE, written
from manipulation_rows import Manipulation
from manipulation_table import MANIPULATIONS
from manipulations import Victim
from manipulations_beside import signer_replaced
from manipulations_of_signing import SIGNINGS, Signing
from requests_from import Requests, requests_from
from witnesses import running_witness

from compaction_ledger.domain.errors import Forked, LedgerError
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


@pytest.mark.slow_on("postgres")
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


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("row", SIGNINGS, ids=lambda row: row.name)
def test_what_the_signer_says(ledger: Original, row: Signing, tmp_path: Path) -> None:  # K1
    victim = ledger.copied(tmp_path / "copy")
    row.change(victim)
    before = _published(victim)
    if row.answer is None:
        assert victim.sign()
        return
    with pytest.raises(LedgerError) as refusal:
        victim.sign()
    assert refusal.value.code == row.answer
    assert _published(victim) == before


def _published(victim: Victim) -> dict[str, bytes]:
    paths = [victim.checkpoints / "checkpoint", *(victim.checkpoints / "checkpoints").iterdir()]
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.slow_on("postgres")
def test_two_signers_of_whom_one_went_back_are_told_apart(
    ledger: Original, tmp_path: Path
) -> None:  # K3, K4
    """An old copy of everything goes on beside the original: both sign, and the witness cosigns one."""
    with running_witness(tmp_path / "witness", ledger.built.verifier_keys()) as witness:
        one = ledger.copied(tmp_path / "one")
        one.grow("c-one")
        one.sign()
        witness.cosign(one)
        other = ledger.copied(tmp_path / "other")
        other.grow("c-other-one", 3)
        other.sign()
        assert other.verify().ok
        with pytest.raises(Forked) as forked:
            witness.cosign(other)
        (fork,) = other.verify(witnesses=[witness.setting]).findings
    assert (fork.code, fork.index) == ("fork", SIGNED[1])
    assert [size_of(side) for side in forked.value.sides] == [SIZE + 9, SIZE + 3]
    assert [size_of(side) for side in fork.sides] == [SIZE + 3, SIZE + 3]


def size_of(checkpoint: str) -> int:
    return int(checkpoint.split("\n")[1])


@pytest.mark.slow_on("postgres")
def test_a_replaced_signer_is_told_by_the_published_key(
    ledger: Original, tmp_path: Path
) -> None:  # K2
    keys = ledger.built.verifier_keys()
    victim = ledger.copied(tmp_path / "copy")
    signer_replaced(victim)
    assert victim.verify().ok
    assert found(victim.verify(keys=keys)) == {("checkpoint", None)}
    with pytest.raises(LedgerError):
        ledger.witness.cosign(victim)


def test_the_page_says_what_the_tests_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run: python tests/support/manipulation_page.py"
