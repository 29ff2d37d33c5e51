"""OpenAI Responses: what ``POST /v1/responses`` refuses of a list of input items (T2, T5).

Items are flat. An output stands anywhere behind its call; ids are unique in the whole input; a reasoning
item is followed by the item it led to. Whether an item lacks the reasoning that led to it only the provider
can know, so that this is not told.
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

_ROLES = frozenset({"system", "developer", "user", "assistant"})
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r".{1,}", re.DOTALL)
# Calls that an output item answers; of the first two, the member that holds what was asked for.
_ASKED = {"function_call": "arguments", "custom_tool_call": "input"}
_CALLS = frozenset({*_ASKED, "computer_call", "shell_call", "apply_patch_call"})
_OUTPUTS = frozenset(f"{kind}_output" for kind in _CALLS)
_WRITTEN_BY_THE_CALLER = _OUTPUTS | {"local_shell_call_output", "mcp_approval_response"}
_TEXT_OR_PARTS = (str, list, tuple)
_WRITTEN_BY_A_MODEL = frozenset({"output_text", "refusal"})


def problems(messages: Sequence[Wire]) -> list[Problem]:
    """Everything for which the provider would refuse these items; ``[]`` for a valid request."""
    findings = Findings()
    calls = WaitingCalls(findings)
    if not messages:
        findings.add("no_messages", Spot(0), "there is no item")
    ids: set[str] = set()
    leading = _leading(messages)
    for position, item in enumerate(messages):
        spot = Spot(position)
        if not is_object(item):
            findings.add("not_an_object", spot, "it is no JSON object")
            continue
        _check_item(item, spot, findings, calls)
        _check_id(item, ids, spot, findings)
        if _is_reasoning(item) and not leading[position + 1]:
            findings.add("orphan_reasoning", spot, "no item of the model follows this reasoning")
    _tell_open(messages, findings, calls)
    calls.finish()
    return findings.told()


def _check_item(item: JsonObject, spot: Spot, findings: Findings, calls: WaitingCalls) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if not isinstance(kind, str):
        findings.add("unknown_role", spot, "the item has neither a type nor a role")
    elif kind == "message":
        _check_message(item, spot, findings)
    elif kind in _CALLS:
        if kind in _ASKED:
            _check_asked(item, kind, spot, findings)
        call_id = _call_id(item, spot, findings)
        if call_id is not None:
            calls.call(call_id, spot)
    elif kind in _OUTPUTS:
        if kind.removesuffix("_output") in _ASKED and not isinstance(
            item.get("output"), _TEXT_OR_PARTS
        ):
            findings.add("malformed", spot, "output is neither a string nor a list")
        call_id = _call_id(item, spot, findings)
        if call_id is not None:
            calls.answer(call_id, spot)


def _check_asked(item: JsonObject, kind: str, spot: Spot, findings: Findings) -> None:
    name = a_string(item, "name", spot, findings)
    if name is not None:
        check_pattern("bad_name", name, _NAME, spot, findings)
    a_string(item, _ASKED[kind], spot, findings)


def _call_id(item: JsonObject, spot: Spot, findings: Findings) -> str | None:
    call_id = a_string(item, "call_id", spot, findings)
    if call_id is not None and check_pattern("bad_id", call_id, _CALL_ID, spot, findings):
        return call_id
    return None


def _check_message(item: JsonObject, spot: Spot, findings: Findings) -> None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        findings.add(
            "unknown_role", spot, f"the role {str(role)[:80]!a} is none of this provider's"
        )
        return
    if isinstance(content, str):
        return
    if not is_list(content):
        findings.add("malformed", spot, "content is neither a string nor a list")
        return
    for here, part in objects(content, "content", spot, findings):
        kind = a_string(part, "type", here, findings)
        if kind is None:
            continue
        if kind.startswith("input_") if role == "assistant" else kind in _WRITTEN_BY_A_MODEL:
            findings.add("wrong_place", here, f"{kind!a} cannot stand in a message of role {role}")
        elif kind in ("input_text", "output_text"):
            a_string(part, "text", here, findings)


def _check_id(item: JsonObject, ids: set[str], spot: Spot, findings: Findings) -> None:
    own = item.get("id")
    if not isinstance(own, str) or not own:
        return
    if own in ids:
        findings.add("duplicate_item", spot, f"another item has the id {own!a}, too")
    ids.add(own)


def _is_reasoning(item: JsonObject) -> bool:
    return item.get("type") == "reasoning" and bool(item.get("id"))


def _is_of_the_model(item: object) -> bool:
    """Whether an item can have come out of a response: an answer, a call, a reasoning."""
    if not is_object(item):
        return False
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and kind not in _WRITTEN_BY_THE_CALLER


def _is_output(item: object) -> bool:
    if not is_object(item):
        return False
    kind = item.get("type")
    return isinstance(kind, str) and kind in _OUTPUTS


def _leading(messages: Sequence[Wire]) -> list[bool]:
    """For each place, and the one behind the end: whether an item of the model stands there, behind
    any further reasoning."""
    found = [False]
    for item in reversed(messages):
        is_reasoning = is_object(item) and item.get("type") == "reasoning"
        found.append(found[-1] if is_reasoning else _is_of_the_model(item))
    return found[::-1]


def _tell_open(messages: Sequence[Wire], findings: Findings, calls: WaitingCalls) -> None:
    """Calls of the last response, behind which nothing but outputs stands, wait; all others never end."""
    end = len(messages)
    while end and _is_output(messages[end - 1]):
        end -= 1
    while end and _is_of_the_model(messages[end - 1]):
        end -= 1
    for call_id, spot in calls.waiting():
        if spot.position >= end:
            findings.add("pending_call", spot, f"the call {call_id!a} has no output yet")
        else:
            findings.add("unanswered_call", spot, f"the call {call_id!a} has no output")
