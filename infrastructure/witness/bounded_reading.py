"""Reading from a socket until a deadline: whoever sends byte by byte does not hold a thread for ever (K3)."""

from __future__ import annotations

import io
import socket
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer


class DeadlineReader(io.RawIOBase):
    """The bytes that come in. :meth:`allow` sets until when; then reading raises ``TimeoutError``."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._until = clock()

    def allow(self, seconds: float) -> None:
        """From now on, so many seconds for all that is read, however many reads that takes."""
        self._until = self._clock() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("the request did not come in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
