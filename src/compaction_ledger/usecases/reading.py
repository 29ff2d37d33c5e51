"""Read a conversation from the transcripts, and keep the read models up with the log."""

from __future__ import annotations

import logging

from compaction_ledger.domain.eligibility import Eligibility, eligible
from compaction_ledger.domain.errors import DamagedLog, InvalidInput, StoreError
from compaction_ledger.domain.ports import Progress
from compaction_ledger.usecases.context import Context

logger = logging.getLogger(__name__)


def read_eligible(context: Context, scope: str, conversation: str) -> Eligibility:
    """The lines of a conversation as they are now, sorted into pairs and the rest (E1, E2).

    Raises :class:`UnknownConversation`, and :class:`InvalidInput` where the transcripts answer with
    another conversation than the one asked for: a scope is never crossed.
    """
    found = context.transcripts.conversation(scope, conversation)
    if (found.scope, found.id) != (scope, conversation):
        raise InvalidInput(
            f"asked for {conversation!r} in {scope!r}, they gave {found.id!r} in {found.scope!r}",
            place="transcripts",
        )
    return eligible(found)


def catch_up(context: Context, progress: Progress | None = None) -> int:
    """Bring the read models up to the log, and return their position (P2)."""
    with context.telemetry.span("catch_up") as span:
        position = context.read_models.catch_up(context.log, progress)
        span.tell(position=position)
        return position


def rebuild(context: Context, progress: Progress | None = None) -> int:
    """Build the read models anew beside the serving ones, then switch (P3); their position."""
    with context.telemetry.span("rebuild") as span:
        position = context.read_models.rebuild(context.log, progress)
        span.tell(position=position)
        return position


def follow(context: Context) -> None:
    """Bring the read models up to the log, as far as that can be done now.

    What was appended is appended: rows that stay behind for a while delay a plan and mislead nobody, as
    the claim decides (W3) and assembly checks anew (H2). So an error here is told to the log and is no
    error of the caller's.
    """
    try:
        catch_up(context)
    except (StoreError, DamagedLog) as error:
        logger.warning("the read models stay behind: %s", error)
