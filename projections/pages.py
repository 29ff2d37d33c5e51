"""Reading a log page by page, the next one while this one is worked on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log

Page = Sequence[Recorded]
_Read = tuple[int, Page]
"""A page, and the number of erasures before it was read."""


class Pages:
    """The facts of a log below ``stop``, in pages of ``size``.

    Where more than one page is left, the next one is read and checked in a thread of its own: so the
    database works at one while we work at the other. The thread has ended when the context has.
    What was read before an erasure is read again (S3): ask :meth:`is_current` before a page is used.
    """

    def __init__(self, log: Log, stop: int, size: int) -> None:
        self._log = log
        self._stop = stop
        self._size = size
        self._first = max(1, size // 8)  # while it is read, nothing else can be done
        self._reader: ThreadPoolExecutor | None = None
        self._ahead: tuple[int, Future[_Read]] | None = None
        self._start = -1
        self._read: _Read = (0, ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            self._reader.shutdown(cancel_futures=True)

    def at(self, start: int) -> Page:
        """The page that begins with index ``start``. Raises :class:`DamagedLog`."""
        if self._start != start or not self.is_current():
            self._start, self._read = start, self._take(start)
            self._read_ahead(start + len(self._read[1]))
        return self._read[1]

    def is_current(self) -> bool:
        """Whether nothing was erased since the page was read."""
        return self._read[0] == self._log.erasures()

    def _take(self, start: int) -> _Read:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == start:
            read = ahead[1].result()
            if read[0] == self._log.erasures():
                return read
        size = self._size if self._stop - start <= self._size else self._first
        return self._read_from(start, size)

    def _read_ahead(self, start: int) -> None:
        if start >= self._stop:
            return
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "compaction-ledger-pages")
        self._ahead = (start, self._reader.submit(self._read_from, start, self._size))

    def _read_from(self, start: int, limit: int) -> _Read:
        erasures = self._log.erasures()
        page = self._log.read(start, limit, self._stop)
        if not page:  # the log said that it was longer
            raise DamagedLog("an event is missing here", index=start)
        return erasures, page
