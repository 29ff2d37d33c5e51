"""`compact`: outcomes, exit codes, models of a provider, and a clean stop on a signal."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from command_line import call, run, start
from model_servers import model_server

from compaction_ledger.cli.demo.tampering import change_payload

GOOD = "The fund stood at 100.50 EUR at first and at 109.50 EUR at the end."


@pytest.fixture
def chat(transcript: Path, tmp_path: Path) -> Path:
    """A ledger with one conversation of forty pairs: two ranges are due."""
    path = tmp_path / "chat.db"
    call("import", transcript, ledger=path).fine()
    return path


def events(path: Path) -> list[tuple[str, Any]]:
    """Names of the recorded events, with what says how they ended."""
    page = call("log", "--limit", "1000", "--json", ledger=path).fine().json
    return [
        (event["event"], event["fact"].get("failure") or event["fact"].get("reason"))
        for event in page["events"]
    ]


def with_model(url: str) -> list[str]:
    return ["--model", "openai-compatible:m", "--base-url", url]


def test_every_due_range_is_summarized(chat: Path) -> None:
    out = call("compact", "chat", ledger=chat).fine().out
    assert "2 summaries made, 2 ranges were due" in out
    again = call("compact", "chat", ledger=chat).fine().out
    assert "Nothing was due." in again


def test_the_document_says_where_each_completion_stands(chat: Path) -> None:
    made = call("compact", "chat", "--json", ledger=chat).fine().json
    (one,) = made["conversations"]
    assert [(r["from_pair"], r["result"], r["index"]) for r in one["ranges"]] == [
        (0, "completed", 2),
        (10, "completed", 5),
    ]
    assert (made["completed"], made["due"], made["stopped"], made["signal"]) == (2, 2, False, None)


@pytest.mark.slow
def test_all_means_every_conversation_of_every_scope(chat: Path, transcript: Path) -> None:
    call("import", transcript, "--scope", "tenant-2", ledger=chat).fine()
    call("import", transcript, "--scope", "tenant-3", ledger=chat).fine()
    one = call("compact", "--all", "--scope", "tenant-3", "--json", ledger=chat).fine().json
    assert [c["scope"] for c in one["conversations"]] == ["tenant-3"]
    rest = call("compact", "--all", "--json", ledger=chat).fine().json
    assert [(c["scope"], c["completed"]) for c in rest["conversations"]] == [
        ("default", 2),
        ("tenant-2", 2),
        ("tenant-3", 0),
    ]
    assert "4 summaries" not in call("compact", "--all", ledger=chat).fine().out


@pytest.mark.slow
def test_a_conversation_with_an_error_is_named_and_the_others_go_on(
    chat: Path, transcript: Path
) -> None:
    for scope in ("a-tenant", "tenant-2"):
        call("import", transcript, "--scope", scope, ledger=chat).fine()
    with model_server(status=503) as server:  # leaves events in the streams of the first scope
        call("compact", "chat", "--scope", "default", *with_model(server.url), ledger=chat)
    change_payload(chat, 0)

    shown = call("compact", "--all", ledger=chat)
    assert (shown.code, shown.err) == (1, "")
    assert "chat (scope default)\nerror[damaged_log]: index 0: " in shown.out
    assert "2 of 2 ranges not done." in shown.out
    assert "4 summaries made, 6 ranges were due" in shown.out

    done = call("compact", "--all", "--json", ledger=chat)
    assert (done.code, done.err) == (1, "")
    found = {one["scope"]: one for one in done.json["conversations"]}
    assert list(found) == ["a-tenant", "default", "tenant-2"]
    assert found["default"]["error"]["code"] == "damaged_log"
    assert found["default"]["error"]["message"].startswith("index 0: ")
    assert (found["default"]["due"], found["default"]["ranges"]) == (2, [])
    assert [found[scope]["error"] for scope in ("a-tenant", "tenant-2")] == [None, None]
    call("compact", "chat", ledger=chat).failed("damaged_log", exit_code=1)


def test_an_older_summary_is_upgraded_when_asked(chat: Path, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    file.write_text(
        json.dumps(
            {
                "conversation": "chat",
                "from_pair": 0,
                "bind": "current",
                "model": {"provider": "elsewhere", "name": "m"},
                "prompt": "conversation-compaction@2",
                "text": GOOD,
                "origin": "old-store",
            }
        )
    )
    call("import-summary", file, ledger=chat).fine()
    assert call("compact", "chat", "--json", ledger=chat).fine().json["due"] == 1
    assert call("compact", "chat", "--upgrade", "--json", ledger=chat).fine().json["due"] == 1


@pytest.mark.slow
def test_a_model_of_a_provider(chat: Path) -> None:
    with model_server(GOOD) as server:
        words = [*with_model(server.url), "--max-tokens", "500", "--timeout", "20"]
        made = call("compact", "chat", *words, "--json", ledger=chat).fine().json
    assert made["completed"] == 2
    assert made["model"]["name"] == "m"
    assert made["model"]["settings"]["max_tokens"] == "500"
    asked = json.dumps(server.requests)
    assert "assistant 3: the fund" in asked
    assert "user 3: the fund" not in asked
    shown = call("show", "chat", "0", "--text", ledger=chat).fine().out
    assert GOOD in " ".join(shown.split())


@pytest.mark.slow
def test_a_truncated_answer_is_a_finding(chat: Path) -> None:
    with model_server(GOOD, finish="length") as server:
        done = call("compact", "chat", *with_model(server.url), ledger=chat)
        again = call("compact", "chat", *with_model(server.url), "--json", ledger=chat)
    assert (done.code, done.err) == (1, "")
    assert "both attempts are used" in done.out
    assert "truncated, truncated" in done.out
    assert again.code == 1
    (one,) = again.json["conversations"]
    assert [left["status"] for left in one["left"]] == ["exhausted", "exhausted"]
    assert events(chat).count(("AttemptFailed", "truncated")) == 4


@pytest.mark.slow
def test_a_provider_that_is_out_costs_one_attempt_and_is_a_finding(chat: Path) -> None:
    with model_server(status=503) as server:
        done = call("compact", "chat", *with_model(server.url), "--json", ledger=chat)
    assert done.code == 1
    (one,) = done.json["conversations"]
    assert [(r["result"], r["failures"]) for r in one["ranges"]] == [
        ("failed", ["provider_unavailable"]),
        ("failed", ["provider_unavailable"]),
    ]
    assert ("ClaimReleased", "backing_off") in events(chat)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], "usage", "either a CONVERSATION or --all"),
        (["chat", "--all"], "usage", "either a CONVERSATION or --all"),
        (["nope"], "unknown_conversation", "nope"),
        (["chat", "--base-url", "http://127.0.0.1:9"], "invalid_setting", "--base-url"),
        (["chat", "--max-tokens", "5"], "invalid_setting", "--max-tokens"),
        (["chat", "--max-tokens", "0", "--model", "x:y"], "usage", "--max-tokens"),
        (["chat", "--model", "nobody:m"], "invalid_setting", "nobody"),
        (["chat", "--model", "small"], "invalid_setting", "small"),
    ],
)
def test_wrong_words(chat: Path, words: list[str], code: str, said: str) -> None:
    assert said in call("compact", *words, ledger=chat).failed(code)
    assert events(chat) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "number", "code"),
    [
        pytest.param("chat", signal.SIGINT, 130, id="chat-SIGINT"),
        pytest.param("--all", signal.SIGTERM, 143, id="--all-SIGTERM"),
        pytest.param("chat", signal.SIGTERM, 143, id="chat-SIGTERM", marks=pytest.mark.slow),
        pytest.param("--all", signal.SIGINT, 130, id="--all-SIGINT", marks=pytest.mark.slow),
    ],
)
def test_a_signal_stops_it_at_once_and_cleanly(
    chat: Path, what: str, number: signal.Signals, code: int
) -> None:
    with model_server(hangs=True) as server:
        words = ["compact", what, *with_model(server.url), "--ledger", chat, "--json"]
        with start(words) as process:
            assert server.asked.wait(60)
            os.kill(process.pid, number)
            out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (code, "")
    made = json.loads(out)
    assert (made["stopped"], made["signal"], made["completed"]) == (True, number.name, 0)
    assert events(chat) == [
        ("RangeClaimed", None),
        ("AttemptStarted", None),
        ("AttemptFailed", "cancelled"),
        ("ClaimReleased", "stopped"),
    ]
    call("verify", ledger=chat).fine()
    assert call("compact", "chat", "--json", ledger=chat).fine().json["completed"] == 2


@pytest.mark.slow
def test_a_stop_is_told_to_people_too(chat: Path) -> None:
    with (
        model_server(hangs=True) as server,
        start(["compact", "chat", *with_model(server.url), "--ledger", chat]) as process,
    ):
        assert server.asked.wait(60)
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (143, "")
    assert "2 of 2 ranges not done." in out
    assert "Stopped by SIGTERM; what was under way is recorded." in out


@pytest.mark.slow
def test_no_bar_where_there_is_no_terminal(chat: Path) -> None:
    done = run("compact", "chat", "--ledger", chat).fine()
    assert "\x1b" not in done.out
