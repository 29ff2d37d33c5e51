"""The words of a transcript: messages, runs, conversations and pairs.

Everything here keeps text exactly as it came (E6). Messages and runs are named tuples: they are made
by the thousand on the read path, where a frozen dataclass costs three times as much to make. What
comes from outside is checked at the edges (the transcript stores, the importers) and once more, as a
whole, when a :class:`Conversation` is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from compaction_ledger.domain.errors import DuplicateMessageId, InvalidInput
from compaction_ledger.domain.identifiers import check_id, check_ids

Role = Literal["user", "assistant", "system", "tool"]
MessageStatus = Literal["streaming", "completed", "failed"]
MessageKind = Literal["chat", "tool", "trace", "effect"]
RunState = Literal[
    "queued", "running", "completed", "partial", "clarify_pending", "failed", "cancelled"
]

ROLES: frozenset[str] = frozenset(get_args(Role))
MESSAGE_STATUSES: frozenset[str] = frozenset(get_args(MessageStatus))
MESSAGE_KINDS: frozenset[str] = frozenset(get_args(MessageKind))
RUN_STATES: frozenset[str] = frozenset(get_args(RunState))

PAIRS_PER_RANGE = 10


class Message(NamedTuple):
    """One line of a transcript, as it is now. Its position is its place in the conversation."""

    id: str
    run: str
    role: Role
    status: MessageStatus
    kind: MessageKind
    text: str
    conversation: str
    scope: str


class Run(NamedTuple):
    """The execution that answered one request, in its technical state."""

    id: str
    state: RunState
    conversation: str
    scope: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A durable thread: its messages in order of position, and the runs they name.

    Raises :class:`InvalidId` or :class:`DuplicateMessageId` (E4) on construction.
    """

    scope: str
    id: str
    messages: Sequence[Message]
    runs: Mapping[str, Run]

    def __post_init__(self) -> None:
        check_id(self.scope, "scope")
        check_id(self.id, "conversation")
        check_ids(self.runs, "run id at place")
        ids = [message.id for message in self.messages]
        check_ids(ids, "message id at position")
        if len(set(ids)) != len(ids):
            raise _duplicate(ids)
        for message in self.messages:
            if type(message.text) is not str:
                raise InvalidInput("must be text", place=f"message {message.id!r}: text")
        for key, run in self.runs.items():
            if key != run.id:
                raise InvalidInput(f"stands under {key!r}", place=f"run {run.id!r}")


@dataclass(frozen=True, slots=True)
class Pair:
    """The original user message and the completed assistant message of one run. Zero-based index."""

    index: int
    run: str
    user: Message
    assistant: Message


def _duplicate(ids: Sequence[str]) -> DuplicateMessageId:
    seen: dict[str, int] = {}
    for position, message_id in enumerate(ids):
        if message_id in seen:
            return DuplicateMessageId(
                message_id, f"position {seen[message_id]}", f"position {position}"
            )
        seen[message_id] = position
    raise AssertionError("no duplicate among these ids")
