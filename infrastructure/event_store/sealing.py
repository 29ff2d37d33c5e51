"""Sealing and checking seals: what stands in an envelope, for recorders and verification alike (L1, L3)."""

from __future__ import annotations

import hashlib

from eventsourcing.persistence import StoredEvent

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.infrastructure.event_store.envelope import (
    Envelope,
    leaf_hash,
    parse,
    parse_fields,
)

NO_KEY = ""


def stream_hex(originator_id: object) -> str:
    """A stream id as the 32 hexadecimal digits it is stored under."""
    return str(originator_id).replace("-", "")


def seal(event: StoredEvent, origin: str, subject: str, previous: str, recorded: int) -> tuple[bytes, bytes]:
    """The envelope and leaf hash of an event that follows ``previous`` in its stream."""
    name, _, schema = event.topic.partition("@")
    envelope = Envelope(
        origin=origin,
        stream=stream_hex(event.originator_id),
        version=event.originator_version,
        event=name,
        schema=int(schema or 0),
        payload=hashlib.sha256(event.state).hexdigest(),
        key=NO_KEY,
        subject=subject,
        previous=previous,
        recorded=recorded,
    ).encode()
    return envelope, leaf_hash(envelope)


def sealed_time(index: int, stream: str, version: int, topic: str, state: bytes, envelope: bytes, leaf: bytes) -> int:
    """The recorded time of an event whose seal holds. Raises :class:`DamagedLog` naming what does not."""
    fields = parse_fields(envelope)
    if (
        fields is None
        or leaf_hash(envelope) != leaf
        or hashlib.sha256(state).hexdigest().encode() != fields[3]
        or stream.encode() != fields[7]
        or b"%d" % version != fields[9]
        or topic.encode() != fields[0] + b"@" + fields[6]
    ):
        raise DamagedLog(difference(stream, version, topic, state, envelope, leaf), index=index)
    return int(fields[5])


def difference(stream: str, version: int, topic: str, state: bytes, envelope: bytes, leaf: bytes) -> str:
    """In words: the first way in which an event and its leaf disagree."""
    if leaf_hash(envelope) != leaf:
        return "the leaf hash is not the hash of the envelope"
    sealed = parse(envelope)
    if sealed is None:
        return "the envelope is not of a known format"
    if hashlib.sha256(state).hexdigest() != sealed.payload:
        return "the payload is not the one that was sealed"
    if sealed.stream != stream:
        return f"the event stands in stream {stream}, it was sealed in {sealed.stream}"
    if sealed.version != version:
        return f"the event stands at version {version}, it was sealed at {sealed.version}"
    return f"the event is named {topic!r}, it was sealed as '{sealed.event}@{sealed.schema}'"
