"""T2, T5: the strict checkers over requests that real providers took, and over broken real transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oracles import oracle_accepts, oracle_pairs

from compaction_ledger.domain.messages.validity import CHECKERS

pytestmark = pytest.mark.corpus


class Recorded(NamedTuple):
    """The messages of a request, and where it stands."""

    place: str
    shape: str
    messages: list[Any]


RECORDINGS = {
    "tools_openai_chat_recordings.jsonl": "openai-chat",
    "tools_openai_responses_recordings.jsonl": "openai-responses",
    "tools_anthropic_messages_recordings.jsonl": "anthropic",
    "tools_bedrock_converse_recordings.jsonl": "converse",
}
# Whatever the provider said that day: a line break alone as a text, which Bedrock took of this model once and
# refuses of newer ones.
TAKEN_ANYWAY = {
    ("tools_bedrock_converse_recordings.jsonl line 8", "blank_text"),
    ("tools_bedrock_converse_recordings.jsonl line 9", "blank_text"),
}


def recorded(folder: Path, name: str) -> Iterator[Recorded]:
    """The requests of a file of recordings that the provider answered with 200."""
    text = (folder / name).read_text(encoding="utf-8")
    for number, line in enumerate(map(json.loads, text.splitlines()), start=1):
        request = line if "notebook" in line else line.get("request")
        if isinstance(request, dict) and line.get("status", 200) == 200:
            messages = request.get("messages", request.get("input"))
            if isinstance(messages, list):
                yield Recorded(f"{name} line {number}", RECORDINGS[name], messages)


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_t5_requests_that_were_answered_have_no_problem(shared_data: Path, name: str) -> None:
    found: set[tuple[str, str]] = set()
    requests = list(recorded(shared_data, name))
    assert len(requests) >= 10
    for place, shape, messages in requests:
        found |= {(place, problem.code) for problem in CHECKERS[shape](messages)}
    assert found == {known for known in TAKEN_ANYWAY if known[0].startswith(name)}


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_t5_other_judges_take_them_too(shared_data: Path, name: str) -> None:
    """One provider sends ``status: null``, and takes it back, which OpenAI's types do not know."""
    for _, shape, messages in recorded(shared_data, name):
        known = [
            {key: value for key, value in message.items() if (key, value) != ("status", None)}
            for message in messages
        ]
        oracle_accepts(shape, known)
        assert oracle_pairs(shape, messages) == ([], [])


def test_t5_the_trajectories_of_the_airline(shared_data: Path) -> None:
    """Ids that come back later in the same conversation are no mistake."""
    for each in document(shared_data / "tools_openai_chat_taubench_airline_4trajectories.json"):
        assert CHECKERS["openai-chat"](each["traj"]) == []
        oracle_accepts("openai-chat", each["traj"])


def test_t5_the_cline_session(shared_data: Path) -> None:
    """It has blocks of its own, which are carried along (T1) and which the provider's types refuse."""
    messages = document(shared_data / "tools_anthropic_messages_cline_session.json")["messages"]
    assert CHECKERS["anthropic"](messages) == []
    with pytest.raises(AssertionError, match="'file'"):
        oracle_accepts("anthropic", messages)


def test_t2_a_log_that_names_its_results_otherwise(shared_data: Path) -> None:
    """SWE-agent's own log has ``tool_call_ids`` for ``tool_call_id``: no request for the provider."""
    path = shared_data / "tools_openai_chat_sweagent_function_calling.traj.json"
    history = document(path)["history"]
    problems = CHECKERS["openai-chat"](history)
    results = [place for place, each in enumerate(history) if each["role"] == "tool"]
    malformed = [problem.place for problem in problems if problem.code == "malformed"]
    assert malformed == [f"message {place}" for place in results]
    codes = {problem.code for problem in problems}
    assert codes == {"malformed", "unanswered_call", "pending_call"}


def test_t2_a_conversation_that_ended_with_the_answer(shared_data: Path) -> None:
    messages = document(shared_data / "tools_pydantic_ai_model_messages_thinking.json")
    oracle_accepts("pydantic-ai", messages)
    assert [problem.code for problem in CHECKERS["pydantic-ai"](messages)] == ["last_role"]
    assert CHECKERS["pydantic-ai"](messages[:-1]) == []


def test_t2_a_catalogue_of_items_is_no_conversation(shared_data: Path) -> None:
    """One line of each type, shuffled and with one and the same id in all of them."""
    path = shared_data / "tools_codex_rollout_line_type_catalogue.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    codes = {problem.code for problem in CHECKERS["openai-responses"](items)}
    assert {"duplicate_item", "result_before_call", "wrong_place", "malformed"} <= codes
