"""`ranges`, `show` and `log`."""

import subprocess
import sys
from pathlib import Path

import pytest
from backends import START, SQLiteBackend
from command_line import call, run
from histories import LEASE, Worker, lines, made_up_job
from window_histories import every_window_kind

from compaction_ledger import Ledger, ScriptedSummarizer
from compaction_ledger.cli.documents.common import moment
from compaction_ledger.composition import system_clock


@pytest.fixture(scope="module")
def size(demo_ledger: Path) -> int:
    """How many events the demonstration's log holds."""
    count = call("log", "--json", ledger=demo_ledger).fine().json["size"]
    assert isinstance(count, int)
    return count


def statuses(*words: str, ledger: Path) -> list[tuple[str, int, str]]:
    rows = call("ranges", *words, "--json", ledger=ledger).fine().json["ranges"]
    return [(row["conversation"], row["from_pair"], row["status"]) for row in rows]


DONE = [("fund-research", start, "done") for start in (0, 10, 20, 30)]
EXHAUSTED = ("fund-research-2", 0, "exhausted")


def test_ranges(demo_ledger: Path, size: int) -> None:
    assert statuses(ledger=demo_ledger) == [*DONE, EXHAUSTED]
    assert statuses("fund-research-2", ledger=demo_ledger) == [EXHAUSTED]
    assert statuses("--scope", "nobody", ledger=demo_ledger) == []
    out = call("ranges", ledger=demo_ledger).fine().out
    assert "exhausted" in out
    assert out.splitlines()[-1] == f"5 ranges, after {size} of {size} events."


@pytest.mark.slow
def test_ranges_as_they_were(demo_ledger: Path) -> None:
    assert statuses("--at", "5", ledger=demo_ledger) == DONE[:2]
    assert statuses("--at", "3", ledger=demo_ledger) == [DONE[0], ("fund-research", 10, "running")]
    assert statuses("--at", "2000-01-01T00:00:00Z", ledger=demo_ledger) == []
    assert statuses("--at", "2999-01-01T01:00:00+01:00", ledger=demo_ledger) == [*DONE, EXHAUSTED]
    event = call("log", "--from", "5", "--limit", "1", "--json", ledger=demo_ledger).json["events"][
        0
    ]
    assert statuses("--at", event["recorded_at"], ledger=demo_ledger)[0] == DONE[0]


def test_a_range_whose_worker_has_died_is_shown_as_that(tmp_path: Path) -> None:
    store = SQLiteBackend(tmp_path)  # whose clock stands still in the past
    Worker(store.open(), made_up_job()).claim()
    store.clock.now = system_clock()
    Worker(store.open(), made_up_job(10)).claim()
    store.close()
    first, second = call("ranges", "--json", ledger=store.path).fine().json["ranges"]
    assert first["expires_at"] == moment(START + LEASE)
    assert [first["status"], second["status"]] == ["running", "running"]
    lines = call("ranges", ledger=store.path).fine().out.splitlines()
    assert ["running (lease over)" in line for line in lines if "running" in line] == [True, False]
    assert "lease" not in call("ranges", "--at", "1", ledger=store.path).fine().out


@pytest.mark.parametrize("at", ["yesterday", "2026-01-01T00:00:00", "-1", "1.5", "²"])
def test_a_time_that_is_none(demo_ledger: Path, at: str) -> None:
    call("ranges", f"--at={at}", ledger=demo_ledger).failed("invalid_setting")


def test_show_has_the_whole_binding(demo_ledger: Path) -> None:
    shown = call("show", "fund-research", "0", "--json", ledger=demo_ledger).fine().json
    old, new = shown["summaries"]
    assert (old["current"], new["current"]) == (False, True)
    assert new["source_hash"] == shown["present_source_hash"] != old["source_hash"]
    assert len(old["messages"]) == 20
    assert old["messages"][:4] == ["user-001", "reply-001", "user-002", "reply-002"]
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["completed", "completed"]
    out = call("show", "fund-research", "0", ledger=demo_ledger).fine().out
    for hexadecimal in (old["identity"], old["source_hash"], new["source_hash"]):
        assert hexadecimal in out
    assert "NOT the conversation as it is now" in out
    assert old["text"].splitlines()[0][:40] not in out
    texts = call("show", "fund-research", "0", "--text", ledger=demo_ledger).fine().out
    assert " ".join(old["text"].split()) in " ".join(texts.split())
    assert max(map(len, texts.splitlines())) <= 80


def test_show_has_failed_attempts(demo_ledger: Path) -> None:
    out = call("show", "fund-research-2", "0", ledger=demo_ledger).fine().out
    assert "exhausted, 2 attempts, tool_call" in out
    assert out.count("failed: tool_call") == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["fund-research", "5"], "invalid_setting"),
        (["fund-research", "40"], "invalid_input"),
        (["nope", "0"], "invalid_input"),
        (["fund-research", "-1"], "usage"),
        (["fund-research", "x"], "usage"),
        (["fund-research"], "usage"),
    ],
)
def test_show_what_is_not_there(demo_ledger: Path, words: list[str], code: str) -> None:
    call("show", "--ledger", demo_ledger, "--", *words).failed(code)


