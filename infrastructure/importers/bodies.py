"""Where the messages stand in files of the OpenAI Chat and Anthropic Messages shapes.

Four forms are read: an array of messages; a request body with ``messages`` (or an array of them);
JSON Lines of either; JSON Lines of recorded exchanges, ``{"request": {…}, "response": {…}}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    an_id_if_any,
    an_object,
    the_list,
    the_object,
)
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue, Sample
from compaction_ledger.infrastructure.importers.reading import label, read_records

_ID_MEMBERS = ("id", "conversation_id", "session_id", "sessionId")


@dataclass(frozen=True, slots=True)
class Body:
    """One conversation: its messages with their places, the request around them, the response."""

    place: str
    id: str | None
    messages: tuple[tuple[str, JsonObject], ...]
    request: JsonObject
    response: JsonValue = None


def read_bodies(path: Path) -> list[Body]:
    """Every conversation of the file. Lines that are messages themselves make one."""
    found: list[Body] = []
    loose: list[tuple[str, JsonObject]] = []
    for place, value in read_records(path):
        if isinstance(value, list):
            found += _of_list(value, place)
        elif "role" in (record := an_object(value, place)):
            loose.append((place, record))
        else:
            found.append(_of_object(record, place))
    if loose and found:
        raise MalformedRecord("is no message, as the lines around it are", place=found[0].place)
    return [Body(label(path), None, tuple(loose), {})] if loose else found


def sample_bodies(sample: Sample) -> list[Body]:
    """The conversations at the beginning of a file; empty if it is of another form."""
    try:
        return list(_of_sample(sample))
    except MalformedRecord:
        return []


def conversation_id(body: Body, number: int, total: int, stem: str) -> str:
    """The file's own id, else the file's name, numbered from 1 where there are several."""
    if body.id is not None:
        return body.id
    return stem if total == 1 else f"{stem}/{number}"


def _of_sample(sample: Sample) -> Iterator[Body]:
    loose = [each for each in sample.objects if "role" in each]
    if loose:
        yield Body("", None, tuple(("", each) for each in loose), {})
        return
    for record in sample.records:
        if isinstance(record, list):
            yield from _of_list(record, "")
        else:
            yield _of_object(an_object(record, ""), "")


def _of_list(values: list[JsonValue], place: str) -> list[Body]:
    objects = [(f"{place}[{n}]", an_object(each, f"{place}[{n}]")) for n, each in enumerate(values)]
    if objects and all("role" in record for _, record in objects):
        return [Body(place, None, tuple(objects), {})]
    return [_of_object(record, at) for at, record in objects]


def _of_object(record: JsonObject, place: str) -> Body:
    exchange = "request" in record
    request = the_object(record, "request", place) if exchange else record
    if "messages" not in request:
        raise MalformedRecord("holds no messages", place=place)
    values = a_list(the_list(request, "messages", place), place)
    messages = tuple(
        (f"{place} messages[{n}]", an_object(each, f"{place} messages[{n}]"))
        for n, each in enumerate(values)
    )
    named = next((key for key in _ID_MEMBERS if record.get(key) is not None), "id")
    own_id = an_id_if_any(record, named, place)
    return Body(place, own_id, messages, request, record.get("response") if exchange else None)


def has_keyed_blocks(message: JsonObject) -> bool:
    """Whether blocks of a message have no type, as only Bedrock Converse writes them."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and "type" not in block for block in blocks)
