"""Finds lists of a provider's messages in a file (T1).

They are found in: a JSON list of messages; a request's body (``messages``, ``input``, ``contents``) and
logs that keep them under ``history`` or ``traj``; lists or JSON Lines of such objects, also inside
``request`` or ``record`` as recorded exchanges have it; and JSON Lines with one message on each line. An
``input`` that is a string is the one message of a user's that the API takes it for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue
from compaction_ledger.infrastructure.importers.reading import (
    is_json_lines,
    label,
    read_document,
    read_lines,
    shown,
)
from compaction_ledger.infrastructure.transcript_files.detection import is_message, shape_of
from compaction_ledger.infrastructure.transcript_files.interface import WireTranscript

_LISTS = ("messages", "input", "contents", "history", "traj")
_WRAPPERS = ("request", "record")
_INSTRUCTIONS = ("system", "instructions", "system_prompt")


class _Found(NamedTuple):
    """A list of messages, its place, and the objects that hold it, from the outermost on."""

    messages: list[JsonObject]
    place: str
    around: tuple[JsonObject, ...]


def read_transcripts(path: Path, shape: str | None = None) -> list[WireTranscript]:
    """Every list of messages in a file, in order. ``shape``: its name, where that is known.

    Raises :class:`InvalidSetting` for an unknown name, and :class:`MalformedRecord` naming file, line and
    path: for a file that cannot be read, that holds no messages, and for messages of which no shape or
    more than one could be the right one. An exchange without a request's body is passed over.
    """
    if shape is not None:
        shape_named(shape)
    transcripts = [
        WireTranscript(
            shape or shape_of(found.messages, found.around, found.place),
            found.place,
            found.messages,
            _instructions(found.around),
        )
        for found in _in_file(path)
    ]
    if not transcripts:
        raise MalformedRecord("no messages are in it", place=label(path))
    return transcripts


def _in_file(path: Path) -> Iterator[_Found]:
    if not is_json_lines(path):
        yield from _in_value(read_document(path), label(path), ())
        return
    messages: list[JsonObject] = []
    kept = False  # whether the lines before were messages
    for number, (place, value) in enumerate(read_lines(path)):
        if number and is_message(value) != kept:
            raise MalformedRecord(
                "the lines before are messages and this one is none"
                if kept
                else "is a message, and the lines before are none",
                place=place,
            )
        kept = is_message(value)
        if kept and isinstance(value, dict):
            messages.append(value)
        else:
            yield from _in_value(value, place, ())
    if messages:
        yield _Found(messages, label(path), ())


def _in_value(value: JsonValue, place: str, around: tuple[JsonObject, ...]) -> Iterator[_Found]:
    if isinstance(value, list):
        if value and not is_message(value[0]):
            for index, item in enumerate(value):
                yield from _in_value(item, f"{place}[{index}]", around)
        else:
            yield _Found(_objects(value, place), place, around)
    elif isinstance(value, dict):
        yield from _in_object(value, place, (*around, value))
    else:
        raise MalformedRecord(f"is neither a list nor an object but {_what(value)}", place=place)


def _in_object(value: JsonObject, place: str, around: tuple[JsonObject, ...]) -> Iterator[_Found]:
    names = [name for name in _LISTS if isinstance(value.get(name), list)]
    if not names and isinstance(value.get("input"), str):
        asked: JsonObject = {"role": "user", "content": value["input"]}
        yield _Found([asked], f"{place}.input", around)
        return
    names += [name for name in _WRAPPERS if isinstance(value.get(name), (dict, list))]
    if len(names) > 1:
        raise MalformedRecord(
            f"messages can be in more than one of {', '.join(names)}", place=place
        )
    for name in names:
        yield from _in_value(value[name], f"{place}.{name}", around)
    if not names and not any(name in value for name in ("response", *_WRAPPERS)):
        keys = ", ".join(shown(repr(key)) for key in list(value)[:8])
        raise MalformedRecord(
            f"no messages are in it: it has none of {', '.join((*_LISTS, *_WRAPPERS))} but {keys}",
            place=place,
        )


def _objects(values: Sequence[JsonValue], place: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise MalformedRecord(f"is no message but {_what(value)}", place=f"{place}[{index}]")
        found.append(value)
    if not found:
        raise MalformedRecord("the list of messages is empty", place=place)
    return found


def _what(value: JsonValue) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "a number"


def _instructions(around: Sequence[JsonObject]) -> JsonValue:
    """What the innermost object says beside its messages."""
    for each in reversed(around):
        for name in _INSTRUCTIONS:
            if each.get(name) is not None:
                return each[name]
    return None
