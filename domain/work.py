"""The work list: which conversations to look at next. A hint, never a decision: the claim decides (W3, A8).

::

                  noticed                  taken
      (unknown) ----------> due, in turn ---------> leased
                              ^      ^                |
            its time has come |      | noticed anew   | looked at, or the lease is over
                              |      |                |
                           waiting  idle <------------+

Who is due has a turn, a number; the lowest is served first. What becomes due in one scope gets turns one
apart, and a scope that had nothing to do joins at the present turn: so the scopes are served in rounds,
whatever is due in one of them, and nobody saves up turns or loses them by having had nothing to do.

Everything here can be lost and is found again by looking at the transcripts. Times are microseconds, by the
store's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A conversation that was taken. ``taking`` tells this taking from all others of the conversation.

    ``failures`` counts the errors that looking at it has met in a row.
    """

    scope: str
    conversation: str
    taking: int
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many conversations are to be looked at now (``due``), are with a worker, or wait for their time.

    ``oldest_due`` is for how many microseconds the first of the due ones has been so; ``None`` if none is.
    ``failing`` counts those of the waiting ones that met an error when they were last looked at.
    """

    due: int = 0
    leased: int = 0
    waiting: int = 0
    oldest_due: int | None = None
    failing: int = 0


class Found(NamedTuple):
    """A conversation of the transcripts and its revision there, if one is kept."""

    scope: str
    conversation: str
    revision: str | None


def present_turn(lowest_due: int | None, last: Iterable[int]) -> int:
    """The turn that is served now: the lowest of those who are due, else the last that was given to any."""
    return max(last, default=0) if lowest_due is None else lowest_due


def give_turns(scopes: Iterable[str], last: dict[str, int], present: int) -> list[int]:
    """A turn for each of these, in order. ``last`` has each scope's last turn, and is brought up to date."""
    given: list[int] = []
    for scope in scopes:
        last[scope] = max(present, last.get(scope, present - 1) + 1)
        given.append(last[scope])
    return given
