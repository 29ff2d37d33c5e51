"""The work list on PostgreSQL, for any number of takers: whoever takes passes over what others have locked.

The statements are functions of the database (``migrations/0005_work.sql``), each one short transaction:
they work through a pooler in transaction mode. None of them waits for the disk, since what is lost is found
again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from compaction_ledger.domain.ports import NoticeGuard, Transcripts
from compaction_ledger.domain.work import Backlog, Found, WorkItem
from compaction_ledger.infrastructure.postgres.database import Database, Lost, Values
from compaction_ledger.infrastructure.postgres.hints import HintListener, HintSender
from compaction_ledger.infrastructure.work.discovery import (
    PAGE,
    SECOND,
    checked_places,
    discover,
    in_pages,
    pages_of,
)

CHANGED_AT_ONCE = 20_000
"""So many changed conversations are asked for at once; for more of them the tables are read again."""

_ROUNDS = 10_000

_NOTICE = "SELECT {schema}.notice_work(%s::text[], %s::text[])"
_NOTICE_CHANGED = "SELECT {schema}.notice_changed_work(%s::text[], %s::text[], %s::text[], %s)"
_CHANGED = "SELECT scope, conversation, revision FROM {schema}.changed_work(%s, %s)"
_TAKE = "SELECT scope, conversation, failures FROM {schema}.take_work(%s, %s, %s, %s, %s)"
_LOOKED = "SELECT {schema}.note_look(%s, %s, %s, %s, %s, %s, %s::integer)"
_FORGET = "SELECT {schema}.forget_work(%s, %s, %s)"
_PLACES = "SELECT name, scope, conversation FROM {schema}.work_items WHERE name > %s ORDER BY name LIMIT %s"
_BEGIN = "SELECT {schema}.begin_work_period(%s, %s)"
_EXTEND = "SELECT {schema}.extend_work_period(%s, %s)"
_CLOCK = "SELECT {schema}.store_clock()"
_BACKLOG = (
    "SELECT count(*) FILTER (WHERE w.due_at <= c.moment), "
    "count(*) FILTER (WHERE w.due_at > c.moment AND w.taking IS NOT NULL), "
    "count(*) FILTER (WHERE w.due_at > c.moment AND w.taking IS NULL), "
    "c.moment - min(w.due_at) FILTER (WHERE w.due_at <= c.moment), "
    "count(*) FILTER (WHERE w.due_at > c.moment AND w.taking IS NULL AND w.failures > 0) "
    "FROM (SELECT {schema}.store_clock() AS moment) AS c "
    "LEFT JOIN {schema}.work_items AS w ON w.due_at IS NOT NULL GROUP BY c.moment"
)


class PostgresWorkList:
    """The work list of a database. ``embedded`` are the transcripts that stand in the same one."""

    def __init__(self, database: Database, embedded: Transcripts) -> None:
        self._database = database
        self._embedded = embedded
        self._hints = HintSender(database)

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        """Say "look at these"; returns for how many that is news."""
        return sum(map(self._notice, in_pages(checked_places(conversations))))

    def _notice(self, page: Sequence[tuple[str, str]]) -> int:
        ((news,),) = self._call(_NOTICE, *map(list, zip(*page, strict=True)))
        if news:
            self._hints.send()
        return int(news)

    def take(self, holder: str, limit: int, lease_seconds: float) -> Sequence[WorkItem]:
        """At most so many that are due, the scopes in rounds.

        Where the answer is lost, it is asked for again, and what was taken is not taken by nobody.
        """
        taking, lease = secrets.randbits(62), int(lease_seconds * SECOND)
        statement = self._database.sql(_TAKE)
        asked = False

        def take() -> list[Values]:
            nonlocal asked
            try:
                return self._database.try_call(statement, (taking, asked, holder, limit, lease))
            except Lost:
                asked = True
                raise

        rows = self._database.until_it_works(take)
        return [WorkItem(scope, name, taking, failures) for scope, name, failures in rows]

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
        self._call(_LOOKED, *_of(item), again_at, revision, view, failures)

    def drop(self, item: WorkItem) -> None:
        """The conversation is not there any more."""
        self._call(_FORGET, *_of(item))
        self.looked(item, None, None)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        self._call(_FORGET, scope, conversation, None)

    def hints(self, heard: Callable[[], None]) -> AbstractContextManager[object]:
        """A connection that listens; behind a pooler in transaction mode nothing is heard on it."""
        return HintListener(self._database.address, heard)

    def places(self) -> Iterator[tuple[str, str]]:
        """Every scope and conversation that is known, read page by page as they are taken."""
        after = b""
        while True:
            rows = self._call(_PLACES, after, PAGE)
            yield from ((scope, conversation) for _, scope, conversation in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def backlog(self) -> Backlog:
        """How much there is to do."""
        ((due, leased, waiting, oldest, failing),) = self._call(_BACKLOG)
        return Backlog(due, leased, waiting, oldest, failing)

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

        def pages(view: str | None) -> Iterator[Sequence[Found]]:
            if transcripts is self._embedded:
                return self._changed_pages(view)
            return pages_of(transcripts)

        return discover(self, pages, view=view, every=every, guard=guard)

    def _changed_pages(self, view: str | None) -> Iterator[Sequence[Found]]:
        """What changed, until that is all; what has been noticed of it does not come again.

        What was erased, and is back by a backup, is not noticed: that alone is no reason to ask again.
        """
        before: list[Values] = []
        for _ in range(_ROUNDS):
            rows = self._call(_CHANGED, view, CHANGED_AT_ONCE)
            if rows == before:
                return
            yield from in_pages([Found(*row) for row in rows])
            if len(rows) < CHANGED_AT_ONCE:
                return
            before = rows

    def notice_changed(self, page: Sequence[Found], view: str | None) -> int:
        """Notice those of a page that were not looked at as they are now; how many."""
        if not page:
            return 0
        ((news,),) = self._call(_NOTICE_CHANGED, *map(list, zip(*page, strict=True)), view)
        return int(news)

    def now(self) -> int:
        """The store's clock."""
        ((moment,),) = self._call(_CLOCK)
        return int(moment)

    def begin_period(self, name: str, seconds: float) -> bool:
        """Whether the last period of this name is over: then one begins, for one caller alone."""
        ((begun,),) = self._call(_BEGIN, name, int(seconds * SECOND))
        return bool(begun)

    def extend_period(self, name: str, seconds: float) -> None:
        """Let the period last so long from now on, at least."""
        self._call(_EXTEND, name, int(seconds * SECOND))

    def _call(self, statement: str, *values: object) -> list[Values]:
        return self._database.call(self._database.sql(statement), values)


def _of(item: WorkItem) -> tuple[str, str, int]:
    return item.scope, item.conversation, item.taking
