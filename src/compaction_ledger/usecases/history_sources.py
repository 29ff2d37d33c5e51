"""What the history of a conversation is read from (T15): the originals of its runs, and its lines."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compaction_ledger.domain.conversation import Conversation
from compaction_ledger.domain.eligibility import eligible
from compaction_ledger.domain.errors import (
    DamagedOriginal,
    InvalidInput,
    InvalidSetting,
    UnknownConversation,
)
from compaction_ledger.domain.history import INDEXED_KINDS, Document, HistoryIndex, Place
from compaction_ledger.domain.identifiers import is_blank
from compaction_ledger.domain.messages.interface import MessageShape
from compaction_ledger.domain.ports import Transcripts
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Original, Originals
from compaction_ledger.usecases.originals_reading import read_readable, stretches
from compaction_ledger.usecases.window.kept import checked

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HistoryStores:
    """The ports that history needs. ``shapes`` by their names."""

    transcripts: Transcripts
    originals: Originals
    index: HistoryIndex
    shapes: Mapping[str, MessageShape]


class Lines(NamedTuple):
    """The lines of a conversation at one moment, by position; ``None`` for those that are not searched."""

    revision: str | None
    documents: Sequence[Document | None]


NO_LINES = Lines(None, ())


class Runs:
    """The runs of one conversation."""

    def __init__(self, stores: HistoryStores, scope: str, conversation: str) -> None:
        self._stores = stores
        self._place = scope, conversation

    def key(self, run: str) -> WindowKey:
        """The run of this conversation. Raises :class:`InvalidId` later, where it is none."""
        return WindowKey(*self._place, run)

    def names(self) -> Sequence[str]:
        """The runs, in the order they began."""
        return self._stores.originals.runs(*self._place)

    def shape(self, run: str) -> MessageShape | None:
        """How its messages are read; ``None`` for a run that nobody has begun."""
        name = self._stores.originals.shape(self.key(run))
        if name is None:
            return None
        shape = self._stores.shapes.get(name)
        if shape is None:
            raise InvalidSetting(f"{name!r} is no message shape that is known here")
        return shape

    def read(self, run: str, start: int, stop: int) -> list[Original]:
        """The originals from ``start``, below ``stop``; those that are missing are left out."""
        return read_readable(self._stores.originals, self.key(run), start, stop)

    def documents(self, run: str, places: Iterable[Place]) -> dict[Place, str]:
        """The texts that stand at these places of a run now, each from an original that is what was kept."""
        shape = self.shape(run)
        if shape is None:
            return {}
        found: dict[Place, str] = {}
        positions = {place.position for place in places}
        for start, stop in stretches(positions):
            for original in self.read(run, start, stop):
                if original.position in positions:
                    found.update(documents_of(run, original, shape))
        return found


class LineReader:
    """The lines of one conversation, read again only when they may have changed."""

    def __init__(self, transcripts: Transcripts, scope: str, conversation: str) -> None:
        self._transcripts = transcripts
        self._place = scope, conversation
        self._lines = NO_LINES

    def now(self) -> Lines:
        """The lines as they are now; none where there is no such conversation."""
        try:
            revision = self._transcripts.revision(*self._place)
            if revision is None or revision != self._lines.revision:
                conversation = self._transcripts.conversation(*self._place)
                self._lines = Lines(revision, _lines(conversation))
        except UnknownConversation:
            self._lines = NO_LINES
        return self._lines


def documents_of(run: str, original: Original, shape: MessageShape) -> Iterable[tuple[Place, str]]:
    """What is searched of a kept message. Nothing of one that is not what was kept."""
    try:
        wire = checked(original, shape, run)
    except DamagedOriginal as error:  # it is missing in the answers, and all others are found
        logger.warning("not searched: %s", error)
        return
    for part in shape.parts(wire):
        if part.kind in INDEXED_KINDS and not is_blank(part.text):
            role = part.role or original.role
            where = original.id, original.position, part.part, role, original.exchange, original.at
            yield Place("run", run, *where), part.text


def digest_of_lines(documents: Sequence[Document | None]) -> str:
    """What tells whether any of these lines is another one now."""
    lines = [
        None
        if line is None
        else (line.place.message_id, line.place.role, line.place.pair, line.text)
        for line in documents
    ]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def _lines(conversation: Conversation) -> list[Document | None]:
    """Every line of this scope and conversation, and of no other, whatever a host brings along (E2)."""
    pairs = {
        side.id: pair.index
        for pair in eligible(conversation).pairs
        for side in (pair.user, pair.assistant)
    }
    documents: list[Document | None] = []
    for position, line in enumerate(conversation.messages):
        ours = (line.scope, line.conversation) == (conversation.scope, conversation.id)
        if not ours or is_blank(line.text):
            documents.append(None)
            continue
        pair = pairs.get(line.id, -1)
        place = Place("conversation", None, line.id, position, 0, line.role, pair, None)
        documents.append(Document(place, line.text))
    return documents


def check_page(start: object, length: object, most: int) -> None:
    """Raises :class:`InvalidInput` for a page that cannot be asked for."""
    for name, value, least, greatest in (
        ("start", start, 0, 1 << 53),
        ("length", length, 1, most),
    ):
        if type(value) is not int or not least <= value <= greatest:
            raise InvalidInput(f"must be a whole number from {least} to {greatest}", place=name)
