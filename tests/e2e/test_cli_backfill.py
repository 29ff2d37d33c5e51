"""`backfill`: an archive of many conversations, taken over and summarized."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from archives import Archive, write_archive
from command_line import call, start

from compaction_ledger import Ledger


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Conversations of sizes of all kinds, of three scopes."""
    return write_archive(tmp_path / "archive", 700, each=None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.mark.slow
def test_everything_is_taken_over_and_summarized(
    archive: Archive, folder: Path, path: Path
) -> None:
    words = ("backfill", folder, "--scope-from", "file")
    document = call(*words, "--json", ledger=path).fine().json
    assert document["archive"]["conversations"] == {
        **dict.fromkeys(("updated", "unchanged", "ahead", "refused"), 0),
        "new": archive.conversations,
    }
    assert (document["archive"]["pairs"], document["archive"]["targets"]) == (700, archive.ranges)
    assert document["summarized"]["ranges"] == {"completed": archive.ranges}
    assert document["summarized"]["done"] == archive.ranges
    assert document["events"] == 3 * archive.ranges
    call("verify", ledger=path).fine()

    again = call(*words, "--json", ledger=path).fine().json
    assert again["archive"]["conversations"]["unchanged"] == archive.conversations
    assert again["archive"]["done_before"] == archive.ranges
    assert (again["summarized"]["done"], again["events"]) == (0, document["events"])
    shown = call(*words, ledger=path).fine().out
    assert f"{archive.conversations} known before" in shown
    assert f"{archive.ranges} targets, {archive.ranges} done before" in shown


@pytest.mark.slow
def test_the_two_halves_apart(archive: Archive, folder: Path, path: Path) -> None:
    words = ("backfill", *archive.files, "--scope", "mine", "--json")
    document = call(*words, "--import-only", ledger=path).fine().json
    assert (document["summarized"], document["events"]) == (None, 0)
    assert call("status", "--json", ledger=path).fine().json["backlog"]["due"] > 0
    call("compact", "acme-000000", "--scope", "mine", ledger=path).fine()
    rest = call(*words, "--threads", 2, ledger=path).fine().json
    assert 0 < rest["archive"]["done_before"] < archive.ranges
    assert rest["summarized"]["done"] == archive.ranges - rest["archive"]["done_before"]
    with Ledger.open(path) as ledger:
        assert {scope for scope, _ in ledger.conversations()} == {"mine"}


@pytest.mark.slow
def test_what_is_malformed_is_told_at_the_end(folder: Path, path: Path) -> None:
    write_archive(folder, 120, each=40, layout="files")
    bad = folder / "acme" / "broken.jsonl"
    bad.write_text('{"type":"run","id":"r","state":"completed"}\n{"type":"message"}\n')
    done = call("backfill", folder, "--scope-from", "folder", "--json", ledger=path)
    assert (done.code, done.err) == (1, "")
    document = done.json
    assert document["archive"]["conversations"]["new"] == 3
    assert document["summarized"]["done"] == 6
    (refused,) = document["refused"]
    assert (refused["scope"], refused["place"]) == ("acme", "acme/broken.jsonl:1")
    assert refused["code"] == "malformed_record"
    assert "acme/broken.jsonl:2" in refused["message"]
    shown = call("backfill", folder, "--scope-from", "folder", ledger=path)
    assert shown.code == 1
    last = " ".join(shown.out.split())
    assert (
        "not imported: at acme/broken.jsonl:1: error[malformed_record]: acme/broken.jsonl:2" in last
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["none"], "invalid_setting"),
        ([".", "--format", "word"], "invalid_setting"),
        ([".", "--scope-from", "file", "--scope", "x"], "usage"),
        ([".", "--scope-from", "line"], "usage"),
        ([".", "--threads", "0"], "usage"),
        ([], "usage"),
    ],
)
def test_wrong_words_make_no_ledger(
    words: list[str], code: str, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call("backfill", *words, ledger=path).failed(code)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_stop_loses_nothing(folder: Path, path: Path) -> None:
    made = write_archive(folder, 2_400, each=240)
    words = ["backfill", folder, "--scope-from", "file", "--json", "--ledger", path]
    with start(words) as process:
        _wait_for_summaries(path)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "")
    assert '"signal": "SIGTERM"' in out
    assert call("status", "--json", ledger=path).fine().json["open_claims"] == 0
    rest = call(*words).fine().json
    assert 0 < rest["summarized"]["done"] < made.ranges
    assert call("status", "--json", ledger=path).fine().json["ranges"]["done"] == made.ranges
    call("verify", ledger=path).fine()


def _wait_for_summaries(path: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if path.exists():
            done = call("status", "--json", ledger=path)
            if done.code == 0 and done.json["ranges"]["done"]:
                return
        time.sleep(0.05)
    raise AssertionError("nothing is summarized")
