"""Ledgers for the tests of the command line."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import call


@pytest.fixture(scope="session")
def demo_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger of the demonstration: look at it, do not change it."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    call("demo", "--keep", path, "--json").fine()
    return path


@pytest.fixture
def ledger(demo_ledger: Path, tmp_path: Path) -> Path:
    """A copy of the demonstration's ledger with its keys, to be changed."""
    shutil.copytree(f"{demo_ledger}.keys", tmp_path / "ledger.db.keys")
    return Path(shutil.copy(demo_ledger, tmp_path / "ledger.db"))


def write_native(path: Path, pairs: int, prefix: str = "") -> Path:
    """A transcript of ``pairs`` pairs in the native format."""
    lines: list[dict[str, str]] = []
    for number in range(pairs):
        run = f"{prefix}run-{number}"
        lines.append({"type": "run", "id": run, "state": "completed"})
        for role in ("user", "assistant"):
            text = f"{role} {number}: the fund stood at {100 + number}.50 EUR. " * (
                9 if role == "assistant" else 1
            )
            lines.append(
                {
                    "type": "message",
                    "id": f"{prefix}{role}-{number}",
                    "run": run,
                    "role": role,
                    "text": text,
                }
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A transcript of forty pairs: two ranges are due."""
    return write_native(tmp_path / "chat.jsonl", 40)
