"""What only a checkpoint or a witness shows (K3, K4), on a real SQLite file and a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import pytest
from manipulations import Victim, other_text, victim
from witnesses import RunningWitness, running_witness

from compaction_ledger import InvalidSetting, export_parts
from compaction_ledger.domain.proof.checkpoints import parse_checkpoint
from compaction_ledger.domain.proof.notes import parse_note
from compaction_ledger.infrastructure.bundles import files
from compaction_ledger.usecases.verifying import Verification


@pytest.fixture(params=["sqlite", "postgres"])
def log(request: pytest.FixtureRequest, tmp_path: Path, pg_server: str) -> Iterator[Victim]:
    """A ledger that was signed at 3 and at 9 events, and has 12."""
    with victim(request.param, tmp_path, pg_server) as made:
        made.grow("c-1")
        made.sign()
        made.grow("c-2", 2)
        made.sign()
        made.grow("c-3")
        yield made


@pytest.fixture
def witness(log: Victim, tmp_path: Path) -> Iterator[RunningWitness]:
    """A witness that has cosigned the log at 9 events."""
    with running_witness(tmp_path / "witness", log.verifier_keys()) as running:
        running.cosign(log)
        yield running


def found(verification: Verification) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.index) for finding in verification.findings]


def sizes(sides: tuple[str, ...]) -> list[int]:
    """The sizes of both sides: of the signed note, and of what the log says now."""
    signed, now = sides
    return [parse_checkpoint(parse_note(signed.encode()).text).size, parse_checkpoint(now).size]


@pytest.mark.slow_on("postgres")
def test_a_log_as_it_was_signed(log: Victim, witness: RunningWitness) -> None:  # K4
    verification = log.verify(witnesses=[witness.setting])
    assert verification.findings == ()
    assert (verification.events, verification.signed, verification.heads) == (12, 9, 2)
    assert log.verify().heads == 2  # of which the newest is kept twice
    assert log.verify(checkpoints=[log.checkpoints / "checkpoint"]).heads == 1


def test_an_export_tells_the_digest_of_its_own_file(
    log: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # K5
    """Another one has replaced it before it is told."""
    path, digests = tmp_path / "bundle.zip", list[str]()

    @contextmanager
    def whole_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
        with files.whole_file(path, replace=replace) as file:
            yield file
        digests.append(sha256(path.read_bytes()).hexdigest())
        path.write_bytes(b"another export, with --force")

    monkeypatch.setattr(export_parts, "whole_file", whole_file)
    with log.opened() as ledger:
        assert [ledger.export(path).sha256] == digests


def test_a_log_rewritten_with_valid_hashes(log: Victim, witness: RunningWitness) -> None:  # K4
    log.rewrite(other_text(3))
    verification = log.verify(witnesses=[witness.setting])
    assert found(verification) == [("root", 3), ("fork", 3)]
    root, fork = verification.findings
    assert "3 to 8" in root.message
    assert witness.name in fork.message
    for finding in (root, fork):
        assert sizes(finding.sides) == [9, 9]
        signed, now = finding.sides
        assert parse_note(signed.encode()).text != now

    shutil.rmtree(log.checkpoints)  # who can write there, too, is seen by the witness alone
    assert log.verify().ok
    assert found(log.verify(witnesses=[witness.setting])) == [("fork", 0)]


@pytest.mark.slow_on("postgres")
def test_a_rewrite_behind_the_last_checkpoint_is_not_seen(log: Victim) -> None:  # K3
    log.rewrite(other_text(9))
    assert log.verify().ok


@pytest.mark.slow_on("postgres")
def test_a_tail_that_was_cut_off_with_its_head(log: Victim, witness: RunningWitness) -> None:  # K4
    log.cut(5)
    verification = log.verify()
    assert found(verification) == [("rollback", 5)]
    assert sizes(verification.findings[0].sides) == [9, 5]
    assert verification.signed == 3
    assert ("fork", 5) in found(log.verify(witnesses=[witness.setting]))


def test_an_old_backup_that_went_on(log: Victim, witness: RunningWitness) -> None:  # K4
    backup = log.rows()[:3]
    log.put(backup)
    log.grow("c-other", 4)
    verification = log.verify(witnesses=[witness.setting])
    assert found(verification) == [("root", 3), ("fork", 3)]
    assert sizes(verification.findings[1].sides) == [9, 9]

    log.forget_signing()
    log.sign()  # and is signed anew, by whoever has the key
    assert log.verify().ok
    fork = log.verify(witnesses=[witness.setting]).findings
    assert [finding.code for finding in fork] == ["fork"]
    assert sizes(fork[0].sides) == [9, 9]


@pytest.mark.slow_on("postgres")
def test_events_dropped_or_slipped_in(log: Victim) -> None:  # K4
    rows = log.rows()
    stream = rows[6].stream
    log.put([row for row in rows if row.stream != stream])
    dropped = log.verify()
    assert not dropped.ok
    log.put(rows)
    assert log.verify().ok


@pytest.mark.slow
def test_the_hashes_that_are_kept_are_compared(log: Victim) -> None:  # K4
    log.grow("c-long", 90)
    log.sign()
    assert log.verify().ok
    table = log.table("tree_nodes")
    other = "zeroblob(32)" if table == "tree_nodes" else "decode(repeat('00', 32), 'hex')"
    log.execute(f"UPDATE {table} SET hash = {other} WHERE level = 8 AND position = 0")
    assert found(log.verify()) == [("tree", 0)]


@pytest.mark.slow_on("postgres")
def test_a_checkpoint_of_another_log(log: Victim, tmp_path: Path, pg_server: str) -> None:  # K4
    folder = tmp_path / "another"
    folder.mkdir()
    with victim("sqlite", folder, pg_server) as another:
        another.grow("c-1")
        another.sign()
        verification = log.verify(
            checkpoints=[another.checkpoints / "checkpoint"], keys=another.verifier_keys()
        )
    assert found(verification) == [("other_log", None)]


@pytest.mark.slow_on("postgres")
def test_a_checkpoint_that_nobody_signed(log: Victim, tmp_path: Path) -> None:  # K2, K4
    newest = (log.checkpoints / "checkpoint").read_bytes()
    for data in (newest.replace(b"\n9\n", b"\n8\n"), b"nonsense\n", newest[:-2]):
        forged = tmp_path / "forged"
        forged.write_bytes(data)
        assert found(log.verify(checkpoints=[forged])) == [("checkpoint", None)]
    assert found(log.verify(checkpoints=[tmp_path / "none"])) == [("checkpoint", None)]
    (log.checkpoints / "checkpoints" / "7").write_bytes(newest)
    assert found(log.verify()) == [("checkpoint", None)]


@pytest.mark.slow_on("postgres")
def test_checkpoints_without_a_key(log: Victim) -> None:  # K4
    keys = log.verifier_keys()
    assert log.settings.keys_folder is not None
    shutil.rmtree(log.settings.keys_folder)
    assert found(log.verify()) == [("checkpoint", None)]
    assert log.verify(keys=keys).ok
    with pytest.raises(InvalidSetting, match="no key is known"):
        log.verify(checkpoints=[log.checkpoints / "checkpoint"])


@pytest.mark.slow_on("postgres")
def test_a_witness_that_cannot_be_asked(log: Victim, witness: RunningWitness) -> None:  # K3
    witness.stop()
    assert found(log.verify(witnesses=[witness.setting])) == [("witness", None)]


@pytest.mark.slow_on("postgres")
def test_a_witness_that_knows_nothing(log: Victim, tmp_path: Path) -> None:  # K3
    with running_witness(tmp_path / "new", log.verifier_keys()) as new:
        assert found(log.verify(witnesses=[new.setting])) == [("witness", None)]


@pytest.mark.slow_on("postgres")
def test_a_witness_under_another_key(log: Victim, witness: RunningWitness, tmp_path: Path) -> None:
    with running_witness(tmp_path / "new", log.verifier_keys()) as new:
        other = f"{witness.url} {new.key}"
    assert found(log.verify(witnesses=[other])) == [("witness", None)]
