"""The envelope that is sealed for each event (L3): small canonical JSON, stored and verified verbatim."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import cast

ENVELOPE_FORMAT = 1
LEAF_PREFIX = b"\x00"  # RFC 6962 section 2.1
ENCRYPTED = b"\x01"
"""What an encrypted payload begins with; one that is not is JSON, and begins with a brace."""
BETWEEN = '","recorded":'

# The fields hold no character that JSON would escape, so this pattern matches the canonical form alone.
_KEY = r"[A-Za-z0-9_.:/-]{0,128}"
_SUBJECT = r"(?:[0-9a-f]{32})?"
_ENVELOPE = re.compile(
    rf'\{{"event":"([A-Za-z0-9_.-]{{1,64}})","format":1,"key":"({_KEY})",'
    r'"origin":"([A-Za-z0-9_.:/-]{1,256})","payload":"([0-9a-f]{64})","previous":"((?:[0-9a-f]{64})?)",'
    r'"recorded":(0|[1-9][0-9]{0,15}),"schema":(0|[1-9][0-9]{0,5}),"stream":"([0-9a-f]{32})",'
    rf'"subject":"({_SUBJECT})","version":(0|[1-9][0-9]{{0,15}})\}}'
)

is_key = re.compile(_KEY).fullmatch
"""Whether text is a key id, or none, as it stands in an envelope."""

is_subject = re.compile(_SUBJECT).fullmatch
"""Whether text is a subject's reference, or none, as it stands in an envelope."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The sealed particulars of one event. ``payload`` and ``previous`` are hexadecimal SHA-256."""

    origin: str
    stream: str
    version: int
    event: str
    schema: int
    payload: str
    key: str
    subject: str
    previous: str
    recorded: int

    def encode(self) -> bytes:
        """The envelope's bytes: RFC 8785, keys in canonical order."""
        before, after = self.pieces()
        return f"{before}{self.previous}{BETWEEN}{self.recorded}{after}".encode("ascii")

    def pieces(self) -> tuple[str, str]:
        """What stands before ``previous`` and what behind ``recorded``; :data:`BETWEEN` parts the two.

        Both are known for certain only where the event is stored, once its turn has come.
        """
        before = (
            f'{{"event":"{self.event}","format":{ENVELOPE_FORMAT},"key":"{self.key}",'
            f'"origin":"{self.origin}","payload":"{self.payload}","previous":"'
        )
        after = (
            f',"schema":{self.schema},"stream":"{self.stream}",'
            f'"subject":"{self.subject}","version":{self.version}}}'
        )
        return before, after


Fields = tuple[str, str, str, str, str, str, str, str, str, str]
"""Event, key, origin, payload, previous, recorded, schema, stream, subject, version."""


def parse_fields(data: bytes) -> Fields | None:
    """The fields of an envelope, as text; ``None`` if ``data`` is not one of this format to the letter."""
    match = _ENVELOPE.fullmatch(data.decode("latin-1"))
    return cast(Fields, match.groups()) if match else None


def parse(data: bytes) -> Envelope | None:
    """The envelope in ``data``, or ``None`` if it is not one of this format to the letter."""
    fields = parse_fields(data)
    if fields is None:
        return None
    event, key, origin, payload, previous, recorded, schema, stream, subject, version = fields
    return Envelope(
        origin,
        stream,
        int(version),
        event,
        int(schema),
        payload,
        key,
        subject,
        previous,
        int(recorded),
    )


def key_of(payload: bytes) -> str:
    """The id of the data key that a stored payload names (S1); empty for one that is not encrypted."""
    return payload[1:17].hex() if payload[:1] == ENCRYPTED else ""


def leaf_hash(envelope: bytes) -> bytes:
    """``SHA-256(0x00 || envelope)`` (RFC 6962 section 2.1)."""
    return hashlib.sha256(LEAF_PREFIX + envelope).digest()
