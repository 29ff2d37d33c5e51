"""Sealing and checking seals: what stands in an envelope, for recorders and verification alike (L1, L3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Literal
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from compaction_ledger.domain.erasure import ERASURE_EVENTS
from compaction_ledger.domain.errors import DamagedLog, Erased, InvalidInput, TimeHasPassed
from compaction_ledger.infrastructure.event_store.envelope import (
    LEAF_PREFIX,
    Envelope,
    Fields,
    key_of,
    leaf_hash,
    parse,
    parse_fields,
)

_STORED_NAME = re.compile(r"([A-Za-z0-9_.-]{1,64})@(0|[1-9][0-9]{0,5})")
_TYPES = (str, int, str, bytes, bytes, bytes)
_NUMBERS = range(10**16)  # what an envelope can hold as a time or a version


def stream_hex(originator_id: object) -> str:
    """A stream id as the 32 hexadecimal digits it is stored under."""
    if type(originator_id) is UUID:
        return originator_id.hex
    return str(originator_id).replace("-", "")


def seal(
    event: StoredEvent, origin: str, subject: str, previous: str, recorded: int
) -> tuple[bytes, bytes]:
    """The envelope and leaf hash of an event that follows ``previous`` in its stream.

    Raises :class:`InvalidInput` for what could be sealed but never read back.
    """
    envelope = envelope_of(event, origin, subject, previous, recorded).encode()
    return envelope, leaf_hash(envelope)


def envelope_of(
    event: StoredEvent, origin: str, subject: str, previous: str = "", recorded: int = 0
) -> Envelope:
    """The envelope of an event, not yet encoded. Raises as :func:`seal`.

    An encrypted payload names its key.
    """
    name = _STORED_NAME.fullmatch(event.topic)
    if name is None or recorded not in _NUMBERS or event.originator_version not in _NUMBERS:
        raise InvalidInput(
            f"{event.topic!r}, version {event.originator_version}, at {recorded} µs",
            place="envelope",
        )
    return Envelope(
        origin=origin,
        stream=stream_hex(event.originator_id),
        version=event.originator_version,
        event=name[1],
        schema=int(name[2]),
        payload=sha256(event.state).hexdigest(),
        key=key_of(event.state),
        subject=subject,
        previous=previous,
        recorded=recorded,
    )


def check_time(recorded: int, within: tuple[int, int] | None) -> None:
    """Raise :class:`TimeHasPassed` if what is about to be sealed was decided for another time (A5)."""
    if within is not None and not within[0] <= recorded < within[1]:
        raise TimeHasPassed(f"it is {recorded} µs since the epoch, outside of {within}")


def check_not_erased(state: str, events: Sequence[StoredEvent]) -> None:
    """Raise :class:`Erased` for events of a subject that is erased; its erasure itself may be told (S3)."""
    if state == "erased" and change_by(events) is None:
        raise Erased("the conversation was erased: nothing is recorded of it any more")


def change_by(events: Sequence[StoredEvent]) -> Literal["requested", "completed"] | None:
    """What becomes of a subject with these events: its erasure was requested, or is complete."""
    topic = events[0].topic if events else ""
    if topic.startswith("ErasureRequested@"):
        return "requested"
    return "completed" if topic.startswith("ErasureCompleted@") else None


def is_plain_of(envelope: bytes, reference: str) -> bool:
    """Whether this is a subject's event that is not encrypted, and does not tell of its erasure."""
    fields = parse_fields(envelope)
    return (
        fields is not None
        and (fields[1], fields[8]) == ("", reference)
        and fields[0] not in ERASURE_EVENTS
    )


def keys_named(envelopes: Iterable[bytes], reference: str) -> set[str]:
    """The ids of the data keys that a subject's events name."""
    found = (parse_fields(envelope) for envelope in envelopes)
    return {fields[1] for fields in found if fields and fields[1] and fields[8] == reference}


def sealed_fields(
    index: int, stream: str, version: int, topic: str, state: bytes, envelope: bytes, leaf: bytes
) -> Fields:
    """What is sealed of an event whose seal holds. Raises :class:`DamagedLog` naming what does not."""
    try:
        fields = parse_fields(envelope)
        if (
            fields is not None
            and sha256(LEAF_PREFIX + envelope).digest() == leaf
            and sha256(state).hexdigest() == fields[3]
            and key_of(state) == fields[1]
            and stream == fields[7]
            and version == int(fields[9])
            and topic == f"{fields[0]}@{fields[6]}"
        ):
            return fields
    except (AttributeError, TypeError):  # a column of another type
        pass
    wrong = difference(stream, version, topic, state, envelope, leaf)
    raise DamagedLog(wrong or "the seal does not hold", index=index)


def blanked_fields(
    index: int, stream: str, version: int, topic: str, envelope: bytes, leaf: bytes
) -> Fields:
    """What is sealed of an event whose payload was removed (S3), where all else holds.

    Raises :class:`DamagedLog`.
    """
    fields = parse_fields(envelope)
    if (
        fields is None
        or leaf_hash(envelope) != leaf
        or (fields[1], fields[7], fields[9]) != ("", stream, str(version))
        or topic != f"{fields[0]}@{fields[6]}"
    ):
        raise DamagedLog("the seal does not hold", index=index)
    return fields


def difference(
    stream: str, version: int, topic: str, state: bytes, envelope: bytes, leaf: bytes
) -> str | None:
    """In words: the first way in which an event and its leaf disagree; ``None`` where they do not."""
    if tuple(map(type, (stream, version, topic, state, envelope, leaf))) != _TYPES:
        return "a column does not hold what belongs there"
    if leaf_hash(envelope) != leaf:
        return "the leaf hash is not the hash of the envelope"
    sealed = parse(envelope)
    if sealed is None:
        return "the envelope is not of a known format"
    if sha256(state).hexdigest() != sealed.payload:
        return "the payload is not the one that was sealed"
    if key_of(state) != sealed.key:
        return f"the payload names the key {key_of(state)!r}, it was sealed with {sealed.key!r}"
    if sealed.stream != stream:
        return f"the event stands in stream {stream}, it was sealed in {sealed.stream}"
    if sealed.version != version:
        return f"the event stands at version {version}, it was sealed at {sealed.version}"
    if topic != f"{sealed.event}@{sealed.schema}":
        return f"the event is named {topic!r}, it was sealed as '{sealed.event}@{sealed.schema}'"
    return None
