"""Archives: conversations of many files, one at a time; what is malformed stands in nobody's way (E4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from archives import MIXED, SCOPES, sizes, write_archive
from importing import write_document, write_lines

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.takeover import ArchivedThread, ScopeFrom, UnreadThread
from compaction_ledger.infrastructure.importers.archive import Archive
from compaction_ledger.infrastructure.importers.reading import MAX_LINE_BYTES

RUN = {"type": "run", "id": "r", "state": "completed"}
USER = {"type": "message", "id": "u", "run": "r", "role": "user", "text": "How high is the fee?"}
REPLY = {"type": "message", "id": "a", "run": "r", "role": "assistant", "text": "0.3 % a year."}
PAIR = [RUN, USER, REPLY]


def head(name: str) -> dict[str, str]:
    return {"type": "conversation", "id": name}


def archive(
    *places: Path, scope_from: ScopeFrom = "option", format_name: str | None = None
) -> Archive:
    made = Archive(places, format_name, scope_from, "mine")
    made.check()
    return made


def told(found: Iterable[ArchivedThread | UnreadThread]) -> list[tuple[str | None, ...]]:
    """Scope, place, conversation and, where it cannot be read, the error."""
    return [
        (one.scope, one.place, one.thread.conversation)
        if isinstance(one, ArchivedThread)
        else (one.scope, one.place, one.conversation, str(one.error))
        for one in found
    ]


def test_a_file_of_many_conversations(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.ndjson", [head("c1"), *PAIR, head("c2"), head("c3"), *PAIR])
    found = list(archive(path))
    assert told(found) == [
        ("mine", "all.ndjson:1", "c1"),
        ("mine", "all.ndjson:5", "c2"),
        ("mine", "all.ndjson:6", "c3"),
    ]
    threads = [one.thread for one in found if isinstance(one, ArchivedThread)]
    assert [len(thread.messages) for thread in threads] == [2, 0, 2]
    assert sum(one.size for one in found) == path.stat().st_size == archive(path).measure()[1]


def test_a_file_of_one_conversation_names_it(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", PAIR)
    assert told(archive(path)) == [("mine", "chat.jsonl:1", "chat")]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "is not valid JSON"),
        (json.dumps({**USER, "role": "human"}), "role: "),
        (json.dumps([1]), "must be an object"),
        (json.dumps(USER), "stands twice: at f.ndjson:3 and at f.ndjson:5"),
        (json.dumps({**USER, "id": "a\nb"}), "forbidden character U+000A"),
    ],
)
def test_a_malformed_conversation_stands_in_nobodys_way(
    tmp_path: Path, bad: str, says: str
) -> None:
    good = [json.dumps(line) for line in (head("c1"), *PAIR)]
    rest = [json.dumps(line) for line in (REPLY, head("c2"), *PAIR)]
    path = tmp_path / "f.ndjson"
    path.write_text("\n".join([*good, bad, *rest]) + "\n")
    first, second = told(archive(path, format_name="native"))
    assert first[:3] == ("mine", "f.ndjson:1", "c1")
    assert first[3] is not None
    assert says in first[3]
    assert "f.ndjson:5" in first[3]
    assert second == ("mine", "f.ndjson:7", "c2")


def test_a_head_that_is_malformed_costs_what_stands_before_it_too(tmp_path: Path) -> None:
    """It cannot be told whose line it was, and nothing is guessed."""
    path = write_lines(tmp_path / "f.ndjson", [head("c1"), *PAIR, head("c2"), *PAIR, head("c3")])
    path.write_text(path.read_text().replace('"id": "c2"}', '"id": "c2"'))
    assert [one[2] for one in told(archive(path))] == ["c1", "c3"]
    path = write_lines(tmp_path / "g.ndjson", [head("c1"), {"type": "conversation"}, *PAIR])
    assert [(one[2], len(one)) for one in told(archive(path))] == [("c1", 3), (None, 4)]


def test_a_line_without_end_ends_its_file_alone(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [head("c1"), *PAIR, head("c2")])
    with path.open("ab") as stream:
        stream.write(b" " * (MAX_LINE_BYTES + 2))
    write_lines(tmp_path / "b.ndjson", [head("c3")])
    first, second, third = told(archive(tmp_path))
    assert first[2] == "c1"
    assert second[2] == "c2"
    assert str(second[3]).startswith("a.ndjson:6: the line is longer")
    assert str(second[3]).endswith("nothing behind it was read")
    assert third[2] == "c3"


def test_a_folder_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "b/1.jsonl", "a/deep/3.jsonl", ".git/4.jsonl", "a/.5.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(tmp_path / name, PAIR)
    assert [one[1] for one in told(archive(tmp_path))] == [
        "a/deep/3.jsonl:1",
        "b/1.jsonl:1",
        "b/2.jsonl:1",
    ]
    assert archive(tmp_path).measure()[0] == 3
    assert [one[0] for one in told(archive(tmp_path, scope_from="folder"))] == ["a", "b", "b"]
    assert [one[0] for one in told(archive(tmp_path, scope_from="file"))] == ["3", "1", "2"]


def test_a_file_names_its_scope_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    path = write_lines(tmp_path / "acme" / "c.jsonl", PAIR)
    lone = write_lines(tmp_path / "lone.jsonl", PAIR)
    assert [one[0] for one in told(archive(path, scope_from="folder"))] == ["acme"]
    (_, place, _, error) = told(archive(tmp_path, scope_from="folder"))[0]
    assert (place, error) == (
        "lone.jsonl",
        "lone.jsonl: lies in no folder that could name its scope",
    )
    assert lone.exists()


def test_other_formats_and_files_of_no_format(tmp_path: Path) -> None:
    write_document(tmp_path / "openai.json", {"messages": _chat()})
    (tmp_path / "notes.txt").write_text("Nothing that could be read.")
    notes, chat = told(archive(tmp_path))
    assert chat == ("mine", "openai.json", "openai")
    assert notes[1] == "notes.txt"
    assert len(notes) == 4


def _chat() -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]


def test_what_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="no such file"):
        archive(tmp_path / "none")
    with pytest.raises(InvalidSetting, match="none of"):
        archive(tmp_path, format_name="word")


@pytest.mark.parametrize("layout", ["ndjson", "files"])
@pytest.mark.parametrize("each", [500, None, 7])
def test_made_archives_are_read_as_they_were_meant(
    tmp_path: Path, layout: Any, each: int | None
) -> None:
    made = write_archive(tmp_path, 1_234, each=each, layout=layout)
    scope_from: ScopeFrom = "file" if layout == "ndjson" else "folder"
    found = list(archive(tmp_path, scope_from=scope_from))
    threads = [one.thread for one in found if isinstance(one, ArchivedThread)]
    assert len(threads) == len(found) == made.conversations
    assert sum(len(thread.messages) for thread in threads) == 2 * 1_234
    assert {one.scope for one in found} == set(SCOPES)
    assert archive(tmp_path).measure() == (len(made.files), made.bytes)


def test_sizes() -> None:
    assert list(sizes(1_100, 500)) == [500, 500, 100]
    assert list(sizes(sum(MIXED) + 3, None)) == [*MIXED, 3]
