"""Finding conversations that changed, at any number of processes one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from compaction_ledger.domain.errors import Erased, UnknownConversation
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.ports import NoticeGuard, Transcripts
from compaction_ledger.domain.work import Found

PAGE = 1_000
"""So many conversations are compared or noticed in one transaction."""

VIEW_SECONDS = 3_600.0
"""How often what was looked at under another view is noticed: two groups of workers with models of their own
must not send each other after everything all the time."""

SHARE = 9
"""For so many times as long as it took, nobody discovers again."""

_DISCOVERY = "discovery"
SECOND = 1_000_000

T = TypeVar("T")


class Store(Protocol):
    """What an adapter knows of its conversations and of who discovered when."""

    def now(self) -> int:
        """The store's clock."""
        ...

    def begin_period(self, name: str, seconds: float) -> bool:
        """Whether the last period of this name is over: then one begins, for one caller alone."""
        ...

    def extend_period(self, name: str, seconds: float) -> None:
        """Let the period last so long from now on, at least."""
        ...

    def notice_changed(self, page: Sequence[Found], view: str | None) -> int:
        """Notice those of a page that were not looked at as they are now; how many."""
        ...


def discover(
    store: Store,
    pages: Callable[[str | None], Iterable[Sequence[Found]]],
    *,
    view: str | None,
    every: float,
    guard: NoticeGuard | None = None,
) -> int | None:
    """Notice what changed in the pages, which are read one by one; ``None`` where it is not the time.

    ``pages`` is told the view to compare with, if there is one this time. A discovery that takes long keeps
    its period going, so that it is not begun a second time beside it.
    """
    if every and not store.begin_period(_DISCOVERY, every):
        return None
    if every and view is not None and not store.begin_period(f"view {view}", VIEW_SECONDS):
        view = None
    began, found = store.now(), 0
    notice = partial(store.notice_changed, view=view)
    for page in pages(view):
        found += notice(page) if guard is None else guard(page, notice)
        if every:
            store.extend_period(_DISCOVERY, every)
    if every:
        store.extend_period(_DISCOVERY, SHARE * (store.now() - began) / SECOND)
    return found


def checked_places(conversations: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each scope and conversation once, in order: so nobody waits in a circle. Raises :class:`InvalidId`."""
    places = sorted(set(conversations))
    for scope, conversation in places:
        check_id(scope, "scope")
        check_id(conversation, "conversation")
    return places


def pages_of(transcripts: Transcripts) -> Iterator[Sequence[Found]]:
    """All conversations of a host's transcripts, with their revisions."""
    for page in in_pages(transcripts.conversations()):
        yield list(_with_revisions(transcripts, page))


def _with_revisions(transcripts: Transcripts, page: Iterable[tuple[str, str]]) -> Iterator[Found]:
    for scope, conversation in page:
        try:
            yield Found(scope, conversation, transcripts.revision(scope, conversation))
        except (UnknownConversation, Erased):  # deleted meanwhile
            continue


def in_pages(items: Iterable[T]) -> Iterator[Sequence[T]]:
    """The items, so many at a time as go into one transaction."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
