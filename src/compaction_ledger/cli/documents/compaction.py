"""What `compact` and `import-summary` answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from compaction_ledger.cli.documents.common import Count, Document, Hash, Model
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.usecases.compaction import RangeOutcome, RangeResult
from compaction_ledger.usecases.importing import ImportedSummary

FINDINGS: frozenset[RangeResult] = frozenset({"failed", "exhausted", "outage", "refused"})


class RangeCompacted(Document):
    """What became of one due range; ``failures`` has a code for each attempt that failed (C4)."""

    from_pair: Count
    to_pair: Count
    result: RangeResult
    failures: list[str]
    index: Count | None
    detail: str | None

    @classmethod
    def of(cls, outcome: RangeOutcome) -> RangeCompacted:
        return cls(
            from_pair=outcome.window.from_pair,
            to_pair=outcome.window.to_pair,
            result=outcome.result,
            failures=list(outcome.failures),
            index=outcome.index,
            detail=outcome.detail,
        )


class RangeLeft(Document):
    """A range that has no summary and is not due: nothing was tried on it in this run."""

    from_pair: Count
    to_pair: Count
    status: Literal["running", "waiting", "exhausted"]


class ConversationCompacted(Document):
    """One conversation of the run. ``due`` counts the ranges that were due at its start."""

    scope: str
    conversation: str
    due: Count
    completed: Count
    ranges: list[RangeCompacted]
    left: list[RangeLeft]

    @property
    def is_finding(self) -> bool:
        """Whether a range is left without a summary for a reason that somebody should look at."""
        failed = any(outcome.result in FINDINGS for outcome in self.ranges)
        return failed or any(range_left.status == "exhausted" for range_left in self.left)


class CompactDocument(Document):
    """`compaction-ledger compact`. ``signal`` is the name of the signal that stopped it."""

    model: Model
    prompt: str
    due: Count
    completed: Count
    stopped: bool
    signal: Annotated[str, Field(pattern="^SIG")] | None
    conversations: list[ConversationCompacted]

    @classmethod
    def of(
        cls,
        model: ModelIdentity,
        prompt: object,
        conversations: Iterable[ConversationCompacted],
        *,
        stopped: bool,
        signal: str | None,
    ) -> CompactDocument:
        found = list(conversations)
        return cls(
            model=Model.of(model),
            prompt=str(prompt),
            due=sum(one.due for one in found),
            completed=sum(one.completed for one in found),
            stopped=stopped,
            signal=signal,
            conversations=found,
        )

    @property
    def is_finding(self) -> bool:
        """Whether any conversation is left with something to look at."""
        return any(one.is_finding for one in self.conversations)


class ImportSummaryDocument(Document):
    """`compaction-ledger import-summary`. ``already``: exactly this summary was there before."""

    scope: str
    conversation: str
    from_pair: Count
    to_pair: Count
    identity: Hash
    source_hash: Hash
    index: Count | None
    already: bool
    projected: bool
    verdict: Verdict

    @classmethod
    def of(
        cls, found: ImportedSummary, scope: str, conversation: str, from_pair: int, source_hash: str
    ) -> ImportSummaryDocument:
        return cls(
            scope=scope,
            conversation=conversation,
            from_pair=from_pair,
            to_pair=from_pair + 9,
            identity=found.identity,
            source_hash=source_hash,
            index=found.index,
            already=found.already,
            projected=found.verdict == "projectable",
            verdict=found.verdict,
        )
