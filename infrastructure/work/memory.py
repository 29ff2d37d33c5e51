"""The work list in memory, for users' own tests."""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import RLock

from compaction_ledger.domain.ports import NoticeGuard, Transcripts
from compaction_ledger.domain.work import Backlog, Found, WorkItem, give_turns, present_turn
from compaction_ledger.infrastructure.work.discovery import (
    SECOND,
    checked_places,
    discover,
    pages_of,
)


@dataclass(slots=True)
class _Entry:
    due_at: int | None = None
    turn: int | None = None
    holder: str | None = None
    taking: int | None = None
    noticed: bool = False
    failures: int = 0
    revision: str | None = None
    view: str = ""


class MemoryWorkList:
    """A work list in dictionaries, with the promises of the others."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = RLock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._last: dict[str, int] = {}
        self._periods: dict[str, int] = {}
        # Heaps in the order of service. What no longer fits its entry is passed over.
        self._due: list[tuple[int, int, str, str]] = []
        self._to_come: list[tuple[int, str, str]] = []

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        places = checked_places(conversations)
        with self._lock:
            return self._notice(places, self._clock())

    def _notice(self, places: Iterable[tuple[str, str]], now: int) -> int:
        news = 0
        for place in places:
            entry = self._entries.setdefault(place, _Entry())
            due = entry.due_at is not None and entry.due_at <= now
            if entry.taking is not None and not due:
                news += not entry.noticed
                entry.noticed = True
            elif not due:
                news += 1
                self._set_due(place, entry, now)
        self._ripen(now)
        return news

    def discover(
        self,
        transcripts: Transcripts,
        *,
        view: str | None = None,
        every: float = 0.0,
        guard: NoticeGuard | None = None,
    ) -> int | None:
        return discover(self, lambda _: pages_of(transcripts), view=view, every=every, guard=guard)

    def take(self, holder: str, limit: int, lease_seconds: float) -> Sequence[WorkItem]:
        taken: list[WorkItem] = []
        taking = secrets.randbits(62)
        with self._lock:
            now = self._clock()
            self._ripen(now)
            while self._due and len(taken) < limit:
                turn, due_at, scope, conversation = heapq.heappop(self._due)
                entry = self._entries.get((scope, conversation))
                if entry is None or (entry.turn, entry.due_at) != (turn, due_at):
                    continue
                entry.holder, entry.taking, entry.noticed = holder, taking, False
                self._set_due((scope, conversation), entry, now + int(lease_seconds * SECOND))
                taken.append(WorkItem(scope, conversation, taking, entry.failures))
        return taken

    def looked(
        self,
        item: WorkItem,
        again_at: int | None,
        revision: str | None,
        *,
        view: str = "",
        failures: int = 0,
    ) -> None:
        with self._lock:
            place = (item.scope, item.conversation)
            entry = self._entries.get(place)
            if entry is None or entry.taking != item.taking:
                return
            again = self._clock() if entry.noticed else again_at
            entry.holder = entry.taking = None
            entry.revision, entry.view, entry.failures = revision, view, failures
            self._set_due(place, entry, again)

    def drop(self, item: WorkItem) -> None:
        with self._lock:
            entry = self._entries.get((item.scope, item.conversation))
            if entry is not None and entry.taking == item.taking and not entry.noticed:
                self.forget(item.scope, item.conversation)
            self.looked(item, None, None)

    def forget(self, scope: str, conversation: str) -> None:
        with self._lock:
            self._entries.pop((scope, conversation), None)

    def places(self) -> Iterable[tuple[str, str]]:
        with self._lock:
            return sorted(self._entries)

    def backlog(self) -> Backlog:
        with self._lock:
            now = self._clock()
            known = [(e.due_at, e) for e in self._entries.values() if e.due_at is not None]
            due = [at for at, _ in known if at <= now]
            later = [entry for at, entry in known if at > now]
            waiting = [entry for entry in later if entry.taking is None]
            return Backlog(
                due=len(due),
                leased=len(later) - len(waiting),
                waiting=len(waiting),
                oldest_due=now - min(due) if due else None,
                failing=sum(entry.failures > 0 for entry in waiting),
            )

    def hints(self, heard: Callable[[], None]) -> AbstractContextManager[object]:  # noqa: ARG002
        """None: all who look share this process."""
        return nullcontext()

    # --- discovery ---

    def now(self) -> int:
        return self._clock()

    def begin_period(self, name: str, seconds: float) -> bool:
        with self._lock:
            if self._clock() < self._periods.get(name, 0):
                return False
            self._periods[name] = self._clock() + int(seconds * SECOND)
            return True

    def extend_period(self, name: str, seconds: float) -> None:
        with self._lock:
            until = self._clock() + int(seconds * SECOND)
            self._periods[name] = max(until, self._periods.get(name, 0))

    def notice_changed(self, page: Sequence[Found], view: str | None) -> int:
        with self._lock:
            now = self._clock()
            return self._notice([found[:2] for found in page if self._is_news(found, view)], now)

    def _is_news(self, found: Found, view: str | None) -> bool:
        entry = self._entries.get(found[:2])
        if entry is None:
            return True
        if entry.taking is not None or entry.turn is not None:
            return False
        if view is not None and entry.view != view:
            return True
        if found.revision is None or entry.revision is None:
            return entry.due_at is None
        return found.revision != entry.revision

    # --- inside ---

    def _set_due(self, place: tuple[str, str], entry: _Entry, at: int | None) -> None:
        entry.due_at, entry.turn = at, None
        if at is not None:
            heapq.heappush(self._to_come, (at, *place))

    def _ripen(self, now: int) -> None:
        """Give turns to those whose time has come, or whose lease is over."""
        ripe: list[tuple[str, str]] = []
        while self._to_come and self._to_come[0][0] <= now:
            at, scope, conversation = heapq.heappop(self._to_come)
            entry = self._entries.get((scope, conversation))
            if entry is not None and entry.turn is None and entry.due_at == at:
                entry.holder = entry.taking = None
                entry.turn = 0
                ripe.append((scope, conversation))
        if not ripe:
            return
        present = present_turn(self._lowest_due(), self._last.values())
        given = give_turns((scope for scope, _ in ripe), self._last, present)
        for (scope, conversation), turn in zip(ripe, given, strict=True):
            entry = self._entries[scope, conversation]
            entry.turn = turn
            heapq.heappush(self._due, (turn, entry.due_at or 0, scope, conversation))

    def _lowest_due(self) -> int | None:
        while self._due:
            turn, due_at, scope, conversation = self._due[0]
            entry = self._entries.get((scope, conversation))
            if entry is not None and (entry.turn, entry.due_at) == (turn, due_at):
                return turn
            heapq.heappop(self._due)
        return None
