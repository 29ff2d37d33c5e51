"""One writer per wire shape: the messages of a turn, with everything in them that a provider takes.

A writer makes single steps of a conversation; :mod:`wire_transcripts` puts them in order, and
:mod:`wire_mutations` puts them in an order that a provider refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hypothesis import strategies as st
from wire_values import (
    ANSWERS,
    ARGUMENTS,
    NAMES,
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


class Writer(Protocol):
    """Writes the messages of one transcript."""

    alternates: bool
    """Whether the provider wants its two sides to take turns."""

    def head(self, draw: Draw) -> list[Wire]:
        """Instructions in front."""
        ...

    def between(self, draw: Draw) -> list[Wire]:
        """What may stand between two turns."""
        ...

    def user(self, draw: Draw) -> list[Wire]:
        """A user's own words."""
        ...

    def ids(self, draw: Draw, count: int) -> list[str]:
        """Ids for calls of one response."""
        ...

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        """A response that calls tools, one call per id."""
        ...

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        """The results for these calls, in this order."""
        ...

    def answer(self, draw: Draw) -> list[Wire]:
        """A response that ends the turn."""
        ...


class ChatWriter:
    """OpenAI Chat Completions."""

    alternates = False

    def __init__(self, *, unknown: bool) -> None:
        self._ids, self._unknown = Ids("call_"), unknown

    def head(self, draw: Draw) -> list[Wire]:
        roles = pick(draw, st.lists(st.sampled_from(["system", "developer"]), max_size=2))
        return [{"role": role, "content": self._content(draw)} for role in roles]

    def between(self, draw: Draw) -> list[Wire]:
        return self.head(draw) if sometimes(draw) else []

    def user(self, draw: Draw) -> list[Wire]:
        found: list[Wire] = [{"role": "user", "content": self._content(draw, media=True)}]
        if sometimes(draw):
            found[0]["name"] = "guest"
            found.append({"role": "user", "content": ""})
        return found

    def ids(self, draw: Draw, count: int) -> list[str]:
        if sometimes(draw):  # some providers count anew in each response, one gives no ids at all
            return [f"functions.search:{number}" for number in range(count)] if count > 1 else [""]
        return [self._ids.next() for _ in range(count)]

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        message: Wire = {"role": "assistant", "tool_calls": [self._call(draw, one) for one in ids]}
        kind = pick(draw, st.sampled_from(["null", "missing", "empty", "text"]))
        if kind != "missing":
            texts = {"null": st.none(), "empty": st.just(""), "text": TEXTS}
            message["content"] = pick(draw, texts[kind])
        return [message]

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        found: list[Wire] = []
        for one in ids:
            message = {"role": "tool", "tool_call_id": one, "content": self._content(draw)}
            if sometimes(draw):
                message["name"] = pick(draw, NAMES)
            found.append(message)
        return found

    def answer(self, draw: Draw) -> list[Wire]:
        found: list[Wire] = []
        if sometimes(draw):
            found.append({"role": "assistant", "content": pick(draw, TEXTS), "refusal": None})
        found.append({"role": "assistant", "content": pick(draw, ANSWERS)})
        if sometimes(draw):
            found[-1]["reasoning_content"] = pick(draw, TEXTS)
        return found

    def _call(self, draw: Draw, one: str) -> Wire:
        if sometimes(draw, 6):
            body: Wire = {"name": pick(draw, NAMES), "input": pick(draw, TEXTS)}
            return {"id": one, "type": "custom", "custom": body}
        body = {"name": pick(draw, NAMES), "arguments": pick(draw, ARGUMENTS)}
        return {"id": one, "type": "function", "function": body}

    def _content(self, draw: Draw, *, media: bool = False) -> object:
        if not sometimes(draw):
            return pick(draw, TEXTS)
        parts: list[Wire] = [{"type": "text", "text": pick(draw, TEXTS)}]
        if sometimes(draw):
            parts[0]["cache_control"] = {"type": "ephemeral"}
        if media and sometimes(draw, 2):
            url = f"data:image/png;base64,{PNG}"
            parts.append({"type": "image_url", "image_url": {"url": url, "detail": "low"}})
        if media and self._unknown and sometimes(draw):
            parts.append({"type": "hologram", "data": pick(draw, VALUES)})
        return parts


