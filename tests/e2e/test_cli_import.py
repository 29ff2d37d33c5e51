"""`import`, `plan` and `import-summary`."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call, run

from compaction_ledger import composition


def test_import_reports_what_was_read(transcript: Path, tmp_path: Path) -> None:
    out = call("import", transcript, ledger=tmp_path / "l.db").fine().out
    assert "chat.jsonl (native)" in out
    assert "120 records" in out
    assert out.splitlines()[-1].split() == ["chat", "80", "40", "40", "none"]


def test_import_names_what_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": "A chart."},
    ]
    file.write_text(json.dumps({"model": "m", "messages": messages}))
    words = ["import", file, "--format", "openai-chat", "--conversation", "charts"]
    shown = call(*words, "-v", ledger=tmp_path / "a.db").fine().out
    document = call(*words, "--json", ledger=tmp_path / "b.db").fine().json
    (record,) = [one for one in document["left_out"] if one["reason"] == "media"]
    assert record["part"]
    assert "body.json" in record["place"]
    assert "media (a part)" in shown
    assert document["conversations"][0]["conversation"] == "charts"


def test_the_help_names_every_format() -> None:
    out = " ".join(call("import", "--help").fine().out.replace("-\n", "-").split())
    named = out.partition("auto, ")[2].partition(".")[0].replace("- ", "-").split(", ")
    assert sorted(named) == sorted(composition.formats())


def test_importing_twice_stores_nothing_twice(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    call("import", transcript, ledger=path).fine()
    message = call("import", transcript, ledger=path).failed("duplicate_message_id")
    assert "position 0 of conversation 'chat' in the ledger" in message
    assert "(--update)" in message
    assert len(call("plan", "chat", "--json", ledger=path).json["pairs"]) == 40


# --- import --update --------------------------------------------------------------------------------


def chat_body(*answers: str, question: str = "And next?") -> str:
    """A recorded body of OpenAI Chat: one question for each answer, and one that waits for its own."""
    messages: list[dict[str, str]] = []
    for answer in answers:
        messages += [
            {"role": "user", "content": f"What comes before {answer}?"},
            {"role": "assistant", "content": answer},
        ]
    messages.append({"role": "user", "content": question})
    return json.dumps({"model": "m", "messages": messages})


def counts(document: Any) -> tuple[int, int, int, int]:
    """Appended, revised, unchanged, run states of the one conversation."""
    (one,) = document["conversations"]
    assert one["messages"] == one["appended"] + one["revised"] + one["unchanged"]
    return one["appended"], one["revised"], one["unchanged"], one["run_states"]


@pytest.mark.slow
def test_a_file_that_has_grown(tmp_path: Path) -> None:
    file, path = tmp_path / "chat.json", tmp_path / "l.db"
    words = ["import", file, "--format", "openai-chat", "--json"]
    file.write_text(chat_body("A", "B"))
    made = call(*words, "--update", ledger=path).fine().json  # nothing is known yet
    assert (made["update"], counts(made)) == (True, (5, 0, 0, 3))
    file.write_text(chat_body("A", "C", question="What comes before D?").replace("B?", "C?"))
    assert counts(call(*words, "--update", ledger=path).fine().json) == (0, 3, 2, 0)
    file.write_text(chat_body("A", "C", "D"))
    assert counts(call(*words, "--update", ledger=path).fine().json) == (2, 0, 5, 2)
    assert counts(call(*words, "--update", ledger=path).fine().json) == (0, 0, 7, 0)
    plan = call("plan", "chat", "--json", ledger=path).fine().json
    assert len(plan["pairs"]) == 3
    call(*words, ledger=path).failed("duplicate_message_id")


def test_an_update_for_people(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    call("import", transcript, ledger=path).fine()
    lines = transcript.read_text("utf-8").splitlines()
    changed = lines[-1].replace("the fund stood", "the fund was")
    transcript.write_text("\n".join([*lines[:-1], changed]), "utf-8")
    out = call("import", transcript, "--update", ledger=path).fine().out
    header, row = out.splitlines()[-2:]
    assert header.split()[:6] == ["Conversation", "Messages", "New", "Revised", "Same", "Runs"]
    assert row.split() == ["chat", "80", "0", "1", "79", "40", "40", "none"]


@pytest.mark.slow
def test_an_update_makes_the_changed_range_due_again(transcript: Path, tmp_path: Path) -> None:
    """W5."""
    path = tmp_path / "l.db"
    call("import", transcript, ledger=path).fine()
    call("compact", "chat", ledger=path).fine()
    transcript.write_text(transcript.read_text("utf-8").replace("user 3:", "user three:"), "utf-8")
    call("import", transcript, "--update", ledger=path).fine()
    plan = call("plan", "chat", "--json", ledger=path).fine().json
    assert [(one["status"], one["stale"]) for one in plan["ranges"]] == [("due", 1), ("done", 0)]
    call("verify", ledger=path).fine()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"id": "user-3"', '"id": "user-x"', "message 'user-3': is in the ledger and not in"),
        ('"id": "user-3", "run": "run-3"', '"id": "user-3", "run": "run-4"', "has the run 'run-3'"),
        (
            '"id": "user-3", "run": "run-3", "role": "user"',
            '"id": "user-3", "run": "run-3", "role": "system"',
            "has the role 'user' in the ledger and 'system'",
        ),
    ],
)
def test_a_file_that_is_no_later_state_is_refused_as_a_whole(
    transcript: Path, tmp_path: Path, before: str, after: str, said: str
) -> None:
    path = tmp_path / "l.db"
    call("import", transcript, ledger=path).fine()
    revision = call("plan", "chat", "--json", ledger=path).json["revision"]
    text = transcript.read_text("utf-8")
    assert text.count(before) == 1
    transcript.write_text(text.replace(before, after).replace("user 1:", "user one:"), "utf-8")
    done = call("import", transcript, "--update", "--json", ledger=path)
    assert said in done.failed("not_an_update")
    assert done.json["error"]["place"] == "conversation 'chat': message 'user-3'"
    assert call("plan", "chat", "--json", ledger=path).json["revision"] == revision


def test_another_id_and_another_scope(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for words in (["--conversation", "other"], ["--scope", "tenant-2"]):
        call("import", transcript, *words, ledger=path).fine()
    call("plan", "other", ledger=path).fine()
    call("plan", "chat", "--scope", "tenant-2", ledger=path).fine()
    call("plan", "chat", ledger=path).failed("unknown_conversation")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "malformed_record"),
        (b'{"type": "message", "id": ', "malformed_record"),
        (b"\xff\xfe", "malformed_record"),
        (b'{"hello": 1}', "malformed_record"),
        (b'{"type":"message","id":"\\u0000","run":"r","role":"user","text":"x"}', "invalid_id"),
        (b'{"type":"message","id":"m","run":"r","role":"sailor","text":"x"}', "malformed_record"),
    ],
)
def test_a_bad_file_is_one_line_and_makes_no_conversation(
    tmp_path: Path, content: bytes, code: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(content)
    done = call("import", file, "--json", ledger=tmp_path / "l.db")
    assert "bad.jsonl" in done.failed(code)
    assert done.json["error"]["place"].startswith("bad.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--format", "nope"], "invalid_setting"),
        (["--format", "chatgpt-export"], "malformed_record"),
        (["--conversation", ""], "invalid_id"),
        (["--scope", "a\x07b"], "invalid_id"),
    ],
)
def test_an_import_that_is_refused_makes_no_ledger(
    transcript: Path, tmp_path: Path, words: list[str], code: str
) -> None:
    call("import", transcript, *words, ledger=tmp_path / "l.db").failed(code)
    assert [path.name for path in tmp_path.iterdir()] == [transcript.name]


def test_a_message_id_twice_names_both_places(tmp_path: Path) -> None:
    file = tmp_path / "twice.jsonl"
    line = '{"type":"message","id":"m","run":"r","role":"user","text":"x"}\n'
    file.write_text(line * 2)
    message = call("import", file, ledger=tmp_path / "l.db").failed("duplicate_message_id")
    assert "twice.jsonl:1" in message
    assert "twice.jsonl:2" in message


def test_no_such_file_format_or_folder(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    assert "No such file" in call("import", tmp_path / "no.json", ledger=path).failed(
        "malformed_record"
    )
    call("import", transcript, "--format", "nope", ledger=path).failed("invalid_setting")
    call("import", transcript, ledger=tmp_path / "no" / "l.db").failed("not_a_ledger")


def test_plan_shows_lines_and_ranges(demo_ledger: Path) -> None:
    short = call("plan", "fund-research", ledger=demo_ledger).fine().out
    assert "64 count" in short
    assert "2 tool" in short
    assert "-v names each line" in short
    long = call("plan", "fund-research", "-v", ledger=demo_ledger).fine().out
    assert "answer that broke off" in long
    assert "reply-034-lost" in long
    assert max(map(len, long.splitlines())) <= 80


def test_plan_of_a_short_conversation(tmp_path: Path) -> None:
    file = tmp_path / "short.jsonl"
    file.write_text('{"type":"message","id":"m","run":"r","role":"user","text":"x"}\n')
    call("import", file, ledger=tmp_path / "l.db").fine()
    assert "No range is a target yet." in call("plan", "short", ledger=tmp_path / "l.db").fine().out


# --- import-summary ---------------------------------------------------------------------------------


def summary_file(folder: Path, **changes: Any) -> Path:
    """A file with one summary."""
    summary = {
        "conversation": "chat",
        "from_pair": 0,
        "bind": "current",
        "model": {"provider": "elsewhere", "name": "m", "settings": {"temperature": "0"}},
        "prompt": "conversation-compaction@2",
        "text": "The fund stood at 100.50 EUR.",
        "origin": "old-store",
        **changes,
    }
    file = folder / "summary.json"
    file.write_text(json.dumps({key: value for key, value in summary.items() if value is not None}))
    return file


@pytest.fixture
def chat(transcript: Path, tmp_path: Path) -> Path:
    """A ledger with one conversation, nothing compacted."""
    path = tmp_path / "chat.db"
    call("import", transcript, ledger=path).fine()
    return path


@pytest.mark.slow
def test_a_summary_is_bound_to_the_conversation_as_it_is(chat: Path, tmp_path: Path) -> None:
    made = call("import-summary", summary_file(tmp_path), "--json", ledger=chat).fine().json
    assert made["projected"]
    shown = call("show", "chat", "0", "--json", ledger=chat).fine().json["summaries"][0]
    assert (shown["status"], shown["origin"], shown["current"]) == ("imported", "old-store", True)
    again = call("import-summary", summary_file(tmp_path), "--json", ledger=chat).fine().json
    assert (again["already"], again["index"]) == (True, None)
    manifest = call("assemble", "chat", "--budget", "99999", "--json", ledger=chat).json["manifest"]
    assert [used["from_pair"] for used in manifest["summaries"]] == [0]
    assert call("plan", "chat", "--json", ledger=chat).json["ranges"][0]["status"] == "done"
    upgraded = call("plan", "chat", "--upgrade", "--json", ledger=chat).json
    assert upgraded["ranges"][0]["status"] == "due"


def test_a_summary_with_a_binding_of_its_own(chat: Path, tmp_path: Path) -> None:
    ids = [f"{role}-{n}" for n in range(10) for role in ("user", "assistant")]
    file = summary_file(tmp_path, bind=None, messages=ids, source_hash="0" * 64)
    made = call("import-summary", file, "--json", ledger=chat).fine().json
    assert made["source_hash"] == "0" * 64
    manifest = call("assemble", "chat", "--budget", "99999", "--json", ledger=chat).json["manifest"]
    assert [one["reason"] for one in manifest["rejected"]] == ["source_changed"]


def test_a_summary_of_mixed_input_is_kept_and_never_used(chat: Path, tmp_path: Path) -> None:
    file = summary_file(tmp_path, prompt="conversation-compaction@1")
    out = call("import-summary", file, ledger=chat).fine().out
    assert "kept for review, never used" in out
    manifest = call("assemble", "chat", "--budget", "99999", "--json", ledger=chat).json["manifest"]
    assert [one["reason"] for one in manifest["rejected"]] == ["mixed_input"]


def test_a_different_second_summary_is_refused(chat: Path, tmp_path: Path) -> None:
    call("import-summary", summary_file(tmp_path), ledger=chat).fine()
    call("import-summary", summary_file(tmp_path, text="Another."), ledger=chat).failed(
        "already_completed"
    )


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"from_pair": 5}, "malformed_record", "from_pair"),
        ({"bind": None}, "malformed_record", "give either messages and source_hash"),
        ({"source_hash": "0" * 64}, "malformed_record", "give either messages and source_hash"),
        ({"prompt": "three"}, "invalid_input", "name@version"),
        ({"text": "   "}, "invalid_command", "empty"),
        ({"text": "x" * 6001}, "invalid_command", "too_long"),
        ({"from_pair": 90}, "invalid_job", "90-99"),
        ({"conversation": "nope"}, "unknown_conversation", "nope"),
        ({"extra": 1}, "malformed_record", "extra"),
    ],
)
def test_a_bad_summary_file(
    chat: Path, tmp_path: Path, changes: dict[str, Any], code: str, words: str
) -> None:
    assert words in call("import-summary", summary_file(tmp_path, **changes), ledger=chat).failed(
        code
    )


@pytest.mark.slow
def test_the_ledger_from_the_environment(transcript: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "named.db")
    run("import", transcript, COMPACTION_LEDGER=path).fine()
    run("plan", "chat", COMPACTION_LEDGER=path).fine()
    run("import", transcript, cwd=tmp_path).fine()
    assert (tmp_path / "compaction-ledger.db").is_file()
    missing = run("--ledger", tmp_path / "no.db", "plan", "chat", COMPACTION_LEDGER=path)
    assert "no.db" in missing.failed("not_a_ledger")