def test_log_in_pages(demo_ledger: Path, size: int) -> None:
    first = call("log", "--limit", "10", "--json", ledger=demo_ledger).fine().json
    assert [event["index"] for event in first["events"]] == list(range(10))
    assert (first["size"], first["next"]) == (size, 10)
    rest = call("log", "--from", "10", "--json", ledger=demo_ledger).fine().json
    assert [event["index"] for event in rest["events"]] == list(range(10, size))
    assert rest["next"] is None
    assert call("log", "--from", "99", "--json", ledger=demo_ledger).fine().json["events"] == []


def test_log_of_one_conversation(demo_ledger: Path) -> None:
    words = ["log", "--conversation", "fund-research-2", "--json"]
    events = call(*words, ledger=demo_ledger).fine().json["events"]
    assert [event["event"] for event in events][:3] == [
        "RangeClaimed",
        "AttemptStarted",
        "AttemptFailed",
    ]
    assert {event["conversation"] for event in events} == {"fund-research-2"}
    page = call(*words, "--limit", "2", ledger=demo_ledger).fine().json
    following = call(*words, "--from", str(page["next"]), ledger=demo_ledger).fine().json
    assert page["events"] + following["events"] == events


def test_log_for_people(demo_ledger: Path, size: int) -> None:
    out = call("log", "--from", "13", "--limit", "2", ledger=demo_ledger).fine().out
    assert "fund-research-2 0-9: attempt 1" in out
    assert "go on with --from 15." in out
    rest = call("log", "--from", "15", ledger=demo_ledger).fine().out
    assert "tool_call" in rest
    assert "RequestDelivered" in rest
    assert rest.splitlines()[-1].endswith(f"events of {size}; this is the end.")


def test_log_says_until_when_a_lease_was_renewed(tmp_path: Path) -> None:
    store = SQLiteBackend(tmp_path)
    one = Worker(store.open(), made_up_job())
    one.claim()
    one.start()
    store.clock.advance(60)
    one.renew()
    store.close()
    until = moment(START + 60_000_000 + LEASE)
    line = call("log", "--from", "2", ledger=store.path).fine().out
    assert "ClaimRenewed" in line
    assert f"until {until[:19]}Z" in line
    (row,) = call("ranges", "--json", ledger=store.path).fine().json["ranges"]
    assert (row["expires_at"], row["updated_index"]) == (until, 2)


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(demo_ledger: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "compaction_ledger", "log", "--json", "--ledger", str(demo_ledger)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_everything(demo_ledger: Path, encoding: str) -> None:
    words = ["assemble", "fund-research", "--budget", "30000", "--ledger", demo_ledger]
    assert "\\U0001f422" in run(*words, "--messages", PYTHONIOENCODING=encoding).fine().out
    made = run(*words, "--json", PYTHONIOENCODING=encoding).fine()
    assert "🐢" in str(made.json["request"])


@pytest.mark.slow
def test_colors_only_where_they_are_wanted(demo_ledger: Path) -> None:
    words = ["ranges", "--ledger", demo_ledger]
    assert "\x1b[" not in run(*words).fine().out
    assert "\x1b[" in run(*words, FORCE_COLOR="1").fine().out


def test_t13_what_a_summary_says_without_its_source_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "invented.db"
    with Ledger.open(
        path, summarizer=ScriptedSummarizer(["It was $123,456 by TICKET-99."])
    ) as made:
        made.transcripts.append("default", "c", *lines(30))
        assert made.compact("c").completed == 1

    [summary] = call("show", "c", "0", "--json", ledger=path).fine().json["summaries"]
    shown = call("show", "c", "0", ledger=path).fine().out

    assert summary["ungrounded"] == [
        {"kind": "amount", "text": "$123,456"},
        {"kind": "identifier", "text": "TICKET-99"},
    ]
    assert "Not in source  $123,456 (amount), TICKET-99 (identifier)" in shown


@pytest.mark.slow
def test_log_tells_of_the_windows_of_running_agents(tmp_path: Path) -> None:
    store = SQLiteBackend(tmp_path)
    every_window_kind(store.open())
    store.close()
    events = call("log", "--json", "--limit", "100", ledger=store.path).fine().json["events"]
    assert {event["run"] for event in events} == {"run-1", "run-2"}
    assert {(event["scope"], event["conversation"]) for event in events} == {("tenant-1", "c-1")}
    assert {event["from_pair"] for event in events} == {None}
    of_one = call(
        "log", "--json", "--conversation", "c-1", "--scope", "tenant-1", ledger=store.path
    )
    assert of_one.fine().json["events"] == events
    out = call("log", "--limit", "100", ledger=store.path).fine().out
    for told in (
        "c-1 run run-1: messages 1-9, by done-1-9-2",
        "c-1 run run-1: attempt 2",
        "c-1 run run-1: until 2025-06-15T15:",
        "c-1 run run-1: provider_unavailable",
        "c-1 run run-1: 34 characters",
        "c-1 run run-1: exhausted",
        "c-1 run run-1: p3, in message 8",
        "c-1 run run-2: 900 of 1,000 tokens",
    ):
        assert told in " ".join(out.split()), told
    call("verify", ledger=store.path).fine()
    assert call("ranges", ledger=store.path).fine().out.startswith("0 ranges")
