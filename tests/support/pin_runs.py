"""Small runs in every wire shape, in which each speaker states a rule of its own (T9)."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

USERS = "Never book Ryanair."
SYSTEMS = "Always answer in English."
ASSISTANTS = "At most 500 EUR is the limit."
RESULTS = "No pets are allowed here."
ARGUMENTS = "Only Luxembourg funds."
THOUGHTS = "No nuts in this kitchen."


def speakers(shape: str) -> tuple[list[Json], int, list[int]]:
    """A valid run, the position of the user's own message, and all other positions."""
    messages = _RUNS[shape]
    users = next(at for at, message in enumerate(messages) if USERS in str(message))
    return messages, users, [at for at in range(len(messages)) if at != users]


SAID_BY_OTHERS = (SYSTEMS, ASSISTANTS, RESULTS, ARGUMENTS, THOUGHTS)

_RUNS: dict[str, list[Json]] = {
    "openai-chat": [
        {"role": "system", "content": SYSTEMS},
        {"role": "user", "content": USERS},
        {
            "role": "assistant",
            "content": ASSISTANTS,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": f'"{ARGUMENTS}"'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": RESULTS},
        {"role": "assistant", "content": THOUGHTS},
    ],
    "openai-responses": [
        {"role": "developer", "content": SYSTEMS},
        {"role": "user", "content": [{"type": "input_text", "text": USERS}]},
        {"role": "assistant", "content": ASSISTANTS},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": f'"{ARGUMENTS}"'},
        {"type": "function_call_output", "call_id": "c1", "output": RESULTS},
        {"role": "assistant", "content": THOUGHTS},
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": USERS}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHTS, "signature": "s"},
                {"type": "text", "text": ASSISTANTS},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"text": ARGUMENTS}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": RESULTS},
                {"type": "text", "text": SYSTEMS},
            ],
        },
    ],
    "converse": [
        {"role": "user", "content": [{"text": USERS}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": THOUGHTS, "signature": "s"}}},
                {"text": ASSISTANTS},
                {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"text": ARGUMENTS}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": RESULTS}]}},
                {"text": SYSTEMS},
            ],
        },
    ],
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": SYSTEMS},
                {"part_kind": "user-prompt", "content": USERS},
            ],
        },
        {
            "kind": "response",
            "parts": [
                {"part_kind": "thinking", "content": THOUGHTS},
                {"part_kind": "text", "content": ASSISTANTS},
                {
                    "part_kind": "tool-call",
                    "tool_name": "look",
                    "args": {"text": ARGUMENTS},
                    "tool_call_id": "c1",
                },
            ],
        },
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "look",
                    "content": RESULTS,
                    "tool_call_id": "c1",
                }
            ],
        },
    ],
}

SHAPES = tuple(_RUNS)
