"""Pydantic AI: what an agent or the model behind it refuses of a message history (T2, T5).

Messages are requests and responses; their parts carry the roles. Each call of a response is answered by the
requests behind it, before the next response. A request may follow a request. Tools that a provider runs
itself are left to it: their results may come in a later response, and what dangles is not sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.messages.interface import Problem, Wire
from compaction_ledger.domain.messages.validity.findings import (
    Findings,
    JsonObject,
    Spot,
    WaitingCalls,
    a_string,
    is_list,
    is_object,
    objects,
)

_OF_A_REQUEST = frozenset({"system-prompt", "user-prompt", "tool-return", "retry-prompt"})
# A compaction may stand in both.
_OF_A_RESPONSE = frozenset(
    {"text", "tool-call", "thinking", "builtin-tool-call", "builtin-tool-return", "file"}
)
_TEXTS = frozenset({"system-prompt", "text", "thinking"})


def problems(messages: Sequence[Wire]) -> list[Problem]:
    """Everything for which a run with this history would fail; ``[]`` for one that a model can answer."""
    findings = Findings()
    calls = WaitingCalls(findings)
    kinds = [message.get("kind") if is_object(message) else None for message in messages]
    for position, message in enumerate(messages):
        spot, kind = Spot(position), kinds[position]
        if not is_object(message):
            findings.add("not_an_object", spot, "it is no JSON object")
        elif kind == "request":
            for here, part in objects(message.get("parts"), "parts", spot, findings):
                _check_request_part(part, here, findings, calls)
        elif kind == "response":
            calls.close("unanswered_call")
            for here, part in objects(message.get("parts"), "parts", spot, findings):
                _check_response_part(part, here, findings, calls)
        else:
            findings.add("unknown_role", spot, f"the kind {str(kind)[:80]!a} is none of a message")
    _check_ends(kinds, findings, calls)
    calls.close("pending_call")
    calls.finish()
    return findings.told()


def _check_ends(kinds: Sequence[object], findings: Findings, calls: WaitingCalls) -> None:
    if not kinds:
        findings.add("no_messages", Spot(0), "there is no message")
    elif kinds[0] == "response":
        findings.add("first_role", Spot(0), "the first message is no request")
    if kinds and kinds[-1] == "response" and not calls:
        findings.add("last_role", Spot(len(kinds) - 1), "the last message is no request")


def _check_request_part(
    part: JsonObject, spot: Spot, findings: Findings, calls: WaitingCalls
) -> None:
    kind = a_string(part, "part_kind", spot, findings)
    if kind in _OF_A_RESPONSE:
        findings.add("wrong_place", spot, f"{kind} cannot stand in a request")
        return
    if kind == "user-prompt" and not isinstance(part.get("content"), str | list | tuple):
        findings.add("malformed", spot, "content is neither a string nor a list")
    if kind == "system-prompt":
        a_string(part, "content", spot, findings)
    if kind in ("tool-return", "retry-prompt") and "content" not in part:
        findings.add("malformed", spot, "content is missing")
    # A prompt to try again that names no tool is one to the model itself and answers no call.
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name") is not None):
        a_string(part, "tool_name", spot, findings)
        call_id = a_string(part, "tool_call_id", spot, findings)
        if call_id is not None:
            calls.answer(call_id, spot)


def _check_response_part(
    part: JsonObject, spot: Spot, findings: Findings, calls: WaitingCalls
) -> None:
    kind = a_string(part, "part_kind", spot, findings)
    if kind in _OF_A_REQUEST:
        findings.add("wrong_place", spot, f"{kind} cannot stand in a response")
        return
    if kind in _TEXTS:
        a_string(part, "content", spot, findings)
    if kind not in ("tool-call", "builtin-tool-call", "builtin-tool-return"):
        return
    a_string(part, "tool_name", spot, findings)
    call_id = a_string(part, "tool_call_id", spot, findings)
    if kind != "builtin-tool-return":
        _check_arguments(part, spot, findings)
    if call_id is not None and kind == "tool-call":
        calls.call(call_id, spot)


def _check_arguments(part: JsonObject, spot: Spot, findings: Findings) -> None:
    args = part.get("args")
    if is_list(args) or not (args is None or isinstance(args, str) or is_object(args)):
        findings.add("malformed", spot, "args is neither a string nor an object")
