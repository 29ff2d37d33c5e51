"""Bring in a summary that was made elsewhere (V2): the only way an older prompt version can enter."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from compaction_ledger.domain.binding import pairs_of
from compaction_ledger.domain.commands import ImportSummary
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.range_session import RangeSession
from compaction_ledger.usecases.reading import follow, read_eligible


@dataclass(frozen=True, slots=True)
class ImportedSummary:
    """Where an imported summary stands now, and whether it will be projected (V2)."""

    identity: str
    index: int | None
    already: bool
    verdict: Verdict


def import_summary(
    context: Context, job: Job, text: str, origin: str, made_at: int | None = None
) -> ImportedSummary:
    """Record a summary made elsewhere as the completion of ``job``.

    Raises :class:`InvalidJob` and :class:`InvalidCommand` for what cannot be a summary, and
    :class:`AlreadyCompleted` when the identity has another completion (A2).
    """
    session = RangeSession(context.log, RangeKey(job.scope, job.conversation, job.from_pair))
    outcome = session.execute(
        lambda _now: ImportSummary(uuid.uuid4().hex, job, text, origin, made_at)
    )
    follow(context)
    index = outcome.indices[-1] if outcome.indices else None
    return ImportedSummary(
        job.identity, index, outcome.already, context.registry.verdict(job.prompt)
    )


def job_of_present_source(
    context: Context,
    scope: str,
    conversation: str,
    from_pair: int,
    model: ModelIdentity,
    prompt: PromptVersion,
) -> Job:
    """The job of a range as the conversation is now, for a store that kept no binding of its own."""
    pairs = read_eligible(context, scope, conversation).pairs
    return job_for(scope, conversation, pairs_of(pairs, Range.at(from_pair)), model, prompt)
