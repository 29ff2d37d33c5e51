"""Runs and answers, derived from formats that have none.

A run is one user message and everything up to the next one; tool results are no user messages. What
stands before the first user message is the run ``run-0``. In each run:

- **the answer** (kind ``chat``) is the text that the file says ended the turn. Where the file does
  not say, it is the text after the run's last tool call or result. Every other assistant text is on
  the way to it and has kind ``trace``. If two texts fulfill the condition both stay ``chat``: the
  ledger then leaves the run out as ``ambiguous_run`` (E2), because nothing here may guess which one
  was meant;
- **the state** is ``completed`` with an answer (``partial`` if the answer was cut off at a limit);
  without one it is ``failed`` or ``cancelled`` as the file says, else ``running`` at the end of the
  file and ``cancelled`` where another user message came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.conversation import MessageKind, MessageStatus, Role, RunState
from compaction_ledger.domain.errors import DuplicateMessageId
from compaction_ledger.domain.identifiers import MAX_ID_CHARACTERS, check_id
from compaction_ledger.domain.transcript import NewMessage, NewRun

PartKind = Literal["user", "text", "trace", "tool", "system"]
Ending = Literal["ended", "open", "unsaid"]
Outcome = Literal["completed", "partial", "failed", "cancelled"]

# Leaves room for what message ids are made of: the run's id and a number.
_LONGEST_RUN_ID = MAX_ID_CHARACTERS - 16


@dataclass(frozen=True, slots=True)
class Part:
    """One future message. ``text`` is an assistant's; ``ending`` and ``outcome`` concern it."""

    place: str
    kind: PartKind
    role: Role
    text: str
    id: str | None = None
    created_at: int | None = None
    status: MessageStatus = "completed"
    ending: Ending = "unsaid"
    outcome: Outcome = "completed"


def derive(parts: Sequence[Part]) -> tuple[tuple[NewRun, ...], tuple[NewMessage, ...]]:
    """The runs and messages of one conversation, in the order of its parts.

    Raises :class:`DuplicateMessageId` with both places if an id stands twice (E4).
    """
    turns = _turns(parts)
    runs: list[NewRun] = []
    messages: list[NewMessage] = []
    for number, turn in turns:
        answers = _answers(turn)
        run_id = _run_id(number, turn[0])
        state = _state(turn, answers, is_last=turn is turns[-1][1])
        runs.append(NewRun(run_id, state))
        for at, part in enumerate(turn):
            message_id = part.id if part.id is not None else f"{run_id}/{at + 1}"
            kind = _kind(part, is_answer=at in answers)
            messages.append(
                NewMessage(
                    id=check_id(message_id, f"{part.place} id"),
                    run=run_id,
                    role=part.role,
                    text=part.text,
                    status=part.status,
                    kind=kind,
                    created_at=part.created_at,
                )
            )
    check_unique((m.id for m in messages), [part.place for _, turn in turns for part in turn])
    return tuple(runs), tuple(messages)


def check_unique(ids: Iterable[str], places: Sequence[str]) -> None:
    """Raise :class:`DuplicateMessageId` naming both places if an id stands twice (E4)."""
    seen: dict[str, str] = {}
    for message_id, place in zip(ids, places, strict=True):
        if message_id in seen:
            raise DuplicateMessageId(message_id, seen[message_id], place)
        seen[message_id] = place


def _turns(parts: Sequence[Part]) -> list[tuple[int, list[Part]]]:
    """The parts of each run with its number: 0 before the first user message, then 1, 2, …"""
    turns: list[tuple[int, list[Part]]] = []
    number = 0
    for part in parts:
        if part.kind == "user":
            number += 1
            turns.append((number, []))
        elif not turns:
            turns.append((0, []))
        turns[-1][1].append(part)
    return turns


def _run_id(number: int, first: Part) -> str:
    """``run-of-<id of the user message>`` where the file has it, else ``run-<number>``."""
    if first.kind == "user" and first.id is not None:
        named = f"run-of-{first.id}"
        if len(named) <= _LONGEST_RUN_ID:
            return named
    return f"run-{number}"


def _answers(turn: Sequence[Part]) -> frozenset[int]:
    """The places in the turn of the texts that answer it."""
    texts = [
        at for at, part in enumerate(turn) if part.kind == "text" and part.status == "completed"
    ]
    ended = frozenset(at for at in texts if turn[at].ending == "ended")
    if ended:
        return ended
    last_tool = max((at for at, part in enumerate(turn) if part.kind == "tool"), default=-1)
    return frozenset(at for at in texts if at > last_tool and turn[at].ending == "unsaid")


def _state(turn: Sequence[Part], answers: frozenset[int], *, is_last: bool) -> RunState:
    if turn[0].kind != "user":
        return "completed"
    if answers:
        return turn[max(answers)].outcome
    for part in reversed(turn):
        if part.outcome == "failed" or part.outcome == "cancelled":  # noqa: PLR1714
            return part.outcome
    return "running" if is_last else "cancelled"


def _kind(part: Part, *, is_answer: bool) -> MessageKind:
    if part.kind == "trace" or part.kind == "tool":  # noqa: PLR1714
        return part.kind
    if part.kind == "text" and part.status == "completed" and not is_answer:
        return "trace"
    return "chat"
