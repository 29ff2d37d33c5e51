"""The next request of a run (T5, T6, T8, T10): instructions, chunk blocks in order, then the verbatim
turns; and its manifest.

Pure: it is given the messages as they are, and the chunks and pins that hold now.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Literal

from compaction_ledger.domain.canonical import tagged_sha256
from compaction_ledger.domain.errors import WindowTooSmall
from compaction_ledger.domain.messages.interface import Lead, MessageShape, Wire
from compaction_ledger.domain.window.blocks import (
    ChunkSummary,
    PinPlaces,
    RecordedPin,
    ShownPin,
    block_sizes,
    chunk_block,
    no_room_for_pins,
    omission_block,
    pins_block,
    place_pins,
)
from compaction_ledger.domain.window.cutting import first_that_fits, left_to_search
from compaction_ledger.domain.window.events import (
    DeliveredChunk,
    DeliveredMessages,
    DeliveredStub,
)
from compaction_ledger.domain.window.externalizing import Stub

REQUEST_TAG = b"compaction-ledger/window-request/v1"

_How = tuple[Literal["verbatim", "summarized", "left_out"], str | None]
_VERBATIM: _How = ("verbatim", None)
_SUMMARIZED: _How = ("summarized", None)
_LEFT_TO_SEARCH: _How = ("left_out", "left_to_search")
OVER_LIMIT = "over_limit"
"""The reason of messages that no chunk holds yet, and for which there is no room."""
_OVER_LIMIT: _How = ("left_out", OVER_LIMIT)

Encode = Callable[[Sequence[Wire]], list[bytes]]
Count = Callable[[Sequence[bytes]], list[int]]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A run's messages, read: each with its JSON and its tokens. ``boundaries``: where a cut is safe (T4).

    ``instructions`` are the positions of messages of role system, which are never summarized.
    """

    shape: MessageShape
    messages: Sequence[Wire]
    encoded: Sequence[bytes]
    tokens: Sequence[int]
    boundaries: Sequence[int]
    instructions: Sequence[int]
    stubs: Sequence[Stub] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """What holds of a run now: chunks in order, each behind the one before, and pins in the log's order."""

    chunks: Sequence[ChunkSummary] = ()
    pins: Sequence[RecordedPin] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """In tokens: the limit, what stands beside the messages, and the share of the blocks beyond which the
    oldest are left to search (``None``: they are going to be regrouped).
    """

    limit: int
    beside: int = 0
    share: int | None = None


@dataclass(frozen=True, slots=True)
class WindowManifest:
    """What a request holds and what not (H8). ``pins_left_out``: for which there was no room at all.
    Tokens and bytes are those of the messages; ``limit`` includes ``beside``.
    """

    shape: str
    messages: tuple[DeliveredMessages, ...]
    chunks: tuple[DeliveredChunk, ...]
    pins: tuple[str, ...]
    pins_left_out: tuple[str, ...]
    stubs: tuple[DeliveredStub, ...]
    tokens: int
    beside: int
    limit: int
    bytes_sent: int
    request_digest: str


@dataclass(frozen=True, slots=True)
class Request:
    """The messages to send, each with its JSON, and the manifest."""

    messages: list[Wire]
    encoded: list[bytes] = field(repr=False)
    manifest: WindowManifest


@dataclass(frozen=True, slots=True)
class _Layout:
    """Chunks ``gone``: how many of the oldest are left to search. ``cut``: where the verbatim turns begin.

    ``pins_gone``: how many pins have no room, in the order in which they are given up.
    """

    gone: int
    cut: int
    pins_gone: int = 0


def place(
    transcript: Transcript,
    holding: Holding,
    room: Room,
    encode: Encode,
    count: Count,
    uncorrected: Count | None = None,
) -> Request:
    """The request. Raises :class:`WindowTooSmall` where not even the last exchange fits (T6).

    ``uncorrected`` counts what is held against the share of the blocks, if not ``count`` itself: what was
    left to search once must not come back because counts are corrected meanwhile (T10).
    """
    return _Placing(transcript, holding, room, encode, count).request(uncorrected or count)


