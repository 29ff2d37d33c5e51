"""The structured summary of a chunk (T7): five lists of statements, read strictly and never repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn, cast

from compaction_ledger.domain.canonical import canonical_json
from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.identifiers import is_blank, is_well_formed

PLACE = "structured summary"


@dataclass(frozen=True, slots=True)
class StructuredSummary:
    """What a chunk comes to: statements in five lists, each a nonempty text. An empty list says nothing."""

    decisions: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    tool_outcomes: tuple[str, ...] = ()

    def canonical(self) -> str:
        """Its one text: canonical JSON with all five keys, as it is stored and rendered."""
        members = {name: list(entries) for name, entries in self.lists()}
        return canonical_json(members).decode()

    def lists(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each list with its name, in the order of T7."""
        for name in KEYS:
            yield name, getattr(self, name)

    def texts(self) -> tuple[str, ...]:
        """Every statement, list by list."""
        return tuple(entry for _, entries in self.lists() for entry in entries)

    def lines(self) -> tuple[str, ...]:
        """The lists that say something, to be read by a person: a heading, then ``- `` and the statement.

        No line of a statement can pose as a heading or as another statement: the lines of one that has
        several are indented.
        """
        shown: list[str] = []
        for name, entries in self.lists():
            if entries:
                shown.append(f"{name}:")
            for entry in entries:
                first, *others = entry.splitlines() or [entry]
                shown.append(f"- {first}")
                shown += [f"  {other}" for other in others]
        return tuple(shown)


KEYS: Final = tuple(field.name for field in fields(StructuredSummary))

_ABOUT: Final[Mapping[str, str]] = {
    "decisions": "What was decided, chosen, confirmed or done, and by whom.",
    "entities": "Persons, places, things, files, identifiers, dates and amounts, with what was said of them.",
    "constraints": "What must, must not or should be so, in the words of whoever said it.",
    "open_questions": "What was asked and not answered, and what is still to be done.",
    "tool_outcomes": "What each tool call brought, errors included.",
}

STRUCTURE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        name: {"type": "array", "items": {"type": "string"}, "description": _ABOUT[name]}
        for name in KEYS
    },
    "required": list(KEYS),
    "additionalProperties": False,
}
"""JSON Schema of it, for providers that bind an answer to one. What comes is read strictly all the same."""


def parse_structure(text: str) -> StructuredSummary:
    """Read a model's answer. Raises :class:`InvalidInput` naming the member; nothing is repaired (T7).

    One JSON object, with white space around it at most; exactly the five keys, each once; lists of texts
    that are not blank, well formed and without NUL; one statement at least in all.
    """
    members = _members(text)
    missing = [name for name in KEYS if name not in members]
    if missing:
        raise InvalidInput(f"{missing[0]} is missing", place=PLACE)
    unknown = sorted(members.keys() - set(KEYS))
    if unknown:
        raise InvalidInput(f"unknown key {unknown[0][:64]!r}", place=PLACE)
    summary = StructuredSummary(**{name: _entries(name, members[name]) for name in KEYS})
    if not summary.texts():
        raise InvalidInput("it says nothing", place=PLACE)
    return summary


def _members(text: str) -> dict[str, object]:
    try:
        found: object = _strict.decode(text)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInput("not one JSON value", place=PLACE) from error
    if not isinstance(found, dict):
        raise InvalidInput("not a JSON object", place=PLACE)
    return cast("dict[str, object]", found)


def _entries(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidInput(f"{name} is not a list", place=PLACE)
    entries = cast("list[object]", value)
    return tuple(_entry(f"{name}[{index}]", entry) for index, entry in enumerate(entries))


def _entry(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{where} is not text", place=PLACE)
    if is_blank(value):
        raise InvalidInput(f"{where} is blank", place=PLACE)
    if not is_well_formed(value) or "\x00" in value:
        raise InvalidInput(f"{where} has a lone surrogate or NUL", place=PLACE)
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON, in which no key may stand twice: who reads the last one would miss the first."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidInput("a key stands twice", place=PLACE)
    return members


def _no_constant(name: str) -> NoReturn:
    raise InvalidInput(f"{name} is not JSON", place=PLACE)


_strict = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
