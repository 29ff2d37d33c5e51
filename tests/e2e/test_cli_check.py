"""`check`: what a provider would refuse of a file's messages (T2, T5)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import call, run
from jsonschema import Draft202012Validator

from compaction_ledger.domain.messages.validity import PROBLEM_CODES

USER = {"role": "user", "content": "Is there a flight?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "SK 4416"}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_valid_messages(tmp_path: Path) -> None:
    done = call("check", write(tmp_path / "chat.json", [USER, CALLS, RESULT])).fine()
    assert done.out == "chat.json: openai-chat, 3 messages: valid\n"


def test_t2_each_problem_is_told_with_its_place(tmp_path: Path, repo_root: Path) -> None:
    path = write(tmp_path / "chat.json", [USER, CALLS, USER, RESULT])
    done = call("check", path)
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "chat.json: openai-chat, 4 messages: 2 problems",
        "  message 1 tool_calls[0]  unanswered_call",
        "      the call 'c1' has no result where it has to be",
        "  message 3  orphan_result",
        "      the result for 'c1' answers no call that waits for it",
    ]
    told = call("check", path, "--json")
    assert (told.code, told.err) == (1, "")
    schema = json.loads((repo_root / "docs/schemas/check.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(told.json)
    assert told.json["ok"] is False
    (transcript,) = told.json["transcripts"]
    assert (transcript["shape"], transcript["messages"]) == ("openai-chat", 4)
    assert [(each["place"], each["code"]) for each in transcript["problems"]] == [
        ("message 1 tool_calls[0]", "unanswered_call"),
        ("message 3", "orphan_result"),
    ]


def test_a_conversation_that_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.json", [USER, CALLS])
    assert call("check", path).code == 1
    assert call("check", path, "--unfinished").fine().out.endswith("valid\n")
    history = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi."}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello."}]},
    ]
    path = write(tmp_path / "history.json", history)
    assert "last_role" in call("check", path).out
    call("check", path, "--unfinished").fine()
    broken = write(tmp_path / "broken.json", [USER, CALLS, USER])
    assert call("check", broken, "--unfinished").code == 1


def test_several_transcripts_in_a_file(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = [
        {"messages": [USER, CALLS, RESULT]},
        {"messages": [USER, RESULT]},
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    done = call("check", path)
    assert done.code == 1
    assert "calls.jsonl:1.messages: openai-chat, 3 messages: valid" in done.out
    assert "calls.jsonl:2.messages: openai-chat, 2 messages: 1 problem" in done.out
    assert done.out.endswith("\n1 problem in 1 of 2 transcripts.\n")
    path.write_text((json.dumps(bodies[0]) + "\n") * 2, encoding="utf-8")
    assert call("check", path).fine().out.endswith("\n2 transcripts, all of them valid.\n")


def test_a_shape_that_is_named(tmp_path: Path) -> None:
    """A text alone could be of several shapes: nothing is guessed."""
    path = write(tmp_path / "plain.json", [USER, USER])
    message = call("check", path).failed("malformed_record")
    assert "more than one shape" in message
    call("check", path, "--shape", "openai-chat").fine()
    done = call("check", path, "--shape", "anthropic")
    assert (done.code, done.err) == (1, "")
    assert "message 1  roles_alternate" in done.out
    assert "nope" in call("check", path, "--shape", "nope").failed("invalid_setting")


@pytest.mark.parametrize("text", ["no JSON", "7", "[]", None])
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "chat.json"
    if text is not None:
        path.write_text(text)
    done = call("check", path, "--json")
    done.failed("malformed_record")
    assert done.json["error"]["code"] == "malformed_record"


@pytest.mark.slow
def test_a_narrow_terminal_and_a_hostile_id(tmp_path: Path) -> None:
    """Nothing in an id steers the terminal, and no column is folded into pieces."""
    result = RESULT | {"tool_call_id": "\x1b[2J\u202eabc"}
    path = write(tmp_path / "chat.json", [USER, result])
    done = run("check", path, COLUMNS="44")
    assert done.code == 1
    assert done.out.isascii()
    assert "\x1b" not in done.out
    assert "  message 1  orphan_result\n" in done.out
    assert max(map(len, done.out.splitlines())) <= 44


@pytest.mark.slow
def test_it_needs_no_ledger(tmp_path: Path) -> None:
    run("check", write(tmp_path / "chat.json", [USER, CALLS, RESULT]), cwd=tmp_path).fine()
    assert [path.name for path in tmp_path.iterdir()] == ["chat.json"]


def test_the_page_lists_every_code(repo_root: Path) -> None:
    page = (repo_root / "docs/how-to/check-a-transcript.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert rows == dict(PROBLEM_CODES)
