"""What is the same in every index: the two tiers of an answer, and how places are read from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compaction_ledger.domain.history import HistoryQuery, Place, Source


class Ranked(NamedTuple):
    """A place, with the key of its row."""

    key: int
    place: Place


def by_tiers(
    side_by_side: Callable[[int], Sequence[Ranked]] | None,
    all_words: Callable[[int], Sequence[Ranked]],
    start: int,
    count: int,
) -> list[Place]:
    """The places from the ``start``-th on: those that have the words side by side, then the others.

    Each tier is asked for its first so many rows.
    """
    end = start + count
    first: Sequence[Ranked] = side_by_side(end) if side_by_side else ()
    if len(first) < end:
        known = {one.key for one in first}
        first = [*first, *(one for one in all_words(end) if one.key not in known)]
    return [one.place for one in first[start:end]]


def is_asked_for(place: Place, query: HistoryQuery) -> bool:
    """Whether role, pair and time are those that are asked for."""
    if query.roles is not None and place.role not in query.roles:
        return False
    if query.first is not None and place.pair < query.first:
        return False
    if query.last is not None and place.pair > query.last:
        return False
    if query.since is None and query.until is None:
        return True
    at = place.at
    if at is None or (query.since is not None and at < query.since):
        return False
    return query.until is None or at < query.until


def conditions(query: HistoryQuery, table: str, parameter: str) -> tuple[str, list[Any]]:
    """As :func:`is_asked_for`, as SQL behind a ``WHERE`` clause: names of our own, and parameters."""
    clauses: list[str] = []
    values: list[Any] = []
    if query.roles is not None:
        roles = sorted(query.roles)
        clauses.append(f"{table}.role IN ({', '.join([parameter] * len(roles))})")
        values.extend(roles)
    for column, sign, value in (
        ("pair", ">=", query.first),
        ("pair", "<=", query.last),
        ("at", ">=", query.since),
        ("at", "<", query.until),
    ):
        if value is not None:
            clauses.append(f"{table}.{column} {sign} {parameter}")
            values.append(value)
    if query.roles is not None and not query.roles:
        return " AND false", []
    return "".join(f" AND {clause}" for clause in clauses), values


def place_of(row: Sequence[Any]) -> Place:
    """A place of run, message id, position, part, role, pair and time."""
    run, message_id, position, part, role, pair, at = row
    source: Source = "conversation" if run is None else "run"
    return Place(source, run, message_id, position, part, role, pair, at)
