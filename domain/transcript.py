"""New lines for an embedded transcript store, as importers and hosts hand them in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.conversation import (
    MESSAGE_KINDS,
    MESSAGE_STATUSES,
    ROLES,
    RUN_STATES,
    MessageKind,
    MessageStatus,
    Role,
    RunState,
)
from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.identifiers import check_id


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message to append. ``created_at`` is microseconds since the epoch, where it is known."""

    id: str
    run: str
    role: Role
    text: str
    status: MessageStatus = "completed"
    kind: MessageKind = "chat"
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class NewRun:
    """One run and its state as it is now."""

    id: str
    state: RunState = "completed"


def check_lines(messages: Iterable[NewMessage], runs: Iterable[NewRun]) -> None:
    """Check ids, states and texts; raises :class:`InvalidInput` naming the message or run (E4)."""
    for position, message in enumerate(messages):
        check_id(message.id, f"message {position}: id")
        check_id(message.run, f"message {message.id!r}: run")
        _check_one_of(message.role, ROLES, f"message {message.id!r}: role")
        _check_one_of(message.status, MESSAGE_STATUSES, f"message {message.id!r}: status")
        _check_one_of(message.kind, MESSAGE_KINDS, f"message {message.id!r}: kind")
        _check_text(message.text, f"message {message.id!r}: text")
        _check_time(message.created_at, f"message {message.id!r}: created_at")
    for run in runs:
        check_id(run.id, "run id")
        _check_one_of(run.state, RUN_STATES, f"run {run.id!r}: state")


def _check_time(value: object, place: str) -> None:
    if value is not None and (type(value) is not int or abs(value) > MAX_INTEGER):
        raise InvalidInput("must be microseconds since the epoch, as a whole number", place=place)


def check_revision(message_id: str, text: str | None, status: str | None) -> None:
    """Check what a message is to be changed to; raises :class:`InvalidInput`."""
    if text is None and status is None:
        raise InvalidInput(
            "a revision changes the text or the status", place=f"message {message_id!r}"
        )
    if text is not None:
        _check_text(text, f"message {message_id!r}: text")
    if status is not None:
        _check_one_of(status, MESSAGE_STATUSES, f"message {message_id!r}: status")


def _check_text(value: object, place: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput("must be text", place=place)


def _check_one_of(value: str, allowed: frozenset[str], place: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"{value!r} is none of {', '.join(sorted(allowed))}", place=place)
