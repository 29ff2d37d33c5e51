"""C1 to C4 and T7 through a provider's model that summarizes chunks, against real servers on every wire."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from chunk_requests import FLIGHTS, chunk_request
from model_servers import model_server
from provider_server import (
    ProviderServer,
    Reply,
    anthropic_message,
    completion,
    converse_message,
)

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import FAILURE_CODES, Answer, Usage, failures
from compaction_ledger.domain.window.judging import judge
from compaction_ledger.domain.window.structure import KEYS, StructuredSummary
from compaction_ledger.infrastructure.summarizers.chunk_pydantic_ai import PydanticAIChunkSummarizer

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("boto3")

SOUND = StructuredSummary(entities=("LG12 costs 112 EUR.",)).canonical()
FENCED = f"```json\n{SOUND}\n```"
TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "summary", "arguments": SOUND}}
SECRET = "the provider's own words"
REQUEST = chunk_request(FLIGHTS)
NATIVE = "anthropic:claude-sonnet-4-6-tested"  # by its first letters a model that takes a schema


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEST_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def summarizer_of(
    url: str, model: str = "openai-compatible:m", **settings: Any
) -> PydanticAIChunkSummarizer:
    key = {} if model.startswith("bedrock") else {"api_key_env": "TEST_KEY"}
    given: dict[str, Any] = {**key, "timeout": 20, **settings}
    return PydanticAIChunkSummarizer(model, base_url=url, **given)


def answered(server: ProviderServer, reply: Reply, model: str = "openai-compatible:m") -> Answer:
    server.reply = reply
    with summarizer_of(server.url, model) as summarizer:
        return summarizer.summarize_chunk(REQUEST)


def verdict(answer: Answer) -> tuple[str, ...]:
    return judge(answer, REQUEST, replaced_bytes=1_000, rendered_bytes=len, strict=True).codes


def test_t7_a_normal_stop_with_the_structure_is_a_success(server: ProviderServer) -> None:
    answer = answered(server, completion(SOUND))

    assert verdict(answer) == ()
    assert (answer.text, answer.usage) == (SOUND, Usage(11, 7))


FINISHES = [
    ("cut JSON", completion(SOUND[:40], "length"), "truncated"),
    ("whole JSON, length all the same", completion(SOUND, "length"), "truncated"),
    ("content filter", completion(SOUND, "content_filter"), "content_filter"),
    ("unknown word", completion(SOUND, "eos"), "abnormal_finish"),
    ("no finish reason", completion(SOUND, None), "missing_finish"),
    ("refusal", completion(None, "stop", message={"refusal": SECRET}), "refusal"),
    (
        "a tool call beside good JSON (Case A)",
        completion(SOUND, "tool_calls", message={"tool_calls": [TOOL_CALL]}),
        "tool_call",
    ),
    (
        "the structure as a tool call alone",
        completion(None, "stop", message={"tool_calls": [TOOL_CALL]}),
        "tool_call",
    ),
    ("two choices", completion(SOUND, choices=2), "multiple_finishes"),
    ("empty", completion(""), "empty"),
    ("only reasoning", completion("", message={"reasoning_content": SOUND}), "empty"),
    ("NUL", completion(SOUND + "\0"), "malformed_text"),
    ("too long", completion(SOUND + " " * 6_000), "too_long"),
    ("cut JSON that says stop", completion(SOUND[:40]), "invalid_structure"),
    ("prose", completion("The flight is LG12."), "invalid_structure"),
    ("a code fence", completion(FENCED), "invalid_structure"),
    ("unknown keys", completion('{"notes":[],' + SOUND[1:]), "invalid_structure"),
    ("a key missing", completion('{"decisions":["x"]}'), "invalid_structure"),
    ("nothing said", completion(json.dumps({key: [] for key in KEYS})), "invalid_structure"),
    ("not smaller", completion(SOUND.replace("LG12", "a " * 600)), "not_smaller"),
    ("invented", completion(SOUND.replace("LG12", "LG13")), "ungrounded"),
]
FAULTS = [
    ("429", Reply(SECRET.encode(), 429, {"Retry-After": "17"}), "provider_unavailable"),
    ("503", Reply(b"{}", 503, {"Retry-After": "17"}), "provider_unavailable"),
    ("connection dropped", Reply(drop=True), "provider_unavailable"),
    ("500", Reply(json.dumps({"error": {"message": SECRET}}).encode(), 500), "provider_error"),
    ("400, for a schema it does not take", Reply(SECRET.encode(), 400), "provider_error"),
    ("not JSON", Reply(SECRET.encode(), content_type="text/html"), "provider_error"),
    ("no choices", completion(choices=0), "provider_error"),
]


@pytest.mark.parametrize(
    ("reply", "code"), [pytest.param(*row[1:], id=row[0]) for row in [*FINISHES, *FAULTS]]
)
def test_c4_every_failure_has_its_own_code(server: ProviderServer, reply: Reply, code: str) -> None:
    answer = answered(server, reply)

    assert verdict(answer)[0] == code
    assert SECRET not in repr(answer)
    assert len(server.received) == 1
    assert answer.retry_after == (17.0 if "Retry-After" in reply.headers else None)


def test_c4_nobody_listening_and_a_hanging_server(server: ProviderServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with summarizer_of(f"http://127.0.0.1:{taken.getsockname()[1]}") as summarizer:
            assert summarizer.summarize_chunk(REQUEST).fault == "provider_unavailable"
    server.reply = Reply(hang=True)
    with summarizer_of(server.url, timeout=0.3) as summarizer:
        assert verdict(summarizer.summarize_chunk(REQUEST))[0] == "timeout"
    assert len(server.received) == 1


def test_c4_a_call_that_is_cancelled_says_so(server: ProviderServer) -> None:
    server.reply = Reply(hang=True)
    answers: list[Answer] = []
    with summarizer_of(server.url) as summarizer:
        asking = threading.Thread(
            target=lambda: answers.append(summarizer.summarize_chunk(REQUEST))
        )
        asking.start()
        assert server.arrived.wait(10)
        summarizer.cancel()
        asking.join(10)

    assert [verdict(answer)[0] for answer in answers] == ["cancelled"]


def test_c4_every_code_but_the_ledgers_own_is_reached_in_this_file() -> None:
    reached = {row[2] for row in [*FINISHES, *FAULTS]} | {"timeout", "cancelled"}

    assert reached == set(FAILURE_CODES) - {"lease_expired"}


def text(said: str) -> dict[str, object]:
    return {"type": "text", "text": said}


TOOL: dict[str, object] = {"type": "tool_use", "id": "t", "name": "summary", "input": {}}


@pytest.mark.parametrize(
    ("model", "reply", "codes"),
    [
        (NATIVE, anthropic_message([text(SOUND)], "end_turn"), ()),
        (
            NATIVE,
            anthropic_message([text(SOUND[:30])], "max_tokens"),
            ("truncated",),
        ),
        (
            NATIVE,
            anthropic_message([text(SOUND), TOOL], "tool_use"),
            ("tool_call",),
        ),
        (NATIVE, anthropic_message([text(SOUND)], "refusal"), ("refusal",)),
        (
            "anthropic:m",
            anthropic_message([text(FENCED)], "end_turn"),
            ("invalid_structure",),
        ),
        ("bedrock:amazon.nova-lite-v1:0", converse_message(SOUND, "end_turn"), ()),
        (
            "bedrock:amazon.nova-lite-v1:0",
            converse_message(SOUND[:30], "max_tokens"),
            ("truncated",),
        ),
        (
            "bedrock:amazon.nova-lite-v1:0",
            converse_message(SOUND, "guardrail_intervened"),
            ("content_filter",),
        ),
        (
            "bedrock:amazon.nova-lite-v1:0",
            Reply(b'{"message": "busy"}', 503),
            ("provider_unavailable", "missing_finish", "empty"),
        ),
    ],
)
def test_c4_other_wires(
    server: ProviderServer, model: str, reply: Reply, codes: tuple[str, ...]
) -> None:
    assert verdict(answered(server, reply, model)) == codes
    assert len(server.received) == 1


# --- what is sent -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reply", "schema_at"),
    [
        ("openai-compatible:m", completion(SOUND), ("response_format", "json_schema", "schema")),
        (
            NATIVE,
            anthropic_message([text(SOUND)], "end_turn"),
            ("output_config", "format", "schema"),
        ),
    ],
)
def test_t7_a_model_that_takes_a_schema_is_bound_to_it_and_offered_no_tool(
    server: ProviderServer, model: str, reply: Reply, schema_at: tuple[str, ...]
) -> None:
    answered(server, reply, model)

    sent = found = server.received[0].json
    for key in schema_at:
        found = found[key]
    assert set(found["properties"]) == set(found["required"]) == set(KEYS)
    assert found["additionalProperties"] is False
    assert not {"tools", "tool_choice", "functions"} & sent.keys()


@pytest.mark.parametrize(
    ("model", "reply", "mode"),
    [
        ("openai-compatible:m", completion(SOUND), "prompted"),
        ("bedrock:amazon.nova-lite-v1:0", converse_message(SOUND, "end_turn"), None),
    ],
)
def test_t7_another_is_told_of_the_schema(
    server: ProviderServer, model: str, reply: Reply, mode: Any
) -> None:
    server.reply = reply
    with summarizer_of(server.url, model, json_mode=mode) as summarizer:
        assert verdict(summarizer.summarize_chunk(REQUEST)) == ()

    sent = server.received[0].json
    told = json.dumps(sent.get("system") or sent["messages"][:-1])
    assert "additionalProperties" in told
    assert "json_schema" not in json.dumps(sent)
    assert not {"tools", "toolConfig", "tool_choice"} & sent.keys()


def test_c5_the_originals_are_one_user_message_of_json_lines(server: ProviderServer) -> None:
    answered(server, completion(SOUND))

    system, user = server.received[0].json["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert REQUEST.instructions in system["content"]
    lines = [json.loads(line) for line in user["content"].split("\n")]
    assert [line["text"] for line in lines] == [line.text for line in FLIGHTS]
    assert lines[2] == {
        "message_id": "m2",
        "role": "tool",
        "kind": "result",
        "tool": "search_flights",
        "text": '{"id":"LG12","price":112}',
    }


def test_i1_the_way_json_is_asked_for_is_part_of_the_identity() -> None:
    native, prompted = (
        summarizer_of("http://127.0.0.1:1", json_mode=mode).model for mode in (None, "prompted")
    )

    assert dict(native.settings)["json_mode"] == "native"
    assert dict(prompted.settings)["json_mode"] == "prompted"
    assert "sk-secret" not in repr((native, prompted))


@pytest.mark.parametrize(
    ("model", "mode"),
    [("openai-compatible:m", "tool"), ("bedrock:amazon.nova-lite-v1:0", "native")],
)
def test_a_way_that_cannot_be_is_refused(model: str, mode: Any) -> None:
    with pytest.raises(InvalidSetting, match="json_mode"):
        summarizer_of("http://127.0.0.1:1", model, json_mode=mode)


@pytest.mark.slow
def test_both_ways_to_call_work_beside_a_running_event_loop() -> None:
    async def both(url: str) -> None:
        with summarizer_of(url) as summarizer:
            several = (summarizer.asummarize_chunk(REQUEST) for _ in range(3))
            for answer in (*await asyncio.gather(*several), summarizer.summarize_chunk(REQUEST)):
                assert failures(answer) == ()

    with model_server(SOUND) as served:
        asyncio.run(both(served.url))
    assert len(served.requests) == 4
