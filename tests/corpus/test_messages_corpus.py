"""T1, T2, T4, T5: the wire shapes over every public transcript of theirs."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.domain.messages.structure import (
    boundaries,
    structural_problems,
)
from compaction_ledger.domain.window.originals import message_digest
from compaction_ledger.infrastructure.transcript_files import WireTranscript, read_transcripts

pytestmark = pytest.mark.corpus

# File: shape; how many lists of messages; how many messages; how many safe cuts; calls still open.
FILES = {
    "tools_openai_chat_recordings.jsonl": ("openai-chat", 13, 64, 16, 0),
    "tools_openai_chat_sweagent_function_calling.traj.json": ("openai-chat", 1, 24, 1, 0),
    "tools_openai_chat_taubench_airline_4trajectories.json": ("openai-chat", 4, 206, 74, 0),
    "tools_openai_responses_recordings.jsonl": ("openai-responses", 24, 61, 28, 0),
    "tools_anthropic_messages_recordings.jsonl": ("anthropic", 17, 41, 19, 0),
    "tools_anthropic_messages_cline_session.json": ("anthropic", 1, 32, 5, 0),
    "tools_bedrock_converse_recordings.jsonl": ("converse", 20, 48, 23, 0),
    "tools_pydantic_ai_model_messages_thinking.json": ("pydantic-ai", 1, 4, 1, 0),
}


def raw_lists(path: Path) -> list[list[Any]]:
    """The lists of messages, found by the folder's notes and not by the code under test."""
    text = path.read_text(encoding="utf-8")
    records = (
        [json.loads(line) for line in text.splitlines()]
        if path.suffix == ".jsonl"
        else [json.loads(text)]
    )
    found: list[list[Any]] = []
    for record in records:
        if isinstance(record, list):
            found += [each["traj"] for each in record] if "traj" in record[0] else [record]
            continue
        body = record.get("request", record.get("record", record))
        if isinstance(body, list):
            found.append(body)
        elif isinstance(body, dict):
            found += [
                body[name]
                if isinstance(body[name], list)
                else [{"role": "user", "content": body[name]}]
                for name in ("messages", "input", "history")
                if name in body
            ]
    return found


def as_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", FILES)
def test_t1_every_list_of_messages_is_found_and_its_shape_told(
    shared_data: Path, name: str
) -> None:
    found = read_transcripts(shared_data / name)
    expected = raw_lists(shared_data / name)
    shape, lists, *_ = FILES[name]
    assert {each.shape for each in found} == {shape}
    assert [each.messages for each in found] == expected
    assert len(found) == lists
    assert len({each.place for each in found}) == lists
    assert all(each.place.startswith(name) for each in found)


@pytest.mark.parametrize("name", FILES)
def test_t2_t4_public_transcripts_are_sound_and_have_safe_cuts(
    shared_data: Path, name: str
) -> None:
    shape, _, messages, cuts, waiting = FILES[name]
    counts: Counter[str] = Counter()
    for each in read_transcripts(shared_data / name):
        entries = SHAPES[shape].read(each.messages)
        assert structural_problems(entries) == []
        counts["messages"] += len(entries)
        counts["cuts"] += len(boundaries(entries))
        counts["open"] += sum(len(entry.calls) - len(entry.results) for entry in entries)
    assert (counts["messages"], counts["cuts"], counts["open"]) == (messages, cuts, waiting)


@pytest.mark.parametrize("name", FILES)
def test_t1_every_public_transcript_comes_back_as_it_was(shared_data: Path, name: str) -> None:
    for each in read_transcripts(shared_data / name):
        before = copy.deepcopy(each.messages)
        written = SHAPES[each.shape].assemble(each.messages, 0, [])
        assert all(new is old for new, old in zip(written, each.messages, strict=True))
        check_cuts(each)
        assert as_bytes(each.messages) == as_bytes(before)
        assert as_bytes(written) == as_bytes(before)


def check_cuts(transcript: WireTranscript) -> None:
    """T4, T5: what a cut keeps is the very same, but for the turn that takes the texts in."""
    shape, messages = SHAPES[transcript.shape], transcript.messages
    allowed = [each.code for each in shape.problems(messages)]
    head = shape.head(messages)
    for cut in boundaries(shape.read(messages)):
        made = shape.assemble(messages, cut, ["the first block", "the second"])
        kept = messages[max(cut, head) + 1 :]
        assert all(made[i] is messages[i] for i in range(head))
        assert all(a is b for a, b in zip(made[len(made) - len(kept) :], kept, strict=True))
        own = as_bytes(messages[max(cut, head)])[1:-1]
        assert own in as_bytes(made) or all(
            as_bytes(part) in as_bytes(made) for part in content_of(messages[max(cut, head)])
        )
        new = [each.code for each in shape.problems(made)]
        assert not Counter(new) - Counter(allowed)


def content_of(message: Any) -> list[Any]:
    content = message.get("content", message.get("parts"))
    return [content] if isinstance(content, str) else list(content)


@pytest.mark.parametrize("name", FILES)
def test_every_message_has_parts_that_say_what_is_on_the_wire(shared_data: Path, name: str) -> None:
    for each in read_transcripts(shared_data / name):
        shape = SHAPES[each.shape]
        for entry in shape.read(each.messages):
            parts = shape.parts(entry.wire)
            assert [part.part for part in parts] == list(range(len(parts)))
            assert {(call.part, call.id) for call in entry.calls} <= {
                (part.part, part.call_id) for part in parts if part.kind == "call"
            }
            strings = set(all_strings(entry.wire))
            joined = "".join(strings)
            for part in parts:
                assert part.text in strings or all(
                    line in joined for line in part.text.split("\n") if not line.startswith("{")
                )
            again = shape.settled(json.loads(json.dumps(entry.wire)))
            assert message_digest(again) == message_digest(shape.settled(entry.wire))


def all_strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for one in inner for each in all_strings(one)]
