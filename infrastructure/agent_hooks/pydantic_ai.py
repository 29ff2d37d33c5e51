"""A window for agents of Pydantic AI: a capability that hands the model prepared messages (T1, T11).

What is prepared goes into the request alone. The agent's own history stays complete: a history processor
would replace it, and the window needs the run's complete list of messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestContext

Observe = Callable[[int], None]
Prepare = Callable[[Sequence[Any]], tuple[Sequence[Any], Observe]]


@dataclass
class WindowCapability(AbstractCapability[Any]):
    """Prepares each request, and tells the window what tokens the provider reported for it (T3)."""

    prepare: Prepare
    _observers: dict[tuple[str | None, int], Observe] = field(
        default_factory=dict[tuple[str | None, int], Observe], init=False, repr=False
    )
    """By run and step of the agent: what to tell the tokens of that request."""

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a window is an open ledger."""
        return None

    async def before_model_request(
        self,
        ctx: RunContext[Any],
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """The request with prepared messages; what stands unchanged is the very object that was given."""
        request_context.messages, observe = await asyncio.to_thread(
            prepared, self.prepare, request_context.messages
        )
        self._observers[ctx.run_id, ctx.run_step] = observe
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002
        response: ModelResponse,
    ) -> ModelResponse:
        """The response as it is."""
        observe = self._observers.pop((ctx.run_id, ctx.run_step), None)
        if observe is not None and response.usage.input_tokens:
            await asyncio.to_thread(observe, response.usage.input_tokens)
        return response


def prepared(
    prepare: Prepare, messages: Sequence[ModelMessage]
) -> tuple[list[ModelMessage], Observe]:
    """Messages to JSON, prepared, and back; and what to tell the tokens of them."""
    wires = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    given = {id(wire): message for wire, message in zip(wires, messages, strict=True)}
    made, observe = prepare(wires)
    return [
        given[id(wire)]
        if id(wire) in given
        else ModelMessagesTypeAdapter.validate_python([wire])[0]
        for wire in made
    ], observe
