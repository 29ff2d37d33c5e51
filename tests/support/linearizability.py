"""Whether calls that overlapped could have been carried out one after the other, each within its time.

A history is linearizable if there is such an order in which a plain model gives just the answers that were
given. Two ways to find one, and :func:`prove`, which trusts neither:

- :func:`search` looks for it among all orders, after Wing and Gong, with the memory of what was tried that
  Lowe added. It needs nothing but the calls. Where much overlaps it may take too long.
- :func:`by_places` takes the order from a log, in which every call that changed something has its place; only
  the calls that changed nothing are yet to be put in. That takes no longer than to read the history.

A history of several things that have nothing to do with each other is linearizable if that of each is
(Herlihy and Wing): so each is looked at by itself.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)
What = TypeVar("What")
What_contra = TypeVar("What_contra", contravariant=True)

LIMIT = 200_000


class NotLinearizable(AssertionError):
    """There is no such order; or the one at hand is none, and the message says where."""


class TooMuch(Exception):
    """More was tried than was allowed: nothing is known."""


@dataclass(frozen=True, slots=True)
class Call(Generic[What]):
    """A call, by a clock that all callers share; ``returned`` is ``None`` where it was never heard of again.

    ``what`` is what was asked and answered, for the model. ``place`` says where in the log stands what it
    did, if it did anything. A call that never returned may have been carried out at any later time, or never.
    """

    name: str
    what: What
    called: int
    returned: int | None
    place: int | None = None


class Model(Protocol[State, What_contra]):
    """What the thing is meant to be, to one caller at a time."""

    @property
    def start(self) -> State:
        """How it is in the beginning."""
        ...

    def after(self, state: State, what: What_contra) -> Iterable[State]:
        """How it may be after this call; not at all, where such a call has another answer."""
        ...


# --- an order is checked ------------------------------------------------------------------------


def prove(
    order: Sequence[Call[What]], calls: Iterable[Call[What]], model: Model[State, What]
) -> None:
    """Check that ``order`` makes ``calls`` linearizable. Raises :class:`NotLinearizable`."""
    _has_all(order, calls)
    _is_in_time(order)
    states = {model.start}
    for number, call in enumerate(order):
        states = {after for state in states for after in model.after(state, call.what)}
        if not states:
            raise NotLinearizable(f"{number}: {call} is not what the model does there")


def _has_all(order: Sequence[Call[What]], calls: Iterable[Call[What]]) -> None:
    """Each call that returned, and perhaps others of the history; each once."""
    known = {id(call): call for call in calls}
    ordered = {id(call) for call in order}
    if len(ordered) < len(order) or not known.keys() >= ordered:
        raise NotLinearizable("the order has calls that were not made, or one of them twice")
    for number, call in known.items():
        if call.returned is not None and number not in ordered:
            raise NotLinearizable(f"{call} is missing")


def _is_in_time(order: Sequence[Call[What]]) -> None:
    """No call stands behind one that was made only after it had returned."""
    latest: Call[What] | None = None
    for call in order:
        if latest is not None and call.returned is not None and call.returned < latest.called:
            raise NotLinearizable(
                f"{call} had returned before {latest} was made, and stands behind it"
            )
        if latest is None or call.called > latest.called:
            latest = call


# --- an order is looked for ---------------------------------------------------------------------


def search(
    calls: Sequence[Call[What]], model: Model[State, What], limit: int = LIMIT
) -> list[Call[What]]:
    """An order that makes ``calls`` linearizable; places do not matter.

    Raises :class:`NotLinearizable` where there is none, and :class:`TooMuch` after ``limit`` steps.
    """
    ranked = sorted(calls, key=lambda call: call.called)
    wanted = sum(1 << n for n, call in enumerate(ranked) if call.returned is not None)
    state, done = model.start, 0
    seen = {(done, state)}
    path: list[int] = []
    nexts = [_next(ranked, done, state, model)]
    deepest: list[int] = []
    while wanted & ~done:
        if len(seen) > limit:
            raise TooMuch(f"{limit} steps did not tell")
        for number, after in nexts[-1]:
            new = (done | 1 << number, after)
            if new not in seen:
                seen.add(new)
                path.append(number)
                break
        else:
            nexts.pop()
            if not nexts:
                raise NotLinearizable(_stuck(ranked, deepest))
            number = path.pop()
            done ^= 1 << number
            continue
        done, state = new
        nexts.append(_next(ranked, done, state, model))
        deepest = max(deepest, path[:], key=len) if len(path) > len(deepest) else deepest
    order = [ranked[number] for number in path]
    prove(order, calls, model)
    return order


def _next(
    ranked: Sequence[Call[What]], done: int, state: State, model: Model[State, What]
) -> Iterator[tuple[int, State]]:
    """The calls that may be next: none of those left had returned before they were made."""
    end: int | None = None
    for number, call in enumerate(ranked):
        if end is not None and call.called > end:
            return
        if done >> number & 1:
            continue
        if call.returned is not None:
            end = call.returned if end is None else min(end, call.returned)
        for after in model.after(state, call.what):
            yield number, after


def _stuck(ranked: Sequence[Call[What]], deepest: Sequence[int]) -> str:
    """How far it goes, for whoever has to find out why."""
    left = [call for number, call in enumerate(ranked) if number not in set(deepest)]
    before = "\n  ".join(str(ranked[number]) for number in deepest[-5:])
    return (
        f"behind {len(deepest)} calls, at last\n  {before}\nno order goes on, first with {left[:3]}"
    )


# --- an order is taken from the log -------------------------------------------------------------


def by_places(calls: Sequence[Call[What]], model: Model[State, What]) -> list[Call[What]]:
    """The order of the log, with the calls put in that have no place. Raises :class:`NotLinearizable`.

    What never returned and has no place did nothing, and is left out.
    """
    placed = sorted((call for call in calls if call.place is not None), key=lambda c: c.place or 0)
    states = _states(placed, model)
    rooms = _Rooms(placed)
    behind: list[list[Call[What]]] = [[] for _ in states]
    floors = _Floors()
    unplaced = [call for call in calls if call.place is None and call.returned is not None]
    for call in sorted(unplaced, key=lambda call: call.called):
        first, last = rooms.of(call)
        first = max(first, floors.below(call.called))
        for room in range(first, last + 1):
            if any(True for state in states[room] for _ in model.after(state, call.what)):
                break
        else:
            raise NotLinearizable(
                f"{call} fits nowhere behind {first} to {last} of the calls with places, "
                f"as it was then: {[states[room] for room in range(first, last + 1)]}"
            )
        behind[room].append(call)
        floors.add(call.returned or 0, room)
    order = behind[0] + [
        call for number, here in enumerate(placed, 1) for call in (here, *behind[number])
    ]
    prove(order, calls, model)
    return order


def _states(placed: Sequence[Call[What]], model: Model[State, What]) -> list[set[State]]:
    """How it may be behind each of the calls with places, and before them."""
    states = [{model.start}]
    for call in placed:
        states.append({after for state in states[-1] for after in model.after(state, call.what)})
        if not states[-1]:
            raise NotLinearizable(f"{call} is not what the model does, of {states[-2]}")
    return states


class _Rooms:
    """Between which calls with places another may stand. Room 0 is before them all."""

    def __init__(self, placed: Sequence[Call[What]]) -> None:
        returned = sorted(
            (call.returned, room)
            for room, call in enumerate(placed, 1)
            if call.returned is not None
        )
        self._returned = [at for at, _ in returned]
        self._lasts = list(accumulate((room for _, room in returned), max))
        made = sorted(((call.called, room) for room, call in enumerate(placed)), reverse=True)
        self._made = [at for at, _ in reversed(made)]
        self._firsts = list(accumulate((room for _, room in made), min))[::-1]
        self._all = len(placed)

    def of(self, call: Call[What]) -> tuple[int, int]:
        """The first and the last of its rooms: behind what had returned, before what was made later."""
        assert call.returned is not None
        over = bisect_left(self._returned, call.called)
        later = bisect_right(self._made, call.returned)
        return (
            self._lasts[over - 1] if over else 0,
            self._firsts[later] if later < len(self._firsts) else self._all,
        )


class _Floors:
    """The rooms of calls without places that had returned before another was made."""

    def __init__(self) -> None:
        self._running: list[tuple[int, int]] = []
        self._floor = 0

    def add(self, returned: int, room: int) -> None:
        heapq.heappush(self._running, (returned, room))

    def below(self, called: int) -> int:
        """The last room of those. Asked for times that never decrease."""
        while self._running and self._running[0][0] < called:
            self._floor = max(self._floor, heapq.heappop(self._running)[1])
        return self._floor
