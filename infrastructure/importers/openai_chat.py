"""OpenAI Chat Completions: message arrays, request bodies, recorded exchanges."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.infrastructure.importers.blocks import TOOL_BLOCKS
from compaction_ledger.infrastructure.importers.bodies import (
    Body,
    conversation_id,
    has_keyed_blocks,
    read_bodies,
    sample_bodies,
)
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    an_object,
    peek,
    the_list,
    the_object,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.openai_items import is_item
from compaction_ledger.infrastructure.importers.openai_parts import OPENAI_ROLES, message_parts
from compaction_ledger.infrastructure.importers.turns import Part


class OpenAIChatImporter:
    """Reads messages of the Chat Completions API and of everything that imitates it."""

    name = "openai-chat"
    description = "OpenAI Chat Completions messages, request bodies and recorded exchanges"

    def sniff(self, sample: Sample) -> bool:
        """Whether all messages have this API's roles and none has another API's blocks."""
        bodies = sample_bodies(sample)
        messages = [message for body in bodies for _, message in body.messages]
        if any(is_anthropic_body(body) for body in bodies) or any(map(has_keyed_blocks, messages)):
            return False
        if any(map(is_item, sample.objects)):
            return False
        return bool(messages) and all(_is_message(message) for message in messages)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the file."""
        collector, bodies = Collector(self.name, path), read_bodies(path)
        for number, body in enumerate(bodies, start=1):
            parts: list[Part] = []
            for place, message in body.messages:
                parts += message_parts(message, place, collector)
                collector.took()
            parts += _response_parts(body, collector)
            name = conversation_id(body, number, len(bodies), collector.stem)
            collector.add_parts(name, parts)
        return collector.result(conversation)


def is_anthropic_body(body: Body) -> bool:
    """Whether something in the body exists in the Anthropic Messages API only."""
    response = body.response
    return (
        "system" in body.request
        or (isinstance(response, dict) and response.get("type") == "message")
        or any(_has_anthropic_block(message) for _, message in body.messages)
    )


def _has_anthropic_block(message: JsonObject) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    types = [peek(block, "type") for block in blocks if isinstance(block, dict)]
    return any(kind in TOOL_BLOCKS or kind in ("thinking", "redacted_thinking") for kind in types)


def _is_message(message: JsonObject) -> bool:
    return peek(message, "role") in OPENAI_ROLES and bool({"content", "tool_calls"} & set(message))


def _response_parts(body: Body, collector: Collector) -> list[Part]:
    response, place = body.response, f"{body.place} response"
    if response is None:
        return []
    if not isinstance(response, dict):
        collector.left_out(place, "unsupported_body", "the response is no JSON object")
        return []
    if "choices" not in response:
        collector.left_out(place, "provider_error", "the response has no choices")
        return []
    found: list[Part] = []
    for number, value in enumerate(the_list(response, "choices", place)):
        at = f"{place} choices[{number}]"
        if number:
            collector.left_out(at, "other_choice", "a further answer")
            continue
        choice = an_object(value, at)
        message = the_object(choice, "message", at)
        found = message_parts(message, at, collector, finish=choice.get("finish_reason"))
        collector.took()
    return found
