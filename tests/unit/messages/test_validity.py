"""T2, T5: what the strict checkers say of valid transcripts, of broken ones, and of any JSON at all."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_mistakes import Broken
from wire_mutations import MUTATIONS
from wire_transcripts import SHAPES, broken, transcripts

from compaction_ledger.domain.messages import validity
from compaction_ledger.domain.messages.interface import Problem, Wire
from compaction_ledger.domain.messages.validity import CHECKERS, PROBLEM_CODES

EXAMPLES = 20


def told(shape: str, messages: Sequence[Wire]) -> list[Problem]:
    """What the checker says, which leaves what it was given alone (T2)."""
    before = copy.deepcopy(messages)
    found = CHECKERS[shape](messages)
    assert messages == before
    return found


def test_every_shape_has_a_checker() -> None:
    assert sorted(CHECKERS) == sorted(SHAPES) == sorted(MUTATIONS)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t5_valid_transcripts_have_no_problem(shape: str, data: st.DataObject) -> None:
    messages = data.draw(transcripts(shape))
    assert told(shape, messages) == []


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_t5_calls_that_wait_at_the_end_are_all_that_is_told(
    shape: str, data: st.DataObject
) -> None:
    messages = data.draw(transcripts(shape, pending=True))
    assert {problem.code for problem in told(shape, messages)} == {validity.PENDING_CALL}


@pytest.mark.parametrize(
    ("shape", "mistake"), [(shape, name) for shape in SHAPES for name in MUTATIONS[shape]]
)
@given(data=st.data())
@settings(max_examples=2)
def test_t2_a_mistake_is_told_by_its_code_at_its_place(
    shape: str, mistake: str, data: st.DataObject
) -> None:
    case: Broken = data.draw(broken(shape, mistake))
    found = told(shape, case.messages)
    assert {problem.code for problem in found} == case.codes
    assert case.place in [problem.place for problem in found if problem.code == case.code]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
# JSON whose members are those that the checkers look at, with values of any type.
WORDS = [
    *("user", "assistant", "system", "tool", "message", "text", "function", "tool_use", "request"),
    *("tool_result", "thinking", "function_call", "function_call_output", "reasoning", "response"),
    *("tool-call", "tool-return", "server_tool_use", "a", ""),
]
MEMBERS = [
    *(
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "id",
        "function",
        "name",
        "arguments",
        "kind",
    ),
    *(
        "tool_call_id",
        "call_id",
        "output",
        "tool_use_id",
        "input",
        "toolUse",
        "toolResult",
        "parts",
    ),
    *("toolUseId", "part_kind", "args", "tool_name", "status", "is_error", "document"),
]
NEAR = st.recursive(
    st.one_of(st.sampled_from(WORDS), st.none(), st.integers(0, 2), st.just("\ud800")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.parametrize("shape", SHAPES)
@given(messages=st.lists(JSON | NEAR, max_size=4))
@settings(max_examples=100)
def test_t2_no_json_makes_a_checker_raise(shape: str, messages: list[Any]) -> None:
    for problem in CHECKERS[shape](messages):
        assert problem.code in PROBLEM_CODES
        assert problem.place.split()[0] == "message"
        assert 0 <= int(problem.place.split()[1]) < max(len(messages), 1)
        assert problem.message
        problem.message.encode()  # whatever stands in an id, the sentence can be written


def codes(shape: str, *messages: Wire) -> list[str]:
    return [problem.code for problem in told(shape, messages)]


def test_a_program_on_the_server_waits_for_tools_on_the_client() -> None:
    """Anthropic: code that calls tools is answered in the turn behind their results."""
    program = {"type": "server_tool_use", "id": "srv", "name": "code_execution", "input": {}}
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    done = {"type": "code_execution_tool_result", "tool_use_id": "srv", "content": {}}
    asks: Wire = {"role": "user", "content": "Hi."}
    runs: Wire = {"role": "assistant", "content": [program, call]}
    answers: Wire = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
    ends: Wire = {"role": "assistant", "content": [done, {"type": "text", "text": "Done."}]}
    assert codes("anthropic", asks, runs, answers, ends) == []
    assert codes("anthropic", asks, runs, answers) == ["pending_call"]
    says: Wire = {"role": "assistant", "content": "Well."}
    assert codes("anthropic", asks, runs, answers, says, asks) == ["unanswered_call"]


def test_tools_that_a_provider_runs_itself_are_left_to_it() -> None:
    """Pydantic AI: their results may come later, and what dangles is not sent."""
    part = {"tool_name": "search", "tool_call_id": "b"}
    asks: Wire = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi."}]}
    calls: Wire = {"kind": "response", "parts": [{"part_kind": "builtin-tool-call", **part}]}
    brings: Wire = {
        "kind": "response",
        "parts": [{"part_kind": "builtin-tool-return", "content": 1, **part}],
    }
    assert codes("pydantic-ai", asks, calls, brings, asks) == []
    assert codes("pydantic-ai", asks, calls, asks, brings, asks) == []
    again: Wire = {"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "No."}]}
    assert codes("pydantic-ai", asks, calls, again) == []
    compacted: Wire = {"kind": "request", "parts": [{"part_kind": "compaction", "content": "So."}]}
    assert codes("pydantic-ai", compacted, calls, asks) == []


def test_words_in_a_message_of_their_own_before_the_result_are_in_its_way() -> None:
    """Anthropic joins the two messages, and then the result does not come first."""
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    found = codes(
        "anthropic",
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": "Wait."},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    )
    assert sorted(found) == ["misplaced_result", "roles_alternate"]


def test_problems_come_in_the_order_of_the_messages() -> None:
    messages: list[Wire] = [
        {"role": "user", "content": None},
        {"role": "assistant", "tool_calls": [{"id": "a"}]},
        {"role": "tool", "content": ""},
        {"role": "user", "content": 1},
    ]
    positions = [int(problem.place.split()[1]) for problem in told("openai-chat", messages)]
    assert positions == sorted(positions)
    assert set(positions) == {0, 1, 2, 3}


def _modules() -> list[ast.Module]:
    folder = Path(validity.__file__).parent
    return [ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("[a-z]*.py")]


def test_each_code_in_the_source_is_listed_and_each_listed_one_is_used() -> None:
    used: set[str] = set()
    for module in _modules():
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used |= {node.value} & set(PROBLEM_CODES)
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add" and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    assert code.value in PROBLEM_CODES
    assert used == set(PROBLEM_CODES)


def test_the_checkers_share_no_code_with_the_shapes() -> None:
    for module in _modules():
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom):
                name = node.module or ""
                assert not name.startswith("compaction_ledger") or (
                    name == "compaction_ledger.domain.messages.interface"
                    or name.startswith("compaction_ledger.domain.messages.validity")
                )
