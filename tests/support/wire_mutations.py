"""Every mistake by wire shape: those of :mod:`wire_mistakes`, and single messages that are refused."""

from __future__ import annotations

from wire_members import MEMBERS
from wire_mistakes import (
    ALTERNATING,
    ANTHROPIC,
    COMMON,
    PYDANTIC_AI,
    RESPONSES,
    Mutation,
    ended,
    replied,
    said,
)
from wire_values import Wire


def _user(*content: object) -> Wire:
    return {"role": "user", "content": list(content)}


def _assistant(*content: object) -> Wire:
    return {"role": "assistant", "content": list(content)}


def _function(name: str, **members: object) -> Wire:
    call = {"id": "call_x", "type": "function", "function": {"name": name, **members}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _tool_use(one: str, name: str, **members: object) -> Wire:
    return {"type": "tool_use", "id": one, "name": name, **members}


def _bedrock_use(one: str, name: str) -> Wire:
    return {"toolUse": {"toolUseId": one, "name": name, "input": {}}}


_ALTERNATING = ALTERNATING | {
    "nothing_said": said("empty_content", _user()),
    "number_said": said("malformed", {"role": "user", "content": 7}),
    "null_block": said("not_an_object", _user(None), "content[0]"),
}
_DOCUMENT = {"document": {"format": "txt", "name": "Notes", "source": {"text": "Hello."}}}
_SERVED = {"type": "server_tool_use", "id": "srvtoolu_x", "name": "web_search", "input": {}}
_FAILED = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "", "is_error": True}
_HI = {"type": "text", "text": "Hi."}

_SHAPED: dict[str, dict[str, Mutation]] = {
    "openai-chat": COMMON
    | {
        "no_content": replied("empty_content", {"role": "assistant", "content": None}),
        "no_parts": said("empty_content", _user()),
        "no_calls": replied("malformed", {"role": "assistant", "content": "", "tool_calls": []}),
        "null_said": said("malformed", {"role": "user", "content": None}),
        "odd_name": ended(
            "bad_name", _function("look it up", arguments="{}"), "tool_calls[0]", "pending_call"
        ),
        "object_arguments": ended(
            "malformed", _function("look", arguments={}), "tool_calls[0]", "pending_call"
        ),
        "no_call_id": said("malformed", {"role": "tool", "content": "Sunny."}),
    },
    "openai-responses": COMMON
    | RESPONSES
    | {
        "input_of_assistant": replied(
            "wrong_place", _assistant({"type": "input_text", "text": "Hi."}), "content[0]"
        ),
        "output_of_user": said(
            "wrong_place", _user({"type": "output_text", "text": "Hi."}), "content[0]"
        ),
        "empty_call_id": ended(
            "bad_id", {"type": "function_call", "call_id": "", "name": "look", "arguments": ""}
        ),
        "null_said": said("malformed", {"role": "user", "content": None}),
    },
    "anthropic": COMMON
    | _ALTERNATING
    | ANTHROPIC
    | {
        "empty_string": said("empty_content", {"role": "user", "content": ""}),
        "empty_block": said("empty_text", _user(_HI | {"text": ""}), "content[0]"),
        "blank_block": said("blank_text", _user(_HI, _HI | {"text": " \n"}), "content[1]"),
        "blank_string": replied("blank_text", {"role": "assistant", "content": "\t"}),
        "open_end": ended("trailing_space", _assistant(_HI, _HI | {"text": "So "}), "content[1]"),
        "call_of_user": said(
            "wrong_place", _user(_tool_use("toolu_x", "look", input={})), "content[0]"
        ),
        "result_of_assistant": replied(
            "wrong_place", _assistant(_FAILED | {"is_error": False}), "content[0]"
        ),
        "odd_id": ended(
            "bad_id", _assistant(_tool_use("a.b", "look", input={})), "content[0]", "pending_call"
        ),
        "odd_name": ended(
            "bad_name", _assistant(_tool_use("a", "l k", input={})), "content[0]", "pending_call"
        ),
        "string_input": ended(
            "malformed",
            _assistant(_tool_use("a", "look", input="{}")),
            "content[0]",
            "pending_call",
        ),
        "served_never": replied("unanswered_call", _assistant(_SERVED, _HI), "content[0]"),
        "empty_error": said("empty_content", _user(_FAILED), "content[0]", "orphan_result"),
    },
    "converse": COMMON
    | _ALTERNATING
    | {
        "nothing_replied": replied("empty_content", _assistant()),
        "empty_block": said("empty_text", _user({"text": ""}), "content[0]"),
        "blank_block": replied("blank_text", _assistant({"text": "\n"}), "content[0]"),
        "two_members": said("malformed", _user({"text": "a", "cachePoint": {}}), "content[0]"),
        "document_alone": said("missing_text", _user(_DOCUMENT)),
        "call_of_user": said("wrong_place", _user(_bedrock_use("a", "look")), "content[0]"),
        "document_of_assistant": replied(
            "wrong_place", _assistant({"text": "Here:"}, _DOCUMENT), "content[1]"
        ),
        "odd_id": ended(
            "bad_id", _assistant(_bedrock_use("a b", "look")), "content[0].toolUse", "pending_call"
        ),
        "odd_name": ended(
            "bad_name", _assistant(_bedrock_use("a", "l k")), "content[0].toolUse", "pending_call"
        ),
    },
    "pydantic-ai": COMMON
    | PYDANTIC_AI
    | {
        "text_of_request": said(
            "wrong_place",
            {"kind": "request", "parts": [{"part_kind": "text", "content": "Hi."}]},
            "parts[0]",
        ),
        "no_parts": said("malformed", {"kind": "request"}),
        "list_arguments": ended(
            "malformed",
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "tool-call", "tool_name": "x", "tool_call_id": "y", "args": []}
                ],
            },
            "parts[0]",
            "pending_call",
        ),
    },
}
MUTATIONS = {shape: known | MEMBERS[shape] for shape, known in _SHAPED.items()}
"""By shape and name of the mistake."""
