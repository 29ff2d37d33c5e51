"""The order of roles that Anthropic's and Amazon's interfaces share: two sides that take turns (T5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.messages.validity.findings import (
    Findings,
    JsonObject,
    Spot,
    is_object,
)

_SIDES = ("user", "assistant")


class Turn(NamedTuple):
    """Messages of one side that stand side by side: one of them, in a valid request."""

    role: str
    messages: list[tuple[Spot, JsonObject]]


def turns_of(messages: Sequence[Wire], findings: Findings) -> list[Turn]:
    """The turns, with everything told that is wrong with roles and their order.

    Messages of one side that stand side by side are judged as one turn, so that each mistake is told once.
    """
    if not messages:
        findings.add("no_messages", Spot(0), "there is no message")
    turns: list[Turn] = []
    before: str | None = None
    for position, message in enumerate(messages):
        spot = Spot(position)
        if not is_object(message):
            findings.add("not_an_object", spot, "it is no JSON object")
            before = None
            continue
        role = message.get("role")
        if role == "system":
            _check_system(messages, position, findings)
            if not isinstance(message.get("content"), str | list | tuple):
                findings.add("malformed", spot, "content is neither a string nor a list")
            continue
        if role not in _SIDES:
            findings.add(
                "unknown_role", spot, f"the role {str(role)[:80]!a} is none of this provider's"
            )
            before = None
            continue
        if not turns and role != "user":
            findings.add("first_role", spot, "the first message is not a user's")
        if turns and before == role:
            findings.add("roles_alternate", spot, f"the message before it is of role {role}, too")
            turns[-1].messages.append((spot, message))
        else:
            turns.append(Turn(str(role), [(spot, message)]))
        before = str(role)
    return turns


def _check_system(messages: Sequence[Wire], position: int, findings: Findings) -> None:
    """Newer models take instructions behind a user's message, before the answer or at the end."""
    if _role(messages, position - 1) != "user" or _role(messages, position + 1) not in (
        None,
        "assistant",
    ):
        why = "instructions stand only between a user's message and the answer to it"
        findings.add("system_placement", Spot(position), why)


def _role(messages: Sequence[Wire], position: int) -> str | None:
    """The role at a position, ``None`` behind the end; before the beginning there is none, either."""
    if not 0 <= position < len(messages):
        return None if position > 0 else "nobody"
    message = messages[position]
    return str(message.get("role")) if is_object(message) else "nobody"
