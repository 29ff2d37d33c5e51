"""An index in memory: for ledgers in memory, and for those that can only be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count as counting
from threading import RLock
from typing import NamedTuple

from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.domain.matching import inner, lone
from compaction_ledger.domain.terms import search_terms
from compaction_ledger.infrastructure.history.tiers import Ranked, by_tiers, is_asked_for


class _Kept(NamedTuple):
    """A document: its terms in order with a space around each, and its lone characters."""

    ranked: Ranked
    terms: str
    characters: frozenset[str]

    def has(self, terms: tuple[str, ...]) -> bool:
        """Whether it may have these side by side."""
        side_by_side = inner(terms)
        return (not side_by_side or f" {' '.join(side_by_side)} " in self.terms) and (
            self.characters.issuperset(lone(terms))
        )


@dataclass(slots=True)
class _Index:
    marks: dict[str, str] = field(default_factory=dict[str, str])
    shelves: dict[str, list[_Kept]] = field(default_factory=dict[str, list[_Kept]])


class MemoryHistoryIndex:
    """Dictionaries, with the promises of the others."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._indexes: dict[tuple[str, str], _Index] = {}
        self._keys = counting()

    def marks(self, scope: str, conversation: str) -> Mapping[str, str]:
        """The mark of every shelf."""
        with self._lock:
            found = self._indexes.get((scope, conversation))
            return dict(found.marks) if found else {}

    def put(
        self,
        scope: str,
        conversation: str,
        shelf: str,
        documents: Sequence[Document],
        *,
        before: str | None,
        after: str | None,
        replace: bool = False,
    ) -> bool:
        """Add to a shelf, or replace it, where its mark is still ``before``."""
        with self._lock:
            index = self._indexes.setdefault((scope, conversation), _Index())
            if index.marks.get(shelf) != before:
                return False
            if replace or after is None:
                index.shelves.pop(shelf, None)
            if after is None:
                index.marks.pop(shelf, None)
                return True
            ordered = sorted(documents, key=lambda one: (one.place.position, one.place.part))
            index.shelves.setdefault(shelf, []).extend(map(self._kept, ordered))
            index.marks[shelf] = after
            return True

    def candidates(
        self, scope: str, conversation: str, query: HistoryQuery, start: int, count: int
    ) -> Sequence[Place]:
        """The places that may have what is wanted, in their order."""
        with self._lock:
            found = self._indexes.get((scope, conversation))
            kept = [one for shelf in found.shelves.values() for one in shelf] if found else []
        wanted = query.wanted
        matching = [
            one
            for one in kept
            if is_asked_for(one.ranked.place, query)
            and all(one.has(need.terms) for need in wanted.needs)
        ]
        matching.sort(key=lambda one: (one.ranked.place.rank, one.ranked.key), reverse=True)
        phrase = inner(wanted.sequence)

        def first(limit: int) -> list[Ranked]:
            return [one.ranked for one in matching if one.has(phrase)][:limit]

        return by_tiers(
            first if phrase else None,
            lambda limit: [one.ranked for one in matching[:limit]],
            start,
            count,
        )

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        with self._lock:
            self._indexes.pop((scope, conversation), None)

    def _kept(self, document: Document) -> _Kept:
        terms = search_terms(document.text)
        return _Kept(
            Ranked(next(self._keys), document.place),
            f" {' '.join(terms.sequence)} ",
            frozenset(terms.characters),
        )
