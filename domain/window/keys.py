"""Which window: that of one run of a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.identifiers import check_id


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The window of one run: one stream of facts, one transcript of originals."""

    scope: str
    conversation: str
    run: str


def check_key(key: WindowKey) -> None:
    """Raises :class:`InvalidId` (E4)."""
    check_id(key.scope, "scope")
    check_id(key.conversation, "conversation")
    check_id(key.run, "run")


def message_id(position: int) -> str:
    """The id of a run's message: by its place in the run, since a provider's messages have none of their
    own.
    """
    return f"m{position}"
