"""`replay`, `diff` and `delivered`: what was known, what changed, and what was given."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from backends import START, SQLiteBackend
from command_line import call
from histories import fill
from window_histories import every_window_kind

from compaction_ledger import Ledger, ScriptedSummarizer, Settings

READ = ("replay", "diff", "delivered")


@pytest.fixture
def delivered_ledger(ledger: Path, tmp_path: Path) -> tuple[Path, Path, int]:
    """A ledger with a request that was recorded for a run, the request's file, and its index."""
    body = tmp_path / "body.json"
    words = ("assemble", "fund-research", "--budget", "30000", "--record", "--run", "run-065")
    done = call(*words, "--out", body, "--json", ledger=ledger).fine()
    return ledger, body, done.json["delivery"]["index"]


def replayed(*words: str, ledger: Path) -> Any:
    return call("replay", *words, "--json", ledger=ledger).fine().json


# --- replay -------------------------------------------------------------------------------------


def test_a_conversation_as_it_was(demo_ledger: Path) -> None:
    document = replayed("--at", "4", "fund-research", ledger=demo_ledger)
    assert document["point"]["index"] == 4
    then = document["conversation"]
    assert [(one["from_pair"], one["standing"]) for one in then["ranges"]] == [
        (0, "done"),
        (10, "running"),
    ]
    assert [one["validity"] for one in then["summaries"]] == ["valid", "unfinished"]
    assert [one["outcome"] for one in then["attempts"]] == ["completed", "running"]
    assert then["deliveries"] == []
    assert then["served"]["changed"] == [{"from_pair": 0, "to_pair": 9}]  # edited since (case B)
    assert then["pairs_known"] == 20
    assert document["overview"] is None


def test_the_whole_ledger_as_it_was(demo_ledger: Path) -> None:
    before = replayed("--at=-1", ledger=demo_ledger)
    assert (before["overview"], before["point"]["index"]) == ([], -1)
    (one,) = replayed("--at", "5", ledger=demo_ledger)["overview"]
    assert (one["ranges"], one["valid"]) == ({"done": 2}, 2)
    everything = replayed("--at", "2999-01-01T00:00:00Z", ledger=demo_ledger)
    assert [one["conversation"] for one in everything["overview"]] == [
        *("fund-research", "fund-research-2"),
    ]
    assert replayed("--at", "5", "--scope", "nobody", ledger=demo_ledger)["overview"] == []


def test_a_time_of_an_event_is_the_point_after_it(demo_ledger: Path) -> None:
    (event,) = call("log", "--from", "5", "--limit", "1", "--json", ledger=demo_ledger).json[
        "events"
    ]
    point = replayed("--at", event["recorded_at"], ledger=demo_ledger)["point"]
    assert point["index"] >= 5
    assert point["time"] == point["recorded_at"] == event["recorded_at"]


