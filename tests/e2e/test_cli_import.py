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
    assert len(call("plan", "chat", "--json", ledger=path).json["pairs"]) == 40


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


def test_the_ledger_from_the_environment(transcript: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "named.db")
    run("import", transcript, COMPACTION_LEDGER=path).fine()
    run("plan", "chat", COMPACTION_LEDGER=path).fine()
    run("import", transcript, cwd=tmp_path).fine()
    assert (tmp_path / "compaction-ledger.db").is_file()
    missing = run("--ledger", tmp_path / "no.db", "plan", "chat", COMPACTION_LEDGER=path)
    assert "no.db" in missing.failed("not_a_ledger")
