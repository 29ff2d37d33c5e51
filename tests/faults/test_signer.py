"""K1: signers that are killed at every step, paused, two at once, and whose disk is full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import naive_tree
import pytest
from backends import PostgresBackend, SQLiteBackend
from chunk_scenarios import WINDOW, A, done
from disks import small_disk, unwritable
from histories import Worker, fill, present_job
from signed_logs import add_leaves, leaf, signed_log

from compaction_ledger import Ledger, signing_parts
from compaction_ledger.domain.errors import DiskFull, LedgerReadOnly
from compaction_ledger.domain.proof.checkpoints import Checkpoint, open_checkpoint
from compaction_ledger.domain.window.window_stream import EMPTY
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.infrastructure.proof.keys import SignerKeys
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.verifying import Verification

SUPPORT = Path(__file__).parents[1] / "support"
TIMEOUT = 120


@contextmanager
def task(name: str, place: Path | str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that signs."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", SUPPORT / "signer_tasks.py", name, str(place), folder],
        env={
            **os.environ,
            "PYTHONPATH": f"{SUPPORT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def said(process: subprocess.Popen[str], word: str = "") -> list[dict[str, Any]]:
    """All that a process says until it ends well."""
    out, errors = process.communicate(word, timeout=TIMEOUT)
    assert (process.returncode, errors) == (0, ""), errors
    return [json.loads(line) for line in out.splitlines()]


def published(folder: Path, origin: str) -> dict[int, Checkpoint]:
    """Every checkpoint that was published, each verified."""
    verifiers = SignerKeys(folder / "keys", origin).verifiers()
    copies = folder / "checkpoints" / "checkpoints"
    found = {
        int(path.name): open_checkpoint(path.read_bytes(), verifiers, origin).checkpoint
        for path in copies.iterdir()
    }
    assert all(size == head.size for size, head in found.items())
    newest = (folder / "checkpoints" / "checkpoint").read_bytes()
    assert open_checkpoint(newest, verifiers, origin).checkpoint == found[max(found)]
    return found


def test_k1_killed_at_every_step_nothing_is_lost_and_the_next_goes_on(tmp_path: Path) -> None:
    with signed_log(tmp_path, 300) as log:
        origin, path = log.origin, log.path
    folder = tmp_path / "signer"
    folder.mkdir()
    with task("sign_killed", path, folder) as process:
        lines = said(process)
    steps = [line for line in lines if "step" in line]
    signed = [line for line in lines if "size" in line]
    assert [line["killed"] for line in steps] == [*[True] * (len(steps) - 1), False]
    assert len(steps) > 15
    # After each death, the next run signed all that there was.
    assert [line["size"] for line in signed] == [
        300 * number for number in range(1, len(steps) + 1)
    ]
    heads = published(folder, origin)
    leaves = [leaf(index) for index in range(max(heads))]
    for size, head in heads.items():
        assert head.root == naive_tree.head(leaves[:size])
    assert set(heads) == {line["size"] for line in signed}
    # What the dead left behind is gone, but for copies of the first key that nobody used.
    left = [path.name for path in (folder / "checkpoints").rglob(".tmp-*")]
    assert left == []


@pytest.mark.slow
def test_k1_two_at_once_in_one_folder(tmp_path: Path) -> None:
    with signed_log(tmp_path, 10) as log:
        with (
            task("sign_often", log.path, tmp_path) as one,
            task("sign_often", log.path, tmp_path) as other,
        ):
            for _ in range(30):
                add_leaves(log.path, 40)
            lines = said(one) + said(other)
        assert {line.get("error") for line in lines} == {None}
        heads = published(tmp_path, log.origin)
        leaves = [leaf(index) for index in range(1210)]
        for size, head in heads.items():
            assert head.root == naive_tree.head(leaves[:size])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SQLiteBackend, PostgresBackend])
def test_k1_a_paused_signer_that_comes_back_is_refused(
    kind: type[SQLiteBackend | PostgresBackend], tmp_path: Path
) -> None:
    """Two machines: the folder of each is its own, so that no lock keeps them apart."""
    backend = kind(tmp_path)
    parts = backend.open()
    parts.context.log.append(WINDOW, EMPTY, done(A))
    place = backend.url if isinstance(backend, PostgresBackend) else backend.path
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with task("sign_paused", place, here) as paused:
        assert paused.stdout is not None
        assert json.loads(paused.stdout.readline()) == {"paused": True}
        with task("sign", place, there) as other:
            (line,) = said(other)
        assert line["size"] == 3
        (late,) = said(paused, "go\n")
    assert late["error"] == "signer_overtaken"
    assert not (here / "checkpoints" / "checkpoint").exists()
    backend.close()


@pytest.mark.parametrize("free", range(6))
def test_k1_a_full_disk_leaves_what_was_published(tmp_path: Path, free: int) -> None:
    page = 4096
    with (
        small_disk(tmp_path / "disk", 64) as disk,
        signed_log(tmp_path, 5) as log,
    ):
        log.published.folder = disk / "checkpoints"
        log.checkpoints = disk / "checkpoints"
        first = log.signer().sign()
        add_leaves(log.path, 5)
        ballast = disk / "ballast"
        space = os.statvfs(disk)
        ballast.write_bytes(b"x" * (space.f_bavail * space.f_bsize - free * page))
        try:
            second = log.signer().sign()
        except DiskFull as error:
            assert str(disk) in str(error)  # noqa: PT017 - whether it is raised depends on how much is free
            assert free < 4
            assert (disk / "checkpoints" / "checkpoint").read_bytes() == first.data
        else:
            assert free > 1
            assert second.checkpoint.size == 10
        ballast.unlink()
        third = log.signer().sign()
        assert third.checkpoint == Checkpoint(
            log.origin, 10, naive_tree.head([leaf(index) for index in range(10)])
        )
        assert (disk / "checkpoints" / "checkpoints" / "10").read_bytes() == third.data
        assert (disk / "checkpoints" / "checkpoints" / "5").read_bytes() == first.data
        assert not (disk / "checkpoints" / "pending").exists()


def test_k1_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with signed_log(tmp_path, 5) as log:
        first = log.signer().sign()
        add_leaves(log.path, 5)
        with unwritable(log.checkpoints), pytest.raises(LedgerReadOnly, match="checkpoints"):
            log.signer().sign()
        assert (log.checkpoints / "checkpoint").read_bytes() == first.data
        assert log.signer().sign().checkpoint.size == 10


@pytest.mark.slow
def test_k1_the_keys_that_two_processes_make_at_once_are_one(tmp_path: Path) -> None:
    with signed_log(tmp_path, 3) as log:
        pass
    with (
        task("sign", log.path, tmp_path) as one,
        task("sign", log.path, tmp_path) as two,
        task("sign", log.path, tmp_path) as three,
    ):
        lines = [line for process in (one, two, three) for line in said(process)]
    assert sorted(line["new"] for line in lines) == [False, False, True]
    assert len(SignerKeys(tmp_path / "keys", log.origin).verifiers()) == 1


@pytest.mark.slow
def test_k4_a_restored_copy_is_refused_with_both_heads(tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with Ledger.open(path) as ledger:
        ledger._parts.context.log.append(WINDOW, EMPTY, done(A)[:1])
    copy.write_bytes(path.read_bytes())
    with Ledger.open(path) as ledger:
        state = ledger._parts.context.log.load_window(WINDOW)
        ledger._parts.context.log.append(WINDOW, state, done(A)[1:])
        signed = ledger.checkpoint()
    for beside in tmp_path.glob("ledger.db-*"):
        beside.unlink()
    copy.replace(path)
    folder = tmp_path / "signer"
    folder.mkdir()
    (tmp_path / "ledger.db.keys").rename(folder / "keys")
    (tmp_path / "ledger.db.checkpoints").rename(folder / "checkpoints")
    with task("sign", path, folder) as process:
        (line,) = said(process)
    assert line["error"] == "smaller_tree"
    assert str(signed.checkpoint) in line["message"]
    assert "found size 1, root" in line["message"]


READERS: dict[str, Callable[[Ledger, Path], object]] = {
    "verify": lambda ledger, _: ledger.verify(),
    "verify a file": lambda ledger, folder: ledger.verify(checkpoints=[folder / "checkpoint"]),
    "export": lambda ledger, folder: ledger.export(folder.parent / "bundle.zip"),
    "export a file": lambda ledger, folder: ledger.export(
        folder.parent / "bundle.zip", checkpoint=folder / "checkpoint"
    ),
    "prove": lambda ledger, _: list(ledger.prove(0)),
}


@pytest.mark.parametrize("reader", READERS)
def test_k2_a_key_that_comes_and_signs_meanwhile_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Whoever looks up the keys has read what was signed before."""
    store = SQLiteBackend(tmp_path)
    parts = store.open()
    fill(parts, 40)
    worker = Worker(parts, present_job(parts))
    worker.claim()
    signing_parts.log_signer(parts).sign()
    verifiers = SignerKeys.verifiers
    signed: list[int] = []

    def looked_up(keys: SignerKeys) -> Sequence[Ed25519Verifier]:
        found = verifiers(keys)
        monkeypatch.setattr(SignerKeys, "verifiers", verifiers)
        signing_parts.signer_keys(parts).rotate()
        worker.start()
        signed.append(signing_parts.log_signer(parts).sign().checkpoint.size)
        return found

    monkeypatch.setattr(SignerKeys, "verifiers", looked_up)
    ledger = Ledger(store.open(), Settings())
    places = parts.places
    assert places is not None
    done = READERS[reader](ledger, places.checkpoints)
    assert signed == [2]
    if isinstance(done, Verification):
        assert done.findings == ()
    assert ledger.verify().findings == ()
    store.close()
