"""Stored names and payloads of the facts (A10, L5).

A stored name and schema version is looked up in the one table below; nothing is ever imported by name. A
payload is the JSON of the fact, validated strictly when it is read: an unknown key, a missing one or
another type is :class:`MalformedEvent`.

To change a fact's shape, give it the next schema version in :data:`STORED_NAMES`, and put the old one into
:data:`OLDER`, with the shape it had and what makes the present fact of it. ``tests/golden`` holds every
stored form there ever was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, ValidationError

from compaction_ledger.domain.erasure import ErasureCompleted, ErasureRequested
from compaction_ledger.domain.errors import InvalidInput, MalformedEvent, UnknownEvent
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkClaimReleased,
    ChunkClaimRenewed,
    ChunkCompleted,
    PinAccepted,
    WindowDelivered,
)
from compaction_ledger.infrastructure.event_store import older

if TYPE_CHECKING:
    from pydantic import TypeAdapter

STORED_NAMES: dict[type[Fact], tuple[str, int]] = {  # as it is written now
    RangeClaimed: ("RangeClaimed", 1),
    AttemptStarted: ("AttemptStarted", 1),
    ClaimRenewed: ("ClaimRenewed", 1),
    AttemptFailed: ("AttemptFailed", 1),
    RangeCompleted: ("RangeCompleted", 1),
    ClaimReleased: ("ClaimReleased", 1),
    SummaryImported: ("SummaryImported", 1),
    RequestDelivered: ("RequestDelivered", 2),
    ChunkClaimed: ("ChunkClaimed", 1),
    ChunkAttemptStarted: ("ChunkAttemptStarted", 1),
    ChunkClaimRenewed: ("ChunkClaimRenewed", 1),
    ChunkAttemptFailed: ("ChunkAttemptFailed", 1),
    ChunkCompleted: ("ChunkCompleted", 1),
    ChunkClaimReleased: ("ChunkClaimReleased", 1),
    PinAccepted: ("PinAccepted", 1),
    WindowDelivered: ("WindowDelivered", 1),
    ErasureRequested: ("ErasureRequested", 1),
    ErasureCompleted: ("ErasureCompleted", 1),
}


@dataclass(frozen=True, slots=True)
class Reader:
    """How an older stored form is read: strictly in the shape it had, then made into the present fact.

    ``shape`` is whatever pydantic validates, such as a dataclass with the fields of that time.
    """

    shape: Any
    upcast: Callable[[Any], Fact]


OLDER: dict[str, Reader] = {
    "RequestDelivered@1": Reader(older.RequestDelivered1, older.request_delivered),
}
"""By ``name@schema``: every form that was stored once and is not written any more."""


class Codec:
    """Writes each fact in its present form, and reads that and every older one (A10)."""

    def __init__(
        self, present: Mapping[type[Any], tuple[str, int]], older: Mapping[str, Reader]
    ) -> None:
        self._topics = {fact: f"{name}@{schema}" for fact, (name, schema) in present.items()}
        self._shapes: dict[str, Any] = {topic: fact for fact, topic in self._topics.items()}
        twice = self._shapes.keys() & older.keys()
        if twice:
            raise ValueError(f"{sorted(twice)} are present and older forms")
        self._shapes |= {topic: reader.shape for topic, reader in older.items()}
        self._upcasts = {topic: reader.upcast for topic, reader in older.items()}
        self._adapters: dict[str, TypeAdapter[Any]] = {}
        self._read: dict[str, Callable[[bytes], Any]] = {}

    def topic_of(self, fact: Fact) -> str:
        """The stored name and schema version of a fact, as ``name@schema``."""
        return self._topics[type(fact)]

    def encode(self, fact: Fact) -> bytes:
        """The payload of a fact, as stored. Raises :class:`InvalidInput` for text that is not well formed."""
        try:
            return self._adapter(self._topics[type(fact)]).dump_json(fact, warnings="error")
        except PydanticSerializationError as error:
            raise InvalidInput(f"cannot be stored: {error}", place=type(fact).__name__) from error

    def decode(self, topic: str, payload: bytes, index: int | None = None) -> Fact:
        """The fact that was stored under ``topic``.

        Raises :class:`UnknownEvent` or :class:`MalformedEvent`.
        """
        read = self._read.get(topic) or self._reader(topic, index)
        try:
            fact = read(payload)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise MalformedEvent(
                f"payload of {topic}: {place}: {first['msg']}", index=index
            ) from error
        upcast = self._upcasts.get(topic)
        present: Fact = fact if upcast is None else upcast(fact)
        return present

    def _reader(self, topic: str, index: int | None) -> Callable[[bytes], Any]:
        """What reads a form: the validator itself, as a rebuild reads everything there is."""
        read = self._read[topic] = self._adapter(topic, index).validator.validate_json
        return read

    def _adapter(self, topic: str, index: int | None = None) -> TypeAdapter[Any]:
        """What reads and writes a form; made at its first use, which not every command comes to."""
        found = self._adapters.get(topic)
        if found is not None:
            return found
        if topic not in self._shapes:
            raise UnknownEvent(f"unknown event {topic!r}", index=index)
        from pydantic import TypeAdapter  # noqa: PLC0415

        made: TypeAdapter[Any] = TypeAdapter(self._shapes[topic])
        self._adapters[topic] = made
        return made


_codec = Codec(STORED_NAMES, OLDER)
topic_of = _codec.topic_of
encode = _codec.encode
decode = _codec.decode
