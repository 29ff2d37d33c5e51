"""Where in the log a point is that somebody asks about (P5)."""

from __future__ import annotations

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.moments import Moment, Point
from compaction_ledger.domain.ports import Log

BATCH = 500


def find_point(log: Log, moment: Moment, place: str = "index") -> Point:
    """The point that is meant. The log is read in batches where a time is asked for.

    Raises :class:`InvalidSetting` for an index that the log has not got.
    """
    size = log.size()
    if moment.index is not None and not -1 <= moment.index < size:
        raise InvalidSetting(f"the log has no event {moment.index}", place=place)
    stop = size if moment.index is None else moment.index + 1
    if moment.time is None:
        # One that is damaged is left out: whoever follows the log meets the first damage there is.
        last = log.at([stop - 1]).get(stop - 1) if stop else None
        return Point(stop - 1, None if last is None else last.recorded_at)
    found: Recorded | None = None
    start = 0
    while start < stop:
        for entry in log.read(start, BATCH, stop):
            start = entry.index + 1
            if entry.recorded_at <= moment.time:
                found = entry
    if found is None:
        return Point(-1, None, moment.time)
    return Point(found.index, found.recorded_at, moment.time)
