"""K5: the verifier is one file that knows nothing of the ledger, and runs where nothing else of it is."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import Keeper, Members, write

from compaction_ledger import bundle_verifier
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder

SOURCE = Path(bundle_verifier.__file__)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The verifier alone in a folder."""
    folder = tmp_path / "auditor"
    folder.mkdir()
    return Path(shutil.copy(SOURCE, folder / "verify.py"))


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(copy), *words],
        cwd=copy.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_imports_the_standard_library_and_one_package() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [n.name for n in node.names]
        )
    }
    assert imported - sys.stdlib_module_names == {"cryptography"}


def test_it_can_be_read_in_an_hour() -> None:
    lines = [line for line in SOURCE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) < 750


def test_it_runs_alone(copy: Path, tmp_path: Path, keeper: Keeper, whole: Members) -> None:
    bundle = write(tmp_path / "bundle.zip", whole)
    done = run(
        copy, str(bundle), "--key", keeper.key, "--witness", str(keeper.witness.verifier_key)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"PROVED: {bundle}\n")
    assert "Not proved:" in done.stdout
    assert sorted(path.name for path in copy.parent.iterdir()) == ["verify.py"]  # nothing unpacked


@pytest.mark.slow
def test_it_answers_in_json(copy: Path, tmp_path: Path, keeper: Keeper, one: Members) -> None:
    bundle = write(tmp_path / "bundle.zip", one)
    done = run(copy, str(bundle), "--key", keeper.key, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"], document["complete"]) == (0, True, False)
    assert document["signed_by"] == [keeper.key]
    assert document["conversation"] == {"id": "a", "scope": "tenant-1"}
    bundle.write_bytes(bundle.read_bytes()[:-1])
    done = run(copy, str(bundle), "--key", keeper.key, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (1, False)
    assert document["error"]["place"] == "the ZIP directory"


def test_it_says_what_is_wrong_and_never_shows_a_trace(
    copy: Path, tmp_path: Path, keeper: Keeper, whole: Members
) -> None:
    bundle = write(tmp_path / "bundle.zip", {**whole, "checkpoint": b"\x1b[2J"})
    done = run(copy, str(bundle), "--key", keeper.key)
    assert done.returncode == 1
    assert (
        done.stdout == "NOT PROVED: checkpoint: not a signed checkpoint, as the ledger writes it\n"
    )
    assert done.stderr == ""


@pytest.mark.slow
def test_keys_in_a_file(copy: Path, tmp_path: Path, keeper: Keeper, whole: Members) -> None:
    bundle, keys = write(tmp_path / "bundle.zip", whole), tmp_path / "keys"
    keys.write_text(f"{keeper.key}\n")
    assert run(copy, str(bundle), "--key", f"@{keys}").returncode == 0
    keys.write_bytes(b"\xff\n")
    assert run(copy, str(bundle), "--key", f"@{keys}").returncode == 2
    keys.write_text(" \n")
    for words in (["--key", f"@{keys}"], ["--key", keeper.key, "--witness", f"@{keys}"]):
        done = run(copy, str(bundle), *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "verifier keys: there is none in" in done.stderr
    keys.unlink()
    done = run(copy, str(bundle), "--key", f"@{keys}")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


@pytest.mark.slow
def test_wrong_usage(copy: Path, tmp_path: Path, keeper: Keeper, whole: Members) -> None:
    bundle = write(tmp_path / "bundle.zip", whole)
    for words, said in (
        ((str(bundle),), "--key"),
        ((str(tmp_path / "none"), "--key", keeper.key), "No such file"),
        ((str(tmp_path), "--key", keeper.key), "directory"),
        ((str(bundle), "--key", "x"), "verifier key of 'x'"),
        ((str(bundle), "--key", keeper.key, "--witness", keeper.key), "a key of type 1"),
    ):
        done = run(copy, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_what_a_bundle_says_does_not_steer_the_terminal(
    keeper: Keeper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Keeper(SealedMemoryRecorder(lambda: 0))
    made.summarize("\u202e\u2028name", 1)
    made.sign()
    bundle = write(tmp_path / "bundle.zip", made.export())
    assert bundle_verifier.main([str(bundle), "--key", made.key]) == 0
    assert "\u202e" not in capsys.readouterr().out
