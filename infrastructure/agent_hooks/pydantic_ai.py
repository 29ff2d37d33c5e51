"""A window for agents of Pydantic AI: a capability that hands the model prepared messages (T1, T11).

What is prepared goes into the request alone. The agent's own history stays complete: a history processor
would replace it, and the window needs the run's complete list of messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestContext

Prepare = Callable[[Sequence[Any]], Sequence[Any]]
Observe = Callable[[int], None]


@dataclass
class WindowCapability(AbstractCapability[Any]):
    """Prepares each request, and tells the window what tokens the provider reported for it (T3)."""

    prepare: Prepare
    observe: Observe

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a window is an open ledger."""
        return None

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - as the base class has it
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """The request with prepared messages; what stands unchanged is the very object that was given."""
        request_context.messages = await asyncio.to_thread(
            prepared, self.prepare, request_context.messages
        )
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        request_context: ModelRequestContext,  # noqa: ARG002
        response: ModelResponse,
    ) -> ModelResponse:
        """The response as it is."""
        if response.usage.input_tokens:
            await asyncio.to_thread(self.observe, response.usage.input_tokens)
        return response


def prepared(prepare: Prepare, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Messages to JSON, prepared, and back."""
    wires = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    given = {id(wire): message for wire, message in zip(wires, messages, strict=True)}
    return [
        given[id(wire)]
        if id(wire) in given
        else ModelMessagesTypeAdapter.validate_python([wire])[0]
        for wire in prepare(wires)
    ]
