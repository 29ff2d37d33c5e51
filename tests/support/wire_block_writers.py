"""The writers of the shapes whose messages hold blocks: Anthropic, Converse, Pydantic AI."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from wire_values import (
    ANSWERS,
    ARGUMENTS,
    NAMES,
    OBJECTS,
    PNG,
    SIGNATURES,
    TEXTS,
    VALUES,
    Draw,
    Ids,
    Wire,
    pick,
    sometimes,
)


class AnthropicWriter:
    """Anthropic Messages."""

    alternates = True

    def __init__(self, *, unknown: bool) -> None:
        self._ids, self._unknown = Ids("toolu_"), unknown

    def head(self, draw: Draw) -> list[Wire]:
        return []

    def between(self, draw: Draw) -> list[Wire]:
        return []

    def user(self, draw: Draw) -> list[Wire]:
        if sometimes(draw, 3):
            return [{"role": "user", "content": pick(draw, TEXTS)}]
        blocks = [self._text(draw, TEXTS)]
        if sometimes(draw):
            source = {"type": "base64", "media_type": "image/png", "data": PNG}
            blocks.append({"type": "image", "source": source})
        if self._unknown and sometimes(draw):
            blocks.append({"type": "hologram", "data": pick(draw, VALUES)})
        return [{"role": "user", "content": blocks}]

    def ids(self, draw: Draw, count: int) -> list[str]:
        return [self._ids.next() for _ in range(count)]

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        blocks = self._thinking(draw)
        if sometimes(draw, 2):
            blocks.append(self._text(draw, ANSWERS))
        for one in ids:
            call: Wire = {"type": "tool_use", "id": one, "name": pick(draw, NAMES)}
            blocks.append(call | {"input": pick(draw, OBJECTS)})
        return [{"role": "assistant", "content": blocks}]

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        blocks = [self._result(draw, one) for one in ids]
        if blocks and sometimes(draw):
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        return [{"role": "user", "content": blocks}]

    def answer(self, draw: Draw) -> list[Wire]:
        if sometimes(draw, 3):
            return [{"role": "assistant", "content": pick(draw, ANSWERS)}]
        blocks = self._thinking(draw)
        if sometimes(draw):
            one = self._ids.next("srvtoolu_")
            call: Wire = {"type": "server_tool_use", "id": one, "name": "web_search"}
            result: Wire = {"type": "web_search_tool_result", "tool_use_id": one, "content": []}
            blocks += [call | {"input": {"query": pick(draw, TEXTS)}}, result]
        return [{"role": "assistant", "content": [*blocks, self._text(draw, ANSWERS)]}]

    def _text(self, draw: Draw, texts: st.SearchStrategy[str]) -> Wire:
        block: Wire = {"type": "text", "text": pick(draw, texts)}
        return block | {"cache_control": {"type": "ephemeral"}} if sometimes(draw) else block

    def _thinking(self, draw: Draw) -> list[Wire]:
        if not sometimes(draw, 3):
            return []
        if sometimes(draw):
            return [{"type": "redacted_thinking", "data": pick(draw, SIGNATURES)}]
        block: Wire = {"type": "thinking", "thinking": pick(draw, TEXTS)}
        return [block | {"signature": pick(draw, SIGNATURES)}]

    def _result(self, draw: Draw, one: str) -> Wire:
        block: Wire = {"type": "tool_result", "tool_use_id": one}
        kind = pick(draw, st.sampled_from(["text", "blocks", "empty", "none", "error"]))
        if kind == "text":
            block["content"] = pick(draw, TEXTS)
        elif kind == "empty":
            block["content"] = ""
        elif kind != "none":
            block |= {"content": [self._text(draw, TEXTS)], "is_error": kind == "error"}
        return block


class ConverseWriter:
    """Bedrock Converse."""

    alternates = True

    def __init__(self, *, unknown: bool) -> None:
        self._ids, self._unknown = Ids("tooluse_"), unknown

    def head(self, draw: Draw) -> list[Wire]:
        return []

    def between(self, draw: Draw) -> list[Wire]:
        return []

    def user(self, draw: Draw) -> list[Wire]:
        blocks: list[Wire] = [{"text": pick(draw, TEXTS)}]
        if sometimes(draw):
            blocks.append({"image": {"format": "png", "source": {"bytes": PNG}}})
        if sometimes(draw):
            source = {"text": pick(draw, TEXTS)}
            blocks.append({"document": {"format": "txt", "name": "Notes", "source": source}})
        if self._unknown and sometimes(draw):
            blocks.append({"hologram": pick(draw, VALUES)})
        return [{"role": "user", "content": blocks + self._mark(draw)}]

    def ids(self, draw: Draw, count: int) -> list[str]:
        return [self._ids.next() for _ in range(count)]

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        blocks = self._thinking(draw)
        if sometimes(draw):
            blocks.append({"text": pick(draw, ANSWERS)})
        if sometimes(draw, 6):
            one = self._ids.next()
            call: Wire = {"toolUseId": one, "name": "nova_code_interpreter", "input": {}}
            result: Wire = {"toolUseId": one, "content": [{"json": {"exitCode": 0}}]}
            blocks.append({"toolUse": call | {"type": "server_tool_use"}})
            blocks.append({"toolResult": result | {"type": "nova_code_interpreter_result"}})
        for one in ids:
            call = {"toolUseId": one, "name": pick(draw, NAMES), "input": pick(draw, OBJECTS)}
            blocks.append({"toolUse": call})
        return [{"role": "assistant", "content": blocks}]

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        blocks: list[Wire] = [{"toolResult": self._result(draw, one)} for one in ids]
        return [{"role": "user", "content": blocks + self._mark(draw)}]

    def answer(self, draw: Draw) -> list[Wire]:
        blocks = [*self._thinking(draw), {"text": pick(draw, ANSWERS)}]
        return [{"role": "assistant", "content": blocks}]

    def _mark(self, draw: Draw) -> list[Wire]:
        return [{"cachePoint": {"type": "default"}}] if sometimes(draw) else []

    def _thinking(self, draw: Draw) -> list[Wire]:
        if not sometimes(draw, 3):
            return []
        if sometimes(draw):
            return [{"reasoningContent": {"redactedContent": PNG}}]
        text = {"text": pick(draw, TEXTS), "signature": pick(draw, SIGNATURES)}
        return [{"reasoningContent": {"reasoningText": text}}]

    def _result(self, draw: Draw, one: str) -> Wire:
        result: Wire = {"toolUseId": one}
        if sometimes(draw, 3):
            return result | {"content": [{"json": pick(draw, OBJECTS)}]}
        if sometimes(draw, 3):
            return result | {"content": [], "status": "success"}
        result["content"] = [{"text": pick(draw, TEXTS)}]
        return result | {"status": pick(draw, st.sampled_from(["success", "error"]))}


_TIME = "2026-03-01T12:00:00.123456Z"


class PydanticAIWriter:
    """Pydantic AI's messages."""

    alternates = False

    def __init__(self, *, unknown: bool) -> None:
        self._ids, self._unknown = Ids("pyd_ai_"), unknown

    def head(self, draw: Draw) -> list[Wire]:
        return []

    def between(self, draw: Draw) -> list[Wire]:
        return []

    def user(self, draw: Draw) -> list[Wire]:
        parts: list[Wire] = []
        if sometimes(draw):
            parts.append({"part_kind": "system-prompt", "content": pick(draw, TEXTS)})
        content: object = pick(draw, TEXTS)
        if sometimes(draw):
            image = {
                "kind": "binary",
                "media_type": "image/png",
                "data": PNG,
                "identifier": "ab12cd",
            }
            content = [content, image]
        part: Wire = {"part_kind": "user-prompt", "content": content, "timestamp": _TIME}
        return [self._request(draw, [*parts, part])]

    def ids(self, draw: Draw, count: int) -> list[str]:
        return [self._ids.next() for _ in range(count)]

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        parts = self._thinking(draw)
        if sometimes(draw):
            parts.append({"part_kind": "text", "content": pick(draw, ANSWERS)})
        for one in ids:
            args: object = pick(draw, st.one_of(ARGUMENTS, OBJECTS, st.none()))
            call: Wire = {"part_kind": "tool-call", "tool_name": pick(draw, NAMES)}
            parts.append(call | {"tool_call_id": one, "args": args})
        return [self._response(parts)]

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        parts = [self._result(draw, one) for one in ids]
        at = pick(draw, st.integers(1, len(parts))) if len(parts) > 1 and sometimes(draw) else 0
        groups = [group for group in (parts[:at], parts[at:]) if group]
        return [self._request(draw, group) for group in groups]

    def answer(self, draw: Draw) -> list[Wire]:
        parts: list[Wire] = [{"part_kind": "text", "content": pick(draw, ANSWERS)}]
        return [self._response(self._thinking(draw) + parts)]

    def _request(self, draw: Draw, parts: list[Wire]) -> Wire:
        message: Wire = {"kind": "request", "parts": parts}
        return message | {"instructions": pick(draw, TEXTS)} if sometimes(draw) else message

    def _response(self, parts: list[Wire]) -> Wire:
        usage = {"input_tokens": 12, "output_tokens": 5, "details": {}}
        return {"kind": "response", "parts": parts, "timestamp": _TIME, "usage": usage}

    def _thinking(self, draw: Draw) -> list[Wire]:
        if not sometimes(draw, 3):
            return []
        part: Wire = {"part_kind": "thinking", "content": pick(draw, TEXTS)}
        return [part | {"signature": pick(draw, SIGNATURES), "provider_name": "anthropic"}]

    def _result(self, draw: Draw, one: str) -> Wire:
        part: Wire = {"tool_name": pick(draw, NAMES), "tool_call_id": one, "timestamp": _TIME}
        if sometimes(draw):
            return part | {"part_kind": "retry-prompt", "content": pick(draw, TEXTS)}
        return part | {"part_kind": "tool-return", "content": pick(draw, st.one_of(TEXTS, VALUES))}
