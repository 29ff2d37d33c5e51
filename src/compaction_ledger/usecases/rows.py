"""What the read models know of a conversation's summaries, as far as it can be read (H9)."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.read_models import SummaryRow
from compaction_ledger.usecases.context import Context


def sound_rows(
    context: Context, scope: str, conversation: str
) -> tuple[Sequence[SummaryRow], Sequence[DamagedReadModel]]:
    """The rows of a conversation that can be read, and what is wrong with each other one.

    A row that is damaged, or all of them, are as good as none: a range is planned again and its claim
    refused, and a request is made of originals.
    """
    damaged: list[DamagedReadModel] = []
    try:
        return context.read_models.summaries(scope, conversation, damaged.append), damaged
    except DamagedReadModel as error:
        return (), [error]
