"""Each public format, read from a small file of its shape in ``tests/fixtures/importers``."""

import json
from pathlib import Path

import pytest
from importing import lines, pairs, read, read_one, states

from compaction_ledger.infrastructure.importers import ImportedConversation, importer_named

FIRST_PAIR = ("What does the fund cost?", "It costs 0.30 % a year.")


@pytest.fixture
def fixtures(repo_root: Path) -> Path:
    return repo_root / "tests" / "fixtures" / "importers"


def ids(imported: ImportedConversation) -> list[str]:
    return [message.id for message in imported.messages]


def test_openai_chat(fixtures: Path) -> None:
    result = read("openai-chat", fixtures / "openai-chat.json")
    (imported,) = result.conversations
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    assert [line[:2] for line in lines(imported)] == [
        ("system", "chat"),
        ("user", "chat"),
        ("assistant", "trace"),
        ("assistant", "tool"),
        ("tool", "tool"),
        ("assistant", "chat"),
        ("user", "chat"),
        ("assistant", "chat"),
    ]
    assert ids(imported)[:4] == ["run-0/1", "run-1/1", "run-1/2", "run-1/3"]
    assert json.loads(imported.messages[3].text)["function"]["arguments"] == '{"fund": "A"}'
    (left,) = result.report.left_out
    assert (left.place, left.reason, left.part) == (
        "openai-chat.json messages[5] content[1]",
        "media",
        True,
    )


def test_anthropic_messages(fixtures: Path) -> None:
    result = read("anthropic-messages", fixtures / "anthropic-messages.json")
    (imported,) = result.conversations
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    assert [line[:2] for line in lines(imported)] == [
        ("system", "chat"),
        ("user", "chat"),
        ("assistant", "trace"),
        ("assistant", "trace"),
        ("assistant", "tool"),
        ("tool", "tool"),
        ("assistant", "chat"),
        ("user", "chat"),
        ("assistant", "chat"),
    ]
    assert imported.messages[3].text == "I look it up."
    assert result.report.records == 7
    assert result.report.left_out_by_reason == {"media": 1}


def test_chatgpt_export_reads_the_current_branch(fixtures: Path) -> None:
    result = read("chatgpt-export", fixtures / "chatgpt-export.json")
    (imported,) = result.conversations
    assert (imported.conversation, imported.title) == ("chat-1", "Fees")
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    assert ids(imported) == ["sys", "u1", "a1", "c1", "t1", "a2", "u2", "h", "a3"]
    assert [run.id for run in imported.runs] == ["run-0", "run-of-u1", "run-of-u2"]
    assert [m.kind for m in imported.messages if m.kind != "chat"] == [
        "trace",
        "tool",
        "tool",
        "trace",
    ]
    assert imported.messages[1].created_at == 1_700_000_000_250_000
    assert result.report.left_out_by_reason == {"media": 1, "no_message": 1, "other_branch": 2}
    assert {each.place for each in result.report.left_out if each.reason == "other_branch"} == {
        "chatgpt-export.json[0] mapping['u2b']",
        "chatgpt-export.json[0] mapping['a3b']",
    }


def test_claude_ai_export(fixtures: Path) -> None:
    result = read("claude-ai-export", fixtures / "claude-ai-export.json")
    first, second = result.conversations
    assert (first.conversation, first.title, second.title) == ("conv-1", "Fees", None)
    assert pairs(first) == [FIRST_PAIR, ("Thanks", "You are welcome.")]
    assert ids(first) == ["h1", "a1/1", "a1", "a1/3", "a1/4", "a1/5", "a1/6", "h2", "a2"]
    assert first.messages[2].text == "I look it up."
    assert first.messages[2].kind == "trace"
    assert first.messages[1].created_at == 1_740_819_605_000_001
    assert second.messages == ()
    assert result.report.left_out_by_reason == {"attachment": 1}


