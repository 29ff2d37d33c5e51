"""A kept message, read and checked against its digest (B3, T15): the one way of everybody who uses it."""

from __future__ import annotations

import json
from typing import cast

from compaction_ledger.domain.errors import DamagedOriginal, InvalidInput
from compaction_ledger.domain.messages.interface import MessageShape, Wire
from compaction_ledger.domain.window.originals import Original, message_digest

_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError, InvalidInput)


def checked(original: Original, shape: MessageShape, run: str | None = None) -> Wire:
    """The message as it was kept. Raises :class:`DamagedOriginal` naming it, and its ``run`` where told.

    Whatever its bytes have become, that is the one error of it: no JSON, another value than was kept, or
    one that is no message of this shape.
    """
    try:
        wire = cast("Wire", json.loads(original.wire.decode("utf-8", "surrogatepass")))
        digest = message_digest(shape.settled(wire))
    except _UNREADABLE as error:
        raise DamagedOriginal(f"{_name(original, run)} cannot be read: {error}") from error
    if digest != original.digest:
        raise DamagedOriginal(f"{_name(original, run)} is not what was kept")
    return wire


def _name(original: Original, run: str | None) -> str:
    return f"message {original.id}" if run is None else f"message {original.id} of run {run!r}"
