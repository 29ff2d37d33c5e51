"""How calls and results of a transcript fit together, whatever its shape (T2), and where it may be cut (T4).

A call without an id never comes this far: the shapes refuse such a message when they read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction_ledger.domain.messages.interface import Answered, Call, Entry, Problem


class Walk:
    """What one pass over the entries of a transcript finds; they may come a few at a time. O(n).

    ``boundaries``: the indices before which a cut is safe (T4): a user's own turn begins there, and no call
    is open. Open is a call until its result has come, however far behind, in whatever order and spread over
    however many messages. A call that is never answered stays open: there is no boundary behind it.
    ``instructions``: the indices of the system's messages.
    """

    __slots__ = ("_count", "_is_odd", "_waiting", "boundaries", "instructions")

    def __init__(self) -> None:
        self.boundaries: list[int] = []
        self.instructions: list[int] = []
        # Calls by id; one may be in use twice where all is broken.
        self._waiting: dict[str, int] = {}
        self._count = 0
        self._is_odd = False

    @property
    def is_sound(self) -> bool:
        """Whether every call has one result behind it, and nothing else: then there are no problems (T2).

        Of what is not it has to be looked closer whether it is one: :func:`structural_problems`.
        """
        return not (self._is_odd or self._waiting)

    def add(self, entries: Iterable[Entry]) -> None:
        """Go on with these."""
        waiting, index = self._waiting, self._count
        for _, role, _, calls, results, begins_turn in entries:
            if begins_turn:
                if not waiting:
                    self.boundaries.append(index)
            elif role == "system":
                self.instructions.append(index)
            for call_id, _ in results:
                count = waiting.get(call_id, 0)
                if count > 1:
                    waiting[call_id] = count - 1
                elif count:
                    del waiting[call_id]
                else:
                    self._is_odd = True
            for call_id, _, _ in calls:
                if call_id in waiting:
                    self._is_odd = True
                    waiting[call_id] += 1
                else:
                    waiting[call_id] = 1
            index += 1
        self._count = index


def boundaries(entries: Iterable[Entry]) -> list[int]:
    """The indices before which a cut is safe (T4): see :class:`Walk`."""
    walk = Walk()
    walk.add(entries)
    return walk.boundaries


def open_calls(entries: Iterable[Entry]) -> list[tuple[Entry, Call]]:
    """The calls that wait for their results at the end of ``entries``, in order."""
    waiting: dict[str, list[tuple[Entry, Call]]] = {}
    for entry in entries:
        for result in entry.results:
            if waiting.get(result.call_id):
                waiting[result.call_id].pop(0)
        for call in entry.calls:
            waiting.setdefault(call.id, []).append((entry, call))
    left = [each for calls in waiting.values() for each in calls]
    return sorted(left, key=lambda each: (each[0].position, each[1].part))


def structural_problems(entries: Sequence[Entry]) -> list[Problem]:
    """Everything that is broken between calls and results (T2); ``[]`` for a sound transcript.

    Codes: ``result_without_call`` (no call of this id anywhere), ``result_before_call`` (a call of this id
    only comes later), ``result_again`` (the call has its result already), ``duplicate_call`` (a second
    call with an id whose first call is still open).

    ``unanswered_call``: a call without any result, and the user has spoken again behind it.

    An id that is used again after its call was answered is sound; it happens. At the end of a transcript a
    call without a result is no problem: it may still come.

    The empty id is an id like any other, but some providers give no other one. So parallel calls with
    the empty id in one message are sound if just as many results with the empty id follow directly, with
    nothing but results in between: then all of them are answered. The wire does not say which by which,
    and nothing here depends on it. While results are still to come at the end of the transcript, nothing
    is wrong yet. Everywhere else two open calls with the empty id are a ``duplicate_call``.
    """
    return _Checking().problems(entries)


class _Checking:
    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._called: set[str] = set()
        self._found: list[Problem] = []
        self._orphans: list[tuple[int, str]] = []  # place in ``_found``, and the id
        self._nameless: Problem | None = (
            None  # parallel calls with the empty id, while it is still sound
        )

    def problems(self, entries: Sequence[Entry]) -> list[Problem]:
        for entry in entries:
            if not entry.results:
                self._nothing_between()
            for result in entry.results:
                self._result(entry, result)
            if entry.calls:
                self._calls(entry)
        for place, call_id in self._orphans:
            if call_id in self._called:
                self._found[place] = _before(self._found[place], call_id)
        if self._open:
            self._found += _never_answered(entries)
        return self._found

    def _result(self, entry: Entry, result: Answered) -> None:
        call_id = result.call_id
        count = self._open.get(call_id, 0)
        if count > 1:
            self._open[call_id] = count - 1
        elif count:
            del self._open[call_id]
            if not call_id:
                self._nameless = None
        elif call_id in self._called:
            message = f"a result for the call {call_id!r}, which has its result already"
            self._found.append(_problem("result_again", entry, result.part, message))
        else:
            self._orphans.append((len(self._found), call_id))
            message = f"a result for the call {call_id!r}, which nothing has made"
            self._found.append(_problem("result_without_call", entry, result.part, message))

    def _calls(self, entry: Entry) -> None:
        self._nothing_between()
        fresh = "" not in self._open
        for call in entry.calls:
            count = self._open.get(call.id, 0)
            self._open[call.id] = count + 1
            self._called.add(call.id)
            if count:
                self._second(entry, call, parallel=fresh and not call.id)

    def _second(self, entry: Entry, call: Call, *, parallel: bool) -> None:
        message = f"a second call with the id {call.id!r}, whose first call is still open"
        problem = _problem("duplicate_call", entry, call.part, message)
        if not parallel:
            self._found.append(problem)
        elif self._nameless is None:
            self._nameless = problem

    def _nothing_between(self) -> None:
        """Something else came before all parallel calls with the empty id had their results."""
        if self._nameless is not None:
            self._found.append(self._nameless)
            self._nameless = None


def _never_answered(entries: Sequence[Entry]) -> list[Problem]:
    """The calls without any result behind which the user has spoken again: no provider takes those."""
    last = max((entry.position for entry in entries if entry.begins_turn), default=-1)
    return [
        _problem("unanswered_call", entry, call.part, f"the call {call.id!r} never has a result")
        for entry, call in open_calls(entries)
        if entry.position < last
    ]


def _problem(code: str, entry: Entry, part: int, message: str) -> Problem:
    return Problem(code, f"message {entry.position} part {part}", message)


def _before(orphan: Problem, call_id: str) -> Problem:
    message = f"a result for the call {call_id!r}, which is made only later"
    return Problem("result_before_call", orphan.place, message)
