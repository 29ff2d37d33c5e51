"""Points of the log that somebody asks about: after an event, or at a time (P5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.errors import InvalidSetting

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INDEX = re.compile(r"-1|[0-9]{1,16}", re.ASCII)
_MICROSECONDS = re.compile(r"@(-?[0-9]{1,16})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point that is asked for: after event ``index`` (-1: before the first), or at ``time`` in µs.

    With neither it is the end of the log; with both, whichever of them comes first in the log.
    """

    index: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point that was found: the last event that counts, and when that was recorded; -1 for none.

    ``time`` is what was asked for, in µs since the epoch, if it was a time.
    """

    index: int
    recorded_at: int | None
    time: int | None = None

    @property
    def position(self) -> int:
        """How many events count."""
        return self.index + 1

    @property
    def judged_at(self) -> int | None:
        """By which time leases and waits are judged: the one asked for, else that of the last event."""
        return self.recorded_at if self.time is None else self.time


def parse_moment(text: str, place: str) -> Moment:
    """An index, an ISO 8601 time with an offset, or ``@`` and microseconds since the epoch.

    Raises :class:`InvalidSetting`, which names ``place``.
    """
    if _INDEX.fullmatch(text):
        return Moment(index=int(text))
    microseconds = _MICROSECONDS.fullmatch(text)
    if microseconds:
        return Moment(time=_checked(int(microseconds[1]), text, place))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSetting(
            f"{text!r} is neither an index, nor an ISO 8601 time, nor @ and microseconds",
            place=place,
        ) from None
    if moment.tzinfo is None:
        raise InvalidSetting(f"{text!r} has no offset from UTC, such as Z", place=place)
    since = moment - EPOCH
    return Moment(time=since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds)


def _checked(time: int, text: str, place: str) -> int:
    if abs(time) > MAX_INTEGER:
        raise InvalidSetting(f"{text!r} is no time that a log can have", place=place)
    return time
