"""Judges of messages that this project did not write: the providers' own packages, and Pydantic AI.

``oracle_accepts`` asks whether each message is one that the provider's package would send: the types of
OpenAI and Anthropic, read by Pydantic, the model of the service that botocore ships, and the messages of
Pydantic AI. ``oracle_pairs`` asks Pydantic AI's repair which calls and results do not belong together.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter, ValidationError

Wire = Mapping[str, Any]


def oracle_accepts(shape: str, messages: Sequence[Wire]) -> None:
    """Raises :class:`AssertionError` with the reason, if the provider's package refuses the messages."""
    if shape == "converse":
        _botocore_accepts(messages)
        return
    try:
        # The types of the packages hold iterables, which Pydantic reads when they are gone through.
        _go_through(_adapter(shape).validate_python(list(messages)))
    except ValidationError as error:
        raise AssertionError(f"{shape}: {error}") from error


@cache
def _adapter(shape: str) -> TypeAdapter[Any]:
    if shape == "openai-chat":
        chat = pytest.importorskip("openai.types.chat")
        return _list_of(chat.ChatCompletionMessageParam)
    if shape == "openai-responses":
        responses = pytest.importorskip("openai.types.responses")
        return TypeAdapter(responses.ResponseInputParam)
    if shape == "anthropic":
        return _list_of(pytest.importorskip("anthropic.types.beta").BetaMessageParam)
    read: TypeAdapter[Any] = pytest.importorskip("pydantic_ai.messages").ModelMessagesTypeAdapter
    return read


def _list_of(kind: Any) -> TypeAdapter[Any]:
    form: Any = types.GenericAlias(list, (kind,))
    return TypeAdapter(form)


def _go_through(value: object) -> None:
    if isinstance(value, Mapping):
        for member in value.values():
            _go_through(member)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for member in value:
            _go_through(member)


# --- Bedrock -------------------------------------------------------------------------------------------


@cache
def _converse_messages() -> tuple[Any, Any]:
    """The shape of ``messages`` in the service's own model, and what checks parameters against it."""
    loaders, model = (pytest.importorskip(f"botocore.{name}") for name in ("loaders", "model"))
    description = loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    service = model.ServiceModel(description, "bedrock-runtime")
    shape = service.operation_model("Converse").input_shape.members["messages"]
    return pytest.importorskip("botocore.validate").ParamValidator(), shape


def _botocore_accepts(messages: Sequence[Wire]) -> None:
    validator, shape = _converse_messages()
    report = validator.validate([_with_bytes(message) for message in messages], shape)
    assert not report.has_errors(), report.generate_report()


def _with_bytes(value: Any) -> Any:
    """Blobs stand in JSON as base64 and in botocore's parameters as bytes."""
    if isinstance(value, Mapping):
        return {
            name: base64.b64decode(member)
            if name in ("bytes", "redactedContent") and isinstance(member, str)
            else _with_bytes(member)
            for name, member in value.items()
        }
    return [_with_bytes(member) for member in value] if isinstance(value, list) else value


# --- calls and results ---------------------------------------------------------------------------------


class Pairing(NamedTuple):
    """What Pydantic AI's repair did: ids of the calls it answered itself, and of the results it dropped."""

    unanswered: list[str]
    dropped: list[str]


def oracle_pairs(shape: str, messages: Sequence[Wire]) -> Pairing:
    """Which calls have no result, and which results no call, by Pydantic AI's judgment.

    It is shown the calls and results alone, in the order of the messages.
    """
    found = pytest.importorskip("pydantic_ai.messages")
    history: list[Any] = []
    for kind, ids in _skeleton(shape, messages):
        if kind == "calls":
            parts = [found.ToolCallPart("t", {}, tool_call_id=one) for one in ids]
            history.append(found.ModelResponse([found.TextPart("."), *parts]))
        else:
            parts = [found.ToolReturnPart("t", "", tool_call_id=one) for one in ids]
            history.append(found.ModelRequest([found.UserPromptPart("."), *parts]))
    repaired = found.repair_messages(history)
    before, after = _results(found, history), _results(found, repaired)
    made = [part.tool_call_id for part in after if part.metadata]
    kept = [part.tool_call_id for part in after if not part.metadata]
    dropped = [part.tool_call_id for part in before]
    for one in kept:
        dropped.remove(one)
    return Pairing(sorted(made), sorted(dropped))


def _results(found: Any, history: Sequence[Any]) -> list[Any]:
    return [
        part
        for message in history
        for part in message.parts
        if isinstance(part, found.ToolReturnPart)
    ]


def _skeleton(shape: str, messages: Sequence[Wire]) -> list[tuple[str, list[str]]]:
    """Per turn of one side: whether it is the model's, and the ids it calls or answers."""
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        kind, ids = _SKELETONS[shape](message)
        if turns and turns[-1][0] == kind == "calls" and shape == "openai-responses":
            turns[-1][1].extend(ids)  # the items of one response
        else:
            turns.append((kind, ids))
    return turns


def _chat(message: Wire) -> tuple[str, list[str]]:
    if message["role"] == "assistant":
        return "calls", [call["id"] for call in message.get("tool_calls") or []]
    return "results", [message["tool_call_id"]] if message["role"] == "tool" else []


def _responses(item: Wire) -> tuple[str, list[str]]:
    kind = item.get("type", "message")
    if kind.endswith("_call_output"):
        return "results", [item["call_id"]]
    if kind == "message" and item["role"] != "assistant":
        return "results", []
    return "calls", [item["call_id"]] if kind in ("function_call", "custom_tool_call") else []


def _anthropic(message: Wire) -> tuple[str, list[str]]:
    content = message["content"]
    blocks = [] if isinstance(content, str) else content
    if message["role"] == "assistant":
        return "calls", [block["id"] for block in blocks if block["type"] == "tool_use"]
    return "results", [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]


def _converse(message: Wire) -> tuple[str, list[str]]:
    member = "toolUse" if message["role"] == "assistant" else "toolResult"
    found = [block[member] for block in message["content"] if member in block]
    ids = [each["toolUseId"] for each in found if each.get("type") != "server_tool_use"]
    return "calls" if message["role"] == "assistant" else "results", ids


def _pydantic_ai(message: Wire) -> tuple[str, list[str]]:
    kinds = ("tool-call",) if message["kind"] == "response" else ("tool-return", "retry-prompt")
    ids = [part["tool_call_id"] for part in message["parts"] if part["part_kind"] in kinds]
    return "calls" if message["kind"] == "response" else "results", ids


_SKELETONS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "converse": _converse,
    "pydantic-ai": _pydantic_ai,
}
