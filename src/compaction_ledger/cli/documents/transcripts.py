"""What `import` and `plan` answer."""

from __future__ import annotations

from typing import Literal

from compaction_ledger.cli.documents.common import (
    Count,
    Document,
    Hash,
    LineLeftOut,
    Model,
    Time,
    counted,
    moment_or_none,
)
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.planning import PlannedRange
from compaction_ledger.domain.windows import PolicyNumbers
from compaction_ledger.usecases.planning import ConversationPlan
from compaction_ledger.usecases.transcribing import FileImport, TranscribedConversation


class RecordLeftOut(Document):
    """A record of the file that became no message, or (``part``) a part of one that did."""

    place: str
    reason: str
    detail: str
    part: bool


class ImportedConversation(Document):
    """One conversation of the file, as it now stands in the ledger."""

    scope: str
    conversation: str
    title: str | None
    messages: Count
    runs: Count
    pairs: Count
    lines_left_out: dict[str, Count]

    @classmethod
    def of(cls, found: TranscribedConversation) -> ImportedConversation:
        return cls(
            scope=found.scope,
            conversation=found.conversation,
            title=found.title,
            messages=found.messages,
            runs=found.runs,
            pairs=found.pairs,
            lines_left_out=counted(line.reason for line in found.left_out),
        )


class ImportDocument(Document):
    """`compaction-ledger import`."""

    source: str
    format: str
    records: Count
    imported: Count
    left_out: list[RecordLeftOut]
    left_out_by_reason: dict[str, Count]
    conversations: list[ImportedConversation]

    @classmethod
    def of(cls, found: FileImport) -> ImportDocument:
        report = found.report
        return cls(
            source=report.source,
            format=report.importer,
            records=report.records,
            imported=report.imported,
            left_out=[
                RecordLeftOut(
                    place=record.place, reason=record.reason, detail=record.detail, part=record.part
                )
                for record in report.left_out
            ],
            left_out_by_reason=counted(record.reason for record in report.left_out),
            conversations=[ImportedConversation.of(thread) for thread in found.conversations],
        )


class EligiblePair(Document):
    """A pair that counts (E1)."""

    index: Count
    run: str
    user: str
    assistant: str


class Policy(Document):
    """The three numbers of the window policy (W2)."""

    minimum_pairs: Count
    range_pairs: Count
    keep_newest: Count


class PlannedTarget(Document):
    """A range that the policy names. ``stale`` counts finished summaries of older sources."""

    from_pair: Count
    to_pair: Count
    status: Literal["due", "done", "running", "waiting", "exhausted"]
    source_hash: Hash
    identity: Hash
    stale: Count
    retry_at: Time | None

    @classmethod
    def of(cls, planned: PlannedRange) -> PlannedTarget:
        return cls(
            from_pair=planned.window.from_pair,
            to_pair=planned.window.to_pair,
            status=planned.status,
            source_hash=planned.job.source_hash,
            identity=planned.job.identity,
            stale=planned.stale,
            retry_at=moment_or_none(planned.retry_at),
        )


class PlanDocument(Document):
    """`compaction-ledger plan`."""

    scope: str
    conversation: str
    revision: str | None
    model: Model
    prompt: str
    policy: Policy
    pairs: list[EligiblePair]
    left_out: list[LineLeftOut]
    left_out_by_reason: dict[str, Count]
    ranges: list[PlannedTarget]

    @classmethod
    def of(
        cls,
        plan: ConversationPlan,
        model: ModelIdentity,
        prompt: PromptVersion,
        policy: PolicyNumbers,
    ) -> PlanDocument:
        lines = plan.eligibility
        return cls(
            scope=plan.scope,
            conversation=plan.conversation,
            revision=plan.revision,
            model=Model.of(model),
            prompt=str(prompt),
            policy=Policy(
                minimum_pairs=policy.minimum_pairs,
                range_pairs=policy.range_pairs,
                keep_newest=policy.keep_newest,
            ),
            pairs=[
                EligiblePair(
                    index=pair.index, run=pair.run, user=pair.user.id, assistant=pair.assistant.id
                )
                for pair in lines.pairs
            ],
            left_out=[LineLeftOut.of(line) for line in lines.left_out],
            left_out_by_reason=counted(line.reason for line in lines.left_out),
            ranges=[PlannedTarget.of(planned) for planned in plan.ranges],
        )
