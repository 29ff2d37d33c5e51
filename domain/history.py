"""Searching the complete transcript (T15): the words of it, and the port of the indexes.

An index holds no text that is ever shown: it names places where something may stand. Each is read again in
the original before it is quoted, and what does not stand there is no hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.matching import Wanted, wanted
from compaction_ledger.domain.messages.interface import EntryRole, PartKind

Source = Literal["run", "conversation"]

MOST_HITS = 50
LONGEST_QUERY = 1_000
MOST_TERMS = 64
FARTHEST_OFFSET = 1_000
ROLES: frozenset[EntryRole] = frozenset(get_args(EntryRole))
INDEXED_KINDS: frozenset[PartKind] = frozenset(("text", "call", "result"))
"""Kinds of parts that are searched: not what a model thought, nor what is no text."""

_BEFORE_ALL_TIMES = 1 << 40


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What to look for. Checked when made; raises :class:`InvalidInput` with the member as place.

    What stands in double quotes must be there word for word; of the rest all words, in any order. ``first``
    and ``last`` are pair indexes, both included; ``since`` (included) and ``until`` (excluded) are
    microseconds since the epoch: with either of them, what has no time is left out.
    """

    text: str
    roles: frozenset[EntryRole] | None = None
    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 10
    offset: int = 0

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            raise InvalidInput("must be text", place="text")
        if len(self.text) > LONGEST_QUERY:
            raise InvalidInput(
                f"has {len(self.text)} characters, at most {LONGEST_QUERY} are allowed",
                place="text",
            )
        _check_number(self.limit, "limit", 1, MOST_HITS)
        _check_number(self.offset, "offset", 0, FARTHEST_OFFSET)
        for name in ("first", "last", "since", "until"):
            number: int | None = getattr(self, name)
            if number is not None:
                _check_number(number, name, -(1 << 53), 1 << 53)
        if self.roles is not None and not self.roles <= ROLES:
            raise InvalidInput(f"must be among {', '.join(sorted(ROLES))}", place="roles")
        terms = sum(len(need.terms) for need in self.wanted.needs)
        if not terms:
            raise InvalidInput("has no word to look for", place="text")
        if terms > MOST_TERMS:
            raise InvalidInput(f"has {terms} words, at most {MOST_TERMS} are allowed", place="text")

    @property
    def wanted(self) -> Wanted:
        """What the text asks for."""
        return wanted(self.text)


class Place(NamedTuple):
    """Where a text stands: a part of a message of a run, or a line of the conversation (``run`` is ``None``).

    ``position`` counts the messages of the run, or the lines. ``pair`` is the exchange of the run, or the
    index of the eligible pair (-1: none). ``at`` is microseconds since the epoch, where it is known.
    """

    source: Source
    run: str | None
    message_id: str
    position: int
    part: int
    role: EntryRole
    pair: int
    at: int | None

    @property
    def rank(self) -> int:
        """The greater, the newer. Lines have no time: they stand before all that has one, in their order."""
        return self.position - _BEFORE_ALL_TIMES if self.at is None else self.at


class Document(NamedTuple):
    """A text that is put into an index."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where it stands. ``quote`` is the original's own text from ``start`` to ``end`` (characters of
    that part); nothing is put in, left out or put differently.
    """

    source: Source
    run: str | None
    message_id: str
    part: int
    role: EntryRole
    pair: int
    at: int | None
    quote: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """One page of hits, the newest first, before that those that have the words of the query side by side.

    ``next_offset`` is where the next page begins, ``None`` where there is none. ``unreadable`` counts places
    whose original is missing or is not what was kept. ``cut_short``: so many places had the words, and not as
    they were asked for, that the search was given up; there may be more hits.
    """

    hits: Sequence[Hit]
    next_offset: int | None
    unreadable: int = 0
    cut_short: bool = False


class HistoryIndex(Protocol):
    """Finds places by their terms, within one conversation. Disposable: it can be made anew at any time.

    A conversation's index consists of shelves, each with a mark that says how far it goes. Marks are
    compared, never understood. Every method may raise :class:`StoreError`.
    """

    def marks(self, scope: str, conversation: str) -> Mapping[str, str]:
        """The mark of every shelf; none for a conversation that is not indexed."""
        ...

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
        """Add to a shelf, or replace all that is on it; its mark becomes ``after`` (``None``: no shelf).

        All or nothing: ``False``, and nothing is done, where the mark is not ``before`` any more.
        """
        ...

    def candidates(
        self, scope: str, conversation: str, query: HistoryQuery, start: int, count: int
    ) -> Sequence[Place]:
        """The places from the ``start``-th on, at most ``count``, that may have what is wanted.

        Those come first that have the words side by side, within both the newest. None that has it is
        left out.
        """
        ...

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation (S3). Doing it again is no error."""
        ...


def _check_number(number: object, place: str, least: int, most: int) -> None:
    if type(number) is not int:
        raise InvalidInput("must be a whole number", place=place)
    if not least <= number <= most:
        raise InvalidInput(f"must be from {least} to {most}", place=place)
