"""`verify` and `rebuild`: what is found, and what an auditor may do."""

import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import call
from copies import copy_ledger

NOBODY = 65534
AS_NOBODY = f"""
import os, sys
from compaction_ledger.cli import main
def run(words):
    try:
        main(words)
    except SystemExit as end:
        return end.code
assert run(["verify", "--ledger", sys.argv[1]]) == 0  # so that everything is imported
if os.geteuid() == 0:
    os.setgid({NOBODY})
    os.setuid({NOBODY})
sys.exit(run(sys.argv[2:]))
"""


def tamper(path: Path, *statements: str) -> None:
    """Change the file as somebody could who does not use this software."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for trigger in ("stored_events_no_update", "stored_events_no_delete"):
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)


def test_a_ledger_in_order(demo_ledger: Path) -> None:
    document = call("verify", "--json", ledger=demo_ledger).fine().json
    size = document["events"]
    assert (document["ok"], document["lag"]) == (True, 0)
    assert size > 20
    shown = call("verify", ledger=demo_ledger).fine().out
    assert shown == f"{size} events: every seal holds, and every row is what the log says.\n"
    shown = call("verify", "--seal-only", ledger=demo_ledger).fine().out
    assert shown == f"{size} events: every seal holds.\n"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("UPDATE stored_events SET state = state || x'00' WHERE idx = 5", 5),
        ("UPDATE stored_events SET topic = 'AttemptFailed@1' WHERE idx = 7", 7),
        ("UPDATE stored_events SET leaf = zeroblob(32) WHERE idx = 22", 22),
        ("DELETE FROM stored_events WHERE idx = 0", 0),
        ("DELETE FROM stored_events WHERE idx = 22", 22),
    ],
)
def test_what_was_changed_is_found_at_its_index(ledger: Path, statement: str, index: int) -> None:
    tamper(ledger, statement)
    done = call("verify", "--json", ledger=ledger)
    assert (done.code, done.err) == (1, "")
    assert index in [finding["index"] for finding in done.json["findings"]]
    shown = call("verify", ledger=ledger)
    assert shown.code == 1
    assert "finding" in shown.out.splitlines()[-1]


def test_a_changed_row_is_found_and_rebuilt(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'ranges\\_%' ESCAPE '\\' AND type = 'table'"
        ).fetchone()
        connection.execute(f"UPDATE {table} SET status = 'due' WHERE from_pair = 10")
    assert call("verify", ledger=ledger).code == 1
    call("verify", "--seal-only", ledger=ledger).fine()
    assert "are built anew from" in call("rebuild", ledger=ledger).fine().out
    call("verify", ledger=ledger).fine()


def test_damage_below_the_log_is_a_finding(ledger: Path) -> None:
    data = bytearray(ledger.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    ledger.write_bytes(data)
    done = call("verify", "--json", ledger=ledger)
    assert done.code == 1
    assert not done.json["ok"]
    assert [finding["code"] for finding in done.json["findings"]] == ["damaged_log"]


def test_reading_what_is_damaged_is_one_line(ledger: Path) -> None:
    tamper(ledger, "UPDATE stored_events SET state = x'7b7d' WHERE idx = 5")
    assert "index 5" in call("log", ledger=ledger).failed("damaged_log", exit_code=1)
    out = call("show", "fund-research", "10", "--json", ledger=ledger)
    assert out.code == 1


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to look at" * 40])
def test_a_file_that_is_no_ledger(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.db"
    path.write_bytes(content)
    for command in ("verify", "rebuild", "ranges", "log"):
        call(command, ledger=path).failed("not_a_ledger")
    assert path.read_bytes() == content


def test_a_file_of_something_else_and_one_of_the_future(ledger: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
    call("verify", ledger=other).failed("not_a_ledger")
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "99" in call("verify", ledger=ledger).failed("newer_format")


def test_no_file_is_made_by_looking(tmp_path: Path) -> None:
    for words in (["verify"], ["rebuild"], ["plan", "c"], ["log"], ["compact", "c"]):
        call(*words, ledger=tmp_path / "none.db").failed("not_a_ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach and, by the test, nobody can write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield folder
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("left_behind", [(), ("-wal",), ("-wal", "-shm")])
def test_an_auditor_needs_no_right_to_write(
    demo_ledger: Path, open_folder: Path, left_behind: tuple[str, ...]
) -> None:
    path = copy_ledger(demo_ledger, open_folder / "audited.db")
    for end in left_behind:
        path.with_name(path.name + end).touch()
    for file in open_folder.iterdir():
        file.chmod(0o444)
    open_folder.chmod(stat.S_IRUSR | stat.S_IXUSR | 0o055)
    before = sorted(open_folder.iterdir())

    def as_nobody(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", AS_NOBODY, demo_ledger, *words, "--ledger", path],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = as_nobody("verify", "--seal-only")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("every seal holds") == 2
    # The keys are for their owner: without them the rows cannot be compared, and that is said.
    assert as_nobody("verify").returncode != 0
    # Nor can it be known what was erased, and then nothing is read.
    assert as_nobody("ranges").stderr.startswith("error[keys_unavailable]: ")
    refused = as_nobody("rebuild")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith("error[ledger_read_only]: ")
    assert sorted(open_folder.iterdir()) == before
