"""T2, T5: what other people's packages say of the same messages as the strict checkers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import oracle_accepts, oracle_pairs
from wire_mistakes import Broken
from wire_mutations import MUTATIONS
from wire_transcripts import SHAPES, broken, transcripts

from compaction_ledger.domain.messages.validity import CHECKERS

pytest.importorskip("pydantic_ai")
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@QUICK
def test_t5_what_is_generated_as_valid_is_of_the_provider_s_types(
    shape: str, data: st.DataObject
) -> None:
    messages = data.draw(transcripts(shape, unknown=False))
    oracle_accepts(shape, messages)
    assert oracle_pairs(shape, messages) == ([], [])
    assert CHECKERS[shape](messages) == []


# Mistakes in the form of a message that the provider's own types know, too.
OF_FORM = {
    "openai-chat": {"null_said", "object_arguments", "no_call_id", "strange_role", "no_object"},
    "openai-responses": {"null_said", "strange_role", "no_object"},
    "anthropic": {"number_said", "null_block", "string_input", "strange_role", "no_object"},
    "converse": {"number_said", "null_block", "two_members", "strange_role", "no_object"},
    "pydantic-ai": {"no_parts", "list_arguments", "text_of_request", "strange_role", "no_object"},
}


@pytest.mark.parametrize(
    ("shape", "mistake"), [(shape, name) for shape in SHAPES for name in sorted(OF_FORM[shape])]
)
@given(data=st.data())
@settings(QUICK, max_examples=2)
def test_t2_the_provider_s_types_refuse_what_the_checker_refuses(
    shape: str, mistake: str, data: st.DataObject
) -> None:
    case: Broken = data.draw(broken(shape, mistake))
    assert CHECKERS[shape](case.messages)
    with pytest.raises(AssertionError):
        oracle_accepts(shape, case.messages)


# Mistakes in the pairing of calls and results, and what the repair of Pydantic AI does with them.
OPEN, LOST = ("unanswered_call", "pending_call"), ("orphan_result", "result_before_call")
OF_PAIRING = ["lost_call", "result_alone", "lost_result", "result_first", "pending"]


@pytest.mark.parametrize("mistake", OF_PAIRING)
@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(QUICK, max_examples=4)
def test_t2_the_repair_finds_the_same_calls_and_results(
    shape: str, mistake: str, data: st.DataObject
) -> None:
    case: Broken = data.draw(broken(shape, mistake))
    found = [problem.code for problem in CHECKERS[shape](case.messages)]
    repair = oracle_pairs(shape, case.messages)
    assert len(repair.unanswered) == sum(code in OPEN for code in found)
    assert len(repair.dropped) == sum(code in LOST for code in found)
    assert repair != ([], [])
    assert set(OF_PAIRING) <= set(MUTATIONS[shape])
