"""Anthropic Messages: message arrays, request bodies, recorded exchanges, Cline sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from compaction_ledger.infrastructure.importers.blocks import (
    Envelope,
    block_parts,
    ending_of,
    has_client_call,
)
from compaction_ledger.infrastructure.importers.bodies import (
    Body,
    conversation_id,
    has_keyed_blocks,
    read_bodies,
    sample_bodies,
)
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_text,
    an_id_if_any,
    an_object,
    epoch_time,
    peek,
    refuse_unknown,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    Sample,
)
from compaction_ledger.infrastructure.importers.openai_chat import is_anthropic_body
from compaction_ledger.infrastructure.importers.turns import Part

_ROLES = frozenset({"assistant", "user"})
_SYSTEM_MEMBERS = ("system", "system_prompt")


class AnthropicMessagesImporter:
    """Reads messages of the Messages API; ``id`` and ``ts`` members, which Cline adds, are used."""

    name = "anthropic-messages"
    description = "Anthropic Messages arrays, request bodies, recorded exchanges and Cline sessions"

    def sniff(self, sample: Sample) -> bool:
        """Whether the roles are this API's and something in the file exists in it only."""
        bodies = sample_bodies(sample)
        messages = [message for body in bodies for _, message in body.messages]
        if not messages or any(peek(message, "role") not in _ROLES for message in messages):
            return False
        if any(map(has_keyed_blocks, messages)):
            return False
        return any(is_anthropic_body(body) for body in bodies)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the file."""
        collector, bodies = Collector(self.name, path), read_bodies(path)
        for number, body in enumerate(bodies, start=1):
            parts = _system_parts(body, collector)
            for place, message in body.messages:
                parts += _message_parts(message, place, collector)
            parts += _response_parts(body, collector)
            name = conversation_id(body, number, len(bodies), collector.stem)
            collector.add_parts(name, parts)
        return collector.result(conversation)


def _system_parts(body: Body, collector: Collector) -> list[Part]:
    for key in _SYSTEM_MEMBERS:
        value, place = body.request.get(key), f"{body.place} {key}"
        if value is not None:
            collector.took()
            return [Part(place, "system", "system", _system_text(value, place))]
    return []


def _system_text(value: JsonValue, place: str) -> str:
    if not isinstance(value, list):
        return a_text(value, place)
    return "".join(the_text(an_object(block, place), "text", place) for block in value)


def _message_parts(message: JsonObject, place: str, collector: Collector) -> list[Part]:
    role = the_text(message, "role", place)
    if role not in _ROLES:
        raise refuse_unknown(role, _ROLES, "role", place)
    content = message.get("content")
    ending, outcome = ending_of(message.get("stop_reason"))
    side: Literal["user", "assistant"] = "user" if role == "user" else "assistant"
    record = Envelope(
        place,
        side,
        id=an_id_if_any(message, "id", place),
        created_at=epoch_time(message.get("ts"), f"{place} ts", unit=1000),
        ending="open" if has_client_call(content) else ending,
        outcome=outcome,
    )
    collector.took()
    return block_parts(content, record, collector)


def _response_parts(body: Body, collector: Collector) -> list[Part]:
    response, place = body.response, f"{body.place} response"
    if response is None:
        return []
    if not isinstance(response, dict):
        collector.left_out(place, "unsupported_body", "the response is no JSON object")
        return []
    if "content" not in response:
        collector.left_out(place, "provider_error", "the response has no content")
        return []
    return _message_parts(response, place, collector)
