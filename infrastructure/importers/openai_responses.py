"""OpenAI Responses: lists of items, request bodies, recorded exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    a_list_if_any,
    a_text,
    an_object,
    peek,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    Sample,
)
from compaction_ledger.infrastructure.importers.openai_items import (
    is_client_call,
    is_item,
    item_parts,
    kind_of,
)
from compaction_ledger.infrastructure.importers.reading import label, read_records
from compaction_ledger.infrastructure.importers.turns import Outcome, Part

_INCOMPLETE: dict[str, Outcome] = {"max_output_tokens": "partial", "content_filter": "failed"}


@dataclass(frozen=True, slots=True)
class _Body:
    """One conversation: its items, what stands around them, and the response."""

    place: str
    items: tuple[tuple[str, JsonValue], ...]
    instructions: JsonValue = None
    response: JsonValue = None


class OpenAIResponsesImporter:
    """Reads items of the Responses API."""

    name = "openai-responses"
    description = "OpenAI Responses items, request bodies and recorded exchanges"

    def sniff(self, sample: Sample) -> bool:
        """Whether there is an ``input``, or an item that is no plain message."""
        listed = [*sample.objects, *sample.items]
        requests = [_request(record) for record in listed]
        bodies = [each for each in requests if each is not None and "messages" not in each]
        if any(isinstance(each.get("input"), str | list) for each in bodies):
            return True
        items = [each for each in listed if is_item(each)]
        return bool(items) and all(kind_of(each) is not None for each in listed)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the file."""
        collector = Collector(self.name, path)
        bodies = _bodies(path, collector)
        for number, body in enumerate(bodies, start=1):
            parts = _parts(body, collector)
            collector.add_parts(None if len(bodies) == 1 else f"{collector.stem}/{number}", parts)
        return collector.result(conversation)


def _request(record: JsonObject) -> JsonObject | None:
    """What was asked: the record itself, or the request of an exchange."""
    request = record.get("request") if "request" in record else record
    return request if isinstance(request, dict) else None


def _bodies(path: Path, collector: Collector) -> list[_Body]:
    """Every conversation of the file. Lines that are items themselves make one."""
    found: list[_Body] = []
    loose: list[tuple[str, JsonValue]] = []
    for place, value in read_records(path):
        if isinstance(value, list):
            found += _of_list(value, place, collector)
        elif _is_loose(record := an_object(value, place)):
            loose.append((place, record))
        else:
            found += _of_object(record, place, collector)
    if loose and found:
        raise MalformedRecord("is no item, as the lines around it are", place=found[0].place)
    return [_Body(label(path), tuple(loose))] if loose else found


def _is_loose(record: JsonObject) -> bool:
    return "role" in record or ("type" in record and "input" not in record)


def _of_list(values: list[JsonValue], place: str, collector: Collector) -> Iterator[_Body]:
    objects = [(f"{place}[{n}]", an_object(each, f"{place}[{n}]")) for n, each in enumerate(values)]
    if objects and all(_is_loose(record) for _, record in objects):
        yield _Body(place, tuple(objects))
        return
    for at, record in objects:
        yield from _of_object(record, at, collector)


def _of_object(record: JsonObject, place: str, collector: Collector) -> Iterator[_Body]:
    request = _request(record)
    if request is None:
        collector.left_out(place, "no_request", "the request is no JSON object")
        return
    if "input" not in request:
        raise MalformedRecord("holds no input", place=place)
    value, at = request["input"], f"{place} input"
    asked: list[JsonValue] = (
        [{"role": "user", "content": value}] if isinstance(value, str) else a_list(value, at)
    )
    items = tuple((f"{at}[{number}]", item) for number, item in enumerate(asked))
    response = record.get("response") if "request" in record else None
    yield _Body(place, items, request.get("instructions"), response)


def _parts(body: _Body, collector: Collector) -> list[Part]:
    parts: list[Part] = []
    if body.instructions is not None:
        at = f"{body.place} instructions"
        parts.append(Part(at, "system", "system", a_text(body.instructions, at)))
        collector.took()
    for place, value in body.items:
        parts += item_parts(an_object(value, place), place, collector)
    return parts + _response_parts(body, collector)


def _response_parts(body: _Body, collector: Collector) -> list[Part]:
    response, place = body.response, f"{body.place} response"
    if response is None:
        return []
    if not isinstance(response, dict):
        collector.left_out(place, "unsupported_body", "the response is no JSON object")
        return []
    if "output" not in response or response.get("error") is not None:
        collector.left_out(place, "provider_error", "the response has no output")
        return []
    items = [
        (f"{place} output[{number}]", an_object(item, f"{place} output[{number}]"))
        for number, item in enumerate(a_list_if_any(response, "output", place))
    ]
    if not items:
        collector.left_out(place, "no_message", "the response has no items")
    parts = [part for at, item in items for part in item_parts(item, at, collector)]
    if any(is_client_call(item) for _, item in items):
        return [replace(part, ending="open") if part.kind == "text" else part for part in parts]
    return _ended(parts, response)


def _ended(parts: list[Part], response: JsonObject) -> list[Part]:
    """The last text of a response without a call to answer ends the turn, as the response says."""
    texts = [at for at, part in enumerate(parts) if part.kind == "text"]
    details = response.get("incomplete_details")
    why = peek(details, "reason") if isinstance(details, dict) else None
    outcome: Outcome = _INCOMPLETE.get(why, "completed") if why else "completed"
    if not texts or response.get("status") not in ("completed", "incomplete"):
        return parts
    last = replace(parts[texts[-1]], ending="ended", outcome=outcome)
    if outcome == "failed":
        last = replace(last, status="failed")
    return [
        last if at == texts[-1] else replace(part, ending="open") if at in texts else part
        for at, part in enumerate(parts)
    ]
