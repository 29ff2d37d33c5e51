"""Amazon Bedrock Converse: what ``Converse`` refuses of ``messages`` (T2, T5).

Told is what the service itself refuses, whatever the model behind it. Blocks have no type: the member that is
there says what they are. Tools that the service runs are called and answered in one assistant message.
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

_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OF_THE_ASSISTANT = frozenset({"toolUse", "reasoningContent"})
_OF_THE_USER = frozenset({"image", "document", "video"})
_SERVED = "server_tool_use"

Block = tuple[Spot, JsonObject]


def problems(messages: Sequence[Wire]) -> list[Problem]:
    """Everything for which the service would refuse these messages; ``[]`` for a valid request."""
    findings = Findings()
    calls, served = WaitingCalls(findings), WaitingCalls(findings)
    turns = turns_of(messages, findings)
    for number, turn in enumerate(turns):
        is_last = number == len(turns) - 1
        blocks = _blocks(turn, findings)
        if turn.role == "user":
            _check_user(blocks, findings, calls, is_last=is_last)
        else:
            _check_assistant(blocks, calls, served)
            served.close("pending_call" if is_last else "unanswered_call")
    calls.close("pending_call")
    calls.finish()
    served.finish()
    return findings.told()


def _blocks(turn: Turn, findings: Findings) -> list[Block]:
    found: list[Block] = []
    for spot, message in turn.messages:
        content = message.get("content")
        if is_list(content) and not content:
            findings.add("empty_content", spot, "content is an empty list")
        blocks = list(objects(content, "content", spot, findings))
        for here, block in blocks:
            _check_block(block, turn.role, here, findings)
        if _has(blocks, "document") and not _has(blocks, "text"):
            findings.add("missing_text", spot, "a document stands in a message without a text")
        found += blocks
    return found


def _has(blocks: list[Block], member: str) -> bool:
    return any(member in block for _, block in blocks)


def _check_block(block: JsonObject, role: str, spot: Spot, findings: Findings) -> None:
    if len(block) != 1:
        findings.add("malformed", spot, f"a block has one member, and this one has {len(block)}")
    for kind in block:
        if kind in (_OF_THE_ASSISTANT if role == "user" else _OF_THE_USER):
            findings.add("wrong_place", spot, f"{kind} cannot stand in a message of role {role}")
    if "text" in block:
        text = a_string(block, "text", spot, findings)
        if text is not None:
            check_text(text, spot, findings)
    if "toolUse" in block:
        _check_call(block["toolUse"], spot.inside(".toolUse"), findings)
    if "toolResult" in block:
        _check_result(block["toolResult"], role, spot.inside(".toolResult"), findings)


def _check_call(call: object, spot: Spot, findings: Findings) -> None:
    if not is_object(call):
        findings.add("malformed", spot, "it is no object")
        return
    _check_id(call, spot, findings)
    name = a_string(call, "name", spot, findings)
    if name is not None:
        check_pattern("bad_name", name, _NAME, spot, findings)
    if not is_object(call.get("input")):
        findings.add("malformed", spot, "input is missing or no object")


def _check_result(result: object, role: str, spot: Spot, findings: Findings) -> None:
    if not is_object(result):
        findings.add("malformed", spot, "it is no object")
        return
    if role == "assistant" and not _is_served(result):
        findings.add(
            "wrong_place", spot, "only a tool of the service answers in an assistant's message"
        )
    _check_id(result, spot, findings)
    if result.get("status") not in (None, "success", "error"):
        findings.add("malformed", spot, "status is neither success nor error")
    content = result.get("content")
    if is_list(content) and not content and result.get("status") == "error":
        findings.add("empty_content", spot, "a result that is an error has no content")
    for here, part in objects(content, "content", spot, findings):
        if len(part) != 1:
            findings.add("malformed", here, f"a block has one member, and this one has {len(part)}")
        if "text" in part:
            a_string(part, "text", here, findings)


def _check_id(value: JsonObject, spot: Spot, findings: Findings) -> None:
    call_id = a_string(value, "toolUseId", spot, findings)
    if call_id is not None:
        check_pattern("bad_id", call_id, _ID, spot, findings)


def _is_served(value: JsonObject) -> bool:
    """Whether the service ran this tool itself."""
    kind = value.get("type")
    return isinstance(kind, str) and (kind == _SERVED or kind.endswith("_result"))


def _check_user(
    blocks: list[Block], findings: Findings, calls: WaitingCalls, *, is_last: bool
) -> None:
    """The results come first, all of them: in the message behind the calls."""
    other = False
    for spot, block in blocks:
        result = block.get("toolResult")
        if "toolResult" not in block:
            other = other or "cachePoint" not in block
            continue
        if other:
            findings.add("misplaced_result", spot, "a tool result stands behind other content")
        if is_object(result) and isinstance(result.get("toolUseId"), str):
            calls.answer(result["toolUseId"], spot)
    calls.close("pending_call" if is_last and not other else "unanswered_call")


def _check_assistant(blocks: list[Block], calls: WaitingCalls, served: WaitingCalls) -> None:
    for spot, block in blocks:
        call, result = block.get("toolUse"), block.get("toolResult")
        if is_object(call) and isinstance(call.get("toolUseId"), str):
            (served if call.get("type") == _SERVED else calls).call(call["toolUseId"], spot)
        if is_object(result) and isinstance(result.get("toolUseId"), str) and _is_served(result):
            served.answer(result["toolUseId"], spot)
