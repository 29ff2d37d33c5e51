"""One line of a Claude Code session, made into parts."""

from __future__ import annotations

from dataclasses import replace

from compaction_ledger.infrastructure.importers.blocks import (
    Envelope,
    block_parts,
    ending_of,
    has_client_call,
)
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    iso_time,
    refuse_unknown,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import JsonObject
from compaction_ledger.infrastructure.importers.turns import Part

_ROLES = frozenset({"assistant", "user"})
# What the program writes in the user's name when the user presses Escape.
_INTERRUPTED = frozenset(
    {"[Request interrupted by user]", "[Request interrupted by user for tool use]"}
)


def line_parts(line: JsonObject, place: str, collector: Collector) -> list[Part]:
    """The parts of one line. What the program wrote in the user's name is a trace, not theirs."""
    message = the_object(line, "message", place)
    role = the_text(message, "role", place)
    uuid = the_text(line, "uuid", place)
    created_at = iso_time(line.get("timestamp"), f"{place} timestamp")
    content = message.get("content")
    if role == "user":
        parts = block_parts(content, Envelope(place, "user", uuid, created_at), collector)
        injected = line.get("isMeta") is True or line.get("isCompactSummary") is True
        return [_user_part(part, injected=injected) for part in parts]
    if role not in _ROLES:
        raise refuse_unknown(role, _ROLES, "role", place)
    ending, outcome = ending_of(message.get("stop_reason"))
    if line.get("isApiErrorMessage") is True:
        outcome = "failed"
    record = Envelope(
        place,
        "assistant",
        uuid,
        created_at,
        "open" if has_client_call(content) else ending,
        outcome,
    )
    parts = block_parts(content, record, collector)
    if message.get("model") == "<synthetic>" and outcome != "failed":
        return [replace(part, kind="trace") for part in parts]
    return parts


def _user_part(part: Part, *, injected: bool) -> Part:
    if part.kind == "user" and part.text in _INTERRUPTED:
        return replace(part, kind="trace", outcome="cancelled")
    return replace(part, kind="trace") if injected and part.kind == "user" else part
