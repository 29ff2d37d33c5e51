"""Mistakes in single members of a message, by wire shape: what is missing, or is not of its type."""

from __future__ import annotations

from wire_mistakes import Mutation, ended, replied, said
from wire_values import Wire


def _user(*content: object) -> Wire:
    return {"role": "user", "content": list(content)}


def _assistant(*content: object) -> Wire:
    return {"role": "assistant", "content": list(content)}


# --- OpenAI --------------------------------------------------------------------------------------------

_FUNCTION = {"id": "call_x", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _calling(**members: object) -> Wire:
    """An assistant's message with one call, some members of which are replaced."""
    return {"role": "assistant", "content": None, "tool_calls": [_FUNCTION | members]}


_CHAT: dict[str, Mutation] = {
    "call_of_no_type": ended("malformed", _calling(type=None), "tool_calls[0]", "pending_call"),
    "call_without_body": ended("malformed", _calling(function=1), "tool_calls[0]", "pending_call"),
    "call_without_id": ended("malformed", _calling(id=None), "tool_calls[0]"),
    "part_without_type": said("malformed", _user({"text": "Hi."}), "content[0]"),
    "text_without_text": said("malformed", _user({"type": "text"}), "content[0]"),
    "numbers_replied": replied("malformed", {"role": "assistant", "content": 7}),
    "text_that_is_null": replied(
        "malformed", _assistant({"type": "refusal", "refusal": None}), "content[0]"
    ),
}

_ITEM = {"type": "function_call", "call_id": "call_x", "name": "f", "arguments": "{}"}
_OUTPUT = {"type": "function_call_output", "call_id": "call_x", "output": "Sunny."}

_RESPONSES: dict[str, Mutation] = {
    "item_of_no_type": said("unknown_role", {"id": "x_1"}),
    "odd_name": ended("bad_name", _ITEM | {"name": "l k"}, "", "pending_call"),
    "no_name": ended("malformed", _ITEM | {"name": None}, "", "pending_call"),
    "object_arguments": ended("malformed", _ITEM | {"arguments": {}}, "", "pending_call"),
    "custom_without_input": ended(
        "malformed", _ITEM | {"type": "custom_tool_call"}, "", "pending_call"
    ),
    "computer_pending": ended("pending_call", {"type": "computer_call", "call_id": "call_x"}),
    "object_output": said("malformed", _OUTPUT | {"output": {}}, "", "orphan_result"),
    "output_without_call_id": said("malformed", _OUTPUT | {"call_id": None}),
    "text_without_text": said("malformed", _user({"type": "input_text"}), "content[0]"),
    "part_without_type": said("malformed", _user({"text": "Hi."}), "content[0]"),
    "shell_output_alone": said("orphan_result", {"type": "shell_call_output", "call_id": "call_x"}),
}


# --- Anthropic -----------------------------------------------------------------------------------------

_USE = {"type": "tool_use", "id": "toolu_x", "name": "f", "input": {}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "Sunny."}
_SERVED = {"type": "server_tool_use", "id": "srvtoolu_x", "name": "web_search", "input": {}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_x", "content": []}
_HI = {"type": "text", "text": "Hi."}

_ANTHROPIC: dict[str, Mutation] = {
    "block_without_type": said("malformed", _user({"text": "Hi."}), "content[0]"),
    "text_without_text": said("malformed", _user({"type": "text"}), "content[0]"),
    "result_without_id": said("malformed", _user(_RESULT | {"tool_use_id": 7}), "content[0]"),
    "result_of_a_number": said(
        "malformed", _user(_RESULT | {"content": 7}), "content[0]", "orphan_result"
    ),
    "blank_result": said(
        "blank_text",
        _user(_RESULT | {"content": [_HI | {"text": " "}]}),
        "content[0].content[0]",
        "orphan_result",
    ),
    "thinking_without_signature": replied(
        "malformed", _assistant({"type": "thinking", "thinking": "Hm."}, _HI), "content[0]"
    ),
    "thinking_of_user": said(
        "wrong_place", _user({"type": "redacted_thinking", "data": "x"}), "content[0]"
    ),
    "call_without_id": ended("malformed", _assistant(_USE | {"id": None}), "content[0]"),
    "call_without_name": ended(
        "malformed", _assistant(_USE | {"name": None}), "content[0]", "pending_call"
    ),
    "served_at_the_end": ended("pending_call", _assistant(_HI, _SERVED), "content[1]"),
    "found_without_search": replied("orphan_result", _assistant(_FOUND, _HI), "content[0]"),
    "found_before_search": replied(
        "result_before_call", _assistant(_FOUND, _SERVED, _HI), "content[0]", "unanswered_call"
    ),
    "one_result_and_words": said("orphan_result", _user(_RESULT, _HI), "content[0]"),
    "open_string": ended("trailing_space", {"role": "assistant", "content": "So "}),
    "system_of_a_number": said(
        "malformed", {"role": "system", "content": 7}, "", "system_placement"
    ),
}


# --- Bedrock -------------------------------------------------------------------------------------------


def _use(**members: object) -> Wire:
    return {"toolUse": {"toolUseId": "tooluse_x", "name": "f", "input": {}} | members}


def _result(**members: object) -> Wire:
    return {"toolResult": {"toolUseId": "tooluse_x", "content": [{"text": "Sunny."}]} | members}


_CONVERSE: dict[str, Mutation] = {
    "text_of_a_number": said("malformed", _user({"text": 7}), "content[0]"),
    "empty_member": said("malformed", _user({}), "content[0]"),
    "call_is_null": ended("malformed", _assistant({"toolUse": None}), "content[0].toolUse"),
    "string_input": ended(
        "malformed", _assistant(_use(input="{}")), "content[0].toolUse", "pending_call"
    ),
    "call_without_name": ended(
        "malformed", _assistant(_use(name=None)), "content[0].toolUse", "pending_call"
    ),
    "result_is_null": said("malformed", _user({"toolResult": None}), "content[0].toolResult"),
    "result_of_assistant": replied("wrong_place", _assistant(_result()), "content[0].toolResult"),
    "odd_id_of_result": said(
        "bad_id", _user(_result(toolUseId="a b")), "content[0].toolResult", "orphan_result"
    ),
    "result_without_id": said("malformed", _user(_result(toolUseId=None)), "content[0].toolResult"),
    "odd_status": said(
        "malformed", _user(_result(status="maybe")), "content[0].toolResult", "orphan_result"
    ),
    "empty_error": said(
        "empty_content",
        _user(_result(content=[], status="error")),
        "content[0].toolResult",
        "orphan_result",
    ),
    "result_with_two_members": said(
        "malformed",
        _user(_result(content=[{"text": "a", "json": {}}])),
        "content[0].toolResult.content[0]",
        "orphan_result",
    ),
    "result_text_of_a_number": said(
        "malformed",
        _user(_result(content=[{"text": 7}])),
        "content[0].toolResult.content[0]",
        "orphan_result",
    ),
    "served_never": replied(
        "unanswered_call", _assistant(_use(type="server_tool_use"), {"text": "Hi."}), "content[0]"
    ),
    "served_at_the_end": ended(
        "pending_call", _assistant(_use(type="server_tool_use")), "content[0]"
    ),
    "found_without_search": replied(
        "orphan_result", _assistant(_result(type="nova_result"), {"text": "Hi."}), "content[0]"
    ),
}


# --- Pydantic AI ---------------------------------------------------------------------------------------


def _request(**part: object) -> Wire:
    return {"kind": "request", "parts": [part]}


def _response(*parts: Wire) -> Wire:
    return {"kind": "response", "parts": list(parts)}


_RETURN = {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "x", "content": 1}
_CALL: Wire = {"part_kind": "tool-call", "tool_name": "f", "tool_call_id": "x", "args": {}}
_BUILTIN = _CALL | {"part_kind": "builtin-tool-call"}
_BROUGHT = _RETURN | {"part_kind": "builtin-tool-return"}

_PYDANTIC_AI: dict[str, Mutation] = {
    "prompt_of_a_number": said(
        "malformed", _request(part_kind="user-prompt", content=7), "parts[0]"
    ),
    "system_of_a_number": said(
        "malformed", _request(part_kind="system-prompt", content=7), "parts[0]"
    ),
    "part_without_kind": said("malformed", _request(content="Hi."), "parts[0]"),
    "return_without_content": said(
        "malformed",
        _request(**{key: value for key, value in _RETURN.items() if key != "content"}),
        "parts[0]",
        "orphan_result",
    ),
    "return_without_name": said(
        "malformed", _request(**(_RETURN | {"tool_name": None})), "parts[0]", "orphan_result"
    ),
    "return_without_id": said(
        "malformed", _request(**(_RETURN | {"tool_call_id": None})), "parts[0]"
    ),
    "retry_of_no_call": said(
        "orphan_result", _request(**(_RETURN | {"part_kind": "retry-prompt"})), "parts[0]"
    ),
    "prompt_of_response": replied(
        "wrong_place", _response({"part_kind": "user-prompt", "content": "Hi."}), "parts[0]"
    ),
    "text_of_a_number": replied(
        "malformed", _response({"part_kind": "text", "content": 7}), "parts[0]"
    ),
    "call_without_name": ended(
        "malformed", _response(_CALL | {"tool_name": None}), "parts[0]", "pending_call"
    ),
    "number_arguments": ended(
        "malformed", _response(_CALL | {"args": 7}), "parts[0]", "pending_call"
    ),
    "builtin_without_id": ended(
        "malformed", _response(_BUILTIN | {"tool_call_id": None}), "parts[0]", "last_role"
    ),
    "brought_without_name": ended(
        "malformed", _response(_BROUGHT | {"tool_name": None}), "parts[0]", "last_role"
    ),
}

MEMBERS: dict[str, dict[str, Mutation]] = {
    "openai-chat": _CHAT,
    "openai-responses": _RESPONSES,
    "anthropic": _ANTHROPIC,
    "converse": _CONVERSE,
    "pydantic-ai": _PYDANTIC_AI,
}
"""By shape and name of the mistake."""
