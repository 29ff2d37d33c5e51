"""One quote of a user's, from the original it stands in to a fact in the run's stream (T9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import DamagedOriginal, PinRefused
from compaction_ledger.domain.messages.interface import Entry
from compaction_ledger.domain.window.commands import AcceptPin
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.events import PinProposer as ProposedBy
from compaction_ledger.domain.window.originals import Original
from compaction_ledger.domain.window.pin_proof import Readings
from compaction_ledger.domain.window.pin_sources import find_in, users_parts
from compaction_ledger.domain.window.pins import pin_id, superseded_by_rules
from compaction_ledger.domain.window.window_state import WindowState, current_pins
from compaction_ledger.usecases.originals_reading import read_readable, stretches
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.kept import checked
from compaction_ledger.usecases.window_session import WindowSession

KeptMessage = tuple[Original, Entry]
"""A message as it is kept, checked against its digest, and what it is in its shape."""


def original_at(context: WindowContext, position: int) -> KeptMessage:
    """The message as it is kept, checked against its digest, and what it is in its shape."""
    found = context.originals.read(context.key, position, position + 1) if position >= 0 else ()
    return kept_message(context, position, found[0] if found else None)


def kept_at(
    context: WindowContext, positions: Sequence[int]
) -> Iterator[tuple[int, Original | None]]:
    """The messages at these positions, in order, read many at once: a turn waits for it (T11)."""
    wanted = {position for position in positions if position >= 0}
    for start, stop in stretches(wanted):
        kept = read_readable(context.originals, context.key, start, stop)
        found = {original.position: original for original in kept}
        for position in range(start, stop):
            if position in wanted:
                yield position, found.get(position)


def kept_message(context: WindowContext, position: int, original: Original | None) -> KeptMessage:
    """What :func:`kept_at` found at a position. Raises :class:`DamagedOriginal`, and
    :class:`PinRefused` where no such message is kept.
    """
    if original is not None:
        return original, entry_of(context, original)
    if 0 <= position < context.originals.count(context.key):
        raise DamagedOriginal(f"message m{position} cannot be read")
    raise PinRefused("unknown_message", f"no message {position} of this run is kept")


def entry_of(context: WindowContext, original: Original) -> Entry:
    """What a kept message is in its shape. Raises :class:`DamagedOriginal`."""
    wire = checked(original, context.shape)
    return context.shape.read([wire], original.position)[0]


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a quote beside its words: who proposes it, what it corrects, in which part it is, and
    what was read of its message already.
    """

    proposer: ProposedBy
    supersedes: str | None = None
    part: int | None = None
    readings: Readings | None = None


def record_pin(
    context: WindowContext,
    session: WindowSession,
    found: KeptMessage,
    quote: str,
    told: Told,
) -> PinAccepted:
    """Prove a quote in a kept message and record it; the pin as it is recorded. Raises :class:`PinRefused`,
    kinds of :class:`StoreError`.
    """
    (original, entry), supersedes = found, told.supersedes
    source, (start, end) = find_in(
        quote, users_parts(context.shape, entry), told.part, told.readings
    )
    place = (entry.position, source.part, start)

    def recorded(state: WindowState) -> PinAccepted | None:
        known = _known(state, place, end)
        return known if known and supersedes in {None, known.supersedes, known.pin_id} else None

    def pin_of(state: WindowState) -> PinAccepted:
        known = recorded(state)
        if known is not None:
            return known
        corrected = supersedes or _corrected(state, place, quote, source.text)
        return PinAccepted(
            window=context.key,
            pin_id=pin_id(context.key, entry.position, source.part, start, end, corrected),
            message=entry.position,
            digest=original.digest,
            part=source.part,
            start=start,
            end=end,
            quote=quote,
            exchange=original.exchange,
            proposer=told.proposer,
            supersedes=corrected,
        )

    known = recorded(session.state)
    if known is not None:  # and stays so: nothing is to be judged or read again
        return known
    outcome = session.execute(lambda _: AcceptPin(pin_of(session.state)))
    for fact in outcome.facts:
        if isinstance(fact, PinAccepted):
            return fact
    return pin_of(session.state)


def _known(state: WindowState, place: tuple[int, int, int], end: int) -> PinAccepted | None:
    """The newest pin of these very words."""
    found = [pin for pin in state.pins.values() if _place(pin) == place and pin.end == end]
    return found[-1] if found else None


def _corrected(
    state: WindowState, place: tuple[int, int, int], quote: str, text: str
) -> str | None:
    """The pin that these words correct by the rules: one that was said before them."""
    earlier = [pin for pin in current_pins(state) if _place(pin) < place]
    return superseded_by_rules(quote, text, earlier) if earlier else None


def _place(pin: PinAccepted) -> tuple[int, int, int]:
    return (pin.message, pin.part, pin.start)
