"""How the pydantic-ai adapter is set up, what it sends, and what it never lets out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from provider_server import ProviderServer, Reply, completion
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from summary_requests import request_of

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import failures
from compaction_ledger.infrastructure.summarizers.pydantic_ai import PydanticAISummarizer

KEY = "sk-this-is-secret"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(completion()) as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def compatible(url: str, **settings: Any) -> PydanticAISummarizer:
    return PydanticAISummarizer("openai-compatible:m", base_url=url, **settings)


def test_given_settings_when_identified_then_all_that_change_output_are_strings() -> None:
    summarizer = PydanticAISummarizer(
        "openai-compatible:m",
        base_url="https://user:word@example.org:8443/v1/?token=secret",
        api_key_env="TEST_KEY",
        max_tokens=700,
        temperature=0,
        settings={"seed": 7, "extra_body": {"x": "private"}, "extra_headers": {"X": "private"}},
    )

    settings = dict(summarizer.model.settings)
    body = settings.pop("extra_body")
    assert str(summarizer.model) == "openai-compatible/m"
    assert settings == {
        "endpoint": "example.org:8443/v1",
        "max_tokens": "700",
        "seed": "7",
        "temperature": "0.0",
    }
    assert body.startswith("sha256:")


def test_given_other_time_outs_when_identified_then_the_identity_is_the_same() -> None:
    url = "http://127.0.0.1:1"

    assert compatible(url, timeout=1).model == compatible(url, timeout=2).model
    assert compatible(url, max_tokens=1).model != compatible(url, max_tokens=2).model


@pytest.mark.parametrize("status", [200, 401])
def test_given_a_key_when_asked_then_only_the_provider_sees_it(
    server: ProviderServer, status: int
) -> None:
    server.reply = completion() if status == 200 else Reply(KEY.encode(), status)
    with compatible(server.url, api_key_env="TEST_KEY") as summarizer:
        answer = summarizer.summarize(request_of(["One."]))
        shown = repr((summarizer, summarizer.model, answer))

    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in shown


def test_given_a_request_when_sent_then_no_tool_is_offered_and_the_replies_are_one_user_message(
    server: ProviderServer,
) -> None:
    with compatible(f"{server.url}/v1", temperature=0.0, max_tokens=321) as summarizer:
        summarizer.summarize(request_of(["One.", "Two."]))

    sent = server.received[0]
    assert sent.path == "/v1/chat/completions"
    assert [message["role"] for message in sent.json["messages"]] == ["system", "user"]
    assert not {"tools", "tool_choice", "functions", "n"} & sent.json.keys()
    assert sent.json["temperature"] == 0.0
    assert 321 in sent.json.values()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "gpt"}, "provider:model"),
        ({"model": ":m"}, "provider:model"),
        ({"model": "nobody:m"}, "nobody"),
        ({"model": "openai:m"}, "OPENAI_API_KEY"),
        ({"model": "openai:m", "api_key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ({"model": "openai-compatible:m"}, "base_url"),
        ({"model": "openai:m", "max_tokens": 0}, "max_tokens"),
        ({"model": "openai:m", "timeout": 0}, "timeout"),
        ({"model": "openai:m", "timeout": float("nan")}, "timeout"),
        ({"model": "openai:m", "settings": {"max_retries": 3}}, "max_retries"),
        ({"model": "openai:m", "settings": {"tool_choice": "auto"}}, "tool_choice"),
    ],
)
def test_given_a_wrong_setting_when_made_then_the_error_names_it(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSetting, match=words):
        PydanticAISummarizer(**arguments)


def test_given_a_model_object_when_used_then_it_is_identified_and_may_not_be_a_fallback() -> None:
    model = OpenAIChatModel("m", provider=OpenAIProvider("http://127.0.0.1:9/v1", KEY))

    assert str(PydanticAISummarizer(model).model) == "openai/m"
    with pytest.raises(InvalidSetting, match="base_url"):
        PydanticAISummarizer(model, base_url="http://127.0.0.1:9")
    with pytest.raises(InvalidSetting, match="several calls"):
        PydanticAISummarizer(FallbackModel(model, model))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "model", "extra"),
    [
        ("pydantic_ai", "openai:m", "compaction-ledger[models]"),
        ("openai", "openai:m", "compaction-ledger[openai]"),
        pytest.param(
            "openai", "openai-compatible:m", "compaction-ledger[openai]", marks=pytest.mark.slow
        ),
        ("anthropic", "anthropic:m", "compaction-ledger[anthropic]"),
        pytest.param("boto3", "bedrock:m", "compaction-ledger[bedrock]", marks=pytest.mark.slow),
        pytest.param(
            "google.genai", "google:m", "compaction-ledger[google]", marks=pytest.mark.slow
        ),
        pytest.param("mistralai", "mistral:m", "pydantic-ai-slim[mistral]", marks=pytest.mark.slow),
    ],
)
def test_given_a_missing_package_when_made_then_the_error_names_the_extra(
    hidden: str, model: str, extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from compaction_ledger.infrastructure.summarizers.pydantic_ai import *\n"
        "from compaction_ledger.domain.errors import InvalidSetting\n"
        f"try: PydanticAISummarizer({model!r}, base_url='http://127.0.0.1:9')\n"
        "except InvalidSetting as error: print(error)\n"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert extra in shown.stdout


@pytest.mark.slow
def test_given_a_running_event_loop_when_asked_then_both_ways_work(server: ProviderServer) -> None:
    async def both() -> None:
        with compatible(server.url) as summarizer:
            assert failures(await summarizer.asummarize(request_of(["One."]))) == ()
            assert failures(summarizer.summarize(request_of(["One."]))) == ()
            several = (summarizer.asummarize(request_of(["One."])) for _ in range(4))
            assert all(answer.text for answer in await asyncio.gather(*several))

    asyncio.run(both())


def test_given_an_awaiting_host_when_it_is_cancelled_then_the_call_ends(
    server: ProviderServer,
) -> None:
    server.reply = Reply(hang=True)

    async def give_up() -> None:
        with compatible(server.url) as summarizer, pytest.raises(TimeoutError):
            await asyncio.wait_for(summarizer.asummarize(request_of(["One."])), 0.3)

    asyncio.run(give_up())


def test_given_several_threads_when_asked_at_once_then_each_gets_its_answer(
    server: ProviderServer,
) -> None:
    with compatible(server.url) as summarizer, ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(summarizer.summarize, [request_of(["One."])] * 12))

    assert [failures(answer) for answer in answers] == [()] * 12
    assert len(server.received) == 12


def test_given_a_closed_summarizer_when_asked_again_then_it_works_and_leaves_no_thread(
    server: ProviderServer,
) -> None:
    before = threading.active_count()
    summarizer = compatible(server.url)
    for _ in range(2):
        assert failures(summarizer.summarize(request_of(["One."]))) == ()
        summarizer.close()
    summarizer.summarize(request_of(["One."]))
    del summarizer  # never closed: its thread ends with it

    assert threading.active_count() <= before + 1  # the server's own for the last connection
