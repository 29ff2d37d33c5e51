"""`work`: one process or several, told to end, killed, and beside each other on one ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from command_line import call, run, start
from jsonschema import Draft202012Validator
from kept_processes import alive, children, free_port, wait_until
from model_servers import ModelServer, model_server

from compaction_ledger import Ledger

GOOD = "The fund stood at 100.50 EUR at first and at 109.50 EUR at the end."
SECONDS = 60
QUICK = ["--poll", "0.1", "--discover", "0.5"]


@pytest.fixture
def chat(transcript: Path, tmp_path: Path) -> Path:
    """A ledger with three conversations of forty pairs: six ranges are due."""
    path = tmp_path / "chat.db"
    for scope in ("tenant-1", "tenant-2", "tenant-3"):
        call("import", transcript, "--scope", scope, ledger=path).fine()
    return path


@pytest.fixture(scope="session")
def schemas(repo_root: Path) -> dict[str, Draft202012Validator]:
    folder = repo_root / "docs" / "schemas"
    return {
        name: Draft202012Validator(json.loads((folder / f"{name}.schema.json").read_text("utf-8")))
        for name in ("work", "work-status", "error")
    }


def with_model(server: ModelServer) -> list[str]:
    return ["--model", "openai-compatible:m", "--base-url", server.url]


def statuses(path: Path) -> list[str]:
    """Of all ranges that the log knows."""
    with Ledger.open(path, create=False) as ledger:
        return [row.status for row in ledger.ranges()]


def completions(path: Path) -> list[tuple[str, str, int]]:
    """Every completion in the log, by its range."""
    page = call("log", "--limit", "1000", "--json", ledger=path).fine().json
    return [
        (event["scope"], event["conversation"], event["from_pair"])
        for event in page["events"]
        if event["event"] == "RangeCompleted"
    ]


@dataclass
class Working:
    """A call of `work` that runs, and the documents that it has printed so far."""

    process: subprocess.Popen[str]
    said: list[Any] = field(default_factory=list)
    err: str = ""

    def __post_init__(self) -> None:
        self._readers = [Thread(target=self._read_out), Thread(target=self._read_err)]
        for reader in self._readers:
            reader.start()

    def _read_out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    def _read_err(self) -> None:
        assert self.process.stderr is not None
        self.err = self.process.stderr.read()

    def events(self, name: str) -> list[Any]:
        return [one for one in list(self.said) if one.get("event") == name]

    def wait_for(self, name: str, count: int = 1) -> list[Any]:
        """Until it has said so often that this happened."""
        wait_until(
            lambda: len(self.events(name)) >= count or self.process.poll() is not None,
            SECONDS,
            name,
        )
        assert len(self.events(name)) >= count, (self.said, self.err)
        return self.events(name)

    def signal(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.process.pid, number)

    def end(self, code: int = 0) -> Sequence[Any]:
        """Wait for its end; what it said."""
        assert self.process.wait(SECONDS) == code, (self.said, self.err)
        self.close()
        assert self.err == ""
        return self.said

    def close(self) -> None:
        """Take in what is left of what it said, once it has ended."""
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def working(path: Path | str, *words: object, **variables: str) -> Iterator[Working]:
    """`work` on a ledger, in JSON; it and all its processes are killed in the end."""
    place = ["--ledger", path]
    process = start(["work", "--json", *QUICK, *words, *place], **variables)
    running = Working(process)
    try:
        yield running
    finally:
        family = [process.pid, *(one["process"] for one in running.events("worker_started"))]
        for pid in [*children(process.pid), *family]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(SECONDS)
        running.close()


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of a page."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def ready(port: int) -> int:
    """The status of the page `/ready`; 0 where nobody answers."""
    try:
        return get(port, "/ready")[0]
    except (URLError, ConnectionError):
        return 0


# --- until nothing is due -------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
def test_until_nothing_is_due(chat: Path, processes: int) -> None:
    done = run("work", "--until-idle", "--processes", processes, "--ledger", chat).fine()
    *lines, last = done.out.splitlines()
    assert len(lines) == 6
    assert all(": summarized (index " in line for line in lines)
    assert last == "Nothing is due any more: 6 summaries made, 3 looks at conversations."
    assert statuses(chat) == ["done"] * 6
    again = run("work", "--until-idle", "--ledger", chat).fine()
    assert again.out == "Nothing is due any more: 0 summaries made, 0 looks at conversations.\n"


@pytest.mark.parametrize("processes", [1, 2])
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


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_is_a_finding(chat: Path, processes: int) -> None:
    with model_server(GOOD, finish="length") as server:
        words = ["work", "--until-idle", "--processes", processes, *with_model(server)]
        done = run(*words, "--ledger", chat)
    assert (done.code, done.err) == (1, "")
    assert "failed, both attempts are used (truncated, truncated)" in done.out
    assert statuses(chat) == ["exhausted"] * 6


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


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
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


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("how", ["a second signal", "the time is over"])
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


@pytest.mark.parametrize("processes", [1, 2])
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


def test_a_child_that_was_killed_is_replaced_and_its_conversation_taken_up(chat: Path) -> None:
    words = ["--processes", 2, "--threads", 1, "--lease", 4]
    with (
        model_server(GOOD, waits=True) as server,
        working(chat, *words, *with_model(server)) as work,
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
    assert statuses(chat) == ["done"] * 6
    assert len(completions(chat)) == len(set(completions(chat))) == 6
    page = call("log", "--limit", "1000", "--json", ledger=chat).fine().json
    released = [e["fact"] for e in page["events"] if e["event"] == "ClaimReleased"]
    assert [fact["reason"] for fact in released] == ["expired"]


def test_two_parents_share_the_work(chat: Path, transcript: Path) -> None:
    for n in range(4, 13):
        call("import", transcript, "--scope", f"tenant-{n}", ledger=chat).fine()
    words = ["--processes", 2, "--threads", 2]
    with (
        model_server(GOOD) as server,
        working(chat, *words, *with_model(server)) as one,
        working(chat, *words, *with_model(server)) as other,
    ):
        wait_until(lambda: len(statuses(chat)) == 24, SECONDS)
        wait_until(lambda: statuses(chat) == ["done"] * 24, SECONDS)
        for work in (one, other):
            work.signal()
        made = [work.end()[-1]["counts"].get("ranges_completed", 0) for work in (one, other)]
    assert sum(made) == 24
    assert len(completions(chat)) == len(set(completions(chat))) == 24
    assert len(server.requests) == 24  # nothing was asked twice
    call("verify", ledger=chat).fine()


# --- health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
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


def status(port: int) -> Any:
    return json.loads(get(port, "/status")[1])


def test_a_port_that_is_taken_is_told(chat: Path) -> None:
    port = free_port()
    with working(chat, "--health-port", port):
        wait_until(lambda: ready(port) == 200, SECONDS)
        done = run("work", "--health-port", port, "--ledger", chat)
    assert "in use" in done.failed("os_error")
