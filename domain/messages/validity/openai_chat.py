"""OpenAI Chat Completions: what ``POST /v1/chat/completions`` refuses of a list of messages (T2, T5).

The tool messages that answer an assistant message follow it at once, in any order, one per call; roles need
not alternate. Ids may be any string, and may come back once they are answered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction_ledger.domain.messages.interface import Problem, Wire
from compaction_ledger.domain.messages.validity.findings import (
    Findings,
    JsonObject,
    Spot,
    WaitingCalls,
    a_string,
    check_pattern,
    is_list,
    is_object,
    objects,
)

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BODIES = ("tool_calls", "function_call", "refusal", "audio")
_TEXT_OF = {"text": "text", "refusal": "refusal"}


def problems(messages: Sequence[Wire]) -> list[Problem]:
    """Everything for which the provider would refuse these messages; ``[]`` for a valid request."""
    findings = Findings()
    calls = WaitingCalls(findings)
    if not messages:
        findings.add("no_messages", Spot(0), "there is no message")
    for position, message in enumerate(messages):
        spot = Spot(position)
        if not is_object(message):
            findings.add("not_an_object", spot, "it is no JSON object")
            continue
        role = message.get("role")
        if role != "tool":
            calls.close("unanswered_call")
        if not isinstance(role, str) or role not in _ROLES:
            findings.add(
                "unknown_role", spot, f"the role {str(role)[:80]!a} is none of this provider's"
            )
        elif role == "assistant":
            _check_assistant(message, spot, findings, calls)
        else:
            _check_content(message.get("content"), spot, findings)
            if role == "tool":
                call_id = a_string(message, "tool_call_id", spot, findings)
                if call_id is not None:
                    calls.answer(call_id, spot)
    calls.close("pending_call")
    calls.finish()
    return findings.told()


def _check_assistant(
    message: JsonObject, spot: Spot, findings: Findings, calls: WaitingCalls
) -> None:
    content = message.get("content")
    if content is not None:
        _check_content(content, spot, findings)
    elif not any(message.get(member) for member in _BODIES):
        findings.add("empty_content", spot, "neither content nor tool_calls")
    wanted = message.get("tool_calls")
    if wanted is None:
        return
    if is_list(wanted) and not wanted:
        findings.add("malformed", spot, "tool_calls is an empty list")
    for here, call in objects(wanted, "tool_calls", spot, findings):
        call_id = a_string(call, "id", here, findings)
        _check_call(call, here, findings)
        if call_id is not None:
            calls.call(call_id, here)


def _check_call(call: JsonObject, spot: Spot, findings: Findings) -> None:
    kind = call.get("type")
    if kind not in ("function", "custom"):
        findings.add("malformed", spot, "type is neither function nor custom")
        return
    body = call.get(str(kind))
    if not is_object(body):
        findings.add("malformed", spot, f"{kind} is missing or no object")
        return
    name = a_string(body, "name", spot, findings)
    if name is not None:
        check_pattern("bad_name", name, _NAME, spot, findings)
    a_string(body, "arguments" if kind == "function" else "input", spot, findings)


def _check_content(content: object, spot: Spot, findings: Findings) -> None:
    if isinstance(content, str):
        return
    if not is_list(content):
        findings.add("malformed", spot, "content is neither a string nor a list")
        return
    if not content:
        findings.add("empty_content", spot, "content is an empty list")
    for here, part in objects(content, "content", spot, findings):
        kind = a_string(part, "type", here, findings)
        if kind in _TEXT_OF:
            a_string(part, _TEXT_OF[kind], here, findings)
