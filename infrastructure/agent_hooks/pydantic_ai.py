"""Pydantic AI's messages to JSON and back, for its history processors (T1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

Prepare = Callable[[Sequence[Any]], Sequence[Any]]


def processor(prepare: Prepare) -> Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """A history processor: what stands unchanged is the very object that was given."""

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        wires = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        prepared = await asyncio.to_thread(prepare, wires)
        given = {id(wire): message for wire, message in zip(wires, messages, strict=True)}
        return [
            given[id(wire)]
            if id(wire) in given
            else ModelMessagesTypeAdapter.validate_python([wire])[0]
            for wire in prepared
        ]

    return process
