"""Stored names and payloads of the facts (A10, L5).

A stored name and schema version is looked up in the one table below; nothing is ever imported by name. A
payload is the JSON of the fact, validated strictly when it is read: an unknown key, a missing one or
another type is :class:`MalformedEvent`. To change a fact's shape, add a schema version here and keep the
old one readable; ``tests/golden`` holds every stored form there ever was.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, ValidationError

from compaction_ledger.domain.errors import InvalidInput, MalformedEvent, UnknownEvent
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    Fact,
    RangeClaimed,
    RangeCompleted,
    RequestDelivered,
    SummaryImported,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

STORED_NAMES: dict[type[Fact], tuple[str, int]] = {
    RangeClaimed: ("RangeClaimed", 1),
    AttemptStarted: ("AttemptStarted", 1),
    AttemptFailed: ("AttemptFailed", 1),
    RangeCompleted: ("RangeCompleted", 1),
    ClaimReleased: ("ClaimReleased", 1),
    SummaryImported: ("SummaryImported", 1),
    RequestDelivered: ("RequestDelivered", 1),
}

_TOPICS = {fact: f"{name}@{schema}" for fact, (name, schema) in STORED_NAMES.items()}
_BY_TOPIC = {topic: fact for fact, topic in _TOPICS.items()}


@cache
def _adapter(topic: str) -> TypeAdapter[Any]:
    """What reads and writes a fact; made at its first use, which not every command comes to."""
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(_BY_TOPIC[topic])


def topic_of(fact: Fact) -> str:
    """The stored name and schema version of a fact, as ``name@schema``."""
    return _TOPICS[type(fact)]


def encode(fact: Fact) -> bytes:
    """The payload of a fact, as stored. Raises :class:`InvalidInput` for text that is not well formed."""
    try:
        return _adapter(_TOPICS[type(fact)]).dump_json(fact, warnings="error")
    except PydanticSerializationError as error:
        raise InvalidInput(f"cannot be stored: {error}", place=type(fact).__name__) from error


def decode(topic: str, payload: bytes, index: int | None = None) -> Fact:
    """The fact that was stored under ``topic``. Raises :class:`UnknownEvent` or :class:`MalformedEvent`."""
    if topic not in _BY_TOPIC:
        raise UnknownEvent(f"unknown event {topic!r}", index=index)
    try:
        fact: Fact = _adapter(topic).validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise MalformedEvent(f"payload of {topic}: {place}: {first['msg']}", index=index) from error
    return fact
