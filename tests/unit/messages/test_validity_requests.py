"""T5: what Pydantic AI sends its providers for a valid history is valid by the strict checkers, too.

The requests are real: they go to a server on the loopback interface, through the providers' own clients.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

import pytest
from hypothesis import given, settings
from provider_server import ProviderServer, Reply, anthropic_message, completion, converse_message
from wire_transcripts import transcripts
from wire_values import Wire

from compaction_ledger.domain.messages.validity import CHECKERS

found = pytest.importorskip("pydantic_ai.messages")
_MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
_ANSWER = {"type": "output_text", "text": "Yes.", "annotations": []}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "model": "m",
    "status": "completed",
    "output": [_MESSAGE | {"content": [_ANSWER]}],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
REPLIES: dict[str, tuple[str, Reply]] = {
    "openai-chat": ("openai-chat:m", completion("Yes.")),
    "openai-responses": ("openai-responses:m", Reply(json.dumps(_RESPONSE).encode())),
    "anthropic": ("anthropic:m", anthropic_message([{"type": "text", "text": "Yes."}], "end_turn")),
    "converse": ("bedrock:m", converse_message("Yes.", "end_turn")),
}
# Requests with instructions of their own stay apart, and Anthropic's interface of today joins them itself.
JOINED: dict[str, set[str]] = {shape: set() for shape in REPLIES} | {
    "anthropic": {"roles_alternate"}
}


class Provider:
    """A model of Pydantic AI whose provider is a server of our own."""

    def __init__(self, shape: str, server: ProviderServer, runner: asyncio.Runner) -> None:
        building = pytest.importorskip(
            "compaction_ledger.infrastructure.summarizers.provider_models"
        )
        name, server.reply = REPLIES[shape]
        variable = None if shape == "converse" else "TEST_KEY"
        self._model = building.build_model(name, server.url, variable)
        self._member = "input" if shape == "openai-responses" else "messages"
        self._server, self._runner = server, runner

    def __enter__(self) -> Self:
        self._runner.run(self._model.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._model.__aexit__(*error))

    def sent(self, history: list[Wire]) -> list[dict[str, Any]]:
        """The messages, or the items, of the request that an agent makes of a history."""
        direct = pytest.importorskip("pydantic_ai.direct")
        read = found.repair_messages(found.ModelMessagesTypeAdapter.validate_python(history))
        self._server.received.clear()
        self._runner.run(direct.model_request(self._model, read))
        (received,) = self._server.received
        messages: list[dict[str, Any]] = received.json[self._member]
        return messages


@pytest.mark.slow
@pytest.mark.parametrize("shape", sorted(REPLIES))
def test_t5_a_mapped_history_has_no_problem(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEST_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with (
        ProviderServer() as server,
        asyncio.Runner() as runner,
        Provider(shape, server, runner) as provider,
    ):

        @given(history=transcripts("pydantic-ai", turns=2))
        @settings(max_examples=40, deadline=None)
        def judge(history: list[Wire]) -> None:
            messages = provider.sent(history)
            assert messages
            assert {problem.code for problem in CHECKERS[shape](messages)} <= JOINED[shape]

        judge()
