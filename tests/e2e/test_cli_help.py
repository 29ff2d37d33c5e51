"""Help: complete, readable, and fast."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, run

COMMANDS = (
    *("demo", "import", "backfill", "plan", "compact", "work", "assemble", "ranges", "show", "log"),
    *("replay", "diff", "delivered"),
    *("status", "verify", "export", "erase", "checkpoint", "prove", "rebuild", "migrate"),
    *("import-summary", "check"),
    *("version", "keys", "window", "witness"),
)
HEAVY = {"eventsourcing", "opentelemetry", "pydantic", "pydantic_ai", "rich", "sqlite3"}
LOOK = f"""
import json, sys
from compaction_ledger.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(json.dumps([end.code, sorted({HEAVY!r} & set(sys.modules))]), file=sys.stderr)
"""


def test_help_lists_every_command() -> None:
    out = call("--help").fine().out
    listed = out.partition("Commands:\n")[2]
    assert tuple(line.split()[0] for line in listed.splitlines()) == COMMANDS
    assert "compaction-ledger demo" in out
    assert "Exit codes: 0 fine; 1 something was found; 2 wrong usage" in out


def test_without_words_there_is_help() -> None:
    assert call().fine().out == call("--help").out == call("-h").out


@pytest.mark.slow
@pytest.mark.parametrize("group", ["keys", "window", "witness"])
def test_a_group_alone_shows_its_help_and_a_name_like_it_is_a_name(
    group: str, tmp_path: Path
) -> None:
    ledger = str(tmp_path / "none.db")
    assert call("--ledger", ledger, group).fine().out == call(group, "--help").out
    done = call("--ledger", ledger, "plan", group)
    assert (done.code, done.err[:20]) == (2, "error[not_a_ledger]:")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_one_line_on_it_and_an_example(command: str) -> None:
    out = call(command, "--help").fine().out
    lines = out.splitlines()
    assert lines[0].startswith(f"Usage: compaction-ledger {command} ")
    assert lines[2].strip().endswith(".")
    assert "Example" in out
    assert f"    compaction-ledger {command}" in out
    assert "--json" in out
    assert max(map(len, lines)) <= 80
    assert "..." not in out.replace("[ARGS]...", "").replace("{ARCHIVE}...", "")


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *words], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stderr) == [0, []]


def test_version_as_an_option() -> None:
    from compaction_ledger import __version__  # noqa: PLC0415

    assert call("--version").fine().out == f"compaction-ledger {__version__}\n"


def test_the_module_is_the_same_program() -> None:
    assert run("--help").fine().out == call("--help").out
