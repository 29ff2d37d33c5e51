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


def eligible(conversation: Conversation) -> Eligibility:
    """Sort every message into a pair or into ``left_out``. Nothing is dropped silently (E2)."""
    scope, this, messages = conversation.scope, conversation.id, conversation.messages
    settled = {
        run.id
        for run in conversation.runs.values()
        if run.state in SETTLED_RUN_STATES and run.conversation == this and run.scope == scope
    }
    left_out: list[LeftOut] = []
    users: dict[str, int] = {}  # run to the position of its user message, in order of position (E3)
    answers: dict[str, int] = {}
    surplus: dict[str, list[int]] = {}  # further lines of a run that has one already
    for position, message in enumerate(messages):
        role, run = message.role, message.run
        if (
            (role == "user" or (role == "assistant" and message.status == "completed"))
            and message.kind == "chat"
            and run in settled
            and message.conversation == this
            and message.scope == scope
        ):
            side = users if role == "user" else answers
            if side.setdefault(run, position) != position:
                surplus.setdefault(run, []).append(position)
        else:
            reason = _line_reason(message, conversation.runs.get(run), conversation)
            left_out.append(LeftOut(position, message.id, run, reason))
    pairs: list[Pair] = []
    for run, position in users.items():
        answer = answers.pop(run, None)
        reason_or_none = _pair_reason(messages, position, answer, ambiguous=run in surplus)
        if reason_or_none is None and answer is not None:
            pairs.append(Pair(len(pairs), run, messages[position], messages[answer]))
        else:
            lines = [position, *([] if answer is None else [answer]), *surplus.pop(run, ())]
            left_out += [_left_out(messages, at, reason_or_none or "no_answer") for at in lines]
    for run, position in answers.items():
        lines = [position, *surplus.pop(run, ())]
        alone: LeftOutReason = "ambiguous_run" if len(lines) > 1 else "no_user_message"
        left_out += [_left_out(messages, at, alone) for at in lines]
    left_out.sort(key=lambda line: line.position)
    return Eligibility(pairs, left_out)


def _line_reason(message: Message, run: Run | None, conversation: Conversation) -> LeftOutReason:
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
    if message.role == "assistant" and message.status != "completed":
        return "streaming" if message.status == "streaming" else "failed"
    return "run_not_settled"


def _pair_reason(
    messages: Sequence[Message], user: int, answer: int | None, *, ambiguous: bool
) -> LeftOutReason | None:
    """Why the lines of one run make no pair."""
    if ambiguous:
        return "ambiguous_run"
    if answer is None:
        return "no_answer"
    if is_blank(messages[user].text) or is_blank(messages[answer].text):
        return "empty_text"
    return None


def _left_out(messages: Sequence[Message], position: int, reason: LeftOutReason) -> LeftOut:
    return LeftOut(position, messages[position].id, messages[position].run, reason)
