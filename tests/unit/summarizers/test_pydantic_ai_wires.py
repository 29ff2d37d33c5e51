"""C1, C2 and D3 on other wires: Anthropic Messages, Bedrock Converse, OpenAI Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from provider_server import (
    ProviderServer,
    Reply,
    anthropic_message,
    converse_message,
)
from summary_requests import request_of

from compaction_ledger.domain.finish import Answer, failures
from compaction_ledger.infrastructure.summarizers.pydantic_ai import PydanticAISummarizer

TEXT: dict[str, object] = {"type": "text", "text": "A summary."}
TOOL: dict[str, object] = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
THINKING: dict[str, object] = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def ask(server: ProviderServer, model: str, reply: Reply) -> Answer:
    server.reply = reply
    with PydanticAISummarizer(
        model, base_url=server.url, api_key_env="TEST_KEY", max_tokens=100, timeout=20
    ) as summarizer:
        return summarizer.summarize(request_of(["One.", "Two."]))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-secret")


@pytest.mark.parametrize(
    ("content", "stop_reason", "codes"),
    [
        ([TEXT], "end_turn", ()),
        ([THINKING, TEXT], "end_turn", ()),
        ([TEXT], "stop_sequence", ()),
        ([TEXT], "max_tokens", ("truncated",)),
        ([TEXT], "model_context_window_exceeded", ("truncated",)),
        ([TEXT, TOOL], "tool_use", ("tool_call",)),
        ([TEXT, TOOL], "end_turn", ("tool_call",)),
        ([TEXT], "refusal", ("refusal",)),
        ([TEXT], "pause_turn", ("abnormal_finish",)),
        ([TEXT], "something_new", ("abnormal_finish",)),
        ([TEXT], None, ("missing_finish",)),
        ([], "end_turn", ("empty",)),
        ([THINKING], "end_turn", ("empty",)),
    ],
)
def test_given_an_anthropic_stop_reason_when_asked_then_it_is_mapped(
    server: ProviderServer,
    content: list[dict[str, object]],
    stop_reason: str | None,
    codes: tuple[str, ...],
) -> None:
    pytest.importorskip("anthropic")

    answer = ask(server, "anthropic:m", anthropic_message(content, stop_reason))

    assert failures(answer) == codes
    assert answer.finish.provider_words == ((stop_reason,) if stop_reason else ())
    assert answer.text == ("A summary." if TEXT in content else "")


@pytest.mark.parametrize(
    ("status", "fault"),
    [(429, "provider_unavailable"), (529, "provider_unavailable"), (500, "provider_error")],
)
def test_given_an_anthropic_error_when_asked_then_one_call_was_made(
    server: ProviderServer, status: int, fault: str
) -> None:
    pytest.importorskip("anthropic")

    answer = ask(server, "anthropic:m", Reply(b"{}", status, {"retry-after": "3"}))

    assert answer.fault == fault
    assert answer.retry_after == 3.0
    assert len(server.received) == 1


def responses_body(status: str, content: list[dict[str, object]], **fields: object) -> Reply:
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "m",
        "status": status,
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "output_tokens": 7,
            "total_tokens": 18,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        **fields,
    }
    return Reply(json.dumps(body).encode())


SAID: dict[str, object] = {"type": "output_text", "text": "A summary.", "annotations": []}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "codes"),
    [
        (responses_body("completed", [SAID]), ()),
        (
            responses_body(
                "incomplete", [SAID], incomplete_details={"reason": "max_output_tokens"}
            ),
            ("truncated",),
        ),
        (
            responses_body("incomplete", [SAID], incomplete_details={"reason": "content_filter"}),
            ("content_filter",),
        ),
        (
            responses_body("completed", [{"type": "refusal", "refusal": "No."}]),
            ("refusal", "empty"),
        ),
        (responses_body("cancelled", [SAID]), ("cancelled",)),
        (responses_body("in_progress", [SAID]), ("abnormal_finish",)),
    ],
)
def test_given_an_openai_responses_status_when_asked_then_it_is_mapped(
    server: ProviderServer, reply: Reply, codes: tuple[str, ...]
) -> None:
    pytest.importorskip("openai")

    assert failures(ask(server, "openai:m", reply)) == codes


@pytest.mark.parametrize(
    ("stop_reason", "codes"),
    [
        ("end_turn", ()),
        ("max_tokens", ("truncated",)),
        ("guardrail_intervened", ("content_filter",)),
        ("content_filtered", ("content_filter",)),
        ("malformed_model_output", ("provider_error",)),
    ],
)
def test_given_a_converse_stop_reason_when_asked_then_it_is_mapped(
    server: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
    stop_reason: str,
    codes: tuple[str, ...],
) -> None:
    answer = ask_bedrock(server, monkeypatch, converse_message("A summary.", stop_reason))

    assert failures(answer) == codes
    assert answer.finish.provider_words == (stop_reason,)


def test_given_an_unavailable_bedrock_when_asked_then_one_call_was_made(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ask_bedrock(server, monkeypatch, Reply(b'{"message": "busy"}', 503))

    assert answer.fault == "provider_unavailable"
    assert len(server.received) == 1


def ask_bedrock(server: ProviderServer, monkeypatch: pytest.MonkeyPatch, reply: Reply) -> Answer:
    pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    server.reply = reply
    with PydanticAISummarizer(
        "bedrock:amazon.nova-lite-v1:0", base_url=server.url, max_tokens=100, timeout=20
    ) as summarizer:
        return summarizer.summarize(request_of(["One.", "Two."]))