def test_claude_code(fixtures: Path) -> None:
    result = read("claude-code", fixtures / "claude-code.jsonl")
    (imported,) = result.conversations
    assert imported.conversation == "session-1"
    assert pairs(imported) == [("<command-name>/fees</command-name>", FIRST_PAIR[1])]
    assert ids(imported) == [f"l{n}" for n in range(1, 14)]
    assert states(imported) == ["completed", "failed", "cancelled"]
    assert lines(imported)[1] == ("user", "trace", "completed", "Look up the fee of the fund.")
    assert lines(imported)[10] == ("assistant", "chat", "failed", "API Error: 529")
    assert lines(imported)[12][:2] == ("user", "trace")
    assert result.report.left_out_by_reason == {
        "control_event": 2,
        "other_branch": 1,
        "sidechain": 2,
    }


def test_pi_session(fixtures: Path) -> None:
    result = read("pi-session", fixtures / "pi-session.jsonl")
    (imported,) = result.conversations
    assert imported.conversation == "pi-1"
    assert pairs(imported) == [FIRST_PAIR, ("Once more.", "Next year it")]
    assert states(imported) == ["completed", "cancelled", "cancelled", "partial", "running"]
    assert [line for line in lines(imported) if line[2] == "failed"] == [
        ("assistant", "chat", "failed", ""),
        ("assistant", "chat", "failed", "Next ye"),
        ("assistant", "chat", "failed", "Over"),
    ]
    assert result.report.left_out_by_reason == {"control_event": 1, "metadata": 1}


def test_goodai(fixtures: Path) -> None:
    result = read("goodai", fixtures / "goodai.jsonl")
    (imported,) = result.conversations
    assert pairs(imported) == [
        ("I am going to test you.", "Understood."),
        ("My favorite color is red.", " Noted. "),
    ]
    assert imported.messages[0].created_at == 1_700_000_003_123_456
    assert result.report.left_out_by_reason == {"control_event": 3}


def test_memorybank_is_ordered_by_date(fixtures: Path) -> None:
    result = read("memorybank", fixtures / "memorybank.json")
    (imported,) = result.conversations
    assert imported.conversation == "李华"
    assert pairs(imported) == [("一", "壹"), ("二", "贰")]
    assert [m.text for m in imported.messages] == ["一", "壹", "", "？", "二", "贰"]
    assert all(m.created_at is None for m in imported.messages)
    assert result.report.left_out_by_reason == {"metadata": 1}


def test_pairs(fixtures: Path) -> None:
    result = read("pairs", fixtures / "pairs.jsonl")
    (imported,) = result.conversations
    assert pairs(imported) == [("比较两只基金", "# 报告\n"), ("Compare two funds", "# Report")]
    assert ids(imported) == ["7", "7/answer", "3", "3/answer"]
    assert [each.place for each in result.report.left_out] == ["pairs.jsonl:2 model"]


def test_taubench(fixtures: Path) -> None:
    result = read("taubench", fixtures / "taubench.json")
    assert [each.conversation for each in result.conversations] == [
        "task-4-trial-0",
        "task-4-trial-1",
    ]
    assert pairs(result.conversations[0]) == [("Hi", "Found.")]
    assert states(result.conversations[0]) == ["completed", "completed", "running"]
    assert result.report.left_out_by_reason == {"metadata": 2}


def test_native(fixtures: Path) -> None:
    imported = read_one("native", fixtures / "native.jsonl")
    assert imported.conversation == "native-1"
    assert pairs(imported) == [("What does the fund cost?", "0.30 % a year.")]


LOOKED_UP = [
    ("assistant", "trace"),
    ("assistant", "trace"),
    ("assistant", "tool"),
    ("tool", "tool"),
    ("assistant", "chat"),
]
TWO_TURNS = [
    ("system", "chat"),
    ("user", "chat"),
    *LOOKED_UP,
    ("user", "chat"),
    ("assistant", "chat"),
]


@pytest.mark.parametrize(
    ("name", "records", "left_out"),
    [
        ("bedrock-converse", 7, {"control_event": 1, "media": 1}),
        ("langchain", 7, {"duplicate": 1, "media": 1}),
        ("openai-responses", 10, {"control_event": 1, "media": 1}),
    ],
)
def test_formats_with_a_system_prompt_and_two_turns(
    fixtures: Path, name: str, records: int, left_out: dict[str, int]
) -> None:
    result = read(name, fixtures / f"{name}.json")
    (imported,) = result.conversations
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    assert [line[:2] for line in lines(imported)] == TWO_TURNS
    assert [line[3] for line in lines(imported)][2:4] == ["Look it up.", "I look it up."]
    assert result.report.records == records
    assert result.report.left_out_by_reason == left_out