def test_the_request_that_would_have_been_served(demo_ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "then.json"
    words = ("--at", "8", "fund-research", "--budget", "40000", "--shape", "anthropic")
    document = replayed(*words, "--out", str(out), ledger=demo_ledger)
    manifest = document["conversation"]["served"]["manifest"]
    assert (manifest["shape"], manifest["bytes_allowed"]) == ("anthropic", 40_000)
    assert manifest["bytes_used"] == len(out.read_bytes())
    assert {used["index"] for used in manifest["summaries"]} <= set(range(9))
    fewer = replayed(*words, "--pairs", "30", ledger=demo_ledger)["conversation"]["served"]
    assert (fewer["pairs_used"], fewer["manifest"]["pairs"][-1]["to_pair"]) == (30, 29)


def test_for_people(demo_ledger: Path) -> None:
    out = call("replay", "--at", "18", "fund-research", ledger=demo_ledger).fine().out
    assert "After event 18 of" in out
    assert "What a request would have held" in out
    assert "Pairs 0-9 were changed since" in out
    assert max(map(len, out.splitlines())) <= 80
    overview = call("replay", "--at", "18", ledger=demo_ledger).fine().out
    assert "1 exhausted" in overview
    assert overview.splitlines()[-1] == "2 conversations."
    assert "Before the first of" in call("replay", "--at=-1", ledger=demo_ledger).fine().out


def test_windows_are_replayed_too(tmp_path: Path) -> None:
    store = SQLiteBackend(tmp_path)
    parts = store.open()
    fill(parts)
    every_window_kind(parts)
    store.close()
    words = ("c-1", "--scope", "tenant-1")
    then = replayed("--at", "5", *words, ledger=store.path)["conversation"]
    assert [(one["status"], one["stands"]) for one in then["chunks"]] == [("completed", True)] * 2
    now = replayed("--at", f"@{START}", *words, ledger=store.path)["conversation"]
    assert [one["current"] for one in now["pins"]] == [False, True, True]
    assert len(now["window_deliveries"]) == 2
    out = call("replay", "--at", f"@{START}", *words, ledger=store.path).fine().out
    assert "replaced by p3" in out


@pytest.mark.parametrize("at", ["yesterday", "2026-01-01T00:00:00", "-2", "1.5", "@x", "24000"])
def test_what_is_no_point(demo_ledger: Path, at: str) -> None:
    call("replay", f"--at={at}", ledger=demo_ledger).failed("invalid_setting")
    call("diff", f"--from={at}", "--to", "3", ledger=demo_ledger).failed("invalid_setting")


def test_wrong_use(demo_ledger: Path) -> None:
    call("replay", ledger=demo_ledger).failed("usage")
    call("replay", "--at", "3", "--budget", "9", ledger=demo_ledger).failed("usage")
    call("replay", "--at", "3", "nobody", ledger=demo_ledger).failed("unknown_conversation")
    call("replay", "--at", "3", "fund-research", "--budget", "9", ledger=demo_ledger).failed(
        "budget_too_small"
    )
    call("diff", "--from", "5", "--to", "3", ledger=demo_ledger).failed("invalid_setting")


# --- diff ---------------------------------------------------------------------------------------


def test_what_changed(demo_ledger: Path) -> None:
    words = ("diff", "--from=-1", "--to", "5", "fund-research")
    document = call(*words, "--json", ledger=demo_ledger).fine().json
    assert [(one["after"], one["index"]) for one in document["validity"]] == [
        ("valid", 2),
        ("valid", 5),
    ]
    kinds = [one["kind"] for one in document["changes"]]
    assert sorted(kinds) == sorted(["summary", "range", "attempt"] * 2)
    assert all(one["before"] is None for one in document["changes"])
    out = call(*words, ledger=demo_ledger).fine().out
    assert out.splitlines()[-1] == "6 rows changed."


def test_a_correction_is_seen_as_one(demo_ledger: Path) -> None:
    size = call("status", "--json", ledger=demo_ledger).json["events"]
    words = ("diff", "--from", "18", "--to", str(size - 1), "fund-research")
    document = call(*words, "--json", ledger=demo_ledger).fine().json
    assert [(one["before"], one["after"]) for one in document["validity"]] == [
        ("valid", "older_source"),
        (None, "valid"),
    ]
    (changed,) = [one for one in document["changes"] if one["kind"] == "range"]
    assert "source_hash" in changed["changed"]
    assert changed["before"]["source_hash"] != changed["after"]["source_hash"]
    assert "a newer source" in " ".join(call(*words, ledger=demo_ledger).fine().out.split())


# --- delivered ----------------------------------------------------------------------------------


def test_what_a_run_was_given(delivered_ledger: tuple[Path, Path, int]) -> None:
    ledger, body, index = delivered_ledger
    document = call("delivered", "run-065", "--json", ledger=ledger).fine().json
    (request,) = document["requests"]
    assert (request["index"], document["ok"], document["matches"]) == (index, True, None)
    digest = hashlib.sha256(
        b"compaction-ledger/request/v1\x00openai-chat\x00" + body.read_bytes()
    ).hexdigest()
    assert request["request_digest"] == digest
    assert {one["state"] for one in request["summaries"]} == {"sealed"}
    assert {one["told"] for one in request["messages"]} == {"by_seal", "by_source"}
    out = call("delivered", "run-065", "--text", ledger=ledger).fine().out
    assert request["summaries"][0]["text"].splitlines()[0][:30] in out
    assert "its seal holds" in " ".join(out.split())


def test_which_request_a_file_is(delivered_ledger: tuple[Path, Path, int], tmp_path: Path) -> None:
    ledger, body, index = delivered_ledger
    words = ("delivered", "run-065", "--request")
    assert (
        f"The file is the request at index {index}." in call(*words, body, ledger=ledger).fine().out
    )
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads(body.read_bytes()), indent=2), encoding="utf-8")
    assert call(*words, pretty, "--json", ledger=ledger).fine().json["matches"] == [index]
    other = tmp_path / "other.json"
    other.write_bytes(body.read_bytes().replace(b"EUR", b"USD", 1))
    done = call(*words, other, ledger=ledger)
    assert (done.code, done.err) == (1, "")
    assert "The file is none of these requests." in done.out
    call(*words, tmp_path / "missing.json", ledger=ledger).failed("os_error")


