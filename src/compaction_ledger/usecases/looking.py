"""Look at one conversation because somebody says so, for job queues: a few ranges, and when to come again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import random
from typing import NamedTuple

from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.compaction import HELD_BACK, Compactor
from compaction_ledger.usecases.working import SECOND, again_at

HELD_BACK_SECONDS = 1.0
"""About how long to wait where nothing may be attempted at present (D2, D3): who asks once a second keeps its
place in the queue."""


class Looked(NamedTuple):
    """What became of the ranges that were tried, and in how many seconds to look again.

    ``again_in`` is ``None`` where there is nothing to come back for before the conversation changes.
    """

    outcomes: Sequence[RangeOutcome]
    again_in: float | None


def look(
    compactor: Compactor,
    scope: str,
    conversation: str,
    *,
    upgrade: bool,
    at_most: int,
    jitter: Callable[[], float] = random,
) -> Looked:
    """Compact what is due, at most so many ranges of it. Raises what :meth:`Compactor.compact` does."""
    report = compactor.compact(scope, conversation, upgrade=upgrade, at_most=at_most)
    now = compactor.context.log.now()
    at = again_at(report, now, jitter())
    if at is None:
        return Looked(report.outcomes, None)
    held_back = any(outcome.result in HELD_BACK for outcome in report.outcomes)
    least = HELD_BACK_SECONDS * (1 + jitter()) if held_back else 0.0
    return Looked(report.outcomes, max(least, (at - now) / SECOND))
