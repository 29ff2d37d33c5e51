"""What is found and read again, as JSON: for models and for the command line (T15)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from compaction_ledger.domain.history import Found, Hit
from compaction_ledger.usecases.history import PartText, Reading, ResultPage

_SURROGATE = re.compile("[\ud800-\udfff]")
_MICROSECONDS = 1_000_000


def json_text(value: Any) -> str:
    """JSON that every parser takes: other scripts as they are, a lone surrogate escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def found_value(found: Found) -> dict[str, Any]:
    """Hits as a JSON value; what is rare is told only where it is so."""
    value: dict[str, Any] = {
        "hits": [_hit_value(hit) for hit in found.hits],
        "next_offset": found.next_offset,
    }
    if found.unreadable:
        value["unreadable"] = found.unreadable
    if found.cut_short:
        value["cut_short"] = True
    return value


def _hit_value(hit: Hit) -> dict[str, Any]:
    return {
        "message_id": hit.message_id,
        "run": hit.run,
        "source": hit.source,
        "role": hit.role,
        "pair": hit.pair,
        "at": moment_text(hit.at),
        "part": hit.part,
        "quote": hit.quote,
        "start": hit.start,
        "end": hit.end,
    }


def reading_value(reading: Reading) -> dict[str, Any]:
    """A page of a message as a JSON value."""
    return {
        "message_id": reading.message_id,
        "run": reading.run,
        "source": reading.source,
        "role": reading.role,
        "pair": reading.pair,
        "at": moment_text(reading.at),
        "length": reading.length,
        "start": reading.start,
        "parts": [_part_value(part) for part in reading.parts],
        "next_start": reading.next_start,
    }


def _part_value(part: PartText) -> dict[str, Any]:
    value: dict[str, Any] = {
        "part": part.part,
        "kind": part.kind,
        "name": part.name,
        "start": part.start,
        "text": part.text,
    }
    return value if part.role is None else {**value, "role": part.role}


def result_value(page: ResultPage) -> dict[str, Any]:
    """A page of a tool result as a JSON value."""
    return {
        "handle": page.handle,
        "length": page.length,
        "start": page.start,
        "text": page.text,
        "next_start": page.next_start,
    }


def moment_text(at: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601; ``None`` where there is none, or no calendar has it."""
    if at is None:
        return None
    try:
        seconds, rest = divmod(at, _MICROSECONDS)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat().replace("+00:00", "Z")
