"""Plants constraints in a user's messages, to see at the end of a long run that none was lost (T9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

CONSTRAINTS = (
    "No nuts, please.",
    "My budget is at most 4,000 EUR.",
    "Only Luxembourg funds.",
    "Never book Ryanair, unless it's the only direct flight.",
    "I'm allergic to penicillin.",
    "Deliver by 12 March 2026 at the latest.",
    "Do not change the file config.yaml.",
    "The hotel must have at least 4.5 stars.",
    "Always answer in English.",
    "Keep every report under 2 pages.",
    "Nicht vor dem 3. Mai buchen.",
    "Pas plus de 3 escales, s'il te plaît.",
    "不要超过五千元。",
    "ナッツは絶対に入れないでください。",
    "Не более 500 евро за ночь.",
)
"""Fifteen rules in seven languages, each a sentence of its own."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A constraint, the number of the user's turn it was said in, and the words of that turn."""

    constraint: str
    turn: int
    text: str


def plant(
    message: Callable[[int, str], str], constraints: Sequence[str], places: Sequence[int]
) -> dict[int, Planted]:
    """By turn, the user's words with the constraint of that turn among them.

    ``message(turn, constraint)`` builds those words, for example with a question behind the constraint; it
    has to leave the constraint as it is, as sentences of their own. ``places`` are turns from zero, one for
    each constraint, all different.
    """
    if len(places) != len(constraints) or len(set(places)) != len(places):
        raise ValueError("each constraint needs a turn of its own")
    planted: dict[int, Planted] = {}
    for constraint, turn in zip(constraints, places, strict=True):
        text = message(turn, constraint)
        if text.count(constraint) != 1:
            raise ValueError(f"turn {turn} does not say {constraint!r} once")
        planted[turn] = Planted(constraint, turn, text)
    return planted


def spread(count: int, turns: int) -> list[int]:
    """``count`` different turns of ``turns``, evenly from the first on."""
    if not 0 < count <= turns:
        raise ValueError(f"{count} constraints do not fit into {turns} turns")
    return [index * turns // count for index in range(count)]


def lost(planted: Mapping[int, Planted], request: str) -> list[Planted]:
    """The constraints that do not stand in ``request``, character for character."""
    return [each for each in planted.values() if each.constraint not in request]