def test_ids_of_items_and_of_serialized_messages(fixtures: Path) -> None:
    items = read_one("openai-responses", fixtures / "openai-responses.json")
    assert ids(items)[:6] == ["run-0/1", "run-1/1", "rs_1", "msg_1", "fc_1", "run-1/5"]
    serialized = read_one("langchain", fixtures / "langchain.json")
    assert ids(serialized) == ["run-0/1", "h1", "a1/1", "a1", "a1/3", "r1", "a2", "h2", "a3"]


def test_pydantic_ai(fixtures: Path) -> None:
    result = read("pydantic-ai", fixtures / "pydantic-ai.json")
    (imported,) = result.conversations
    assert imported.conversation == "conv-1"
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    told = [line[3] for line in lines(imported) if line[0] == "system"]
    assert told == ["You know funds.", "Be brief."]
    assert [line[:2] for line in lines(imported)][:7] == TWO_TURNS[:7]
    assert imported.messages[1].created_at == 1_740_819_600_250_000
    assert [(each.reason, each.part) for each in result.report.left_out] == [
        ("media", True),
        ("unsupported_block", True),
        ("no_message", False),
    ]


def test_codex_rollout(fixtures: Path) -> None:
    result = read("codex-rollout", fixtures / "codex-rollout.jsonl")
    (imported,) = result.conversations
    assert imported.conversation == "codex-1"
    assert pairs(imported) == [FIRST_PAIR]
    assert states(imported) == ["completed", "completed", "cancelled"]
    assert [line[:2] for line in lines(imported)] == [
        ("user", "trace"),  # what the program wrote in the user's name
        ("user", "chat"),
        *LOOKED_UP,
        ("user", "chat"),
        ("assistant", "trace"),
    ]
    assert result.report.left_out_by_reason == {"control_event": 2, "duplicate": 3, "metadata": 2}


def test_google_adk(fixtures: Path) -> None:
    result = read("google-adk", fixtures / "google-adk.json")
    (imported,) = result.conversations
    assert imported.conversation == "session-1"
    assert pairs(imported) == [FIRST_PAIR, ("And in this chart?", "The same.")]
    assert states(imported) == ["completed", "partial"]
    assert ids(imported) == ["e1", "e3/1", "e3", "e3/3", "e4", "e5", "e7", "e8"]
    assert imported.messages[0].created_at == 1_700_000_000_250_000
    assert result.report.left_out_by_reason == {"control_event": 1, "duplicate": 1, "media": 1}


def test_swe_agent(fixtures: Path) -> None:
    """A demonstration is no task, and what a tool printed in the user's role is the tool's."""
    result = read("swe-agent", fixtures / "swe-agent.json")
    (imported,) = result.conversations
    assert pairs(imported) == [FIRST_PAIR]
    assert [line[:2] for line in lines(imported)] == [
        ("system", "chat"),
        ("user", "trace"),
        ("user", "chat"),
        ("assistant", "trace"),
        ("assistant", "tool"),
        ("tool", "tool"),
        ("tool", "tool"),
        ("assistant", "chat"),
    ]
    assert result.report.left_out_by_reason == {"duplicate": 1, "metadata": 2}


@pytest.mark.parametrize("name", ["chatgpt-export", "google-adk", "openai-chat", "pi-session"])
def test_the_same_file_gives_the_same_result_under_the_callers_id(
    fixtures: Path, name: str
) -> None:
    (path,) = fixtures.glob(f"{name}.*")
    importer = importer_named(name)
    plain, named = importer.read(path), importer.read(path, conversation="mine")
    assert named.report == plain.report
    assert named.conversations[0].conversation == "mine"
    assert named.conversations[0].messages == plain.conversations[0].messages
