"""Lines on their way into a store and out of it: what is the same in every store of transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from compaction_ledger.domain.conversation import Message, Run, RunState
from compaction_ledger.domain.errors import StoreError, UnknownConversation, UnknownMessage
from compaction_ledger.domain.identifiers import check_id

# What ``Message()`` does in the end, in two thirds of its time: messages are read by the thousand.
new_message: Callable[[tuple[object, ...]], Message] = partial(tuple.__new__, Message)  # pyright: ignore[reportUnknownMemberType]
"""Makes a message of its eight fields."""


def check_place(scope: str, conversation: str) -> None:
    """Check what names a conversation; raises :class:`InvalidId` (E4)."""
    check_id(scope, "scope")
    check_id(conversation, "conversation")


def plain(text: str) -> str:
    """A text of a subclass of ``str`` as the text alone."""
    return str.__str__(text)


def bytes_of(text: str) -> bytes:
    """Text as UTF-8 with three bytes for a lone surrogate, so that no two texts have the same bytes (E6)."""
    return text.encode("utf-8", "surrogatepass")


def text_of(stored: bytes) -> str:
    """The text that was stored as these bytes. Raises :class:`StoreError` where they are no text's."""
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreError(f"the stored bytes of a message are no text: {error.reason}") from error


def runs_of(
    states: Iterable[tuple[str, RunState]], scope: str, conversation: str
) -> dict[str, Run]:
    """Runs by their ids; of several states of one run, the last one stands."""
    return {run: Run(run, state, conversation, scope) for run, state in states}


def unknown_conversation(scope: str, conversation: str) -> UnknownConversation:
    """The error for a conversation that is not there."""
    return UnknownConversation(f"there is no conversation {conversation!r} in scope {scope!r}")


def unknown_message(message_id: str) -> UnknownMessage:
    """The error for a message that is not there, or was deleted."""
    return UnknownMessage(f"the conversation has no message {message_id!r}")
