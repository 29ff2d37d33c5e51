"""Messages of running agents, to be kept in a store of originals."""

from __future__ import annotations

from compaction_ledger.domain.messages.interface import EntryRole
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, message_digest, wire_bytes

KEY = WindowKey("tenant-1", "c-1", "run-1")
SHAPE = "openai-chat"


def message(
    number: int,
    text: str = "",
    *,
    role: EntryRole = "user",
    exchange: int | None = None,
    at: int = 5,
) -> NewOriginal:
    """A message to be kept."""
    wire = {"role": role, "content": text or f"message {number}"}
    return NewOriginal(
        role, number if exchange is None else exchange, at, wire_bytes(wire), message_digest(wire)
    )


def messages(start: int, stop: int, text: str = "") -> list[NewOriginal]:
    """Messages by their positions."""
    return [message(number, text and f"{text} {number}") for number in range(start, stop)]
