"""Anthropic Messages: what ``POST /v1/messages`` refuses of ``messages`` (T2, T5).

Two messages of one role side by side are told, although the interface of today joins them: it did not
always, and those that stand in for it (Amazon's, Google's) do not. Whether thinking is enabled stands outside
of the messages, so that only thinking that is there is judged.
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
    check_text,
    is_list,
    is_object,
    objects,
)
from compaction_ledger.domain.messages.validity.turns import Turn, turns_of

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_OF_THE_ASSISTANT = frozenset({"tool_use"}) | _SERVER_CALLS | _THINKING
_SEALED = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}

Block = tuple[Spot, JsonObject]


def problems(messages: Sequence[Wire]) -> list[Problem]:
    """Everything for which the provider would refuse these messages; ``[]`` for a valid request."""
    findings = Findings()
    calls, served = WaitingCalls(findings), WaitingCalls(findings)
    turns = turns_of(messages, findings)
    for number, turn in enumerate(turns):
        is_last = number == len(turns) - 1
        blocks = _blocks(turn, findings, may_be_empty=is_last and turn.role == "assistant")
        if turn.role == "user":
            _check_user(blocks, findings, calls, is_last=is_last)
        else:
            _check_assistant(blocks, findings, calls, served)
            if not calls or is_last:  # a program that calls tools goes on once they are answered
                served.close("pending_call" if is_last else "unanswered_call")
            if is_last:
                _check_end(turn, findings)
    calls.close("pending_call")
    served.close("pending_call")
    calls.finish()
    served.finish()
    return findings.told()


def _blocks(turn: Turn, findings: Findings, *, may_be_empty: bool) -> list[Block]:
    """The blocks of a turn; a string is checked as the text it is and gives none."""
    found: list[Block] = []
    for spot, message in turn.messages:
        content = message.get("content")
        if content in ("", [], ()):
            if not may_be_empty:
                findings.add("empty_content", spot, "the message has no content")
        elif isinstance(content, str):
            check_text(content, spot, findings)
            found.append((spot, {"type": "text", "text": content}))
        elif not is_list(content):
            findings.add("malformed", spot, "content is neither a string nor a list")
        else:
            for here, block in objects(content, "content", spot, findings):
                _check_block(block, turn.role, here, findings)
                found.append((here, block))
    return found


def _check_block(block: JsonObject, role: str, spot: Spot, findings: Findings) -> None:
    kind = a_string(block, "type", spot, findings)
    if kind is None:
        return
    if kind in _OF_THE_ASSISTANT if role == "user" else kind == "tool_result":
        findings.add("wrong_place", spot, f"{kind!a} cannot stand in a message of role {role}")
    if kind == "text":
        text = a_string(block, "text", spot, findings)
        if text is not None:
            check_text(text, spot, findings)
    for member in _SEALED.get(kind, ()):
        a_string(block, member, spot, findings)
    if kind == "tool_use" or kind in _SERVER_CALLS:
        _check_call(block, spot, findings)
    if kind == "tool_result":
        _check_result(block, spot, findings)


def _check_call(block: JsonObject, spot: Spot, findings: Findings) -> None:
    call_id, name = a_string(block, "id", spot, findings), a_string(block, "name", spot, findings)
    if call_id is not None:
        check_pattern("bad_id", call_id, _ID, spot, findings)
    if name is not None:
        check_pattern("bad_name", name, _NAME, spot, findings)
    if not is_object(block.get("input")):
        findings.add("malformed", spot, "input is missing or no object")


def _check_result(block: JsonObject, spot: Spot, findings: Findings) -> None:
    a_string(block, "tool_use_id", spot, findings)
    content = block.get("content")
    if not content and block.get("is_error") is True:
        findings.add("empty_content", spot, "a result that is an error has no content")
    if is_list(content):
        for here, part in objects(content, "content", spot, findings):
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                check_text(part["text"], here, findings)
    elif content is not None and not isinstance(content, str):
        findings.add("malformed", spot, "content is neither a string nor a list")


def _check_user(
    blocks: list[Block], findings: Findings, calls: WaitingCalls, *, is_last: bool
) -> None:
    """The results come first, all of them: in the message behind the calls."""
    other = False
    for spot, block in blocks:
        if block.get("type") != "tool_result":
            other = True
            continue
        if other:
            findings.add("misplaced_result", spot, "a tool result stands behind other content")
        if isinstance(block.get("tool_use_id"), str):
            calls.answer(block["tool_use_id"], spot)
    calls.close("pending_call" if is_last and not other else "unanswered_call")


def _check_assistant(
    blocks: list[Block], findings: Findings, calls: WaitingCalls, served: WaitingCalls
) -> None:
    for spot, block in blocks:
        kind = block.get("type")
        if not isinstance(kind, str):
            continue
        if kind == "tool_use" and isinstance(block.get("id"), str):
            calls.call(block["id"], spot)
        elif kind in _SERVER_CALLS and isinstance(block.get("id"), str):
            served.call(block["id"], spot)
        elif kind.endswith("_tool_result") and isinstance(block.get("tool_use_id"), str):
            served.answer(block["tool_use_id"], spot)
    kinds = [block.get("type") for _, block in blocks]
    if calls and any(kind in _THINKING for kind in kinds if isinstance(kind, str)):
        first = kinds[0]
        if not isinstance(first, str) or first not in _THINKING:
            why = "a turn that thinks and calls tools begins with its thinking"
            findings.add("thinking_order", blocks[0][0], why)


def _check_end(turn: Turn, findings: Findings) -> None:
    """The beginning of an answer, which the model goes on with, does not end in white space."""
    spot, message = turn.messages[-1]
    content = message.get("content")
    if is_list(content) and content:
        spot = spot.inside(f"content[{len(content) - 1}]")
        last = content[-1]
        content = last.get("text") if is_object(last) and last.get("type") == "text" else None
    if isinstance(content, str) and content.strip() and content != content.rstrip():
        findings.add("trailing_space", spot, "the last message ends in white space")
