"""Look at a conversation of the work list: compact what is due, and say when to look again (W3, A11).

An error of one conversation is nothing to the others. It is noted, and the conversation is looked at again
later, after waits that grow. What concerns the store as a whole goes on to whoever runs the loop.
"""

from __future__ import annotations

import logging
import random as standard_random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.canonical import canonical_json, tagged_sha256
from compaction_ledger.domain.errors import (
    Erased,
    InvalidSetting,
    LedgerError,
    StoreError,
    UnknownConversation,
)
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.ports import WorkList
from compaction_ledger.domain.work import WorkItem
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.compaction import HELD_BACK, CompactionReport, Compactor
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.stopping import Stopped

logger = logging.getLogger(__name__)

SECOND = 1_000_000
SOON = 2 * SECOND
FIRST_WAIT = 10 * SECOND
LONGEST_WAIT = 3_600 * SECOND
_VIEW_TAG = b"compaction-ledger/view/v1"

Random = Callable[[], float]


@dataclass(frozen=True, slots=True)
class LookFailure:
    """An error that a conversation met, the ``number``-th in a row. ``code`` is ``internal`` for a defect."""

    scope: str
    conversation: str
    code: str
    message: str
    number: int


@dataclass(frozen=True, slots=True)
class Look:
    """What came of looking at one conversation.

    ``held_back`` says that nothing may be attempted at present, whatever the conversation (D2, D3).
    """

    outcomes: Sequence[RangeOutcome] = ()
    failure: LookFailure | None = None
    held_back: bool = False
    stopped: bool = False


OnOutcome = Callable[[str, str, RangeOutcome], None]
"""Called with scope, conversation and what became of a range."""


@dataclass(frozen=True, slots=True)
class Looker:
    """A worker's way of looking at what it took. At most ``ranges`` are attempted at a time."""

    compactor: Compactor
    work: WorkList
    view: str
    upgrade: bool = False
    ranges: int = 4
    random: Random = standard_random.random

    def look(self, item: WorkItem, on_outcome: OnOutcome | None = None) -> Look:
        """Compact what is due in a conversation, and note when to look again.

        Raises kinds of :class:`StoreError`, and :class:`InvalidSetting` from a summarizer that is set
        wrongly; then nothing is noted, and the conversation is to be given back.
        """

        def on_range(_done: int, _due: int, outcome: RangeOutcome | None) -> None:
            if outcome is not None and on_outcome is not None:
                on_outcome(item.scope, item.conversation, outcome)

        try:
            report = self.compactor.compact(
                item.scope,
                item.conversation,
                upgrade=self.upgrade,
                on_range=on_range,
                at_most=self.ranges,
            )
        except Stopped:
            self.give_back(item)
            return Look(stopped=True)
        except (StoreError, InvalidSetting):
            raise
        except UnknownConversation:
            self.work.drop(item)
            return Look()
        except Erased:  # its name must not stay (S3)
            self.work.forget(item.scope, item.conversation)
            return Look()
        except Exception as error:  # noqa: BLE001 - a defect that one conversation meets stops no other
            return Look(failure=self._failed(item, error))
        return self._looked(item, report)

    def give_back(self, item: WorkItem) -> None:
        """Leave a conversation that was not looked at to others."""
        self.work.looked(item, self._now, None, failures=item.failures)

    def _looked(self, item: WorkItem, report: CompactionReport) -> Look:
        stopped = any(outcome.result == "stopped" for outcome in report.outcomes)
        self.work.looked(
            item,
            again_at(report, self._now, self.random()),
            None if stopped else report.plan.revision,
            view=self.view,
        )
        held_back = any(outcome.result in HELD_BACK for outcome in report.outcomes)
        return Look(report.outcomes, held_back=held_back, stopped=stopped)

    def _failed(self, item: WorkItem, error: Exception) -> LookFailure:
        number = item.failures + 1
        self.work.looked(
            item,
            self._now + wait_after(number, self.random()),
            self._revision(item),
            view=self.view,
            failures=number,
        )
        code, message = "internal", type(error).__name__  # a defect's own words may hold a text
        if isinstance(error, LedgerError):
            code, message = error.code, str(error)
        self.compactor.context.telemetry.count("errors", error=code)
        logger.debug("a conversation met an error", exc_info=error)
        return LookFailure(item.scope, item.conversation, code, message, number)

    def _revision(self, item: WorkItem) -> str | None:
        """The revision as it is now: a change ends the waiting."""
        try:
            return self.compactor.context.transcripts.revision(item.scope, item.conversation)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - most likely the very error that is being noted
            return None

    @property
    def _now(self) -> int:
        return self.compactor.context.log.now()


def again_at(report: CompactionReport, now: int, jitter: float) -> int | None:
    """When to look again; ``None``: when the conversation is noticed. ``jitter`` is from 0 up to 1."""
    soon = now + int(SOON * (0.5 + jitter))
    times = [
        planned.retry_at
        for planned in report.plan.ranges
        if planned.status in ("running", "waiting") and planned.retry_at is not None
    ]
    times += [at for outcome in report.outcomes for at in _times_of(outcome, now, soon)]
    left = len(report.outcomes) < len(report.plan.due)
    if left and report.outcomes[-1].result not in HELD_BACK:
        times.append(now)
    return min(times, default=None)


def _times_of(outcome: RangeOutcome, now: int, soon: int) -> list[int]:
    match outcome.result:
        case "completed" | "already_completed" | "exhausted":
            return []
        case "stopped" | "not_admitted":
            # Whoever is not admitted waits before it asks for the next.
            return [now]
        case "source_changed" | "refused":
            return [soon]
        case _:
            return [soon if outcome.again_at is None else max(outcome.again_at, soon)]


def wait_after(failures: int, jitter: float) -> int:
    """How long an error keeps its conversation waiting: it doubles from ten seconds to an hour."""
    full = min(FIRST_WAIT << min(failures - 1, 16), LONGEST_WAIT)
    return full // 2 + int(full / 2 * jitter)


def view_of(context: Context, model: ModelIdentity, *, upgrade: bool) -> str:
    """A short digest of all that a look depends on beside the conversation: model, prompts and policy."""
    policy = context.policy
    seen = {
        "model": [model.provider, model.name, *map(list, model.settings)],
        "policy": [policy.minimum_pairs, policy.range_pairs, policy.keep_newest],
        "prompt": str(context.registry.current),
        "registry": context.registry.fingerprint,
        "upgrade": upgrade,
    }
    return tagged_sha256(_VIEW_TAG, canonical_json(seen))[:16]
