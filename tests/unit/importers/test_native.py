"""The native format: strict, exact (E4, E6), and each fault with its line."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import pairs, read, read_one, write_lines

from compaction_ledger.domain.conversation import (
    MESSAGE_KINDS,
    MESSAGE_STATUSES,
    ROLES,
    RUN_STATES,
)
from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidId,
    InvalidInput,
    MalformedRecord,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.importers import (
    ImportedConversation,
    importer_named,
    native_lines,
    reading,
    write_native,
)
from compaction_ledger.infrastructure.importers import native as native_module
from compaction_ledger.infrastructure.importers.native_model import json_schema

NATIVE = importer_named("native")
RUN = {"type": "run", "id": "r1", "state": "completed"}
USER = {"type": "message", "id": "m1", "run": "r1", "role": "user", "text": "How high is the fee?"}
REPLY = {"type": "message", "id": "m2", "run": "r1", "role": "assistant", "text": "0.3 % a year."}


def refused(path: Path, data: bytes) -> MalformedRecord:
    """The error for a file of these bytes."""
    path.write_bytes(data)
    with pytest.raises(MalformedRecord) as caught:
        NATIVE.read(path)
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.jsonl"


def test_a_whole_file(path: Path) -> None:
    head = {"type": "conversation", "id": "c1", "title": "Fees"}
    timed = {**USER, "created_at": "2025-03-01T12:00:00.000001+01:00"}
    imported = read_one("native", write_lines(path, [head, RUN, timed, REPLY]))
    assert imported == ImportedConversation(
        "c1",
        (NewRun("r1", "completed"),),
        (
            NewMessage("m1", "r1", "user", USER["text"], created_at=1_740_826_800_000_001),
            NewMessage("m2", "r1", "assistant", REPLY["text"]),
        ),
        "Fees",
    )
    assert pairs(imported) == [(USER["text"], REPLY["text"])]


def test_without_a_head_the_file_names_the_conversation(path: Path) -> None:
    assert read_one("native", write_lines(path, [RUN])).conversation == "chat"


def test_the_caller_may_name_the_conversation(path: Path) -> None:
    write_lines(path, [{"type": "conversation", "id": "c1"}, RUN])
    (imported,) = NATIVE.read(path, conversation="mine").conversations
    assert imported.conversation == "mine"


def test_runs_may_stand_after_their_messages_and_blank_lines_say_nothing(path: Path) -> None:
    path.write_text("\n".join(["", *map(json.dumps, [USER, REPLY, RUN]), "", ""]))
    assert len(pairs(read_one("native", path))) == 1


def test_a_run_that_is_nowhere_stays_missing(path: Path) -> None:
    assert read_one("native", write_lines(path, [USER, REPLY])).runs == ()


def test_last_line_without_newline_and_windows_line_ends(path: Path) -> None:
    path.write_bytes(b"\r\n".join(json.dumps(each).encode() for each in (RUN, USER, REPLY)))
    assert len(pairs(read_one("native", path))) == 1


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_empty_file(path: Path, data: bytes) -> None:
    assert str(refused(path, data)) == "chat.jsonl: the file is empty"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({**USER, "extra": 1}, "extra: Extra inputs are not permitted"),
        ({**USER, "\ud83d": 1}, "valid string"),
        ({**USER, "role": "human"}, "role: "),
        ({**USER, "status": "done"}, "status: "),
        ({**USER, "kind": "note"}, "kind: "),
        ({**RUN, "state": "finished"}, "state: "),
        ({**USER, "type": "msg"}, "expected tags"),
        ({"id": "m1"}, "discriminator"),
        ({**USER, "text": 5}, "text: "),
        ({**USER, "text": None}, "text: "),
        ({"type": "message", "id": "m1", "run": "r1", "role": "user"}, "text: Field required"),
        ({**USER, "created_at": 5}, "created_at: "),
        ({**USER, "created_at": "yesterday"}, "no ISO 8601 time"),
        ({**USER, "created_at": "2025-03-01T12:00:00"}, "no offset"),
        (["a"], "must be an object, not an array"),
        (None, "must be an object, not null"),
        (True, "must be an object, not true"),
        ("text", "must be an object, not a string"),
        (1, "must be an object, not a number"),
    ],
)
def test_a_wrong_record_is_refused_with_its_line(path: Path, line: Any, says: str) -> None:
    write_lines(path, [RUN, line])
    with pytest.raises(MalformedRecord, match=r"^chat\.jsonl:2") as caught:
        NATIVE.read(path)
    assert says in str(caught.value)
    assert (caught.value.place or "").startswith("chat.jsonl:2")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"type":"run","id":"r2","sta', "Unterminated string"),
        (b'{"type":"run","id":"r2"', "is not valid JSON"),
        (b'{"type":"run","id":"r\xff","state":"completed"}', "is not valid UTF-8"),
        (b'{"type":"run","id":"\xed\xa0\xbd","state":"completed"}', "is not valid UTF-8"),
        (b'{"type":"run","id":NaN,"state":"completed"}', "NaN is no JSON number"),
        (b'{"type":"run","id":-Infinity,"state":"completed"}', "-Infinity is no JSON number"),
        (b'{"type":"run","id":1e999,"state":"completed"}', "out of range"),
        (b'{"type":"run","id":' + b"1" * 5000 + b"}", "is not valid JSON"),
        (b'{"type":"run","id":"r2","id":"r3","state":"completed"}', "the key 'id' stands twice"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"type":"run"} {"type":"run"}', "Extra data"),
        (b"\x00", "is not valid JSON"),
    ],
)
def test_bad_bytes_are_refused_with_their_line(path: Path, data: bytes, says: str) -> None:
    error = refused(path, json.dumps(RUN).encode() + b"\n\n" + data)
    assert error.place == "chat.jsonl:3"
    assert says in str(error)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_a_byte_order_mark_is_refused(path: Path, mark: bytes) -> None:
    error = refused(path, mark + json.dumps(RUN).encode())
    assert error.place == "chat.jsonl:1"
    assert "byte order mark" in str(error)


def test_e4_a_message_id_twice_names_both_places(path: Path) -> None:
    write_lines(path, [RUN, USER, REPLY, USER])
    with pytest.raises(DuplicateMessageId) as caught:
        NATIVE.read(path)
    assert (caught.value.first, caught.value.second) == ("chat.jsonl:2", "chat.jsonl:4")


def test_a_run_twice_names_both_places(path: Path) -> None:
    write_lines(path, [RUN, RUN])
    with pytest.raises(MalformedRecord, match=r"chat\.jsonl:2: .*chat\.jsonl:1"):
        NATIVE.read(path)


@pytest.mark.parametrize("before", [[RUN], [USER], [{"type": "conversation", "id": "c"}]])
def test_the_head_stands_first_and_once(path: Path, before: list[Any]) -> None:
    write_lines(path, [*before, {"type": "conversation", "id": "c2"}])
    with pytest.raises(MalformedRecord, match=r"chat\.jsonl:2: the conversation record"):
        NATIVE.read(path)


@pytest.mark.parametrize("bad", ["", "x" * 513, "a\nb", "a\x00b", "\ud83d"])
@pytest.mark.parametrize("member", ["id", "run"])
def test_e4_a_wrong_id_is_refused_with_its_line(path: Path, member: str, bad: str) -> None:
    write_lines(path, [RUN, {**USER, member: bad}])
    with pytest.raises(InvalidId) as caught:
        NATIVE.read(path)
    assert caught.value.place == f"chat.jsonl:2 {member}"


def test_e6_surrogates_nul_and_forms_survive(path: Path) -> None:
    text = "\ud83d|\udc00|\x00|e\u0301|é|\u200b|\u202e|" + "\U0001f600"
    write_lines(path, [RUN, {**USER, "text": text}])
    assert '"\\ud83d|' in path.read_text()
    assert read_one("native", path).messages[0].text == text


def test_a_message_of_ten_megabytes(path: Path) -> None:
    text = "基金" * 1_700_000
    write_lines(path, [RUN, {**USER, "text": text}])
    assert read_one("native", path).messages[0].text == text


def test_a_line_over_the_limit_is_refused_without_being_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 200)
    fits = json.dumps({**USER, "text": ""})
    fits = json.dumps({**USER, "text": "x" * (200 - len(fits))})
    assert len(fits) == 200
    path.write_text(fits + "\n" + "y" * 201)
    with pytest.raises(MalformedRecord, match=r"chat\.jsonl:2: the line is longer than 200 bytes"):
        NATIVE.read(path)
    path.write_text(fits + "\n")
    assert len(read_one("native", path).messages) == 1


def test_a_line_of_a_hundred_megabytes_is_refused(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(b'{"type":"message","text":"')
        for _ in range(100):
            stream.write(b"x" * 1_000_000)
    with pytest.raises(MalformedRecord, match=r"chat\.jsonl:1: the line is longer than 67108864"):
        NATIVE.read(path)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    with pytest.raises(MalformedRecord, match="is a folder"):
        NATIVE.read(tmp_path)
    with pytest.raises(MalformedRecord, match=r"none\.jsonl: cannot be read: No such file"):
        NATIVE.read(tmp_path / "none.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MalformedRecord, match="pipe: is not a regular file"):
        NATIVE.read(tmp_path / "pipe")


def test_the_committed_schema_is_the_model(repo_root: Path) -> None:
    file = repo_root / "infrastructure" / "importers" / "native.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == json_schema()
    assert Path(native_module.__file__).with_name("native.schema.json").is_file()


def test_what_the_writer_writes_fits_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    lines = native_lines(
        ImportedConversation(
            "c",
            (NewRun("r1", "partial"),),
            (NewMessage("m", "r1", "tool", "x", "failed", "effect", 0),),
            "t",
        )
    )
    for line in lines:
        validator.validate(json.loads(line))
    assert not validator.is_valid({**USER, "extra": 1})
    assert not validator.is_valid({**USER, "role": "human"})


ids = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
surrogates = st.sampled_from(["\ud83d", "\udbff", "\udc00", "\udfff"])
texts = st.lists(
    st.one_of(st.text(), surrogates, st.sampled_from(["\x00", "\\", "\\ud83d", '"', "\u2028"]))
).map("".join)
messages = st.builds(
    NewMessage,
    id=ids,
    run=ids,
    role=st.sampled_from(sorted(ROLES)),
    text=texts,
    status=st.sampled_from(sorted(MESSAGE_STATUSES)),
    kind=st.sampled_from(sorted(MESSAGE_KINDS)),
    created_at=st.none() | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
)
runs = st.builds(NewRun, id=ids, state=st.sampled_from(sorted(RUN_STATES)))
conversations = st.builds(
    ImportedConversation,
    conversation=ids,
    runs=st.lists(runs, unique_by=lambda run: run.id).map(tuple),
    messages=st.lists(messages, unique_by=lambda message: message.id).map(tuple),
    title=st.none() | texts,
)


@pytest.mark.slow
@settings(deadline=None)
@given(conversations)
def test_e6_what_is_written_is_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory, conversation: ImportedConversation
) -> None:
    path = tmp_path_factory.mktemp("native") / "c.jsonl"
    whole = [message.text for message in conversation.messages] + [conversation.title or ""]
    if any(map(_has_split_pair, whole)):
        with pytest.raises(InvalidInput, match="surrogate pair"):
            list(native_lines(conversation))
        return
    with path.open("wb") as stream:
        write_native(conversation, stream)
    assert read("native", path).conversations == (conversation,)


def _has_split_pair(text: str) -> bool:
    return any(
        "\ud800" <= high <= "\udbff" and "\udc00" <= low <= "\udfff" for high, low in pairwise(text)
    )


def test_e6_the_writer_refuses_what_json_cannot_carry() -> None:
    split = NewMessage("m", "r", "user", "\ud83d\ude00")
    with pytest.raises(InvalidInput, match="message 'm': JSON cannot carry"):
        list(native_lines(ImportedConversation("c", (), (split,))))


def test_a_time_that_iso_8601_cannot_carry_is_refused() -> None:
    late = NewMessage("m", "r", "user", "x", created_at=10**18)
    with pytest.raises(InvalidInput, match="message 'm': the time is outside"):
        list(native_lines(ImportedConversation("c", (), (late,))))
