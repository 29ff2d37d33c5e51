"""Typed access to the members of JSON records; each refusal names the place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from compaction_ledger.domain.errors import InvalidInput, MalformedRecord
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def an_object(value: JsonValue, place: str) -> JsonObject:
    """``value``, which must be a JSON object."""
    if not isinstance(value, dict):
        raise MalformedRecord(f"must be an object, not {_kind(value)}", place=place)
    return value


def a_list(value: JsonValue, place: str) -> list[JsonValue]:
    """``value``, which must be a JSON array."""
    if not isinstance(value, list):
        raise MalformedRecord(f"must be an array, not {_kind(value)}", place=place)
    return value


def a_text(value: JsonValue, place: str) -> str:
    """``value``, which must be a string; kept exactly (E6)."""
    if not isinstance(value, str):
        raise MalformedRecord(f"must be a string, not {_kind(value)}", place=place)
    return value


def the_object(record: JsonObject, key: str, place: str) -> JsonObject:
    """The object under ``key``, which must be there."""
    return an_object(_present(record, key, place), f"{place} {key}")


def the_list(record: JsonObject, key: str, place: str) -> list[JsonValue]:
    """The array under ``key``, which must be there."""
    return a_list(_present(record, key, place), f"{place} {key}")


def the_text(record: JsonObject, key: str, place: str) -> str:
    """The string under ``key``, which must be there."""
    return a_text(_present(record, key, place), f"{place} {key}")


def a_list_if_any(record: JsonObject, key: str, place: str) -> list[JsonValue]:
    """The array under ``key``; empty if it is absent or null."""
    value = record.get(key)
    return [] if value is None else a_list(value, f"{place} {key}")


def a_text_if_any(record: JsonObject, key: str, place: str) -> str | None:
    """The string under ``key``; None if it is absent or null."""
    value = record.get(key)
    return None if value is None else a_text(value, f"{place} {key}")


def an_id_if_any(record: JsonObject, key: str, place: str) -> str | None:
    """The id under ``key`` (E4), a whole number in decimal; None if it is absent or null."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return check_id(value, f"{place} {key}")


def peek(record: JsonObject, key: str) -> str | None:
    """The string under ``key``, and None for whatever else may stand there."""
    value = record.get(key)
    return value if isinstance(value, str) else None


def refuse_unknown(value: str, known: frozenset[str], what: str, place: str) -> MalformedRecord:
    """The error for a role, state or type that a format does not have."""
    return MalformedRecord(
        f"unknown {what} {value!a}; known: {', '.join(sorted(known))}", place=place
    )


def iso_time(value: JsonValue, place: str) -> int | None:
    """Microseconds since the epoch of an ISO 8601 time with its offset; None for null."""
    if value is None:
        return None
    text = a_text(value, place)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise MalformedRecord(f"{text!a} is no ISO 8601 time", place=place) from error
    if moment.tzinfo is None:
        raise MalformedRecord(f"the time {text!a} has no offset from UTC", place=place)
    return (moment - _EPOCH) // _MICROSECOND


def to_iso_time(microseconds: int, place: str) -> str:
    """The ISO 8601 time, in UTC, of microseconds since the epoch."""
    if not _FIRST <= microseconds <= _LAST:
        raise InvalidInput("the time is outside the years 1 to 9999", place=place)
    return (_EPOCH + microseconds * _MICROSECOND).isoformat()


def epoch_time(value: JsonValue, place: str, *, unit: int = 1_000_000) -> int | None:
    """Microseconds since the epoch of a number of steps of ``unit`` microseconds; None for null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedRecord(f"must be a number, not {_kind(value)}", place=place)
    microseconds = int((Decimal(str(value)) * unit).to_integral_value())
    if not _FIRST <= microseconds <= _LAST:
        raise MalformedRecord("the time is outside the years 1 to 9999", place=place)
    return microseconds


def _present(record: JsonObject, key: str, place: str) -> JsonValue:
    if key not in record:
        raise MalformedRecord(f"has no member {key!r}", place=place)
    return record[key]


def _kind(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (int, float)):
        return "a number"
    return "an array" if isinstance(value, list) else "an object"