def test_a_run_of_which_nothing_is_recorded(demo_ledger: Path) -> None:
    done = call("delivered", "run-1", "--json", ledger=demo_ledger)
    assert (done.code, done.err) == (1, "")
    assert (done.json["ok"], done.json["requests"]) == (False, [])


def test_what_was_tampered_with_is_named(delivered_ledger: tuple[Path, Path, int]) -> None:
    ledger, _, index = delivered_ledger
    before = call("delivered", "run-065", "--json", ledger=ledger).fine().json
    summary = before["requests"][0]["summaries"][-1]["index"]
    with closing(sqlite3.connect(ledger)) as connection, connection:
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        connection.execute(
            "UPDATE stored_events SET state = zeroblob(length(state)) WHERE idx = ?", (summary,)
        )
    done = call("delivered", "run-065", "--json", ledger=ledger)
    assert (done.code, done.err) == (1, "")
    (request,) = done.json["requests"]
    assert (request["index"], request["sound"]) == (index, False)
    assert done.json["damaged"] == [summary]
    assert "DAMAGED" in call("delivered", "run-065", ledger=ledger).out


# --- nothing is written -------------------------------------------------------------------------


@pytest.mark.parametrize("command", READ)
def test_nothing_is_written(
    command: str, delivered_ledger: tuple[Path, Path, int], tmp_path: Path
) -> None:
    """Also where the read models lag, and the folder cannot be written."""
    ledger, _, _ = delivered_ledger
    with Ledger.open(ledger) as opened:
        opened.compact("fund-research", summarizer=ScriptedSummarizer(["x"] * 9), upgrade=True)
    folder = tmp_path / "kept"
    folder.mkdir()
    copy = Path(shutil.copy(ledger, folder / "ledger.db"))
    keys = Path(f"{ledger}.keys")
    if keys.exists():
        shutil.copytree(keys, f"{copy}.keys")
    before = copy.read_bytes()
    folder.chmod(0o500)
    words = {"replay": ["--at", "5"], "diff": ["--from=-1", "--to", "5"], "delivered": ["run-065"]}
    try:
        call(command, *words[command], ledger=copy).fine()
    finally:
        folder.chmod(0o700)
    assert copy.read_bytes() == before
    assert {path.name for path in folder.iterdir()} <= {
        *("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.keys"),
    }


@pytest.mark.parametrize("command", READ)
def test_a_file_that_is_no_ledger_is_made_none(command: str, tmp_path: Path) -> None:
    words = {"replay": ["--at", "5"], "diff": ["--from=-1", "--to", "5"], "delivered": ["run-065"]}
    call(command, *words[command], ledger=tmp_path / "none.db").failed("not_a_ledger")
    assert list(tmp_path.iterdir()) == []


def test_a_setting_records_every_request(ledger: Path) -> None:
    with Ledger.open(ledger, settings=Settings(record_deliveries="on")) as opened:
        made = opened.assemble("fund-research", budget=30_000, run="run-066")
    document = call("delivered", "run-066", "--json", ledger=ledger).fine().json
    assert [one["request_digest"] for one in document["requests"]] == [made.manifest.request_digest]


@pytest.mark.slow
def test_an_erased_conversation_is_told_as_that(tmp_path: Path) -> None:  # S3
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as opened:
        fill(opened._parts, 40)
        opened.record_delivery(opened.assemble("c-1", scope="tenant-1", budget=10**6), run="run-40")
        opened.erase("c-1", scope="tenant-1")
    words = ("c-1", "--scope", "tenant-1")
    for command in (("replay", "--at", "0"), ("diff", "--from=-1", "--to", "0")):
        call(*command, *words, ledger=path).failed("erased")
    overview = call("replay", "--at", "0", "--json", ledger=path).fine().json
    assert overview["overview"] == []
    assert list(overview["erased"].values()) == [1]
    assert "1 event of" in call("replay", "--at", "0", ledger=path).fine().out
    done = call("delivered", "run-40", "--json", ledger=path)
    assert (done.code, done.json["requests"], done.json["erased"]) == (1, [], [0])
