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
    """File and line, or file and path inside the document."""

    reason: str
    """A code of the importer."""

    detail: str
    """What it was, in words."""

    part: bool
    """Whether the rest of the record was imported."""


class ImportedConversation(Document):
    """One conversation of the file, as it now stands in the ledger."""

    scope: str
    conversation: str
    title: str | None
    """As the file has it."""

    messages: Count
    """How many messages the file has of it: `appended`, `revised` and `unchanged` together."""

    appended: Count
    """How many of them are new."""

    revised: Count
    """How many got another text or status; only with `--update`."""

    unchanged: Count
    """How many were there already; only with `--update`."""

    runs: Count
    """How many runs the file names, or the importer derived."""

    run_states: Count
    """How many of them are new or in another state."""

    pairs: Count
    """How many pairs the conversation now has."""

    lines_left_out: dict[str, Count]
    """How many of its lines are in no pair, by reason."""

    @classmethod
    def of(cls, found: TranscribedConversation) -> ImportedConversation:
        return cls(
            scope=found.scope,
            conversation=found.conversation,
            title=found.title,
            messages=found.messages,
            appended=found.appended,
            revised=found.revised,
            unchanged=found.unchanged,
            runs=found.runs,
            run_states=found.run_states,
            pairs=found.pairs,
            lines_left_out=counted(line.reason for line in found.left_out),
        )


class ImportDocument(Document):
    """`compaction-ledger import`."""

    source: str
    """The file's name."""

    format: str
    """The importer that read it."""

    update: bool
    """Whether known conversations were to be brought up to date."""

    records: Count
    """What the format counts: lines, messages, nodes, events."""

    imported: Count
    """How many of them became messages."""

    left_out: list[RecordLeftOut]
    """Every other record, and parts of imported ones, by name."""

    left_out_by_reason: dict[str, Count]
    """The same, counted."""

    conversations: list[ImportedConversation]

    @classmethod
    def of(cls, found: FileImport) -> ImportDocument:
        report = found.report
        return cls(
            source=report.source,
            format=report.importer,
            update=found.update,
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
    """The number of the pair, from 0."""

    run: str
    user: str
    """The user message's id."""

    assistant: str
    """The assistant message's id."""


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
    """What is to be done about it now."""

    source_hash: Hash
    """Of the ten pairs as they are now (B1)."""

    identity: Hash
    """Of the job that would be claimed (I1)."""

    stale: Count
    """How many finished summaries there are of an older source."""

    retry_at: Time | None
    """When a range that waits may be tried again, or a running claim ends."""

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
    """Changes with every change of the conversation."""

    model: Model
    """The model that would be asked."""

    prompt: str
    """The prompt version of new jobs."""

    policy: Policy
    """The three numbers of W2."""

    pairs: list[EligiblePair]
    """The pairs that count (E1), in order."""

    left_out: list[LineLeftOut]
    """Every other line (E2)."""

    left_out_by_reason: dict[str, Count]
    """The same, counted."""

    ranges: list[PlannedTarget]
    """The targets of the policy (W1), oldest first."""

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
