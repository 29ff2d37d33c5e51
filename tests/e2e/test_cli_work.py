"""`work`: one process or several, told to end, killed, and beside each other on one ledger."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from backends import everyday_database
from command_line import call, run, start
from jsonschema import Draft202012Validator
from kept_processes import alive, children, free_port, wait_until
from model_servers import ModelServer, model_server
from pg_servers import Wanted, fresh_schema, running_server
from working import (
    QUICK,
    SECONDS,
    completions,
    events,
    get,
    ready,
    status,
    statuses,
    working,
)

from compaction_ledger import Ledger

SLOW = pytest.mark.slow
GOOD = "The fund stood at 100.50 EUR at first and at 109.50 EUR at the end."


@pytest.fixture
def chat(transcript: Path, tmp_path: Path) -> Path:
    """A ledger with three conversations of forty pairs: six ranges are due."""
    path = tmp_path / "chat.db"
    filled(path, transcript)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, transcript: Path, tmp_path: Path) -> Iterator[str | Path]:
    """Where such a ledger is, in each of the stores that several processes can share."""
    if request.param == "sqlite":
        yield filled(tmp_path / "chat.db", transcript)
        return
    database = everyday_database()
    with fresh_schema(database) as schema:
        yield filled(f"{database}?schema={schema}", transcript)


def filled(place: str | Path, transcript: Path, scopes: int = 3) -> str | Path:
    """Have a ledger with a conversation in each of so many scopes."""
    with Ledger.open(place) as ledger:
        for n in range(1, scopes + 1):
            ledger.import_file(transcript, scope=f"tenant-{n}")
    return place


@pytest.fixture(scope="session")
def schemas(repo_root: Path) -> dict[str, Draft202012Validator]:
    folder = repo_root / "docs" / "schemas"
    return {
        name: Draft202012Validator(json.loads((folder / f"{name}.schema.json").read_text("utf-8")))
        for name in ("work", "work-status", "error")
    }


def with_model(server: ModelServer) -> list[str]:
    return ["--model", "openai-compatible:m", "--base-url", server.url]


# --- until nothing is due -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=SLOW)])
def test_until_nothing_is_due(chat: Path, processes: int) -> None:
    done = run("work", "--until-idle", "--processes", processes, "--ledger", chat).fine()
    *lines, last = done.out.splitlines()
    assert len(lines) == 6
    assert all(": summarized (index " in line for line in lines)
    assert last == "Nothing is due any more: 6 summaries made, 3 looks at conversations."
    assert statuses(chat) == ["done"] * 6
    again = run("work", "--until-idle", "--ledger", chat).fine()
    assert again.out == "Nothing is due any more: 0 summaries made, 0 looks at conversations.\n"


@pytest.mark.slow
@pytest.mark.parametrize("processes", [pytest.param(1, marks=SLOW), 2])
def test_each_line_is_a_document(
    chat: Path, processes: int, schemas: dict[str, Draft202012Validator]
) -> None:
    words = ["work", "--until-idle", "--processes", processes, "--json", "--ledger", chat]
    said = [json.loads(line) for line in run(*words).fine().out.splitlines()]
    for document in said:
        schemas["work"].validate(document)
    ranges = [one for one in said if one["event"] == "range"]
    assert sorted((one["scope"], one["range"]["from_pair"]) for one in ranges) == [
        (f"tenant-{n}", pair) for n in (1, 2, 3) for pair in (0, 10)
    ]
    assert said[-1]["event"] == "end"
    assert said[-1]["counts"]["ranges_completed"] == 6
    assert len([one for one in said if one["event"] == "worker_ended"]) == (
        0 if processes == 1 else 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=SLOW)])
def test_a_failure_is_a_finding(chat: Path, processes: int) -> None:
    with model_server(GOOD, finish="length") as server:
        words = ["work", "--until-idle", "--processes", processes, *with_model(server)]
        done = run(*words, "--ledger", chat)
    assert (done.code, done.err) == (1, "")
    assert "failed, both attempts are used (truncated, truncated)" in done.out
    assert statuses(chat) == ["exhausted"] * 6


@pytest.mark.slow
def test_a_conversation_with_an_error_is_told_and_the_others_go_on(chat: Path) -> None:
    import sqlite3  # noqa: PLC0415 - only an intruder does

    with sqlite3.connect(chat) as intruder:
        intruder.execute(
            "UPDATE conversations SET conversation = 'a\x1b[2Jb' WHERE scope = 'tenant-2'"
        )
    intruder.close()
    done = run("work", "--until-idle", "--ledger", chat)
    assert (done.code, done.err) == (1, "")
    assert "a\\u001b[2Jb (scope tenant-2) error[invalid_id]: " in done.out
    assert done.out.count(": summarized") == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--processes", "0"], "usage", "--processes"),
        (["--poll", "0"], "usage", "--poll"),
        (["--scope", "s"], "usage", "--scope"),
        (["--model", "nobody:m"], "invalid_setting", "nobody"),
        (["--at-once", "3"], "invalid_setting", "shared_attempts_at_once"),
        (["--processes", "2", "--at-once", "3"], "invalid_setting", "shared_attempts_at_once"),
        (["--ledger", "nowhere.db"], "not_a_ledger", "nowhere.db"),
        (["--ledger", "nowhere.db", "--processes", "2"], "not_a_ledger", "nowhere.db"),
    ],
)
def test_wrong_words(chat: Path, words: list[str], code: str, said: str) -> None:
    given = [] if "--ledger" in words else ["--ledger", chat]
    scope = words if words[0] == "--scope" else []
    done = run(*scope, "work", *(words if not scope else []), *given)
    assert said in done.failed(code)


@pytest.mark.slow
def test_what_every_child_would_meet_ends_all_of_them(
    chat: Path, schemas: dict[str, Draft202012Validator]
) -> None:
    words = ["--processes", "2", "--model", "nobody:m", "--json", "--ledger", chat]
    done = run("work", *words)
    assert done.code == 2
    assert "error[invalid_setting]: " in done.err
    error = json.loads(done.out.splitlines()[-1])
    schemas["error"].validate(error)
    assert error["error"]["code"] == "invalid_setting"


# --- told to end ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "number"),
    [
        pytest.param(1, signal.SIGTERM, marks=SLOW),
        (1, signal.SIGINT),
        (2, signal.SIGTERM),
    ],
)
def test_a_signal_lets_calls_end(chat: Path, processes: int, number: signal.Signals) -> None:
    with (
        model_server(GOOD, waits=True) as server,
        working(chat, "--processes", processes, *with_model(server)) as work,
    ):
        wait_until(lambda: len(server.requests) == 3, SECONDS)
        work.signal(number)
        time.sleep(0.5)
        server.answer.set()
        end = work.end()[-1]
    assert (end["stopped"], end["counts"]["ranges_completed"]) == (True, 3)
    assert statuses(chat) == ["done"] * 3
    with Ledger.open(chat, create=False) as ledger:
        assert ledger.backlog().leased == 0
    call("verify", ledger=chat).fine()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "processes"),
    [
        ("a second signal", 2),
        ("the time is over", 1),
        pytest.param("a second signal", 1, marks=SLOW),
        pytest.param("the time is over", 2, marks=SLOW),
    ],
)
def test_calls_that_do_not_end_are_interrupted(chat: Path, processes: int, how: str) -> None:
    drain = "3600" if how == "a second signal" else "0.5"
    words = ["--processes", processes, "--drain", drain]
    with model_server(hangs=True) as server, working(chat, *words, *with_model(server)) as work:
        wait_until(lambda: len(server.requests) == 3, SECONDS)
        work.signal()
        if how == "a second signal":
            time.sleep(0.5)
            work.signal()
        work.end()
    assert statuses(chat) == ["failed"] * 3  # and nobody holds a claim
    with Ledger.open(chat, create=False) as ledger:
        attempts = [row for n in (1, 2, 3) for row in ledger.attempts("chat", scope=f"tenant-{n}")]
        assert [row.failure for row in attempts] == ["cancelled"] * 3
        assert ledger.backlog().leased == 0
    assert run("work", "--until-idle", "--ledger", chat).fine().out.count(": summarized") == 6


@pytest.mark.slow
def test_without_a_parent_the_children_end(chat: Path) -> None:
    with (
        model_server(GOOD, waits=True) as server,
        working(chat, "--processes", 2, *with_model(server)) as work,
    ):
        wait_until(lambda: len(server.requests) == 3, SECONDS)
        pids = [one["process"] for one in work.events("worker_started")]
        assert sorted(children(work.process.pid)) == sorted(pids)
        work.signal(signal.SIGKILL)
        server.answer.set()
        wait_until(lambda: not any(map(alive, pids)), SECONDS, "the children to end")
    assert statuses(chat) == ["done"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=SLOW)])
def test_it_ends_when_nobody_reads_any_more(chat: Path, processes: int) -> None:
    process = start(["work", "--processes", processes, *QUICK, "--ledger", chat])
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    call("import", chat.with_name("chat.jsonl"), "--scope", "tenant-4", ledger=chat).fine()
    assert process.wait(SECONDS) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.slow
def test_what_else_is_printed_in_a_child_is_passed_on_as_it_is(chat: Path, tmp_path: Path) -> None:
    """By an exporter of telemetry to the console, say."""
    folder = tmp_path / "site"
    folder.mkdir()
    words = '{\n3\nnull\n"status"\n[1]\n}'
    (folder / "sitecustomize.py").write_text(f"print({words!r}, flush=True)\n", encoding="utf-8")
    work = ["work", "--processes", 2, "--until-idle", "--ledger", chat, "--json"]
    done = run(*work, PYTHONPATH=str(folder))
    assert done.code == 0, done.err
    assert sorted(done.err.split()) == sorted(2 * words.split())
    assert statuses(chat) == ["done"] * 6


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_child_that_was_killed_is_replaced_and_its_conversation_taken_up(
    place: str | Path,
) -> None:
    words = ["--processes", 2, "--threads", 1, "--lease", 4]
    with (
        model_server(GOOD, waits=True) as server,
        working(place, *words, *with_model(server)) as work,
    ):
        wait_until(lambda: len(server.requests) == 2, SECONDS)
        killed = work.events("worker_started")[0]
        os.kill(killed["process"], signal.SIGKILL)
        server.answer.set()
        [ended] = work.wait_for("worker_ended")
        assert (ended["worker"], ended["exit_code"]) == (killed["worker"], -signal.SIGKILL)
        assert 0.5 <= ended["again_in"] <= 1
        assert work.wait_for("worker_started", 3)[-1]["worker"] == killed["worker"]
        work.wait_for("range", 6)
        work.signal()
        work.end()
    assert statuses(place) == ["done"] * 6
    assert len(completions(place)) == len(set(completions(place))) == 6
    assert [e["fact"]["reason"] for e in events(place, "ClaimReleased")] == ["expired"]


@pytest.mark.slow
def test_two_parents_share_the_work(place: str | Path, transcript: Path) -> None:
    with Ledger.open(place) as ledger:
        for n in range(4, 13):
            ledger.import_file(transcript, scope=f"tenant-{n}")
    words = ["--processes", 2, "--threads", 2]
    with (
        model_server(GOOD) as server,
        working(place, *words, *with_model(server)) as one,
        working(place, *words, *with_model(server)) as other,
    ):
        wait_until(lambda: statuses(place) == ["done"] * 24, SECONDS)
        for work in (one, other):
            work.signal()
        made = [work.end()[-1]["counts"].get("ranges_completed", 0) for work in (one, other)]
    assert sum(made) == 24
    assert len(completions(place)) == len(set(completions(place))) == 24
    assert len(server.requests) == 24  # nothing was asked twice
    call("verify", "--ledger", place).fine()


# --- health ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("processes", [pytest.param(1, marks=SLOW), 2])
def test_health(chat: Path, processes: int, schemas: dict[str, Draft202012Validator]) -> None:
    port = free_port()
    with (
        model_server(GOOD, waits=True) as server,
        working(chat, "--processes", processes, "--health-port", port, *with_model(server)) as work,
    ):
        wait_until(lambda: ready(port) == 200, SECONDS)
        assert get(port, "/live") == (200, "live\n")
        assert get(port, "/ready") == (200, "ready\n")
        assert get(port, "/")[0] == 404
        wait_until(lambda: len(server.requests) == 3, SECONDS)
        wait_until(lambda: sum(one["busy"] for one in status(port)["workers"]) == 3, SECONDS)
        found = status(port)
        schemas["work-status"].validate(found)
        assert (found["ready"], len(found["workers"])) == (True, processes)
        work.signal()
        wait_until(lambda: ready(port) == 503, SECONDS)
        server.answer.set()
        work.end()
    with pytest.raises(URLError):
        get(port, "/live")


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(chat: Path) -> None:
    port = free_port()
    with working(chat, "--health-port", port):
        wait_until(lambda: ready(port) == 200, SECONDS)
        done = run("work", "--health-port", port, "--ledger", chat)
    assert "in use" in done.failed("os_error")


# --- the database is away -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_it_lives_through_a_database_that_is_stopped(transcript: Path, processes: int) -> None:
    port = free_port()
    with running_server(Wanted(durable=False)) as server:
        place = filled(server.url(), transcript)
        words = ["--processes", processes, "--health-port", port]
        with working(place, *words) as work:
            work.wait_for("range", 6)
            wait_until(lambda: ready(port) == 200, SECONDS)

            server.stop()
            wait_until(lambda: ready(port) == 503, SECONDS, "the page to say it")
            assert get(port, "/ready")[1] == "the store does not answer\n"
            assert get(port, "/live")[0] == 200
            assert status(port)["ready"] is False
            work.wait_for("store_away", processes)

            server.start()
            wait_until(lambda: ready(port) == 200, SECONDS, "the page to say it")
            with Ledger.open(place) as ledger:
                ledger.import_file(transcript, scope="tenant-4")
            work.wait_for("range", 8)
            work.wait_for("store_back")
            work.signal()
            work.end(complaint="the read models stay behind: ")
        assert statuses(place) == ["done"] * 8


@pytest.mark.slow
def test_it_may_be_started_before_its_database_and_ended_without_it(transcript: Path) -> None:
    port = free_port()
    with running_server(Wanted(durable=False)) as server:
        place = filled(server.url(), transcript)
        server.stop()
        with working(place, "--health-port", port) as work:
            work.wait_for("store_away")
            assert ready(port) == 503
            server.start()
            work.wait_for("range", 6)
            work.wait_for("store_back")
            wait_until(lambda: _is_idle(place), SECONDS)
            server.stop()
            work.signal()
            work.end(complaint="the read models stay behind: ")
        server.start()
        assert statuses(place) == ["done"] * 6


def _is_idle(place: str | Path) -> bool:
    with Ledger.open(place) as ledger:
        backlog = ledger.backlog()
    return (backlog.due, backlog.leased) == (0, 0)
