"""Pins: constraints in the user's exact words, and the proof that they are (T9)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256
from compaction_ledger.domain.errors import PinRefused
from compaction_ledger.domain.identifiers import is_blank
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.pin_context import context_problem
from compaction_ledger.domain.window.pin_reading import Reading, read
from compaction_ledger.domain.window.pin_tokens import boundary_problem

Readings = dict[str, Reading]
"""What was read already, by its text: for the quotes of one message."""

MAX_QUOTE_CHARACTERS = 2_000
MAX_PARTS_JUDGED = 32
"""At so many places a quote that is no whole sentence is judged; further ones are named by ``start``."""

PIN_TAG = b"compaction-ledger/pin/v1"

# Control characters but for line breaks and tabs, what reorders text, and what cannot be seen or stored.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def prove(
    quote: str, text: str, start: int | None = None, readings: Readings | None = None
) -> tuple[int, int]:
    """Where ``quote`` stands in ``text``, a part of a user's message: from and to, in characters.

    It has to stand there character for character, begin and end with whole tokens, and take in what changes
    its meaning: whole sentences, or a rule of its own that nothing around it negates, bounds, narrows,
    weakens or reports (T9). The first such place counts, or only ``start`` where that is given. Takes time
    linear in the text, and reads it once for all quotes that share ``readings``. Raises
    :class:`PinRefused`: ``not_text``, ``not_found``, ``part_of_a_token`` or ``out_of_context``.
    """
    check_quote(quote)
    reading: Reading | None = None
    cut: str | None = None
    changed: str | None = None
    judged = 0
    for at in _places(quote, text, start):
        end = at + len(quote)
        problem = boundary_problem(text, at, end)
        if problem:
            cut = cut or problem
            continue
        reading = reading or _read_once(text, readings)
        problem = context_problem(reading, at, end, parts=judged < MAX_PARTS_JUDGED)
        if problem is None:
            return at, end
        judged += 1
        changed = changed or problem
    if changed:
        raise PinRefused("out_of_context", f"the quote would say something else alone: {changed}")
    if cut:
        raise PinRefused("part_of_a_token", f"the quote does not begin and end with words: {cut}")
    raise PinRefused(
        "not_found", "the quote does not stand in the message, character for character"
    )


def _read_once(text: str, readings: Readings | None) -> Reading:
    if readings is None:
        return read(text)
    if text not in readings:
        readings[text] = read(text)
    return readings[text]


def check_quote(quote: str) -> None:
    """Raises :class:`PinRefused` with ``not_text`` for what cannot be a quote at all."""
    if is_blank(quote):
        raise PinRefused("not_text", "a quote is not empty")
    if len(quote) > MAX_QUOTE_CHARACTERS:
        raise PinRefused(
            "not_text",
            f"a quote has at most {MAX_QUOTE_CHARACTERS} characters, not {len(quote)}",
        )
    found = _FORBIDDEN.search(quote)
    if found:
        raise PinRefused(
            "not_text", f"U+{ord(found.group()):04X} at {found.start()} has no place in a quote"
        )
    if quote != quote.strip():
        raise PinRefused("not_text", "there is white space around the quote")


def check_pin(pin: PinAccepted, wire_text: str) -> None:
    """Check a stored pin against its original's text, as of B3: at every assembly.

    The very characters have to stand at its very place, as whole tokens; anything else raises
    :class:`PinRefused`. What changes the meaning was judged when the pin was accepted, and is not judged
    again (A10): the rules may get stricter, and what is stored stays what it is.
    """
    check_quote(pin.quote)
    if not 0 <= pin.start < pin.end <= len(wire_text):
        raise PinRefused("not_found", f"pin {pin.pin_id} lies outside of its message")
    if wire_text[pin.start : pin.end] != pin.quote:
        raise PinRefused("not_found", f"pin {pin.pin_id} is not what stands in its message")
    problem = boundary_problem(wire_text, pin.start, pin.end)
    if problem:
        raise PinRefused("part_of_a_token", f"pin {pin.pin_id} cuts a word: {problem}")


def pin_id(
    window: WindowKey, message: int, part: int, start: int, end: int, supersedes: str | None = None
) -> str:
    """The id of a pin: the same words that correct the same pin have one id, in this run and no other.

    The first 16 hexadecimal digits of ``SHA-256(tag || 0x00 || RFC 8785 of
    {"conversation","end","message","part","run","scope","start","supersedes","v":1})``.
    """
    place = {
        "conversation": window.conversation,
        "end": end,
        "message": message,
        "part": part,
        "run": window.run,
        "scope": window.scope,
        "start": start,
        "supersedes": supersedes,
        "v": 1,
    }
    return tagged_sha256(PIN_TAG, encode_ordered(place))[:16]


def _places(quote: str, text: str, start: int | None) -> Iterator[int]:
    if start is not None:
        if start >= 0 and text.startswith(quote, start):
            yield start
        return
    at = text.find(quote)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)
