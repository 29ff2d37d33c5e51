"""What `compact` and `import-summary` answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from compaction_ledger.cli.documents.common import Count, Document, Hash, Model
from compaction_ledger.domain.errors import LedgerError
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.usecases.claiming import RangeOutcome, RangeResult
from compaction_ledger.usecases.importing import ImportedSummary

FINDINGS: frozenset[RangeResult] = frozenset({"failed", "exhausted", "outage", "refused"})


class RangeCompacted(Document):
    """What became of one due range; ``failures`` has a code for each attempt that failed (C4)."""

    from_pair: Count
    to_pair: Count
    result: RangeResult
    """What became of it."""

    failures: list[str]
    """A code of C4 for each attempt that failed."""

    index: Count | None
    """Where the completion stands in the log."""

    detail: str | None
    """More on a refusal."""

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
    """Why nothing was tried on it."""


class ConversationError(Document):
    """What a conversation of `compact --all` ended with."""

    code: str
    """Stable; see the error codes in cli.md."""

    message: str

    @classmethod
    def of(cls, error: LedgerError) -> ConversationError:
        return cls(code=error.code, message=str(error))


class ConversationCompacted(Document):
    """One conversation of the run. ``due`` counts the ranges that were due at its start."""

    scope: str
    conversation: str
    due: Count
    """How many ranges were due at the start."""

    completed: Count
    """How many summaries were made."""

    ranges: list[RangeCompacted]
    """The due ranges that were come to, in order."""

    left: list[RangeLeft]
    """Ranges without a summary that were not due."""

    error: ConversationError | None
    """What ended it before its end, if something did: the run went on with the next conversation."""

    @property
    def is_finding(self) -> bool:
        """Whether a range is left without a summary for a reason that somebody should look at."""
        failed = self.error is not None or any(one.result in FINDINGS for one in self.ranges)
        return failed or any(range_left.status == "exhausted" for range_left in self.left)


class CompactDocument(Document):
    """`compaction-ledger compact`. ``signal`` is the name of the signal that stopped it."""

    model: Model
    prompt: str
    due: Count
    """Over all conversations."""

    completed: Count
    """Over all conversations."""

    stopped: bool
    """Whether it was asked to stop before its end."""

    signal: Annotated[str, Field(pattern="^SIG")] | None
    """The name of the signal that asked, such as `SIGTERM`."""

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
    """Of the job (I1)."""

    source_hash: Hash
    """What the summary is bound to (B1)."""

    index: Count | None
    """Where it stands in the log; `null` if it was there already."""

    already: bool
    """Whether exactly this summary was there before."""

    projected: bool
    """Whether it may be used while its source is unchanged (V2)."""

    verdict: Verdict
    """What the registry says of its prompt version (V1)."""

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
