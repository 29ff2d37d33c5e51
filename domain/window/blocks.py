"""How a chunk's summary and its pins look in a request: marked, and impossible to leave from inside (H7,
T9).

Each line of a summary is led by ``| `` and each line of a quote by ``> ``: no line of theirs can begin with
``[``, which alone opens and closes a block. A block's text does not change once its chunk is completed
(T10).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.rendering import iso_time
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import message_id


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """A completed chunk as it is used: its messages, where its summary is from, and the summary's lines."""

    first: int
    last: int
    identity: str
    source_hash: str
    model: ModelIdentity
    prompt: PromptVersion
    recorded_at: int
    index: int
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class RecordedPin:
    """A pin with the place of its fact in the log."""

    pin: PinAccepted
    index: int


@dataclass(frozen=True, slots=True)
class ShownPin:
    """A pin as a block shows it: ``replaced_by`` is told where that was known when the block was made."""

    pin: PinAccepted
    replaces: int | None = None
    replaced_by: int | None = None


def chunk_block(summary: ChunkSummary, pins: Iterable[ShownPin]) -> str:
    """The block of one chunk: its summary, then its pins."""
    span = _span(summary.first, summary.last)
    model = json.dumps(str(summary.model))  # in ASCII: no character of it can begin a line
    return "\n".join(
        (
            (
                f"[derived summary of {span} of this run; model {model}; prompt {summary.prompt}; "
                f"recorded {iso_time(summary.recorded_at)}]"
            ),
            "[not the user's words and not evidence; lossy; may be out of date]",
            *_led("| ", summary.lines),
            *_pin_lines(pins),
            f"[end of the derived summary of {span}]",
        )
    )


def block_sizes(
    chunks: Sequence[ChunkSummary], count: Callable[[Sequence[bytes]], list[int]]
) -> list[int]:
    """The sizes of blocks by which the oldest are regrouped or left to search (T8), in the one way of all.

    Without their pins, which stand in the request whatever becomes of the block; and as ``count`` has no
    corrections, everybody comes to the same at every turn (T10).
    """
    return count([chunk_block(chunk, ()).encode("utf-8", "surrogatepass") for chunk in chunks])


def pins_block(pins: Iterable[ShownPin]) -> str:
    """The block of the pins that stand in no chunk's block and whose messages are not in the request."""
    return "\n".join(
        (
            "[pinned by the user in earlier messages of this run]",
            *_pin_lines(pins),
            "[end of the pins]",
        )
    )


def no_room_for_pins(count: int) -> str:
    """What says that words of the user that are pinned do not stand in the request."""
    said = "one statement" if count == 1 else f"{count} statements"
    return (
        f"[{said} that the user pinned in earlier messages have no room here; "
        "search_conversation_history finds them]"
    )


def omission_block(first: int, last: int) -> str:
    """What says that messages are not in the request at all."""
    return (
        f"[{_span(first, last)} of this run do not stand here and are not summarized; "
        "search_conversation_history finds them]"
    )


def _pin_lines(pins: Iterable[ShownPin]) -> Iterable[str]:
    for shown in pins:
        pin = shown.pin
        said = f"[pinned in message {message_id(pin.message)}: the user's exact words"
        if shown.replaces is not None:
            said += f"; current, they replace those of message {message_id(shown.replaces)}"
        if shown.replaced_by is not None:
            said += f"; replaced by those of message {message_id(shown.replaced_by)}"
        yield said + "]"
        yield from _led("> ", [pin.quote])


def _led(lead: str, texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        yield from (lead + line for line in text.splitlines())


def _span(first: int, last: int) -> str:
    if first == last:
        return f"message {message_id(first)}"
    return f"messages {message_id(first)} to {message_id(last)}"


# --- which pin stands in which block ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PinPlaces:
    """The pins of each chunk's block, and those that would stand in a block of their own."""

    of_chunks: Sequence[Sequence[ShownPin]]
    elsewhere: Sequence[ShownPin]


def place_pins(chunks: Sequence[ChunkSummary], pins: Sequence[RecordedPin]) -> PinPlaces:
    """Give each pin its block; ``chunks`` in order of their messages, ``pins`` in the log's order (T9,
    T10).

    A chunk's block has the pins of its messages, and of earlier ones, that were accepted before it was
    completed and stand in no earlier block. What comes later stands elsewhere until the next chunk: nothing
    changes a block.
    """
    by_id = {recorded.pin.pin_id: recorded for recorded in pins}
    replaced = {
        recorded.pin.supersedes: recorded
        for recorded in pins
        if recorded.pin.supersedes is not None
    }
    left = list(pins)
    of_chunks: list[list[ShownPin]] = []
    for chunk in chunks:
        mine: list[RecordedPin] = []
        others: list[RecordedPin] = []
        for each in left:
            here = each.pin.message <= chunk.last and each.index < chunk.index
            (mine if here else others).append(each)
        left = others
        of_chunks.append([_shown(r, by_id, replaced, before=chunk.index) for r in mine])
    elsewhere = [_shown(r, by_id, replaced) for r in left]
    return PinPlaces(of_chunks, elsewhere)


def _shown(
    recorded: RecordedPin,
    by_id: dict[str, RecordedPin],
    replaced: dict[str, RecordedPin],
    before: int | None = None,
) -> ShownPin:
    old = by_id.get(recorded.pin.supersedes or "")
    new = replaced.get(recorded.pin.pin_id)
    if new is not None and before is not None and new.index >= before:
        new = None  # not known yet when the block was made
    return ShownPin(
        recorded.pin,
        replaces=None if old is None else old.pin.message,
        replaced_by=None if new is None else new.pin.message,
    )
