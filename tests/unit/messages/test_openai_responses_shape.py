"""T1, T2, T4, T10: OpenAI Responses items."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidInput, MalformedMessage
from compaction_ledger.domain.messages.interface import Call, Part, Wire
from compaction_ledger.domain.messages.openai_responses import OpenAIResponses
from compaction_ledger.domain.messages.structure import boundaries, structural_problems

RESPONSES = OpenAIResponses()
USER: Wire = {"role": "user", "content": "x"}

PAIRS: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    (
        {"type": "function_call", "call_id": "c", "id": "fc", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "out"},
        "f",
        '{"a": 1}',
        "out",
    ),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "g", "input": "raw"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        "g",
        "raw",
        "a\nb",
    ),
    (
        {"type": "local_shell_call", "call_id": "c", "id": "ls", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": None, "id": "c", "output": "a.txt"},
        "local_shell",
        '{"command":["ls"]}',
        "a.txt",
    ),
    (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [
                {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 1}},
            ],
        },
        "shell",
        '{"commands":["ls"]}',
        "a\nno",
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "ok"},
        "apply_patch",
        '{"type":"delete_file"}',
        "ok",
    ),
]
# Answers whose text is not the caller's to replace.
OTHERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
        "computer",
    ),
    (
        {"type": "mcp_approval_request", "id": "c", "name": "m", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "c", "approve": True},
        "m",
    ),
    (
        {"type": "tool_search_call", "call_id": "c", "arguments": {}},
        {"type": "tool_search_output", "call_id": "c", "tools": []},
        "tool_search",
    ),
    (
        {"type": "program", "call_id": "c", "code": "1"},
        {"type": "program_output", "call_id": "c", "result": "1"},
        "program",
    ),
]


@pytest.mark.parametrize(("call", "result", "name", "asked", "said"), PAIRS)
def test_a_call_is_open_until_its_output_comes(
    call: Wire, result: Wire, name: str, asked: str, said: str
) -> None:
    entries = RESPONSES.read([USER, call, USER, result, USER])
    assert list(entries[1].calls) == [Call("c", name, 0)]
    assert (entries[1].role, entries[3].role) == ("assistant", "tool")
    assert boundaries(entries) == [0, 4]
    assert structural_problems(entries) == []
    assert RESPONSES.parts(call) == [Part(0, "call", asked, name, "c")]
    assert RESPONSES.parts(result) == [Part(0, "result", said, None, "c")]
    replaced = RESPONSES.with_results(result, {0: "stub"})
    assert RESPONSES.parts(replaced) == [Part(0, "result", "stub", None, "c")]
    assert {**replaced, "output": 0} == {**result, "output": 0}


@pytest.mark.parametrize(("call", "result", "name"), OTHERS)
def test_other_pairs_are_open_in_between_too(call: Wire, result: Wire, name: str) -> None:
    entries = RESPONSES.read([USER, call, USER, result, USER])
    assert list(entries[1].calls) == [Call("c", name, 0)]
    assert boundaries(entries) == [0, 4]
    [part] = RESPONSES.parts(result)
    assert (part.kind, part.call_id) == ("other", "c")
    with pytest.raises(InvalidInput):
        RESPONSES.with_results(result, {0: "stub"})


def test_a_replaced_shell_output_stays_a_list_with_its_last_outcome() -> None:
    output = PAIRS[3][1]
    last = {"type": "exit", "exit_code": 1}
    assert RESPONSES.with_results(output, {0: "stub"})["output"] == [
        {"stdout": "stub", "stderr": "", "outcome": last}
    ]


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ({"type": "web_search_call", "id": "w", "action": {"q": 1}}, Part(0, "other", '{"q":1}')),
        ({"type": "file_search_call", "id": "w", "queries": ["a"]}, Part(0, "other", '["a"]')),
        ({"type": "code_interpreter_call", "id": "w", "code": "1+1"}, Part(0, "other", "1+1")),
        ({"type": "mcp_call", "id": "w", "name": "m", "output": "o"}, Part(0, "other", "o", "m")),
        ({"type": "image_generation_call", "id": "w"}, Part(0, "media", "")),
        ({"type": "mcp_list_tools", "id": "w", "tools": []}, Part(0, "other", "")),
        ({"type": "tool_search_call", "arguments": {}}, Part(0, "call", "{}", "tool_search")),
        ({"type": "tool_search_output", "call_id": None, "tools": []}, Part(0, "other", "")),
        ({"type": "compaction", "encrypted_content": "x"}, Part(0, "other", "")),
        ({"id": "msg_1"}, Part(0, "other", "")),
        ({"type": "item_reference", "id": "msg_1"}, Part(0, "other", "")),
        ({"type": "telepathy", "waves": []}, Part(0, "other", "")),
        (
            {
                "type": "reasoning",
                "summary": [{"text": "a"}, {"text": "b"}],
                "content": [{"text": "c"}],
            },
            Part(0, "thinking", "a\nb\nc"),
        ),
    ],
)
def test_items_that_open_nothing(item: Wire, part: Part) -> None:
    [entry, _] = RESPONSES.read([item, USER])
    assert (entry.begins_turn, list(entry.calls), list(entry.results)) == (False, [], [])
    assert entry.role in ("assistant", "tool")
    assert RESPONSES.parts(item) == [part]


def test_messages_with_and_without_a_type() -> None:
    blocks = [
        {"type": "output_text", "text": "a"},
        {"type": "refusal", "refusal": "no"},
        {"type": "input_image", "image_url": "x"},
        {"type": "hologram"},
    ]
    messages: list[Wire] = [
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s"}]},
        {"type": "message", "role": "user", "content": "u"},
        {"type": "message", "role": "assistant", "content": blocks},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ]
    roles = [entry.role for entry in RESPONSES.read(messages)]
    assert roles == ["system", "system", "system", "user", "assistant", "system"]
    assert RESPONSES.head(messages) == 3
    kinds = [(part.kind, part.text) for part in RESPONSES.parts(messages[4])]
    assert kinds == [("text", "a"), ("text", "no"), ("media", ""), ("other", "")]
    assert RESPONSES.assemble(messages, 5, ["A"]) == [
        *messages[:3],
        {"type": "message", "role": "assistant", "content": "A"},
        messages[5],
    ]


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"type": "function_call", "name": "f"}, "message 1 call_id"),
        ({"type": "function_call", "call_id": None, "name": "f"}, "message 1 call_id"),
        ({"type": "function_call", "call_id": "c"}, "message 1 name"),
        ({"type": "function_call_output", "output": "x"}, "message 1 call_id"),
        ({"type": "mcp_approval_response"}, "message 1 approval_request_id"),
        ({"type": "message", "role": "user"}, "message 1 content"),
        ({"type": "message", "content": "x"}, "message 1"),
        ({"type": ["message"]}, "message 1 type"),
        ({"type": 5}, "message 1 type"),
        ({"summary": []}, "message 1"),
    ],
)
def test_t2_a_malformed_item_is_refused_by_its_member(item: Wire, place: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        RESPONSES.read([USER, item])
    assert refusal.value.place == place


def test_cache_markers_are_left_out_of_what_is_settled() -> None:
    marked: Wire = {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {}}],
    }
    assert RESPONSES.settled(marked) == {
        **marked,
        "output": [{"type": "input_text", "text": "a"}],
    }
