"""Every importer over the public transcripts that lie beside the repository.

The pair counts were found by a second program that shares no code with the importers; the record
counts are taken from the raw JSON here. Nothing may be lost between the two (E2).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from importing import judge, pairs, read

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers import ImportResult, detect

pytestmark = pytest.mark.corpus

Count = Callable[[Any], int]


def raw(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def exchanges(lines: Any) -> int:
    """Messages, system prompts and responses."""
    return sum(
        len(line["request"]["messages"]) + ("system" in line["request"]) + 1 for line in lines
    )


def items(lines: Any) -> int:
    """Items, instructions, what a response holds, and lines that are no exchange, for Responses."""
    total = 0
    for line in lines:
        request = line["request"]
        if not isinstance(request, dict):
            total += 1
            continue
        asked = request["input"]
        total += len(asked) if isinstance(asked, list) else 1
        total += request.get("instructions") is not None
        response = line.get("response")
        answered = response.get("output", ()) if isinstance(response, dict) else ()
        total += response is not None and (len(answered) or 1)
    return total


def turns(lines: Any) -> int:
    """Messages, system prompts and responses, and lines that hold a response alone, for Converse."""
    return sum(
        len(request["messages"]) + ("system" in request) + ("request" in line)
        if "messages" in (request := line.get("request", line))
        else 1
        for line in lines
    )


CASES: dict[str, tuple[str, list[int], Count]] = {
    "chatgpt_export_code_interpreter.json": (
        "chatgpt-export",
        [8],
        lambda document: len(document[0]["mapping"]),
    ),
    "chatgpt_share_web_browsing.json": (
        "chatgpt-export",
        [1],
        lambda document: len(document["mapping"]),
    ),
    "claude_ai_export_thinking_artifacts.json": (
        "claude-ai-export",
        [2, 1, 1],
        lambda document: sum(len(each["chat_messages"]) for each in document),
    ),
    "long_goodai_ltm_gpt4turbo_194pairs.events.jsonl": ("goodai", [194], len),
    "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl": ("goodai", [175], len),
    "long_memorybank_zh_en_5users.json": (
        "memorybank",
        [49, 52, 43, 49, 52],
        lambda document: sum(
            len(person) - 1 + sum(map(len, person["history"].values()))
            for person in document.values()
        ),
    ),
    "research_deep_research_reports_gpt-4.1_38pairs.jsonl": ("pairs", [38], len),
    "tools_anthropic_messages_cline_session.json": (
        "anthropic-messages",
        [5],
        lambda document: len(document["messages"]) + 1,
    ),
    "tools_anthropic_messages_recordings.jsonl": (
        "anthropic-messages",
        [0, 1, 0, 1, 1, 1, 1, 2, 0, 0, 1, 1, 2, 0, 0, 1, 0],
        exchanges,
    ),
    "tools_bedrock_converse_recordings.jsonl": (
        "bedrock-converse",
        [0, 1, 1, 1, 2, 0, 1, 1, 1, 0, 0, 1, 2, 0, 0, 1, 0, 0, 0, 0],
        turns,
    ),
    "tools_google_adk_session_events_spark.json": (
        "google-adk",
        [0],
        lambda document: len(document["events"]),
    ),
    "tools_langchain_serialized_messages_deepagents.json": ("langchain", [1], len),
    "tools_openai_chat_sweagent_function_calling.traj.json": (
        "swe-agent",
        [0],
        lambda document: len(document["history"]) + len(document) - 1,
    ),
    "tools_openai_responses_recordings.jsonl": (
        "openai-responses",
        [0, 1, 0, 1, 0, 1, 1, 2, 2, 1, 1, 2, 0, 0, 0, 0, 1, 2, 0, 1, 1, 1, 1, 1],
        items,
    ),
    "tools_pydantic_ai_model_messages_thinking.json": ("pydantic-ai", [1], len),
    "tools_claude_code_session_todo_app.jsonl": ("claude-code", [0], len),
    "tools_openai_chat_taubench_airline_4trajectories.json": (
        "taubench",
        [29, 14, 14, 13],
        lambda document: sum(len(each["traj"]) + 2 for each in document),
    ),
    "tools_pi_session_64user_turns_aborted.jsonl": ("pi-session", [46], len),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_format_is_found_and_every_record_accounted_for(shared_data: Path, name: str) -> None:
    importer, expected, count = CASES[name]
    path = shared_data / name
    assert detect(path).name == importer
    result = read(importer, path)
    assert result.report.records == count(raw(path))
    assert [len(pairs(each)) for each in result.conversations] == expected
    assert_every_message_is_judged(result)


def test_recorded_openai_exchanges(shared_data: Path, tmp_path: Path) -> None:
    """Two lines of this file are the collection's own wrapper and no exchange: left aside."""
    source = shared_data / "tools_openai_chat_recordings.jsonl"
    lines = [line for line in raw(source) if "request" in line]
    path = tmp_path / "exchanges.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert detect(path).name == "openai-chat"
    result = read("openai-chat", path)
    assert result.report.records == exchanges(lines)
    assert [len(pairs(each)) for each in result.conversations] == [1, 2, 0, 1, 0, 1, 1, 1, 0, 0, 1]
    assert result.report.left_out_by_reason == {"provider_error": 1}


