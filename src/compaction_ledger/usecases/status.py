"""How a ledger is at one moment, for whoever operates it. Nothing is written: what lags is seen to lag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compaction_ledger.domain.ports import WorkList
from compaction_ledger.domain.read_models import GenerationProgress, RangeStatus
from compaction_ledger.domain.status import StoreStatus
from compaction_ledger.domain.work import Backlog
from compaction_ledger.usecases.context import Context


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """A ledger at one moment, by the store's clock. Times are microseconds since the epoch.

    The numbers of ranges, and ``next_expiry`` of the running ones, are what the read models say at
    ``position``. ``rebuild`` is one that goes on, or that was killed. ``slots`` is the bound on attempts
    among all processes that this one goes by, if there is one (D1).
    """

    at: int
    events: int
    position: int
    oldest_lagging: int | None
    """When the first event was recorded that the read models do not reflect."""

    ranges: Mapping[RangeStatus, int]
    next_expiry: int | None
    rebuild: GenerationProgress | None
    backlog: Backlog
    store: StoreStatus
    slots: int | None

    @property
    def lag(self) -> int:
        """How many events the read models do not reflect yet."""
        return max(0, self.events - self.position)

    @property
    def lag_time(self) -> int:
        """For how many microseconds the first of them has been waiting."""
        return 0 if self.oldest_lagging is None else max(0, self.at - self.oldest_lagging)


def ledger_status(
    context: Context, work: WorkList, store: Callable[[], StoreStatus], slots: int | None
) -> LedgerStatus:
    """Ask every part how it is. Raises :class:`StoreError` and :class:`DamagedLog` kinds."""
    census = context.read_models.census()  # before the log, which only grows
    rebuilds = [one for one in context.read_models.progress() if not one.active]
    events = context.log.size()
    lagging = context.log.read(census.position, 1, events) if census.position < events else ()
    return LedgerStatus(
        at=context.log.now(),
        events=events,
        position=census.position,
        oldest_lagging=lagging[0].recorded_at if lagging else None,
        ranges=census.counts,
        next_expiry=census.next_expiry,
        rebuild=rebuilds[-1] if rebuilds else None,
        backlog=work.backlog(),
        store=store(),
        slots=slots,
    )
