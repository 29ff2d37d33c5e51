"""An agent's loop in three lines: real clients of each provider, against a real HTTP server (T1, T5, T11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import anthropic
import boto3
import openai
import pytest
from provider_server import ProviderServer, Reply, anthropic_message, completion, converse_message
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from window_runs import PLACE, RememberingSummarizer, window_on

from compaction_ledger import AsyncLedger, ExtractiveSummarizer, Ledger
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidSetting, StoreUnavailable
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.policy import WindowBudget

TURNS = 25
BUDGET = WindowBudget(3_000, when_outgrown="search")


@pytest.fixture
def parts() -> Iterator[Parts]:
    with Ledger.in_memory() as ledger:
        yield ledger._parts


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """Closes the clients of a test."""
    with ExitStack() as stack:
        yield stack


def without_usage(reply: Reply) -> Reply:
    """The same answer, of a server that reports no tokens."""
    body = json.loads(reply.body)
    del body["usage"]
    return Reply(json.dumps(body).encode())


def asked(number: int) -> str:
    return f"Question {number}: what is the state of case {number}, and who looks at it now?"


def requests(server: ProviderServer) -> list[dict[str, Any]]:
    return [received.json for received in server.received]


def check(shape: str, server: ProviderServer, member: str = "messages") -> None:
    """Every request that arrived is valid, within the budget, and the last ones hold summaries."""
    for request in requests(server):
        assert shape_named(shape).problems(request[member]) == []
        assert len(json.dumps(request[member], ensure_ascii=False, separators=(",", ":"))) <= 3_002
    last = json.dumps(requests(server)[-1], ensure_ascii=False)
    assert "[derived summary of message" in last
    assert asked(TURNS - 1) in last
    assert asked(0) not in last


@pytest.mark.slow
def test_openai_chat(parts: Parts, server: ProviderServer, closing: ExitStack) -> None:
    server.reply = without_usage(completion("It is open.", "stop"))
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    closing.callback(client.close)
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    create = window.wrap(client.chat.completions.create)
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for number in range(TURNS):
        messages.append({"role": "user", "content": asked(number)})
        response = create(model="m", messages=messages)
        messages.append(response.choices[0].message)  # the library's own object, as agents do
        window.compact()
    check("openai-chat", server)
    assert len(messages) == 1 + 2 * TURNS
    assert window.prefix_reuse > 0.5


@pytest.mark.slow
def test_openai_chat_asynchronously(parts: Parts, server: ProviderServer) -> None:
    server.reply = without_usage(completion("It is open.", "stop"))

    async def loop() -> None:
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0
        ) as client:
            window = window_on(parts, RememberingSummarizer(), budget=BUDGET, background=True)
            create = window.awrap(client.chat.completions.create)
            messages: list[Any] = []
            for number in range(TURNS):
                messages.append({"role": "user", "content": asked(number)})
                response = await create(model="m", messages=messages)
                messages.append(response.choices[0].message)
                assert await asyncio.to_thread(window.wait, 30)
            assert window.close(30)

    asyncio.run(loop())
    check("openai-chat", server)


@pytest.mark.slow
def test_openai_responses(parts: Parts, server: ProviderServer, closing: ExitStack) -> None:
    server.reply = Reply(
        json.dumps(
            {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": "m",
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "output": [
                    {
                        "id": "msg_1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [
                            {"type": "output_text", "text": "It is open.", "annotations": []}
                        ],
                    }
                ],
            }
        ).encode()
    )
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    closing.callback(client.close)
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET, shape="openai-responses")
    create = window.wrap(client.responses.create)
    items: list[Any] = []
    for number in range(TURNS):
        items.append({"role": "user", "content": asked(number)})
        response = create(model="m", input=items, instructions="Be brief.")
        items += [{**item.model_dump(), "id": f"msg_{number}"} for item in response.output]
        window.compact()
    for request in requests(server):
        assert shape_named("openai-responses").problems(request["input"]) == []
    assert "[derived summary of message" in json.dumps(requests(server)[-1]["input"])


@pytest.mark.slow
def test_anthropic(parts: Parts, server: ProviderServer, closing: ExitStack) -> None:
    server.reply = without_usage(
        anthropic_message([{"type": "text", "text": "It is open."}], "end_turn")
    )
    client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
    closing.callback(client.close)
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET, shape="anthropic")
    create = window.wrap(client.messages.create)
    messages: list[Any] = []
    for number in range(TURNS):
        messages.append({"role": "user", "content": asked(number)})
        response = create(model="m", max_tokens=99, system="Be brief.", messages=messages)
        messages.append({"role": "assistant", "content": response.content})
        window.compact()
    for request in requests(server):
        assert shape_named("anthropic").problems(request["messages"]) == []
    first = requests(server)[-1]["messages"][0]["content"]
    assert any(block["text"].startswith("[derived summary of message") for block in first)


@pytest.mark.slow
def test_converse(parts: Parts, server: ProviderServer, closing: ExitStack) -> None:
    server.reply = without_usage(converse_message("It is open.", "end_turn"))
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name="eu-west-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
    )
    closing.callback(client.close)
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET, shape="converse")
    converse = window.wrap(client.converse)
    messages: list[Any] = []
    for number in range(TURNS):
        content: list[Any] = [{"text": asked(number)}]
        if number in (0, TURNS - 1):  # bytes, as this library wants them
            content.append({"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 20}}})
        messages.append({"role": "user", "content": content})
        response = converse(modelId="m", messages=messages, system=[{"text": "Be brief."}])
        messages.append(response["output"]["message"])
        window.compact()
    for request in requests(server):
        assert shape_named("converse").problems(request["messages"]) == []
    last = requests(server)[-1]["messages"]
    assert any(
        block["text"].startswith("[derived summary of message") for block in last[0]["content"]
    )
    assert last[-1]["content"][1]["image"]["source"]["bytes"].startswith("iVBORw"[:1])


@pytest.mark.slow
def test_pydantic_ai(parts: Parts) -> None:
    given: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        given.append(messages)
        return ModelResponse(parts=[TextPart("It is open.")])

    window = window_on(parts, RememberingSummarizer(), budget=2_000, shape="pydantic-ai")
    agent = Agent(
        FunctionModel(model),
        system_prompt="Be brief.",
        capabilities=[window.capability()],
    )
    history: list[ModelMessage] = []
    for number in range(TURNS):
        ran = asyncio.run(agent.run(asked(number), message_history=history))
        history = ran.all_messages()
        window.compact()
    sent = ModelMessagesTypeAdapter.dump_python(given[-1], mode="json")
    assert shape_named("pydantic-ai").problems(sent) == []
    assert "[derived summary of message" in json.dumps(sent)
    assert "Be brief." in json.dumps(sent)
    assert asked(TURNS - 1) in json.dumps(sent)
    assert asked(0) not in json.dumps(sent)


def test_where_the_store_fails_the_messages_go_as_they_are(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A11: no answer is lost by a summary."""
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    seen: list[Any] = []
    call = window.wrap(lambda **kwargs: seen.append(kwargs["messages"]))

    def fail(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(parts.originals, "digests", fail)
    messages = [{"role": "user", "content": "Hi"}]
    call(model="m", messages=messages)
    assert seen == [messages]


def test_messages_that_are_not_given_by_name_are_refused(parts: Parts) -> None:
    call = window_on(parts).wrap(print)
    with pytest.raises(InvalidSetting, match="messages"):
        call([{"role": "user", "content": "Hi"}])


def test_the_providers_figures_correct_the_counts(parts: Parts) -> None:
    """T3: after the first answer the window is fuller than the bytes say, or emptier."""
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    create = window.wrap(lambda **_: {"usage": {"prompt_tokens": 30}})
    messages: list[Any] = [{"role": "user", "content": asked(0)}]
    create(messages=messages)
    before = window.prepare(messages).tokens
    assert 30 <= before <= 34


def test_what_a_provider_reported_is_known_when_the_run_is_opened_again(parts: Parts) -> None:
    """A backend may open a window for every request."""
    messages: list[Any] = [{"role": "user", "content": asked(0)}]
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    before = window.prepare(messages).tokens
    window.observe(before // 4)
    again = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    assert again.prepare(messages).tokens <= before // 3
    other = window_on(parts, budget=BUDGET, place=("tenant", "support", "run-2"))
    assert other.prepare(messages).tokens == before


def test_an_outage_is_known_to_every_window_of_its_summarizer(parts: Parts) -> None:
    """D3: not each run finds it out for itself."""
    results: list[str] = []
    for run in range(6):
        away = RememberingSummarizer(lambda _: Answer(fault="provider_unavailable"))
        window = window_on(parts, away, budget=BUDGET, place=("tenant", "support", f"run-{run}"))
        messages: list[Any] = []
        for number in range(60):
            messages.append({"role": "user", "content": asked(number)})
            if window.prepare(messages).due is not None:
                break
            messages.append({"role": "assistant", "content": "It is open."})
        outcome = window.compact()
        assert outcome is not None
        assert window.last_outcome is outcome
        results.append(outcome.result)
    assert results == ["failed"] * 3 + ["outage"] * 3


def test_an_error_in_the_background_can_be_asked_for(parts: Parts) -> None:
    def wrong_key(_: object) -> Answer:
        raise InvalidSetting("no such key", place="model")

    with window_on(
        parts, RememberingSummarizer(wrong_key), budget=BUDGET, background=True
    ) as window:
        messages: list[Any] = []
        for number in range(60):
            messages.append({"role": "user", "content": asked(number)})
            window.prepare(messages)
            messages.append({"role": "assistant", "content": "It is open."})
        assert window.wait(30)
        assert isinstance(window.last_error, InvalidSetting)
        assert window.last_outcome is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": "4000"}, "budget: must be a whole number of tokens"),
        ({"budget": 1e5}, "budget: must be a whole number of tokens"),
        ({"budget": True}, "budget: must be a whole number of tokens"),
        ({"summarizer": "openai:m"}, "summarizer: a str has no summarize_chunk"),
        ({"summarizer": ExtractiveSummarizer()}, "has no summarize_chunk"),
        ({"counter": len}, "counter: a builtin_function_or_method has no count"),
        ({"proposer": "rule"}, "proposer"),
        ({"shape": "openai"}, "openai-chat, openai-responses"),
    ],
)
def test_what_cannot_be_a_windows_is_found_when_it_is_opened(
    options: dict[str, Any], said: str
) -> None:
    given = {"run": "r", "shape": "openai-chat", "budget": 4_000, **options}
    with Ledger.in_memory() as ledger, pytest.raises(InvalidSetting, match=said):
        ledger.window("c", **given)


