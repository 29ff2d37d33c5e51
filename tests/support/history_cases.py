"""Transcripts to search in: runs and lines of several conversations, and what brute force finds in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from backends import START

from compaction_ledger.composition import Parts, history_search
from compaction_ledger.domain.history import Found, HistoryQuery
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, message_digest, wire_bytes
from compaction_ledger.usecases.history import HistorySearch

SCOPE, CONVERSATION, RUN = "acme", "fund-research", "run-1"
SECOND = 1_000_000


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


SPOKEN = [
    {"role": "system", "content": "You advise on funds. Quote prices in EUR."},
    user("Which bond funds cost less than 0.3 % a year? I can spend at most 4,000 EUR."),
    call("c1", "find_funds", '{"max_fee": 0.3, "kind": "bond"}'),
    result("c1", "INV-0042 | Global Bond | 0.25 %\nINV-0107 | Euro Bond | 0.29 %"),
    assistant("Two do: Global Bond (INV-0042) and Euro Bond (INV-0107), as of 2026-11-30."),
    user("请记住：预算上限是四千欧元，只要卢森堡基金。"),
    assistant("東京タワーの近くで会いましょう。予算は四千ユーロです。"),
    user("لا أريد صناديقَ الأسهم، وحدي الأقصى أربعة آلاف يورو"),
    assistant("بودجه شما ۴۰۰۰ یورو است و می‌خواهم آن را نگه دارم."),
]


def originals(
    wires: Sequence[dict[str, Any]],
    *,
    at: int = START,
    first_exchange: int = -1,
    shape: str = "openai-chat",
) -> list[NewOriginal]:
    """Messages as they are kept, one second apart; each of a user's begins an exchange."""
    found: list[NewOriginal] = []
    exchange = first_exchange
    for number, (wire, entry) in enumerate(zip(wires, SHAPES[shape].read(wires), strict=True)):
        role = entry.role
        exchange += entry.begins_turn
        settled = SHAPES[shape].settled(wire)
        moment = at + number * SECOND
        found.append(NewOriginal(role, exchange, moment, wire_bytes(wire), message_digest(settled)))
    return found


def keep(
    parts: Parts,
    wires: Sequence[dict[str, Any]],
    *,
    scope: str = SCOPE,
    conversation: str = CONVERSATION,
    run: str = RUN,
    at: int | None = None,
    shape: str = "openai-chat",
) -> None:
    """Append messages to a run."""
    key = WindowKey(scope, conversation, run)
    count = parts.originals.count(key)
    exchange = parts.originals.read(key, count - 1)[0].exchange if count else -1
    moment = START + count * SECOND if at is None else at
    new = originals(wires, at=moment, first_exchange=exchange, shape=shape)
    parts.originals.append(key, shape, count, new)


def write_pairs(
    parts: Parts,
    pairs: Iterable[tuple[str, str]],
    *,
    scope: str = SCOPE,
    conversation: str = CONVERSATION,
    first: int = 0,
) -> None:
    """Append settled pairs to the conversation's own lines."""
    for number, (question, reply) in enumerate(pairs, start=first):
        run = f"r{number}"
        lines = [
            NewMessage(f"u{number}", run, "user", question),
            NewMessage(f"a{number}", run, "assistant", reply),
        ]
        parts.transcripts.append(scope, conversation, lines, [NewRun(run, "completed")])


def history(
    parts: Parts,
    conversation: str = CONVERSATION,
    *,
    scope: str = SCOPE,
    run: str | None = None,
) -> HistorySearch:
    return history_search(parts, scope, conversation, run)


def search(parts: Parts, text: str, **options: Any) -> Found:
    return history(parts).search(HistoryQuery(text, **options))


def ids(found: Found) -> list[str]:
    return [hit.message_id for hit in found.hits]


def quotes(found: Found) -> list[str]:
    return [hit.quote for hit in found.hits]


def handle(content: bytes) -> str:
    return f"tr_{hashlib.sha256(content).hexdigest()}"
