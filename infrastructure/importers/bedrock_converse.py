"""Bedrock Converse: message arrays, request bodies, recorded exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_ledger.domain.conversation import MessageStatus
from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.bodies import has_keyed_blocks, sample_bodies
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    an_object,
    peek,
    refuse_unknown,
    the_list,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    ReasonCode,
    Sample,
)
from compaction_ledger.infrastructure.importers.reading import read_records, to_json
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part

_ROLES = frozenset({"assistant", "user"})
_ENDINGS: dict[str, tuple[Ending, Outcome]] = {
    "content_filtered": ("ended", "failed"),
    "end_turn": ("ended", "completed"),
    "guardrail_intervened": ("ended", "failed"),
    "max_tokens": ("ended", "partial"),
    "model_context_window_exceeded": ("ended", "partial"),
    "stop_sequence": ("ended", "completed"),
    "tool_use": ("open", "completed"),
}
_LEFT_OUT: dict[str, ReasonCode] = {
    "audio": "media",
    "cachePoint": "control_event",
    "document": "attachment",
    "image": "media",
    "video": "media",
}


class BedrockConverseImporter:
    """Reads messages of the Converse API, whose blocks have a member in place of a type."""

    name = "bedrock-converse"
    description = "Bedrock Converse messages, request bodies and recorded exchanges"

    def sniff(self, sample: Sample) -> bool:
        """Whether the roles are this API's, and the blocks are told by their member."""
        records = [*sample.objects, *sample.items]
        bodies = [body for each in records if (body := _request(each)) is not None]
        messages = [message for body in bodies for message in _messages(body)]
        messages += [each for each in records if "role" in each]
        messages += [m for body in sample_bodies(sample) for _, m in body.messages]
        return any(map(has_keyed_blocks, messages)) and all(
            peek(message, "role") in _ROLES for message in messages
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the file."""
        collector = Collector(self.name, path)
        found = list(_conversations(path, collector))
        for number, parts in enumerate(found, start=1):
            collector.add_parts(None if len(found) == 1 else f"{collector.stem}/{number}", parts)
        return collector.result(conversation)


def _request(record: JsonObject) -> JsonObject | None:
    request = record.get("request") if "request" in record else record
    return request if isinstance(request, dict) and "messages" in request else None


def _messages(body: JsonObject) -> list[JsonObject]:
    values = body["messages"]
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _conversations(path: Path, collector: Collector) -> Iterator[list[Part]]:
    """The parts of each conversation. Lines that are messages themselves make one."""
    loose: list[Part] = []
    for place, value in read_records(path):
        if isinstance(value, list):
            items = [an_object(item, f"{place}[{n}]") for n, item in enumerate(value)]
            if all("role" in item for item in items):
                yield _message_list(value, place, collector)
            else:
                for number, item in enumerate(items):
                    yield from _of_object(item, f"{place}[{number}]", collector)
        elif "role" in (record := an_object(value, place)):
            loose += _message_parts(record, place, collector)
        else:
            yield from _of_object(record, place, collector)
    if loose:
        yield loose


def _of_object(record: JsonObject, place: str, collector: Collector) -> Iterator[list[Part]]:
    request = _request(record)
    if request is None:
        if "request" not in record and "response" not in record:
            raise MalformedRecord("holds no messages", place=place)
        collector.left_out(place, "no_request", "the request holds no messages")
        return
    parts: list[Part] = []
    if request.get("system") is not None:
        parts.append(_system_part(request["system"], f"{place} system", collector))
    parts += _message_list(the_list(request, "messages", place), f"{place} messages", collector)
    if "request" in record and record.get("response") is not None:
        parts += _response_parts(record["response"], f"{place} response", collector)
    yield parts


def _message_list(values: list[JsonValue], place: str, collector: Collector) -> list[Part]:
    parts: list[Part] = []
    for number, value in enumerate(values):
        at = f"{place}[{number}]"
        parts += _message_parts(an_object(value, at), at, collector)
    return parts


def _system_part(value: JsonValue, place: str, collector: Collector) -> Part:
    collector.took()
    blocks = [an_object(block, place) for block in a_list(value, place)]
    text = "".join(the_text(block, "text", place) for block in blocks if "text" in block)
    return Part(place, "system", "system", text)


def _response_parts(response: JsonValue, place: str, collector: Collector) -> list[Part]:
    if not isinstance(response, dict):
        collector.left_out(place, "unsupported_body", "the response is no JSON object")
        return []
    if "output" not in response:
        collector.left_out(place, "provider_error", "the response has no output")
        return []
    output = the_object(response, "output", place)
    message = the_object(output, "message", f"{place} output")
    ending = _ENDINGS.get(peek(response, "stopReason") or "", ("unsaid", "completed"))
    return _message_parts(message, f"{place} output message", collector, ending)


def _message_parts(
    message: JsonObject,
    place: str,
    collector: Collector,
    end: tuple[Ending, Outcome] = ("unsaid", "completed"),
) -> list[Part]:
    """The parts of one message: its text, which is one, and each call, result and thought."""
    role = the_text(message, "role", place)
    if role not in _ROLES:
        raise refuse_unknown(role, _ROLES, "role", place)
    collector.took()
    texts: list[str] = []
    found: list[Part] = []
    calls = False
    for number, value in enumerate(the_list(message, "content", place)):
        at = f"{place} content[{number}]"
        block = an_object(value, at)
        if "text" in block:
            texts.append(the_text(block, "text", at))
            continue
        calls = calls or (role == "assistant" and "toolUse" in block)
        found += _block_parts(block, role, at, collector)
    if not texts and found:
        return found
    text = "".join(texts)
    if role == "user":
        return [*found, Part(place, "user", "user", text)]
    ending, outcome = end
    if calls and ending == "unsaid":
        ending = "open"
    status: MessageStatus = "failed" if outcome == "failed" else "completed"
    said = Part(place, "text", "assistant", text, status=status, ending=ending, outcome=outcome)
    thoughts = [part for part in found if part.kind == "trace"]
    return [*thoughts, said, *(part for part in found if part.kind != "trace")]


def _block_parts(block: JsonObject, role: str, place: str, collector: Collector) -> Iterator[Part]:
    if "toolUse" in block:
        yield Part(place, "tool", "assistant", to_json(block["toolUse"], place))
    elif "toolResult" in block:
        text = to_json(block["toolResult"], place)
        yield Part(place, "tool", "tool" if role == "user" else "assistant", text)
    elif "reasoningContent" in block:
        yield Part(place, "trace", "assistant", _thought(block, place))
    else:
        kind = next(iter(block), "")
        reason = _LEFT_OUT.get(kind, "unsupported_block")
        collector.left_out_part(place, reason, f"block {kind!a}")


def _thought(block: JsonObject, place: str) -> str:
    reasoning = an_object(block["reasoningContent"], place)
    if "reasoningText" in reasoning:
        text = peek(an_object(reasoning["reasoningText"], place), "text")
        if text is not None:
            return text
    return to_json(reasoning, place)
