"""A work list on which the name of nothing erased stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TypeVar

from compaction_ledger.domain.erasure import Erasures
from compaction_ledger.domain.errors import Erased
from compaction_ledger.domain.ports import NoticeGuard, Transcripts, WorkList
from compaction_ledger.domain.work import Backlog, Found, WorkItem
from compaction_ledger.infrastructure.erasure.writing import written
from compaction_ledger.infrastructure.work.discovery import checked_places

P = TypeVar("P", tuple[str, str], Found)


class GuardedWorkList:
    """Any work list. What is erased is no news, and no error: it says nothing of the others of a notice."""

    def __init__(self, store: WorkList, erasures: Erasures) -> None:
        self._store = store
        self._erasures = erasures

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        """Say "look at these"; returns for how many that is news."""
        return self._guarded(checked_places(conversations), self._store.notice)

    def discover(
        self,
        transcripts: Transcripts,
        *,
        view: str | None = None,
        every: float = 0.0,
        guard: NoticeGuard | None = None,
    ) -> int | None:
        """Notice the conversations whose revision is not the one that was looked at."""
        guard = guard or self._guarded
        return self._store.discover(transcripts, view=view, every=every, guard=guard)

    def take(self, holder: str, limit: int, lease_seconds: float) -> Sequence[WorkItem]:
        """At most so many that are due, the scopes in rounds."""
        return self._store.take(holder, limit, lease_seconds)

    def looked(
        self,
        item: WorkItem,
        again_at: int | None,
        revision: str | None,
        *,
        view: str = "",
        failures: int = 0,
    ) -> None:
        """It was looked at. Of one that was forgotten meanwhile nothing is noted."""
        self._store.looked(item, again_at, revision, view=view, failures=failures)

    def drop(self, item: WorkItem) -> None:
        """The conversation is not there any more."""
        self._store.drop(item)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        self._store.forget(scope, conversation)

    def places(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation that is known."""
        return self._store.places()

    def backlog(self) -> Backlog:
        """How much there is to do."""
        return self._store.backlog()

    def hints(self, heard: Callable[[], None]) -> AbstractContextManager[object]:
        """While it is entered, ``heard`` may be called when another process noticed something."""
        return self._store.hints(heard)

    # --- inside ---

    def _guarded(self, page: Sequence[P], notice: Callable[[Sequence[P]], int]) -> int:
        """Notice those of a page that are not erased; those that were meanwhile are forgotten again."""
        present = [one for one in page if not self._erasures.was_erased(one[0], one[1])]
        news = notice(present)
        places = sorted({(one[0], one[1]) for one in present})
        for scope, found in groupby(places, key=lambda place: place[0]):
            self._look_again(scope, [conversation for _, conversation in found])
        return news

    def _look_again(self, scope: str, conversations: Sequence[str]) -> None:
        """An erasure that began in between may have passed by already."""
        while conversations:
            try:
                with written(self._erasures, self._store, scope, conversations):
                    return  # what was to be written is: the look behind it counts
            except Erased:
                gone = {one for one in conversations if self._erasures.was_erased(scope, one)}
                for conversation in gone:
                    self._store.forget(scope, conversation)
                conversations = [one for one in conversations if one not in gone]
