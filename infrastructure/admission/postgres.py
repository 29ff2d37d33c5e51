"""A bound on attempts at once across the processes that share a PostgreSQL database (D1).

A slot is a lease: a row that counts until it was not renewed for a while, by the database's clock. A thread
renews the slots of its process for as long as there are any, so a slot is free again soon after its holder
has died. Who is told "not now" gets a place in a queue, and nobody who asked later is let past it.

Admission is never a matter of safety. Where a process could not renew in time (it was stopped, or cut off
from the database), its slot may be given to another while its attempt goes on: then more calls run at once
than was wished for, and nothing else happens. Who may complete a range is decided by the claim in the log,
and by nothing here (A4).

The statements are functions of the database (``migrations/0004_admission.sql``), each one short transaction:
they work through a pooler in transaction mode.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from uuid import UUID, uuid4

from compaction_ledger.domain.errors import InvalidSetting, StoreError
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.infrastructure.forking import watch
from compaction_ledger.infrastructure.postgres.database import Database, Lost

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
"""For how long a slot stays taken when its holder has died."""

TICKET_SECONDS = 10.0
"""For how long a place in the queue is kept for who does not ask again: ask about once a second."""

_TAKE = "SELECT {schema}.take_slot(%s, %s, %s, %s, %s, %s)"
_RENEW = "SELECT * FROM {schema}.renew_slots(%s)"
_GIVE_BACK = "SELECT {schema}.give_back_slots(%s, %s)"
_IN_USE = (
    "SELECT count(*) FROM (SELECT {schema}.store_clock() AS moment) AS c, {schema}.admission_slots "
    "WHERE renewed_at + lease > moment"
)
_WAITING = (
    "SELECT count(*) FROM (SELECT {schema}.store_clock() AS moment) AS c, {schema}.admission_tickets "
    "WHERE last_asked + kept > moment"
)


class SharedAdmission:
    """At most ``limit`` attempts at once among all that share the database. Never waits (D2). Thread-safe.

    Each process has one, which is one asker in the queue, however many of its threads ask: so processes get
    about as many slots each, whatever they call themselves. ``holder`` is only shown. Limits may differ, as
    while a deployment rolls: each slot is taken under the limit of who takes it, and while somebody with a
    lower limit waits, that limit holds for those behind as well, since nobody is let past.
    """

    def __init__(
        self,
        database: Database,
        limit: int,
        holder: str,
        lease_seconds: float = LEASE_SECONDS,
        *,
        ticket_seconds: float = TICKET_SECONDS,
    ) -> None:
        if limit < 1:
            raise InvalidSetting(f"must be at least 1, not {limit}", place="admission limit")
        self._database = database
        self._limit = limit
        self._holder = check_id(holder, "holder")
        self._lease = _microseconds(lease_seconds, "slot lease")
        self._ticket = _microseconds(ticket_seconds, "ticket")
        self._take = database.sql(_TAKE)
        self._asked = False
        self._asker = uuid4()
        self._slots = _Slots(database, self._lease)
        watch(self)

    def admit(self) -> Callable[[], None] | None:
        """Take a slot and return what gives it back; ``None`` means: not now (D2), but in turn.

        Who was told so keeps its place by asking again within ``ticket_seconds``. Giving back twice gives
        back once, and raises nothing: what the database does not take back now it is told of later, or it is
        over with its lease. Raises kinds of :class:`StoreError` where the database cannot be asked, as the
        next step of an attempt would; no attempt is spent on it.
        """
        slots, token = self._slots, uuid4()
        self._asked = True
        values = (token, self._asker, self._holder, self._limit, self._lease, self._ticket)
        ((taken,),) = self._database.call(self._take, values)
        if not taken:
            return None
        slots.keep(token)
        return lambda: slots.give_back(token)

    def in_use(self) -> int:
        """How many slots are taken now, by whatever process. Raises kinds of :class:`StoreError`."""
        return self._count(_IN_USE)

    def waiting(self) -> int:
        """How many processes stand in the queue now. Raises kinds of :class:`StoreError`."""
        return self._count(_WAITING)

    def close(self) -> None:
        """Leave the queue and give back what this process still holds. Before the database is closed."""
        if self._asked:
            self._slots.close(self._asker)

    def begin_anew(self) -> None:
        """Hold nothing. Called in a process that was forked off: the slots are those of its parent."""
        self._asked = False
        self._asker = uuid4()
        self._slots = _Slots(self._database, self._lease)

    def before_fork(self) -> None:
        """Nothing: a child makes its own."""

    def after_fork(self) -> None:
        """Nothing: the parent goes on."""

    def _count(self, statement: str) -> int:
        ((count,),) = self._database.call(self._database.sql(statement))
        return int(count)


class _Slots:
    """The slots that this process holds, and the thread that renews them for as long as there are any."""

    def __init__(self, database: Database, lease: int) -> None:
        self._database = database
        self._interval = lease / 3 / 1_000_000
        self._process = os.getpid()
        self._changed = Condition()
        self._held: set[UUID] = set()
        self._owed: set[UUID] = set()
        """Given back, but the database does not know it yet."""
        self._hurry = False
        self._thread: Thread | None = None
        self._closed = False

    def keep(self, token: UUID) -> None:
        """Renew this slot from now on."""
        with self._changed:
            self._see_to_it()
            self._held.add(token)

    def give_back(self, token: UUID) -> None:
        """Give a slot back. If the database does not take it now, the thread sees to it."""
        if self._process != os.getpid():
            return  # it is the parent's
        with self._changed:
            if token not in self._held:
                return  # given back before, or lost
            self._held.discard(token)
            self._changed.notify()
        try:
            self._tell(_GIVE_BACK, [token], None)
        except (StoreError, Lost) as error:
            logger.debug("a slot is given back later: %s", error)
            with self._changed:
                self._see_to_it()
                self._owed.add(token)
                self._hurry = True
                self._changed.notify()

    def close(self, asker: UUID) -> None:
        """End the thread and give everything back, in one attempt: what is left is over with its lease."""
        with self._changed:
            self._closed = True
            left = [*self._held, *self._owed]
            self._held.clear()
            self._owed.clear()
            self._changed.notify()
        with suppress(StoreError, Lost):
            self._tell(_GIVE_BACK, left, asker)

    def _see_to_it(self) -> None:
        """Have a thread that renews. Called with the lock held, for which it waits."""
        if not self._closed and (self._thread is None or not self._thread.is_alive()):
            self._thread = Thread(target=self._renew, name="compaction-ledger slots", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        """Every third of a lease, until nothing is held. After an error it is tried again, and sooner."""
        pause = self._interval
        while self._wait(pause):
            try:
                self._settle()
            except (StoreError, Lost) as error:
                logger.debug("slots are renewed later: %s", error)
                pause = self._interval / 10
            else:
                pause = self._interval

    def _wait(self, seconds: float) -> bool:
        """Wait, and say whether there still is something to see to; without it, the thread has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._hurry or not (self._held or self._owed), seconds)
            self._hurry = False
            if self._held or self._owed:
                return True
            self._thread = None
            return False

    def _settle(self) -> None:
        with self._changed:
            held, owed = list(self._held), list(self._owed)
        if owed:
            self._tell(_GIVE_BACK, owed, None)
        renewed = {token for (token,) in self._tell(_RENEW, held)} if held else set[UUID]()
        with self._changed:
            self._owed.difference_update(owed)
            self._held.difference_update(set(held) - renewed)

    def _tell(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self._database.call_once(self._database.sql(statement), values)


def _microseconds(seconds: float, place: str) -> int:
    """A length of time. Raises :class:`InvalidSetting`."""
    if not 0 < seconds <= 86_400:
        raise InvalidSetting(
            f"must be above 0 and at most 86400 seconds, not {seconds}", place=place
        )
    return max(1, int(seconds * 1_000_000))
