"""What summaries of ranges say that their sources do not (T13).

Nothing of it is stored: it is found out from the text in the log and the conversation as it is now, as long
as the summary is bound to exactly that (B3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compaction_ledger.domain.binding import pairs_of, source_hash
from compaction_ledger.domain.errors import InvalidJob, UnknownConversation
from compaction_ledger.domain.grounding import Ungrounded, ungrounded
from compaction_ledger.domain.read_models import SummaryRow
from compaction_ledger.domain.summarization import AssistantReply
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.assembling import summary_text
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.reading import read_eligible


def unfounded(text: str, replies: Iterable[AssistantReply]) -> tuple[Ungrounded, ...]:
    """What a summary of these replies says that none of them does. Their ids may be named, too (B4)."""
    return ungrounded([text], _given(replies))


def grounding_of(context: Context, row: SummaryRow) -> tuple[Ungrounded, ...] | None:
    """What a finished summary says that its source does not.

    ``None`` where that cannot be told: it is not finished or its text is damaged, or the conversation is
    not what was summarized any more. A version with mixed input (V2) had the user's messages as well.
    """
    text = summary_text(context, row)
    if text is None:
        return None
    try:
        pairs = pairs_of(
            read_eligible(context, row.scope, row.conversation).pairs,
            Range(row.from_pair, row.to_pair),
        )
    except (UnknownConversation, InvalidJob):
        return None
    if source_hash(row.scope, row.conversation, pairs) != row.source_hash:
        return None
    given = [*_given(map(AssistantReply, pairs))]
    if context.registry.verdict(row.prompt) == "mixed_input":
        given += [words for pair in pairs for words in (pair.user.text, pair.user.id)]
    return ungrounded([text], given)


def _given(replies: Iterable[AssistantReply]) -> Iterator[str]:
    for reply in replies:
        yield reply.text
        yield reply.message_id