def test_wrapped_calls_can_be_recorded(parts: Parts) -> None:
    window = window_on(parts, RememberingSummarizer(), budget=BUDGET)
    create = window.wrap(lambda **_: {"usage": None}, record=True)
    messages: list[Any] = []
    for number in range(3):
        messages.append({"role": "user", "content": asked(number)})
        create(messages=messages)
        messages.append({"role": "assistant", "content": "It is open."})
    rows = parts.read_models.window_deliveries(*PLACE)
    assert [row.verbatim for row in rows] == [1, 3, 5]


def test_a_request_of_another_window_is_not_recorded(parts: Parts) -> None:
    one, other = (
        window_on(parts, budget=BUDGET, place=("tenant", "support", run)) for run in ("a", "b")
    )
    prepared = one.prepare([{"role": "user", "content": "Hi"}])
    with pytest.raises(InvalidSetting, match="no request of this window"):
        other.deliver(prepared)
    assert one.deliver(prepared) == 0


def test_an_asynchronous_call_is_not_wrapped_as_another(parts: Parts) -> None:
    async def create(**_: Any) -> None:
        """Call."""

    with pytest.raises(InvalidSetting, match="awrap"):
        window_on(parts).wrap(create)


def test_the_asynchronous_face(parts: Parts) -> None:
    async def talk() -> None:
        async with AsyncLedger(Ledger.in_memory()) as ledger:
            window = await ledger.window("c", run="r", shape="openai-chat", budget=BUDGET)
            seen: list[Any] = []

            async def create(**kwargs: Any) -> None:
                seen.append(kwargs["messages"])

            messages = [{"role": "user", "content": "No nuts, please."}]
            await window.awrap(create)(messages=messages)
            assert seen == [messages]
            assert [pin.quote for pin in await window.pins()] == ["No nuts, please."]
            assert "nuts" in await window.call_tool("read_message", {"message_id": "m0"})
            assert len(window.tools()) == 3
            assert await window.close(30)

    asyncio.run(talk())
