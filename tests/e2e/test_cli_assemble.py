"""`assemble`: the request, its manifest, and the record of it."""

import hashlib
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, call, environment, run

FULL = ("assemble", "fund-research", "--budget", "30000")
SMALL = ("assemble", "fund-research", "--budget", "12000")


@pytest.mark.slow
def test_the_manifest_for_people(demo_ledger: Path) -> None:
    out = call(*FULL, ledger=demo_ledger).fine().out
    assert "user word for word, replies summarized" in out
    assert "both sides, word for word" in out
    assert "source_changed" in out
    assert max(map(len, out.splitlines())) <= 80


def test_what_does_not_fit_is_named(demo_ledger: Path) -> None:
    out = call(*SMALL, ledger=demo_ledger).fine().out
    assert "NOT SEEN by the model (over_budget)" in out
    assert "the newest original pairs that fit" in out


@pytest.mark.slow
def test_the_body_is_exactly_what_the_manifest_speaks_of(demo_ledger: Path, tmp_path: Path) -> None:
    words = [*FULL, "--system", "Be brief.", "--next-user", "And now?"]
    body = run(*words, "--body", "--ledger", demo_ledger).fine().out.encode()
    file = tmp_path / "body.json"
    made = call(*words, "--out", file, "--json", ledger=demo_ledger).fine().json
    assert file.read_bytes() == body
    assert len(body) == made["manifest"]["bytes_used"]
    assert json.loads(body) == made["request"]
    assert made["file"] == str(file)
    tag = b"compaction-ledger/request/v1\x00openai-chat\x00"
    assert hashlib.sha256(tag + body).hexdigest() == made["manifest"]["request_digest"]
    assert made["request"]["messages"][0] == {"content": "Be brief.", "role": "system"}
    assert made["request"]["messages"][-1] == {"content": "And now?", "role": "user"}


@pytest.mark.slow
def test_on_a_terminal_a_line_break_follows_the_body(demo_ledger: Path) -> None:
    words = ["assemble", "fund-research", "--budget", "3000", "--body", "--ledger", demo_ledger]
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            timeout=120,
            check=False,
        )
        shown = os.read(master, 9_000)
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 0
    assert shown.endswith(b"}]}\r\n")


@pytest.mark.parametrize("shape", ["openai-chat", "anthropic", "converse", "pydantic-ai"])
def test_each_shape(demo_ledger: Path, shape: str) -> None:
    words = [*FULL, "--shape", shape, "--system", "Be brief.", "--next-user", "And now?"]
    made = call(*words, "--json", ledger=demo_ledger).fine().json
    assert made["manifest"]["shape"] == shape
    assert ("system" in made["request"]) == (shape in {"anthropic", "converse"})
    shown = call(*words, "--messages", ledger=demo_ledger).fine().out
    assert "Be brief." in shown
    assert "And now?" in shown
    assert "[derived summary of the assistant's replies in pairs 10-19;" in " ".join(shown.split())


def test_the_other_fallback(demo_ledger: Path) -> None:
    words = ["assemble", "fund-research", "--budget", "18000", "--json"]
    originals = call(*words, ledger=demo_ledger).fine().json["manifest"]
    mixed = call(*words, "--fallback", "newest_mixed", ledger=demo_ledger).fine().json["manifest"]
    assert (originals["mode"], mixed["mode"]) == ("newest_originals", "newest_mixed")
    assert mixed["pairs"][0]["to_pair"] < originals["pairs"][0]["to_pair"]


@pytest.mark.slow
def test_a_delivery_is_recorded_when_asked(ledger: Path) -> None:
    size = call("log", "--json", ledger=ledger).json["size"]
    call(*FULL, ledger=ledger).fine()
    assert call("log", "--json", ledger=ledger).json["size"] == size
    out = call(*FULL, "--record", "--run", "run-99", ledger=ledger).fine().out
    assert f"Recorded as sent, at index {size} of the log." in out
    (event,) = call("log", "--from", str(size), "--json", ledger=ledger).fine().json["events"]
    assert (event["event"], event["fact"]["run"]) == ("RequestDelivered", "run-99")
    call("verify", ledger=ledger).fine()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["assemble", "fund-research"], "usage", "--budget"),
        ([*FULL, "--shape", "morse"], "usage", "--shape"),
        ([*FULL, "--fallback", "nothing"], "usage", "--fallback"),
        ([*FULL, "--run", "r"], "usage", "--record"),
        ([*FULL, "--body", "--json"], "usage", "--body"),
        (["assemble", "fund-research", "--budget", "3"], "budget_too_small", "at least"),
        (["assemble", "nope", "--budget", "300"], "unknown_conversation", "nope"),
        ([*FULL, "--out", "/no/such/folder/x"], "os_error", "/no/such/folder/x: No such file"),
        ([*FULL, "--record", "--run", "a\x07b"], "invalid_id", "U+0007"),
    ],
)
def test_wrong_words(ledger: Path, words: list[str], code: str, said: str) -> None:
    assert said in call(*words, ledger=ledger).failed(code)


def test_text_cannot_steer_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "steering.jsonl"
    texts = {"user": "\x1b[2J\u202ehello \ud800", "assistant": "plain"}
    file.write_text(
        "".join(
            json.dumps({"type": "message", "id": role, "run": "r", "role": role, "text": text})
            + "\n"
            for role, text in texts.items()
        )
        + '{"type":"run","id":"r","state":"completed"}\n'
    )
    path = tmp_path / "l.db"
    call("import", file, ledger=path).fine()
    words = ["assemble", "steering", "--budget", "9000"]
    shown = call(*words, "--messages", ledger=path).fine().out
    assert "\x1b" not in shown
    assert "\\u001b[2J\\u202ehello" in shown
    assert "user: 1 lone surrogate replaced by U+FFFD." in shown
    made = call(*words, "--json", ledger=path).fine().json
    assert made["request"]["messages"][0]["content"] == "\x1b[2J\u202ehello \ufffd"
    assert made["manifest"]["replaced"] == {"user": 1}
