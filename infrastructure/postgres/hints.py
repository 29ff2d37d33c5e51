"""Hints between processes by NOTIFY: "there is something to look at". Nothing depends on one.

A hint only ends a pause early. A pooler in transaction mode delivers none, a listening connection may be
killed or go silent: then things are found at the next poll. Hints are sent in transactions of their own that
do not wait for the disk, and not more often than a few times a second, as PostgreSQL lets only one
transaction that notifies commit at a time, on the whole server (https://www.postgresql.org/docs/current/sql-notify.html).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql

from compaction_ledger.domain.errors import StoreError
from compaction_ledger.infrastructure.postgres.address import Address
from compaction_ledger.infrastructure.postgres.connections import LedgerConnection, connect
from compaction_ledger.infrastructure.postgres.database import Database, Lost

logger = logging.getLogger(__name__)

SECONDS_BETWEEN = 0.25
"""A process sends no more than one hint in this time."""

_SEND = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, '')"
_LOOK_SECONDS = 0.5
_CHECK_SECONDS = 20.0
_PAUSE_SECONDS = 1.0
_LEAVE_SECONDS = 2.0


def channel_of(address: Address) -> str:
    """The channel of one ledger's hints."""
    return f"{address.schema}_hints"


class HintSender:
    """Sends hints, seldom enough."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sent = float("-inf")

    def send(self) -> None:
        """Send a hint, unless one was sent just now. An error is told to the log: nothing depends on it."""
        now = time.monotonic()
        if now - self._sent < SECONDS_BETWEEN:
            return
        self._sent = now
        try:
            self._database.call_once(_SEND, (channel_of(self._database.address),))
        except (StoreError, Lost) as error:
            logger.debug("no hint was sent: %s", error)


class HintListener:
    """Tells ``heard`` of hints while it is entered; its connection is made anew when that is lost."""

    def __init__(self, address: Address, heard: Callable[[], None]) -> None:
        self._address = address
        self._heard = heard
        self._ended = Event()
        self._thread = Thread(target=self._run, name="compaction-ledger-hints", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(_LEAVE_SECONDS)  # a connection that is being made is waited for by nobody

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with connect(self._address) as connection:
                    self._listen(connection)
            except psycopg.Error as error:
                logger.debug("no hints for a while: %s", type(error).__name__)
            self._ended.wait(_PAUSE_SECONDS)

    def _listen(self, connection: LedgerConnection) -> None:
        connection.answer_seconds = _CHECK_SECONDS
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel_of(self._address))))
        self._heard()  # what was hinted while nobody listened
        checked = time.monotonic()
        while not self._ended.is_set():
            for _ in connection.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                self._heard()
            if time.monotonic() - checked > _CHECK_SECONDS:  # a connection that went silent
                connection.execute("SELECT")
                checked = time.monotonic()