class _Placing:
    def __init__(
        self, transcript: Transcript, holding: Holding, room: Room, encode: Encode, count: Count
    ) -> None:
        self.transcript = transcript
        self.chunks = holding.chunks
        self.room = room
        self.encode = encode
        self.count = count
        self.pins: PinPlaces = place_pins(holding.chunks, holding.pins)
        self.blocks = [
            chunk_block(chunk, pins)
            for chunk, pins in zip(holding.chunks, self.pins.of_chunks, strict=True)
        ]
        self.covered = holding.chunks[-1].last + 1 if holding.chunks else 0
        self.totals = [0, *accumulate(transcript.tokens)]
        self.given_up = _in_order_of_giving_up(holding.pins)

    def request(self, uncorrected: Count) -> Request:
        gone = self._left_to_search(uncorrected)
        made = self._make(_Layout(gone, self.covered))
        allowed = self.room.limit - self.room.beside
        if made.manifest.tokens <= allowed:
            return made
        for layout in (*self._smaller(gone), *self._without_pins()):
            made = self._make(layout)
            if made.manifest.tokens <= allowed:
                return made
        raise WindowTooSmall(
            made.manifest.tokens + self.room.beside, self.room.limit, self.room.beside
        )

    def _left_to_search(self, uncorrected: Count) -> int:
        if self.room.share is None or not self.blocks:
            return 0
        return left_to_search(block_sizes(self.chunks, uncorrected), self.room.share)

    def _smaller(self, gone: int) -> list[_Layout]:
        """What else may be left out, in order: older turns, then blocks from the oldest on. The last
        exchange stays.
        """
        transcript, later = self.transcript, self._boundaries_behind(self.covered)
        if not later:
            return [_Layout(n, self.covered) for n in range(gone + 1, len(self.blocks) + 1)]
        rest = self._make(_Layout(gone, later[-1])).manifest.tokens - self._tail(later[-1])
        room = self.room.limit - self.room.beside - rest
        cut = first_that_fits(transcript.tokens, transcript.boundaries, later[0], room)
        first = bisect_left(later, later[-1] if cut is None else cut)
        # What is left out changes which pins stand apart: the next places are there for those few tokens.
        cuts = [*later[first : first + 8], later[-1]]
        return [
            *(_Layout(gone, place) for place in cuts),
            *(_Layout(n, later[-1]) for n in range(gone + 1, len(self.blocks) + 1)),
        ]

    def _without_pins(self) -> Iterator[_Layout]:
        """At the very last pins: the last exchange alone may not be refused for them (T6).

        First those that a newer one has replaced, then those that rules or a model proposed, the oldest
        first, then the host's own. In eighths of them all.
        """
        later = self._boundaries_behind(self.covered)
        cut = later[-1] if later else self.covered
        count = len(self.given_up)
        for gone in sorted({-(-count * eighths // 8) for eighths in range(1, 9)} - {0}):
            yield _Layout(len(self.blocks), cut, gone)

    def _boundaries_behind(self, position: int) -> Sequence[int]:
        boundaries = self.transcript.boundaries
        head = self.transcript.shape.head(self.transcript.messages)
        return boundaries[bisect_left(boundaries, max(position, head) + 1) :]

    def _tail(self, cut: int) -> int:
        return self.totals[-1] - self.totals[cut]

    def _make(self, layout: _Layout) -> Request:
        transcript = self.transcript
        lead, pins = self._lead(layout)
        cut = layout.cut
        if cut == 0 and not lead:
            messages, encoded = list(transcript.messages), list(transcript.encoded)
            tokens = self.totals[-1]
        else:
            messages = transcript.shape.assemble(transcript.messages, cut, lead)
            encoded, tokens = self._encoded(messages)
        return Request(messages, encoded, self._manifest(layout, encoded, tokens, pins))

    def _encoded(self, messages: Sequence[Wire]) -> tuple[list[bytes], int]:
        """The JSON of each message and their tokens: what stands as it was is not encoded again."""
        known = self.transcript.messages
        kept = 0  # at the end, the same objects
        for message in reversed(messages):
            if kept == len(known) or message is not known[-1 - kept]:
                break
            kept += 1
        new = self.encode(messages[: len(messages) - kept])
        first = len(known) - kept
        encoded = [*new, *self.transcript.encoded[first:]]
        return encoded, sum(self.count(new)) + self._tail(first)

    def _lead(self, layout: _Layout) -> tuple[list[Lead], list[str]]:
        """What stands before the verbatim turns, and the ids of all pins in it."""
        transcript = self.transcript
        lead: list[Lead] = []
        shown: list[ShownPin] = []
        head = transcript.shape.head(transcript.messages)
        position = head
        if layout.gone:
            lead.append(omission_block(self.chunks[0].first, self.chunks[layout.gone - 1].last))
            lost = self._kept(layout, chain(*self.pins.of_chunks[: layout.gone]))
            if lost:
                lead.append(pins_block(lost))
                shown += lost
            lead += self._instructions(head, self.chunks[layout.gone - 1].last + 1)
            position = self.chunks[layout.gone - 1].last + 1
        for number in range(layout.gone, len(self.chunks)):
            chunk = self.chunks[number]
            lead.append(self.blocks[number])
            shown += self.pins.of_chunks[number]
            lead += self._instructions(position, chunk.last + 1)
            position = chunk.last + 1
        if layout.cut > max(self.covered, head):
            lead.append(omission_block(max(self.covered, head), layout.cut - 1))
            lead += self._instructions(position, layout.cut)
        told = {pin.pin.pin_id for pin in shown}
        apart = [  # what the verbatim turns do not say, or what corrects a pin that stands above
            pin
            for pin in self._kept(layout, self.pins.elsewhere)
            if pin.pin.message < layout.cut or pin.pin.supersedes in told
        ]
        if apart:
            lead.append(pins_block(apart))
        if layout.pins_gone:
            lead.append(no_room_for_pins(layout.pins_gone))
        return lead, [pin.pin.pin_id for pin in (*shown, *apart)]

    def _kept(self, layout: _Layout, pins: Iterable[ShownPin]) -> list[ShownPin]:
        gone = set(self.given_up[: layout.pins_gone])
        return [pin for pin in pins if pin.pin.pin_id not in gone]

    def _instructions(self, start: int, stop: int) -> list[Wire]:
        places = self.transcript.instructions
        return [
            self.transcript.messages[place]
            for place in places[bisect_left(places, start) : bisect_left(places, stop)]
        ]

    def _manifest(
        self, layout: _Layout, encoded: Sequence[bytes], tokens: int, pins: Sequence[str]
    ) -> WindowManifest:
        body = b",".join(encoded)
        name = self.transcript.shape.name
        return WindowManifest(
            shape=name,
            messages=tuple(_joined(self._groups(layout))),
            chunks=tuple(
                DeliveredChunk(c.first, c.last, c.identity, c.index)
                for c in self.chunks[layout.gone :]
            ),
            pins=tuple(pins),
            pins_left_out=tuple(self.given_up[: layout.pins_gone]),
            stubs=tuple(
                DeliveredStub(s.message, s.part, s.digest, s.size)
                for s in self.transcript.stubs
                if s.message >= layout.cut
            ),
            tokens=tokens,
            beside=self.room.beside,
            limit=self.room.limit,
            bytes_sent=len(body) + 2,
            request_digest=tagged_sha256(REQUEST_TAG, name.encode() + b"\x00[", body, b"]"),
        )

    def _groups(self, layout: _Layout) -> Iterator[DeliveredMessages]:
        """Every message of the run, in order: verbatim, summarized, or left out and why (H8)."""
        start = 0
        for number, chunk in enumerate(self.chunks):
            how = _LEFT_TO_SEARCH if number < layout.gone else _SUMMARIZED
            yield from self._span(start, chunk.last + 1, how)
            start = chunk.last + 1
        yield from self._span(start, layout.cut, _OVER_LIMIT)
        yield from self._span(max(start, layout.cut), len(self.transcript.messages), _VERBATIM)

    def _span(self, start: int, stop: int, how: _How) -> Iterator[DeliveredMessages]:
        """Messages that are treated alike, but for the instructions among them, which stay as they are."""
        places = self.transcript.instructions
        for place in places[bisect_left(places, start) : bisect_left(places, stop)]:
            if start < place:
                yield DeliveredMessages(start, place - 1, *how)
            yield DeliveredMessages(place, place, *_VERBATIM)
            start = place + 1
        if start < stop:
            yield DeliveredMessages(start, stop - 1, *how)


def _in_order_of_giving_up(pins: Sequence[RecordedPin]) -> list[str]:
    """The pins' ids: first what would be missed least."""
    replaced = {recorded.pin.supersedes for recorded in pins}
    ordered = sorted(
        pins,
        key=lambda recorded: (
            recorded.pin.pin_id not in replaced,
            recorded.pin.proposer == "caller",
            recorded.index,
        ),
    )
    return [recorded.pin.pin_id for recorded in ordered]


def _joined(groups: Iterable[DeliveredMessages]) -> Iterator[DeliveredMessages]:
    """Neighbors that are treated alike as one."""
    last: DeliveredMessages | None = None
    for group in groups:
        if last is not None and (last.disposition, last.reason) == (
            group.disposition,
            group.reason,
        ):
            last = DeliveredMessages(last.first, group.last, last.disposition, last.reason)
            continue
        if last is not None:
            yield last
        last = group
    if last is not None:
        yield last