def test_the_part_of_the_codex_catalogue_that_was_not_scrubbed(
    shared_data: Path, tmp_path: Path
) -> None:
    """Behind it the times are no times any more: such a file is refused, with the place.

    Its one turn is aborted and answered all the same, as one line of each type comes about.
    """
    source = shared_data / "tools_codex_rollout_line_type_catalogue.jsonl"
    assert detect(source).name == "codex-rollout"
    with pytest.raises(MalformedRecord, match=r":27 timestamp: .* is no ISO 8601 time"):
        read("codex-rollout", source)
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:26]), "utf-8")
    result = read("codex-rollout", path)
    (rollout,) = result.conversations
    assert result.report.records == 26
    assert [(run.id, run.state) for run in rollout.runs] == [("run-1", "completed")]
    kinds = [(message.role, message.kind) for message in rollout.messages]
    assert kinds.count(("assistant", "tool")) + kinds.count(("tool", "tool")) == 7
    assert result.report.left_out_by_reason["duplicate"] == 3
    assert_every_message_is_judged(result)


def assert_every_message_is_judged(result: ImportResult) -> None:
    """E2: each imported message is a side of a pair or has a reason."""
    for conversation in result.conversations:
        verdict = judge(conversation)
        sides = 2 * len(verdict.pairs)
        assert sides + len(verdict.left_out) == len(conversation.messages)


def test_the_reasons_in_the_long_pi_session(shared_data: Path) -> None:
    """14 aborted replies stay as failed messages, and a turn with two answers is ambiguous (E2)."""
    path = shared_data / "tools_pi_session_64user_turns_aborted.jsonl"
    (session,) = read("pi-session", path).conversations
    reasons = [line.reason for line in judge(session).left_out]
    assert reasons.count("failed") == 14
    assert reasons.count("ambiguous_run") == 3
    assert len(session.runs) == 64


def test_e6_texts_are_as_in_the_file(shared_data: Path) -> None:
    """The emoji that the file writes as pairs of escapes, and the Chinese of the reports."""
    name = "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl"
    (log,) = read("goodai", shared_data / name).conversations
    events = [line for line in raw(shared_data / name) if line["type"] in (0, 3, 4, 5)]
    texts = [event["data"]["message"] for event in events]
    assert [message.text for message in log.messages] == texts
    reports = "research_deep_research_reports_gpt-4.1_38pairs.jsonl"
    (found,) = read("pairs", shared_data / reports).conversations
    assert [message.text for message in found.messages] == [
        line[key] for line in raw(shared_data / reports) for key in ("prompt", "article")
    ]


@pytest.mark.parametrize(
    "name",
    [
        "finance_pacific_tatqa_36docs.json",
        "long_convai2017_human_bot_dialogs.json",
        "rtl_persian_chatterbot_humor.yml",
        "zh_counselling_smile_5dialogs.json",
    ],
)
def test_formats_without_an_importer_are_not_guessed(shared_data: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"is of no known format|is not valid JSON"):
        detect(shared_data / name)
