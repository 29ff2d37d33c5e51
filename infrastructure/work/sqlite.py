"""The work list in the ledger's own SQLite file, in tables that are made when they are first used."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.resources import files
from typing import TypeVar

from compaction_ledger.domain.ports import NoticeGuard, Transcripts
from compaction_ledger.domain.work import Backlog, Found, WorkItem, give_turns, present_turn
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.sqlite.formats import statements
from compaction_ledger.infrastructure.work.discovery import (
    PAGE,
    SECOND,
    checked_places,
    discover,
    in_pages,
    pages_of,
)

T = TypeVar("T")

RIPE = 1_000
"""At most so many get their turns at once, when their time has come."""

_IS_MADE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'work_periods'"

_ANYTHING = (
    "SELECT EXISTS (SELECT 1 FROM work_items WHERE turn IS NOT NULL) "
    "OR EXISTS (SELECT 1 FROM work_items WHERE turn IS NULL AND due_at <= ?)"
)
_RIPE = (
    "SELECT scope, conversation FROM work_items WHERE turn IS NULL AND due_at <= ? "
    "ORDER BY due_at, scope, conversation LIMIT ?"
)
_NEXT = (
    "SELECT scope, conversation, failures FROM work_items WHERE turn IS NOT NULL "
    "ORDER BY turn, due_at, scope, conversation LIMIT ?"
)
_TAKE = (
    "UPDATE work_items SET turn = NULL, due_at = ?, holder = ?, taking = ?, noticed = 0 "
    "WHERE scope = ? AND conversation = ?"
)
_TURN = "UPDATE work_items SET turn = ?, holder = NULL, taking = NULL WHERE scope = ? AND conversation = ?"
_PLACES = (
    "SELECT scope, conversation FROM work_items WHERE (scope, conversation) > (?, ?) "
    "ORDER BY scope, conversation LIMIT ?"
)
_PRESENT = (
    "SELECT (SELECT min(turn) FROM work_items WHERE turn IS NOT NULL), "
    "(SELECT max(last_turn) FROM work_scopes)"
)


@cache
def _script(name: str) -> str:
    folder = files("compaction_ledger.infrastructure.sqlite").joinpath("work")
    return folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")


class SQLiteWorkList:
    """The work list of a file. ``embedded`` are the transcripts that stand in the same file."""

    def __init__(self, database: Database, clock: Callable[[], int], embedded: Transcripts) -> None:
        self._database = database
        self._clock = clock
        self._embedded = embedded
        self._is_made = False

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        """Say "look at these"; returns for how many that is news."""
        return sum(map(self._notice, in_pages(checked_places(conversations))))

    def _notice(self, page: Sequence[tuple[str, str]]) -> int:
        def work(cursor: sqlite3.Cursor) -> int:
            now = self._clock()
            cursor.executemany(_script("notice"), [(*place, now) for place in page])
            news = cursor.rowcount
            _ripen(cursor, now)
            return news

        return self._write(work)

    def take(self, holder: str, limit: int, lease_seconds: float) -> Sequence[WorkItem]:
        """At most so many that are due, the scopes in rounds."""
        if not self._has_tables() or not self._has_something():
            return []  # nobody who looks in vain keeps writers waiting

        def work(cursor: sqlite3.Cursor) -> list[WorkItem]:
            now, taking = self._clock(), secrets.randbits(62)
            until = now + int(lease_seconds * SECOND)
            _ripen(cursor, now)
            rows = cursor.execute(_NEXT, (limit,)).fetchall()
            cursor.executemany(_TAKE, [(until, holder, taking, *row[:2]) for row in rows])
            return [WorkItem(scope, name, taking, failures) for scope, name, failures in rows]

        return self._write(work)

    def looked(
        self,
        item: WorkItem,
        again_at: int | None,
        revision: str | None,
        *,
        view: str = "",
        failures: int = 0,
    ) -> None:
        """It was looked at; it is due again at that time, or when it is noticed."""
        self._write(
            lambda cursor: cursor.execute(
                _script("looked"),
                (self._clock(), again_at, revision, view, failures, *_of(item)),
            )
        )

    def drop(self, item: WorkItem) -> None:
        """The conversation is not there any more."""
        self._write(
            lambda cursor: cursor.execute(
                "DELETE FROM work_items WHERE scope = ? AND conversation = ? AND taking = ? AND NOT noticed",
                _of(item),
            )
        )
        self.looked(item, None, None)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        self._write(
            lambda cursor: cursor.execute(
                "DELETE FROM work_items WHERE scope = ? AND conversation = ?", (scope, conversation)
            )
        )

    def places(self) -> Iterator[tuple[str, str]]:
        """Every scope and conversation that is known, read page by page as they are taken."""
        if not self._has_tables():
            return
        after = ("", "")
        while True:
            with self._database.transaction(commit=False) as cursor:
                page: list[tuple[str, str]] = cursor.execute(_PLACES, (*after, PAGE)).fetchall()
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]

    def backlog(self) -> Backlog:
        """How much there is to do."""
        if not self._has_tables():
            return Backlog()
        with self._database.transaction(commit=False) as cursor:
            now = self._clock()
            row = cursor.execute(_script("backlog"), (now,)).fetchone()
        due, leased, waiting, oldest, failing = row
        return Backlog(due, leased, waiting, None if oldest is None else now - oldest, failing)

    def hints(self, heard: Callable[[], None]) -> AbstractContextManager[object]:  # noqa: ARG002
        """None: a file tells nobody."""
        return nullcontext()

    # --- discovery ---

    def discover(
        self,
        transcripts: Transcripts,
        *,
        view: str | None = None,
        every: float = 0.0,
        guard: NoticeGuard | None = None,
    ) -> int | None:
        """Notice the conversations whose revision is not the one that was looked at."""
        self._write(lambda _: None)  # so that there are tables to compare with

        def pages(view: str | None) -> Iterator[Sequence[Found]]:
            if transcripts is self._embedded:
                return self._changed_pages(view)
            return pages_of(transcripts)

        return discover(self, pages, view=view, every=every, guard=guard)

    def _changed_pages(self, view: str | None) -> Iterator[Sequence[Found]]:
        after = ("", "")
        while True:
            with self._database.transaction(commit=False) as cursor:
                rows = cursor.execute(_script("changed"), (*after, view, PAGE)).fetchall()
            page = list(map(Found._make, rows))
            yield page
            if len(page) < PAGE:
                return
            after = page[-1][:2]

    def notice_changed(self, page: Sequence[Found], view: str | None) -> int:
        """Notice those of a page that were not looked at as they are now; how many."""
        if not page:
            return 0

        def work(cursor: sqlite3.Cursor) -> int:
            now = self._clock()
            cursor.executemany(
                _script("notice_changed"),
                [(scope, name, now, revision, view) for scope, name, revision in page],
            )
            news = cursor.rowcount
            _ripen(cursor, now)
            return news

        return self._write(work)

    def now(self) -> int:
        """The store's clock."""
        return self._clock()

    def begin_period(self, name: str, seconds: float) -> bool:
        """Whether the last period of this name is over: then one begins, for one caller alone."""

        def work(cursor: sqlite3.Cursor) -> bool:
            now = self._clock()
            cursor.execute(
                "INSERT INTO work_periods AS p VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE "
                "SET next_at = ?2 WHERE p.next_at <= ?3",
                (name, now + int(seconds * SECOND), now),
            )
            return cursor.rowcount == 1

        return self._write(work)

    def extend_period(self, name: str, seconds: float) -> None:
        """Let the period last so long from now on, at least."""
        self._write(
            lambda cursor: cursor.execute(
                "UPDATE work_periods SET next_at = max(next_at, ?) WHERE name = ?",
                (self._clock() + int(seconds * SECOND), name),
            )
        )

    # --- inside ---

    def _write(self, work: Callable[[sqlite3.Cursor], T]) -> T:
        with self._database.transaction(commit=True, durable=False) as cursor:
            if not self._is_made:
                self._make(cursor)
            found = work(cursor)
        self._is_made = True
        return found

    def _make(self, cursor: sqlite3.Cursor) -> None:
        if cursor.execute(_IS_MADE).fetchone():
            return
        for statement in statements(_script("tables")):
            cursor.execute(statement)

    def _has_tables(self) -> bool:
        if not self._is_made:
            with self._database.transaction(commit=False) as cursor:
                self._is_made = cursor.execute(_IS_MADE).fetchone() is not None
        return self._is_made

    def _has_something(self) -> bool:
        with self._database.transaction(commit=False) as cursor:
            return bool(cursor.execute(_ANYTHING, (self._clock(),)).fetchone()[0])


def _of(item: WorkItem) -> tuple[str, str, int]:
    return item.scope, item.conversation, item.taking


def _ripen(cursor: sqlite3.Cursor, now: int) -> None:
    """Give turns to those whose time has come, or whose lease is over."""
    ripe: list[tuple[str, str]] = cursor.execute(_RIPE, (now, RIPE)).fetchall()
    if not ripe:
        return
    scopes = [scope for scope, _ in ripe]
    last = {scope: turn for scope in set(scopes) for turn in _last_turn(cursor, scope)}
    lowest, highest = cursor.execute(_PRESENT).fetchone()
    given = give_turns(scopes, last, present_turn(lowest, [highest or 0]))
    cursor.executemany(_TURN, [(turn, *place) for turn, place in zip(given, ripe, strict=True)])
    cursor.executemany("INSERT OR REPLACE INTO work_scopes VALUES (?, ?)", list(last.items()))


def _last_turn(cursor: sqlite3.Cursor, scope: str) -> list[int]:
    rows = cursor.execute("SELECT last_turn FROM work_scopes WHERE scope = ?", (scope,)).fetchall()
    return [turn for (turn,) in rows]
