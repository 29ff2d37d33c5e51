"""Which lines of a transcript count (E1, E2, E3). Says that a line is settled, never that it is true (E5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.conversation import Conversation, Message, Pair, Run
from compaction_ledger.domain.identifiers import is_blank

LeftOutReason = Literal[
    "other_scope",
    "other_conversation",
    "tool",
    "trace",
    "effect",
    "wrong_role",
    "run_missing",
    "run_elsewhere",
    "run_not_settled",
    "streaming",
    "failed",
    "ambiguous_run",
    "no_user_message",
    "no_answer",
    "empty_text",
]

SETTLED_RUN_STATES = frozenset({"completed", "partial", "clarify_pending"})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that does not count, and why (E2). ``position`` is the place in the conversation."""

    position: int
    message_id: str
    run: str
    reason: LeftOutReason


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The eligible pairs in order of their user messages (E3), and every other line with its reason."""

    pairs: Sequence[Pair]
    left_out: Sequence[LeftOut]


class _RunLines:
    """The chat lines of one run, while they are gathered."""

    __slots__ = ("assistants", "users")

    def __init__(self) -> None:
        self.users: list[tuple[int, Message]] = []
        self.assistants: list[tuple[int, Message]] = []


def eligible(conversation: Conversation) -> Eligibility:
    """Sort every message of ``conversation`` into a pair or into ``left_out``. Nothing is dropped silently."""
    left_out: list[LeftOut] = []
    by_run: dict[str, _RunLines] = {}
    runs = conversation.runs
    for position, message in enumerate(conversation.messages):
        reason = _line_reason(message, runs.get(message.run), conversation)
        if reason is not None:
            left_out.append(LeftOut(position, message.id, message.run, reason))
            continue
        lines = by_run.get(message.run)
        if lines is None:
            lines = by_run[message.run] = _RunLines()
        (lines.users if message.role == "user" else lines.assistants).append((position, message))
    found: list[tuple[int, str, Message, Message]] = []
    for run_id, lines in by_run.items():
        pair_reason = _pair_reason(lines)
        if pair_reason is None:
            (position, user), (_, assistant) = lines.users[0], lines.assistants[0]
            found.append((position, run_id, user, assistant))
        else:
            left_out += [LeftOut(at, m.id, run_id, pair_reason) for at, m in lines.users + lines.assistants]
    found.sort()
    left_out.sort(key=lambda line: line.position)
    pairs = [Pair(index, run, user, assistant) for index, (_, run, user, assistant) in enumerate(found)]
    return Eligibility(pairs, left_out)


def _line_reason(message: Message, run: Run | None, conversation: Conversation) -> LeftOutReason | None:
    """Why this line cannot be a side of any pair, judged by itself and its run."""
    if message.scope != conversation.scope:
        return "other_scope"
    if message.conversation != conversation.id:
        return "other_conversation"
    if message.kind != "chat":
        return message.kind
    if message.role not in ("user", "assistant"):
        return "tool" if message.role == "tool" else "wrong_role"
    if run is None:
        return "run_missing"
    if run.conversation != conversation.id or run.scope != conversation.scope:
        return "run_elsewhere"
    if message.status != "completed":
        return "streaming" if message.status == "streaming" else "failed"
    if run.state not in SETTLED_RUN_STATES:
        return "run_not_settled"
    return None


def _pair_reason(lines: _RunLines) -> LeftOutReason | None:
    """Why the lines of one run make no pair."""
    if len(lines.users) > 1 or len(lines.assistants) > 1:
        return "ambiguous_run"
    if not lines.users:
        return "no_user_message"
    if not lines.assistants:
        return "no_answer"
    if is_blank(lines.users[0][1].text) or is_blank(lines.assistants[0][1].text):
        return "empty_text"
    return None
