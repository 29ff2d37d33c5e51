"""Plan a conversation: which lines count, which ranges are due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.planning import PlannedRange, plan
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import read_eligible
from compaction_ledger.usecases.rows import sound_rows


@dataclass(frozen=True, slots=True)
class ConversationPlan:
    """A conversation's lines and targets at one revision of it."""

    scope: str
    conversation: str
    revision: str | None
    eligibility: Eligibility
    ranges: Sequence[PlannedRange]

    @property
    def due(self) -> list[PlannedRange]:
        """The ranges to be claimed now."""
        return [planned for planned in self.ranges if planned.status == "due"]


def plan_conversation(
    context: Context, scope: str, conversation: str, model: ModelIdentity, *, upgrade: bool = False
) -> ConversationPlan:
    """What is due in this conversation for ``model`` (W1 to W5). Raises :class:`UnknownConversation`."""
    # The revision is read first: if the conversation changes in between, it will be read again.
    revision = context.transcripts.revision(scope, conversation)
    eligibility = read_eligible(context, scope, conversation)
    ranges = plan(
        scope,
        conversation,
        eligibility.pairs,
        sound_rows(context, scope, conversation)[0],
        policy=context.policy,
        registry=context.registry,
        model=model,
        now=context.log.now(),
        upgrade=upgrade,
    )
    return ConversationPlan(scope, conversation, revision, eligibility, ranges)
