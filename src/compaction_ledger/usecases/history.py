"""Searching and rereading the complete transcript of one conversation (T14, T15).

Scope and conversation are given when a search is made, by the program, and nothing that a model says changes
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import (
    InvalidInput,
    UnknownConversation,
    UnknownMessage,
)
from compaction_ledger.domain.history import Found, HistoryQuery, Hit, Place, Source
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.matching import quote_around
from compaction_ledger.domain.messages.interface import EntryRole, Part, PartKind
from compaction_ledger.domain.terms import fold
from compaction_ledger.domain.window.externalizing import digest_of
from compaction_ledger.usecases.history_indexing import HistoryIndexer
from compaction_ledger.usecases.history_sources import (
    HistoryStores,
    LineReader,
    Lines,
    Runs,
    check_page,
)
from compaction_ledger.usecases.window.kept import checked

MOST_CHARACTERS = 20_000
DEFAULT_CHARACTERS = 8_000
MOST_LOOKED_AT = 2_000
"""So many places are looked at for one search before it is given up."""

_RUN_MESSAGE = re.compile(r"m(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class PartText:
    """A piece of one part's text, which begins at character ``start`` of the part.

    ``role`` says who said it where that is another than the message's role.
    """

    part: int
    kind: PartKind
    name: str | None
    start: int
    text: str
    role: EntryRole | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A page of a message: ``length`` characters has the whole, its parts one after the other.

    ``next_start`` is where the next page begins, ``None`` behind the last one.
    """

    message_id: str
    run: str | None
    source: Source
    role: EntryRole
    pair: int
    at: int | None
    length: int
    start: int
    parts: Sequence[PartText]
    next_start: int | None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A page of a tool result that was kept apart; ``length`` characters has the whole."""

    handle: str
    length: int
    start: int
    text: str
    next_start: int | None


class HistorySearch:
    """The history of one conversation. ``run`` is the one that asks, where there is one.

    Raises :class:`InvalidId` when it is made. Every method may raise :class:`StoreError`.
    """

    def __init__(
        self, stores: HistoryStores, scope: str, conversation: str, run: str | None = None
    ) -> None:
        self.scope = check_id(scope, "scope")
        self.conversation = check_id(conversation, "conversation")
        self.run = None if run is None else check_id(run, "run")
        self._stores = stores
        self._runs = Runs(stores, scope, conversation)
        self._lines = LineReader(stores.transcripts, scope, conversation)
        self._indexer = HistoryIndexer(stores, scope, conversation)

    def catch_up(self) -> None:
        """Bring the index up to the transcript, as every search does first."""
        self._indexer.catch_up(self._lines.now())

    def check_known(self) -> None:
        """Raises :class:`UnknownConversation` where there is neither a line nor a run of it."""
        if not self._lines.now().documents and not self._runs.names():
            raise UnknownConversation(
                f"there is no conversation {self.conversation!r} in scope {self.scope!r}"
            )

    def search(self, asked: HistoryQuery | str) -> Found:
        """The places where it stands: those with its words side by side first, within both the newest.

        Every quote is cut from the original, which is read again and checked.
        """
        query = HistoryQuery(asked) if isinstance(asked, str) else asked
        lines = self._lines.now()
        self._indexer.catch_up(lines)
        page = query.offset + query.limit + 1
        hits: list[Hit] = []
        seen: set[Place] = set()  # the index may grow between two looks at it
        looked_at = unreadable = 0
        cut_short = False
        while len(hits) < page:
            places = self._stores.index.candidates(
                self.scope, self.conversation, query, looked_at, page
            )
            new = [place for place in dict.fromkeys(places) if place not in seen]
            seen.update(new)
            found, missing = self._hits(new, lines, query)
            hits += found
            unreadable += missing
            looked_at += len(places)
            if len(places) < page:
                break
            if looked_at >= MOST_LOOKED_AT and len(hits) < page:
                cut_short = True
                break
        end = query.offset + query.limit
        return Found(
            hits[query.offset : end], end if len(hits) > end else None, unreadable, cut_short
        )

    def read_message(
        self,
        message_id: str,
        run: str | None = None,
        start: int = 0,
        length: int = DEFAULT_CHARACTERS,
    ) -> Reading:
        """A message as it was, ``length`` characters from ``start`` on, counted through all its parts.

        Without ``run`` an id such as ``m12`` is of the run that asks; any other is of a line of the
        conversation; and if there is no such line, of the only run. Raises :class:`UnknownMessage`,
        :class:`InvalidInput`, and :class:`DamagedOriginal` where the message is not what was kept.
        """
        check_id(message_id, "message_id")
        check_page(start, length, MOST_CHARACTERS)
        if run is not None:
            return self._read_of_run(check_id(run, "run"), message_id, start, length)
        if self.run is not None and _RUN_MESSAGE.fullmatch(message_id):
            return self._read_of_run(self.run, message_id, start, length)
        for line in self._lines.now().documents:
            if line is not None and line.place.message_id == message_id:
                part = Part(0, "text", line.text)
                return _page(line.place, [part], start, length)
        runs = self._runs.names()
        if len(runs) == 1:
            return self._read_of_run(runs[0], message_id, start, length)
        if runs and _RUN_MESSAGE.fullmatch(message_id):
            raise InvalidInput("there are several runs: say of which one", place="run")
        raise _unknown(message_id)

    def read_tool_result(
        self, handle: str, start: int = 0, length: int = DEFAULT_CHARACTERS
    ) -> ResultPage:
        """A tool result that was kept apart (T14), exactly, ``length`` characters from ``start`` on.

        Raises :class:`InvalidInput` for a handle that is none of this conversation, and
        :class:`DamagedOriginal` where what is stored is not what was kept.
        """
        check_page(start, length, MOST_CHARACTERS)
        digest = digest_of(handle) if type(handle) is str else None
        if digest is None:
            raise InvalidInput(
                "must be tr_ and 64 hexadecimal digits, as it stands in the message", place="handle"
            )
        content = self._stores.originals.result(self.scope, self.conversation, digest)
        if content is None:
            raise InvalidInput("there is no such tool result", place="handle")
        try:
            text = content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise InvalidInput("this tool result is no text", place="handle") from error
        _check_start(start, len(text))
        return ResultPage(
            handle, len(text), start, text[start : start + length], _next(start, length, len(text))
        )

    # --- inside ---

    def _hits(
        self, places: Sequence[Place], lines: Lines, query: HistoryQuery
    ) -> tuple[list[Hit], int]:
        """What stands at these places now, in their order, and at how many nothing can be read any more."""
        texts: dict[Place, str] = {}
        for run in dict.fromkeys(place.run for place in places if place.run is not None):
            texts.update(self._runs.documents(run, (place for place in places if place.run == run)))
        for place in places:
            if place.run is None and place.position < len(lines.documents):
                line = lines.documents[place.position]
                if line is not None:
                    texts[line.place] = line.text
        hits = [
            hit
            for place in places
            if place in texts and (hit := _hit(place, texts[place], query)) is not None
        ]
        return hits, sum(place not in texts for place in places)

    def _read_of_run(self, run: str, message_id: str, start: int, length: int) -> Reading:
        named = _RUN_MESSAGE.fullmatch(message_id)
        shape = self._runs.shape(run)
        if named is None or shape is None:
            raise _unknown(message_id)
        key, position = self._runs.key(run), int(named[1])
        if position >= self._stores.originals.count(key):
            raise _unknown(message_id)
        found = self._stores.originals.read(key, position, position + 1)
        if not found:  # forgotten since
            raise _unknown(message_id)
        original = found[0]
        where = original.position, 0, original.role, original.exchange, original.at
        place = Place("run", run, original.id, *where)
        return _page(place, shape.parts(checked(original, shape, run)), start, length)


def _hit(place: Place, text: str, query: HistoryQuery) -> Hit | None:
    """The place with its quote; ``None`` where what is wanted does not stand there."""
    found = query.wanted.find(fold(text))
    if found is None:
        return None
    start, end = quote_around(text, *found)
    source, run, message_id, _, part, role, pair, at = place
    return Hit(source, run, message_id, part, role, pair, at, text[start:end], start, end)


def _page(place: Place, parts: Sequence[Part], start: int, length: int) -> Reading:
    whole = sum(len(part.text) for part in parts)
    _check_start(start, whole)
    pieces: list[PartText] = []
    before = 0
    for part in parts:
        first = max(start - before, 0)
        last = min(start + length - before, len(part.text))
        before += len(part.text)
        if first < last or (not part.text and start <= before <= start + length):
            text = part.text[first:last]
            pieces.append(PartText(part.part, part.kind, part.name, first, text, part.role))
    source, run, message_id, _, _, role, pair, at = place
    after = _next(start, length, whole)
    return Reading(message_id, run, source, role, pair, at, whole, start, pieces, after)


def _check_start(start: int, length: int) -> None:
    if start > length:
        raise InvalidInput(f"there are only {length} characters", place="start")


def _next(start: int, length: int, whole: int) -> int | None:
    return start + length if start + length < whole else None


def _unknown(message_id: str) -> UnknownMessage:
    return UnknownMessage(f"there is no message {message_id!r}")
