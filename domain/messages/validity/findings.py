"""What the checkers have in common: a list of findings by message, and the calls that wait for a result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from compaction_ledger.domain.messages.interface import Problem

JsonObject = Mapping[str, Any]


class Spot(NamedTuple):
    """A place: the message's position in the list, and the part within it (empty for all of it)."""

    position: int
    part: str = ""

    def __str__(self) -> str:
        """As a :class:`Problem` names it."""
        return f"message {self.position} {self.part}".rstrip()

    def inside(self, part: str) -> Spot:
        """A place within this one, as ``content[2]`` and then ``.text``."""
        return Spot(self.position, f"{self.part}{part}")


class Findings:
    """The problems so far. They are told in the order of the messages, whenever they were found."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[tuple[int, Problem]] = []

    def add(self, code: str, spot: Spot, message: str) -> None:
        """One more problem."""
        self._found.append((spot.position, Problem(code, str(spot), message)))

    def told(self) -> list[Problem]:
        """All of them, by message."""
        return [problem for _, problem in sorted(self._found, key=lambda found: found[0])]


class _Orphan(NamedTuple):
    id: str
    spot: Spot
    time: int


class WaitingCalls:
    """Calls, and the results they wait for, in the order of the messages (T2, T4).

    A result that finds no call is told at the end: only then is it known whether its call came later.
    """

    __slots__ = ("_answered", "_findings", "_first_call", "_open", "_orphans", "_time")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._open: dict[str, Spot] = {}
        self._answered: set[str] = set()
        self._first_call: dict[str, int] = {}
        self._orphans: list[_Orphan] = []
        self._time = 0

    def __bool__(self) -> bool:
        """Whether a call waits."""
        return bool(self._open)

    def call(self, call_id: str, spot: Spot) -> None:
        """A call with this id, which must not be that of another call of the same batch."""
        self._time += 1
        self._first_call.setdefault(call_id, self._time)
        if call_id in self._open or call_id in self._answered:
            self._findings.add("duplicate_call", spot, f"another call has the id {call_id!a}, too")
        else:
            self._open[call_id] = spot

    def answer(self, call_id: str, spot: Spot) -> None:
        """A result for the call with this id."""
        self._time += 1
        if call_id in self._open:
            del self._open[call_id]
            self._answered.add(call_id)
        elif call_id in self._answered:
            self._findings.add(
                "duplicate_result", spot, f"the call {call_id!a} has a result already"
            )
        else:
            self._orphans.append(_Orphan(call_id, spot, self._time))

    def waiting(self) -> list[tuple[str, Spot]]:
        """The calls without a result, each with its place."""
        return list(self._open.items())

    def close(self, code: str) -> None:
        """No result can come any more: the calls that wait are told with ``code``, and a batch begins."""
        for call_id, spot in self._open.items():
            end = "yet" if code == "pending_call" else "where it has to be"
            self._findings.add(code, spot, f"the call {call_id!a} has no result {end}")
        self._open = {}
        self._answered = set()

    def finish(self) -> None:
        """Tell the results that found no call."""
        for orphan in self._orphans:
            if self._first_call.get(orphan.id, 0) > orphan.time:
                code, why = "result_before_call", "stands before its call"
            else:
                code, why = "orphan_result", "answers no call that waits for it"
            self._findings.add(code, orphan.spot, f"the result for {orphan.id!a} {why}")
        self._orphans = []


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list | tuple)


def objects(
    values: object, member: str, spot: Spot, findings: Findings
) -> Iterator[tuple[Spot, JsonObject]]:
    """The objects in a list, each with its place; whatever else stands there is a problem."""
    if not is_list(values):
        findings.add("malformed", spot, f"{member} is no list")
        return
    for index, value in enumerate(values):
        here = spot.inside(f"{member}[{index}]" if not spot.part else f".{member}[{index}]")
        if is_object(value):
            yield here, value
        else:
            findings.add("not_an_object", here, "it is no JSON object")


def a_string(value: JsonObject, member: str, spot: Spot, findings: Findings) -> str | None:
    """A member that has to be a string, or ``None`` after telling that it is none."""
    found = value.get(member)
    if isinstance(found, str):
        return found
    findings.add("malformed", spot, f"{member} is missing or no string")
    return None


def check_text(text: str, spot: Spot, findings: Findings) -> None:
    """A text block of a provider that takes neither empty nor blank ones."""
    if not text:
        findings.add("empty_text", spot, "the text is empty")
    elif not text.strip():
        findings.add("blank_text", spot, "the text has nothing but white space")


def check_pattern(
    code: str, text: str, pattern: re.Pattern[str], spot: Spot, findings: Findings
) -> bool:
    """Whether an id or a name is one that the provider takes; tells it, if not."""
    if pattern.fullmatch(text):
        return True
    what = "id" if code == "bad_id" else "name"
    findings.add(code, spot, f"the {what} {text[:80]!a} does not match {pattern.pattern}")
    return False
