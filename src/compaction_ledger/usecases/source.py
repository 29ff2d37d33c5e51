"""The source of a range, read again just before each attempt (A6)."""

from __future__ import annotations

from compaction_ledger.domain.binding import pairs_of, source_hash
from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.errors import InvalidJob, UnknownConversation
from compaction_ledger.domain.planning import PlannedRange
from compaction_ledger.domain.summarization import SummaryRequest, summary_request
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.planning import ConversationPlan
from compaction_ledger.usecases.reading import read_eligible


class Source:
    """The pairs of a planned conversation, read again only when its revision says that it changed."""

    def __init__(self, context: Context, plan: ConversationPlan) -> None:
        self._context = context
        self._plan = plan
        self._revision = plan.revision
        self._eligibility: Eligibility = plan.eligibility

    def request(self, planned: PlannedRange) -> SummaryRequest | None:
        """The replies of a range as they are now; ``None`` if its source is no longer the planned one."""
        job = planned.job
        try:
            self._refresh()
            pairs = pairs_of(self._eligibility.pairs, planned.window)
        except (UnknownConversation, InvalidJob):
            return None
        if source_hash(job.scope, job.conversation, pairs) != job.source_hash:
            return None
        return summary_request(self._context.registry, job.prompt, pairs)

    def _refresh(self) -> None:
        scope, conversation = self._plan.scope, self._plan.conversation
        revision = self._context.transcripts.revision(scope, conversation)
        if revision is None or revision != self._revision:
            self._eligibility = read_eligible(self._context, scope, conversation)
            self._revision = revision
