"""A lease that goes on for as long as its attempt: renewed from a thread of its own (A4, A5).

Whoever dies, is stopped or hangs longer than an attempt may take renews nothing any more, and the lease
runs out as any other. Nothing that goes wrong here reaches the attempt: the worst is that its finish comes
too late and is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic

from compaction_ledger.domain.commands import RenewClaim
from compaction_ledger.domain.errors import Refused, StoreError
from compaction_ledger.domain.log import StreamKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.usecases.range_session import RangeSession
from compaction_ledger.usecases.telemetry import NO_TELEMETRY, Telemetry
from compaction_ledger.usecases.window_session import WindowSession, session_of

logger = logging.getLogger(__name__)

TICKS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class Renewal:
    """What is renewed. ``lease`` is in microseconds."""

    log: Log
    key: StreamKey
    claim_id: str
    lease: int
    telemetry: Telemetry = field(default=NO_TELEMETRY)

    def command(self, now: int) -> RenewClaim:
        """The lease begins anew now."""
        return RenewClaim(self.claim_id, now, self.lease)


@contextmanager
def renewing(renewal: Renewal, longest: int) -> Generator[None]:
    """Renew the lease every third of it while the block runs, for ``longest`` microseconds and no longer.

    Behind the block nothing is renewed any more, however it was left.
    """
    over = Event()
    thread = Thread(
        target=_renew_until, args=(over, renewal, longest), name="lease-renewal", daemon=True
    )
    try:
        _start(thread)
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()


def _start(thread: Thread) -> None:
    """Start the thread. Where there can be none more, the lease simply runs out."""
    try:
        thread.start()
    except RuntimeError as error:
        logger.warning("a lease is not renewed: %s", error)


def _renew_until(over: Event, renewal: Renewal, longest: int) -> None:
    """Renew at each tick, until it is over, in vain or too long."""
    last = monotonic() + longest / 1_000_000
    session = session_of(renewal.log, renewal.key)  # not the holder's, which is of another thread
    while not over.wait(renewal.lease / TICKS_PER_LEASE / 1_000_000) and monotonic() < last:
        if not _renew(session, renewal):
            return


def _renew(session: RangeSession | WindowSession, renewal: Renewal) -> bool:
    """Renew once; whether to go on. What the store could not do it may be able to do at the next tick."""
    count = renewal.telemetry.count
    try:
        if session.execute(renewal.command).facts:
            count("renewals", result="renewed")
    except Refused as refusal:
        count("renewals", result="refused", error=refusal.code)
        logger.info("a lease is not renewed any more: %s", refusal)
        return False
    except StoreError as error:
        count("renewals", result="failed", error=error.code)
        logger.warning("a lease could not be renewed now: %s", error)
    except Exception as error:  # the attempt goes on, and its finish meets the same
        count("renewals", result="failed", error=type(error).__name__)
        logger.warning("a lease is not renewed any more: %s", type(error).__name__)
        logger.debug("renewing raised", exc_info=True)
        return False
    return True
