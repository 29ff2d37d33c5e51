"""Reading a run's messages as they are at this turn: structure, JSON, tokens, stubs (T2, T3, T14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.errors import BrokenTranscript, MalformedMessage
from compaction_ledger.domain.messages.interface import Entry, MessageShape, Wire
from compaction_ledger.domain.messages.structure import boundaries, structural_problems
from compaction_ledger.domain.window.externalizing import (
    REREADING_TOOLS,
    Stub,
    content_bytes,
    result_digest,
    stub_text,
)
from compaction_ledger.domain.window.placement import Transcript
from compaction_ledger.domain.window.tokens import Gauge


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
    not changed.
    """
    entries = shape.read(messages)
    problems = structural_problems(entries)
    if problems:
        raise BrokenTranscript(problems)
    originals = _encoded(messages)
    sent, encoded, stubs, taken_out = _externalized(
        shape, messages, entries, originals, externalize_over
    )
    transcript = Transcript(
        shape=shape,
        messages=sent,
        encoded=encoded,
        tokens=gauge.count(encoded),
        boundaries=boundaries(entries),
        instructions=[entry.position for entry in entries if entry.role == "system"],
        stubs=stubs,
    )
    return Turn(messages, entries, originals, transcript, taken_out)


def _encoded(messages: Sequence[Wire]) -> list[bytes]:
    try:
        return encode_all(messages)
    except (TypeError, ValueError):
        for position, message in enumerate(messages):
            try:
                encode_all([message])
            except (TypeError, ValueError) as error:
                raise MalformedMessage(
                    f"is not JSON: {error}", place=f"message {position}"
                ) from error
        raise


def _externalized(
    shape: MessageShape,
    messages: Sequence[Wire],
    entries: Sequence[Entry],
    originals: list[bytes],
    over: int | None,
) -> tuple[Sequence[Wire], list[bytes], list[Stub], dict[str, bytes]]:
    """The messages with their large tool results as stubs, always the same for the same messages (T10)."""
    stubs: list[Stub] = []
    taken_out: dict[str, bytes] = {}
    if over is None:
        return messages, originals, stubs, taken_out
    sent, encoded = list(messages), list(originals)
    names = {call.id: call.name for entry in entries for call in entry.calls}
    for position, entry in enumerate(entries):
        if not entry.results or len(originals[position]) <= over:
            continue
        texts: dict[int, str] = {}
        for part in shape.parts(messages[position]):
            name = part.name or names.get(part.call_id or "")
            if part.kind != "result" or name in REREADING_TOOLS:
                continue
            content = content_bytes(part.text)
            if len(content) > over:
                digest = result_digest(content)
                taken_out[digest] = content
                stubs.append(Stub(position, part.part, digest, len(content)))
                texts[part.part] = stub_text(part.text, digest, len(content))
        if texts:
            sent[position] = shape.with_results(messages[position], texts)
            encoded[position] = encode_ordered(sent[position])
    return sent, encoded, stubs, taken_out
