"""Which parts of a message are the user's own words (T9): pins come from there and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction_ledger.domain.errors import PinRefused
from compaction_ledger.domain.messages.interface import Entry, MessageShape, Part
from compaction_ledger.domain.window.pin_proof import Readings, check_quote, prove


def users_parts(shape: MessageShape, entry: Entry) -> list[Part]:
    """The texts of a user's own message, in order. Raises :class:`PinRefused` with ``not_users_words``.

    A message that begins no turn is none: instructions, an assistant's answer, a tool's result, and what
    stands beside a result. Where a message says of each part who speaks (Pydantic AI), the user's count.
    """
    if entry.role != "user" or not entry.begins_turn:
        raise PinRefused("not_users_words", f"message {entry.position} is not a user's own")
    return [
        part
        for part in shape.parts(entry.wire)
        if part.kind == "text" and part.role in (None, "user")
    ]


def find_in(
    quote: str,
    parts: Sequence[Part],
    part: int | None = None,
    readings: Readings | None = None,
) -> tuple[Part, tuple[int, int]]:
    """The first of ``parts`` in which ``quote`` is proven, and where; or only the one numbered ``part``.

    What the user says in one part may announce what stands in the next, so the proof is also made in all of
    them together. Raises :class:`PinRefused` as :func:`prove`, with what is wrong at the best place.
    """
    check_quote(quote)
    refusals: list[PinRefused] = []
    before = 0
    whole = _BETWEEN.join(each.text for each in parts)
    for each in parts:
        if part is None or each.part == part:
            try:
                place = prove(quote, each.text, None, readings)
                if len(parts) > 1:
                    prove(quote, whole, before + place[0], readings)
            except PinRefused as refusal:
                refusals.append(refusal)
            else:
                return each, place
        before += len(each.text) + len(_BETWEEN)
    if not refusals:
        raise PinRefused("not_found", "there is no such text of the user's in the message")
    raise max(refusals, key=lambda refusal: _NEARNESS.get(refusal.reason, 0))


_BETWEEN = "\n\n"
_NEARNESS: Mapping[str, int] = {"out_of_context": 2, "part_of_a_token": 1}