class ResponsesWriter:
    """OpenAI Responses items."""

    alternates = False

    def __init__(self, *, unknown: bool) -> None:
        self._ids, self._unknown = Ids("call_"), unknown

    def head(self, draw: Draw) -> list[Wire]:
        roles = pick(draw, st.lists(st.sampled_from(["system", "developer"]), max_size=2))
        return [self._message(draw, role) for role in roles]

    def between(self, draw: Draw) -> list[Wire]:
        found = self.head(draw) if sometimes(draw) else []
        if sometimes(draw, 6):
            blob = pick(draw, SIGNATURES)
            found.append(
                {"type": "compaction", "id": self._ids.next("cmp_"), "encrypted_content": blob}
            )
        return found

    def user(self, draw: Draw) -> list[Wire]:
        item = self._message(draw, "user")
        if isinstance(item["content"], list) and sometimes(draw, 2):
            url = f"data:image/png;base64,{PNG}"
            item["content"].append({"type": "input_image", "image_url": url, "detail": "auto"})
        return [item]

    def ids(self, draw: Draw, count: int) -> list[str]:
        return [self._ids.next() for _ in range(count)]

    def calls(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        found: list[Wire] = []
        if sometimes(draw):
            found += self._said(draw)
        for one in ids:
            if sometimes(draw):
                found.append(self._reasoning(draw))
            item: Wire = {"type": "function_call", "call_id": one, "name": pick(draw, NAMES)}
            if sometimes(draw, 6):
                item |= {"type": "custom_tool_call", "input": pick(draw, TEXTS)}
            else:
                item["arguments"] = pick(draw, ARGUMENTS)
                if sometimes(draw, 2):
                    item |= {"id": self._ids.next("fc_"), "status": "completed"}
            found.append(item)
        return found

    def results(self, draw: Draw, ids: Sequence[str]) -> list[Wire]:
        found: list[Wire] = []
        for one in ids:
            output: object = pick(draw, TEXTS)
            if sometimes(draw):
                output = [{"type": "input_text", "text": output}]
            found.append({"type": "function_call_output", "call_id": one, "output": output})
        return found

    def answer(self, draw: Draw) -> list[Wire]:
        found: list[Wire] = []
        if sometimes(draw):
            found.append(self._reasoning(draw))
            if sometimes(draw, 2):
                action = {"type": "search", "query": pick(draw, TEXTS)}
                search: Wire = {"type": "web_search_call", "id": self._ids.next("ws_")}
                found += [search | {"status": "completed", "action": action}]
        if self._unknown and sometimes(draw):
            found.append({"type": "hologram_call", "id": self._ids.next("holo_"), "x": 1.0})
        return found + self._said(draw)

    def _said(self, draw: Draw) -> list[Wire]:
        text = pick(draw, ANSWERS)
        if sometimes(draw, 2):
            return [{"role": "assistant", "content": text}]
        block = {"type": "output_text", "text": text, "annotations": []}
        item: Wire = {"type": "message", "role": "assistant", "id": self._ids.next("msg_")}
        return [item | {"status": "completed", "content": [block]}]

    def _reasoning(self, draw: Draw) -> Wire:
        summary = (
            [{"type": "summary_text", "text": pick(draw, TEXTS)}] if sometimes(draw, 2) else []
        )
        item: Wire = {"type": "reasoning", "id": self._ids.next("rs_"), "summary": summary}
        return item | {"encrypted_content": pick(draw, SIGNATURES)}

    def _message(self, draw: Draw, role: str) -> Wire:
        text = pick(draw, TEXTS)
        item: Wire = {"type": "message"} if sometimes(draw, 2) else {}
        content = [{"type": "input_text", "text": text}] if sometimes(draw, 3) else text
        return item | {"role": role, "content": content}
