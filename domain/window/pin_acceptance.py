"""Which pins a window takes (T9). That a quote stands in a user's message has been proved before."""

from __future__ import annotations

from typing import Literal

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.errors import InvalidCommand, PinRefused
from compaction_ledger.domain.identifiers import check_id, is_blank, is_hash, is_well_formed
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import check_key
from compaction_ledger.domain.window.window_state import WindowState, same_words


def accept(state: WindowState, pin: PinAccepted) -> PinRefused | Literal["already"] | None:
    """Why a pin is not taken; ``"already"`` where it has been; ``None`` where it may be recorded.

    The same words again are the same pin, under whatever id, unless they are said to correct another one
    now: then that is news, and a pin of its own. Raises :class:`InvalidInput` kinds for a malformed one.
    """
    _check(state, pin)
    known = state.pins.get(pin.pin_id)
    if known is not None:
        if same_words(known, pin) and _says_no_more(known, pin):
            return "already"
        return PinRefused("pin_id_used", f"another pin has the id {pin.pin_id}")
    if any(same_words(other, pin) and _says_no_more(other, pin) for other in state.pins.values()):
        return "already"
    if pin.supersedes is None:
        return None
    if pin.supersedes not in state.pins:
        return PinRefused("unknown_pin", f"there is no pin {pin.supersedes} to correct")
    newer = state.superseded.get(pin.supersedes)
    if newer is None:
        return None
    return PinRefused("unknown_pin", f"pin {pin.supersedes} was corrected by {newer} before")


def _says_no_more(known: PinAccepted, pin: PinAccepted) -> bool:
    """Whether a pin of the same words corrects nothing that the known one does not."""
    return pin.supersedes in (None, known.pin_id, known.supersedes)


def _check(state: WindowState, pin: PinAccepted) -> None:
    check_key(pin.window)
    check_id(pin.pin_id, "pin id")
    if pin.supersedes is not None:
        check_id(pin.supersedes, "pin id")
    if state.key is not None and state.key != pin.window:
        raise InvalidCommand(
            f"the pin is of {pin.window}, the stream of {state.key}", place="stream"
        )
    if not (0 <= pin.start < pin.end <= MAX_INTEGER):
        raise InvalidCommand(f"{pin.start} to {pin.end} is no place in a text", place="quote")
    if len(pin.quote) != pin.end - pin.start:
        raise InvalidCommand("a quote is as long as its place in the text", place="quote")
    if is_blank(pin.quote) or not is_well_formed(pin.quote):
        raise InvalidCommand("a quote is well-formed text", place="quote")
    if not (0 <= pin.message <= MAX_INTEGER and 0 <= pin.part <= MAX_INTEGER):
        raise InvalidCommand(f"there is no part {pin.part} of message {pin.message}", place="pin")
    if not is_hash(pin.digest):
        raise InvalidCommand("the digest is not 64 lower-case hexadecimal digits", place="pin")
    if not 0 <= pin.exchange <= MAX_INTEGER:
        raise InvalidCommand(f"{pin.exchange} is no exchange of a user", place="pin")
