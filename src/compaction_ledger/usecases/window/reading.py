"""Reading a run's messages as they are at this turn: structure, JSON, tokens, stubs (T2, T3, T14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.errors import BrokenTranscript, MalformedMessage
from compaction_ledger.domain.messages.interface import Entry, MessageShape, Part, Wire
from compaction_ledger.domain.messages.structure import Walk, structural_problems
from compaction_ledger.domain.window.externalizing import (
    Stub,
    large_result,
    result_digest,
    stub_text,
)
from compaction_ledger.domain.window.placement import Transcript
from compaction_ledger.domain.window.tokens import Gauge

AT_ONCE = 1_000
"""So many messages are read, checked, encoded and counted before the next: they stay in the cache."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A run at one turn. ``entries`` and ``originals`` (their JSON) are of the messages as they were given;
    in the transcript large results are stubs. ``taken_out``: the contents of those by their digest.
    """

    messages: Sequence[Wire]
    entries: Sequence[Entry]
    originals: Sequence[bytes]
    transcript: Transcript
    taken_out: dict[str, bytes] = field(repr=False)

    def exchanges(self) -> list[int]:
        """The pair index of each message: how many of the user's turns have begun with it, from -1 on."""
        number, numbers = -1, list[int]()
        for entry in self.entries:
            number += entry.begins_turn
            numbers.append(number)
        return numbers


def encode_all(messages: Sequence[Wire]) -> list[bytes]:
    """The compact JSON of each message, in its own order of keys."""
    return list(map(encode_ordered, messages))


def read_turn(
    shape: MessageShape, messages: Sequence[Wire], gauge: Gauge, externalize_over: int | None
) -> Turn:
    """Read and check all messages of a run.

    Raises :class:`MalformedMessage` or :class:`BrokenTranscript` naming the message (T2). What was given is
    not changed; and as the caller's list grows while this turn is still looked at, the turn has one of its
    own.
    """
    messages = _own_list(messages)
    walk, entries = Walk(), list[Entry]()
    originals, sent, encoded, tokens = list[bytes](), list[Wire](), list[bytes](), list[int]()
    stubs, taken_out, names = list[Stub](), dict[str, bytes](), dict[str, str]()
    for first in range(0, len(messages), AT_ONCE):
        some = messages[first : first + AT_ONCE]
        read = shape.read(some, first)
        walk.add(read)
        written = _encoded(some, first)
        given = externalized(shape, some, read, written, externalize_over, names)
        entries += read
        originals += written
        sent += given.messages
        encoded += given.encoded
        tokens += gauge.count(given.encoded)
        stubs += given.stubs
        taken_out |= given.taken_out
    if not walk.is_sound and (problems := structural_problems(entries)):
        raise BrokenTranscript(problems)
    transcript = Transcript(
        shape=shape,
        messages=sent,
        encoded=encoded,
        tokens=tokens,
        boundaries=walk.boundaries,
        instructions=walk.instructions,
        stubs=stubs,
    )
    return Turn(messages, entries, originals, transcript, taken_out)


def _own_list(messages: object) -> list[Wire]:
    if isinstance(messages, Sequence) and not isinstance(messages, (str, bytes, bytearray)):
        return list(cast("Sequence[Wire]", messages))
    raise MalformedMessage(
        f"must be the run's complete list, not {type(messages).__name__}", place="messages"
    )


def _encoded(messages: Sequence[Wire], first: int) -> list[bytes]:
    try:
        return encode_all(messages)
    except (TypeError, ValueError, RecursionError):
        for position, message in enumerate(messages, first):
            try:
                encode_all([message])
            except (TypeError, ValueError, RecursionError) as error:
                raise MalformedMessage(
                    f"is not JSON: {error}", place=f"message {position}"
                ) from error
        raise


def _parts(shape: MessageShape, message: Wire, position: int) -> Sequence[Part]:
    try:
        return shape.parts(message)
    except TypeError as error:  # what pydantic can write and JSON has not, as bytes
        raise MalformedMessage(f"is not JSON: {error}", place=f"message {position}") from error


class Externalized(NamedTuple):
    """Messages as they are sent, their JSON, the stubs in them, and what those stand for, by digest."""

    messages: Sequence[Wire]
    encoded: Sequence[bytes]
    stubs: Sequence[Stub]
    taken_out: Mapping[str, bytes]


def externalized(
    shape: MessageShape,
    messages: Sequence[Wire],
    entries: Sequence[Entry],
    originals: Sequence[bytes],
    over: int | None,
    names: dict[str, str],
) -> Externalized:
    """The messages with large tool results as stubs (T14), always the same for the same messages (T10).

    ``originals``: the JSON of the messages as they are. ``names``: the tools of the calls before them, by the
    calls' ids, as far as the run is read, since an id may be used again later; theirs are added.
    """
    if over is None:
        return Externalized(messages, originals, (), {})
    stubs: list[Stub] = []
    taken_out: dict[str, bytes] = {}
    sent, encoded = list(messages), list(originals)
    for place, entry in enumerate(entries):
        texts: dict[int, str] = {}
        if entry.results and len(originals[place]) > over:
            for part in _parts(shape, messages[place], entry.position):
                content = large_result(part, names, over)
                if content is not None:
                    digest = result_digest(content)
                    taken_out[digest] = content
                    stubs.append(Stub(entry.position, part.part, digest, len(content)))
                    texts[part.part] = stub_text(part.text, digest, len(content))
        names.update((call.id, call.name) for call in entry.calls)
        if texts:
            sent[place] = shape.with_results(messages[place], texts)
            encoded[place] = encode_ordered(sent[place])
    return Externalized(sent, encoded, stubs, taken_out)
