"""The demonstration computes what it shows, checks what it says, and can be read by anybody."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, call, run
from copies import copy_ledger
from jsonschema import Draft202012Validator

from compaction_ledger.cli.demo import tampering, teller


@pytest.fixture(scope="module")
def document() -> Any:
    return call("demo", "--json").fine().json


@pytest.fixture(scope="module")
def told() -> Done:
    begin = time.monotonic()
    done = run("demo").fine()
    assert time.monotonic() - begin < 30
    return done


def test_every_claim_holds(document: Any) -> None:
    assert document["ok"]
    assert len(document["claims"]) >= 20
    assert [claim for claim in document["claims"] if not claim["holds"]] == []


def test_the_document_fits_its_schema(document: Any, repo_root: Path) -> None:
    schema = json.loads((repo_root / "docs/schemas/demo.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)


def test_the_conversation_is_long_and_varied(document: Any) -> None:
    plan = document["plan"]
    assert len(plan["pairs"]) >= 60
    assert set(plan["left_out_by_reason"]) >= {"tool", "streaming", "failed", "trace", "effect"}
    assert [target["from_pair"] for target in plan["ranges"]] == [0, 10, 20, 30]


def test_the_steps(document: Any) -> None:
    assert [event["event"] for event in document["events"]] == [
        "RangeClaimed",
        "AttemptStarted",
        "RangeCompleted",
    ] * 4
    for found, target in zip(document["ranges"], document["plan"]["ranges"], strict=True):
        (summary,) = found["summaries"]
        assert summary["source_hash"] == target["source_hash"]
        assert len(summary["messages"]) == 20
    manifest = document["request"]["manifest"]
    assert manifest["mode"] == "full"
    assert manifest["bytes_used"] <= manifest["bytes_allowed"] < document["originals_bytes"]


def test_case_a(document: Any) -> None:
    case = document["case_a"]
    (outcome,) = case["compaction"]["conversations"][0]["ranges"]
    assert (outcome["result"], outcome["failures"]) == ("exhausted", ["tool_call"] * 2)
    failed = [event["fact"] for event in case["events"] if event["event"] == "AttemptFailed"]
    assert [fact["finish"]["tool_calls"] for fact in failed] == [1, 1]
    assert all(fact["output_digest"] for fact in failed)
    assert [group["disposition"] for group in case["manifest"]["pairs"]] == ["verbatim"]


def test_case_b(document: Any) -> None:
    case = document["case_b"]
    (rejected,) = case["request"]["manifest"]["rejected"]
    old, new = case["range"]["summaries"]
    assert (rejected["identity"], rejected["reason"]) == (old["identity"], "source_changed")
    assert (case["target"]["status"], case["target"]["stale"]) == ("due", 1)
    assert (old["current"], new["current"]) == (False, True)
    assert old["text"] == document["ranges"][0]["summaries"][0]["text"]


def test_case_c(document: Any) -> None:
    manifest = document["case_c"]["request"]["manifest"]
    assert manifest["mode"] == "newest_originals"
    left_out, sent = manifest["pairs"]
    assert (left_out["disposition"], left_out["reason"]) == ("left_out", "over_budget")
    assert (sent["disposition"], sent["to_pair"]) == ("verbatim", 63)
    assert [one["reason"] for one in manifest["rejected"]].count("over_budget") == 4


def test_tampering_is_found_at_its_index(document: Any) -> None:
    told_of = document["tampering"]
    assert told_of["verified"]["ok"]
    assert [one["index"] for one in told_of["verified_copy"]["findings"]] == [told_of["index"]]


@pytest.mark.slow
def test_it_reads_well_without_a_terminal(told: Done) -> None:
    lines = told.out.splitlines()
    assert "\x1b" not in told.out
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\n\n\n" not in told.out
    for heading in ("1. Which lines count", "5. The next request", "Case A", "Case C", "Tampering"):
        assert any(line.startswith(heading) for line in lines), heading
    assert "FAILED" not in told.out
    assert f"All {told.out.count('  ok    ')} claims hold." in lines
    assert "我太太不太懂英文" in told.out
    assert "🐢" in told.out


def test_it_is_eighty_columns_wide(told: Done) -> None:
    from rich.cells import cell_len  # noqa: PLC0415

    assert max(map(cell_len, told.out.splitlines())) <= 80


@pytest.mark.slow
def test_a_claim_that_does_not_hold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compaction_ledger.cli.demo.walk.change_payload", lambda *_: 0)
    shown = call("demo")
    assert (shown.code, shown.err) == (1, "")
    assert "FAILED  verify finds it and names the index: 5." in shown.out
    assert "claims do NOT hold." in shown.out
    document = call("demo", "--json")
    assert document.code == 1
    assert not document.json["ok"]


def test_the_intruder_changes_one_bit(document: Any, demo_ledger: Path, tmp_path: Path) -> None:
    def payload(path: Path) -> bytes:
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute("SELECT state FROM stored_events WHERE idx = 5").fetchone()
        state: bytes = row[0]
        return state

    copy = copy_ledger(demo_ledger, tmp_path / "copy.db")
    byte = tampering.change_payload(copy, 5)
    before, after = payload(demo_ledger), payload(copy)
    assert len(before) == len(after)
    changed = [n for n, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert changed == [byte]
    assert before[byte] ^ after[byte] == 1
    assert document["tampering"]["byte"] in range(len(before))


@pytest.mark.slow
def test_the_ledger_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    out = call("demo", "--keep", path).fine().out
    assert f"  compaction-ledger --ledger {path} verify" in out
    call("verify", ledger=path).fine()
    assert "kept.db" in call("demo", "--keep", path).failed("invalid_setting")
    call("demo", "--keep", tmp_path / "no" / "kept.db").failed("os_error")


def test_a_teller_without_a_screen_keeps_account() -> None:
    silent = teller.Teller(None)
    silent.title("t", "w")
    silent.quote("w", "t")
    silent.claim("so", holds=True)
    assert silent.ok
    silent.claim("not so", holds=False)
    assert not silent.ok
