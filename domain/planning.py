"""Which ranges are due (W3, W4, W5). A plan is only a plan: the claim decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.binding import pairs_of
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.identity import Job, ModelIdentity, job_for
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.read_models import OPEN, SummaryRow
from compaction_ledger.domain.windows import Range, WindowPolicy

PlanStatus = Literal["due", "done", "running", "waiting", "exhausted"]


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A target of the policy and what is to be done about it.

    ``stale`` counts summaries of older sources; ``is_new`` where the read models know nothing of it.
    """

    window: Range
    status: PlanStatus
    job: Job
    stale: int
    retry_at: int | None = None
    is_new: bool = False


def plan(  # noqa: PLR0913 - everything a plan depends on
    scope: str,
    conversation: str,
    pairs: Sequence[Pair],
    rows: Iterable[SummaryRow],
    *,
    policy: WindowPolicy,
    registry: PromptRegistry,
    model: ModelIdentity,
    now: int,
    upgrade: bool = False,
) -> list[PlannedRange]:
    """The targets of ``pairs`` under ``policy``, oldest first.

    ``rows`` may be late or empty: then a range that is done is planned again, and its claim refused.
    ``upgrade`` makes a range due whose best summary is of an older prompt version (W4).
    """
    by_range: dict[int, list[SummaryRow]] = {}
    for row in rows:
        by_range.setdefault(row.from_pair, []).append(row)
    planned: list[PlannedRange] = []
    for window in policy.targets(len(pairs)):
        job = job_for(scope, conversation, pairs_of(pairs, window), model, registry.current)
        known = by_range.get(window.from_pair, [])
        current = [row for row in known if row.source_hash == job.source_hash]
        stale = sum(row.finished for row in known) - sum(row.finished for row in current)
        status, retry_at = _status(job, current, registry, now, upgrade=upgrade)
        planned.append(PlannedRange(window, status, job, stale, retry_at, not known))
    return planned


def _status(
    job: Job, rows: Sequence[SummaryRow], registry: PromptRegistry, now: int, *, upgrade: bool
) -> tuple[PlanStatus, int | None]:
    identity = job.identity
    for row in rows:
        if (
            row.finished
            and registry.verdict(row.prompt) == "projectable"
            and not (upgrade and registry.rank(row.prompt) < registry.rank(job.prompt))
        ):
            return "done", None
    for row in rows:
        if row.status in OPEN and row.expires_at is not None and now < row.expires_at:
            return "running", row.expires_at
    for row in rows:
        if row.identity != identity:
            continue
        if row.status == "exhausted":
            return "exhausted", None
        if row.retry_at is not None and now < row.retry_at:
            return "waiting", row.retry_at
    return "due", None
