"""How runs, answers, states and ids are derived (E2, E4)."""

import pytest

from compaction_ledger.domain.conversation import MessageStatus
from compaction_ledger.domain.errors import DuplicateMessageId, InvalidId
from compaction_ledger.infrastructure.importers.turns import Ending, Outcome, Part, derive


def user(text: str = "question", *, id: str | None = None) -> Part:  # noqa: A002
    return Part(f"place of {text}", "user", "user", text, id)


def text(
    words: str, ending: Ending = "unsaid", outcome: Outcome = "completed", *, failed: bool = False
) -> Part:
    status: MessageStatus = "failed" if failed else "completed"
    return Part("p", "text", "assistant", words, status=status, ending=ending, outcome=outcome)


TOOL = Part("p", "tool", "tool", "{}")
SYSTEM = Part("p", "system", "system", "be brief")


def chat_texts(*parts: Part) -> list[str]:
    _, messages = derive(parts)
    return [m.text for m in messages if m.kind == "chat" and m.role == "assistant"]


def test_text_before_a_tool_is_on_the_way_and_the_last_one_answers() -> None:
    assert chat_texts(user(), text("a"), TOOL, text("b"), TOOL, text("c")) == ["c"]


def test_what_the_file_says_ended_the_turn_answers_even_before_a_tool() -> None:
    assert chat_texts(user(), text("a", "ended"), TOOL, text("b")) == ["a"]


def test_text_of_a_message_that_goes_on_is_no_answer() -> None:
    assert chat_texts(user(), text("a", "open")) == []


def test_e2_two_answers_stay_two_for_nothing_is_guessed() -> None:
    assert chat_texts(user(), text("a"), text("b")) == ["a", "b"]
    assert chat_texts(user(), text("a", "ended"), TOOL, text("b", "ended")) == ["a", "b"]


def test_a_failed_text_stays_a_failed_chat_message() -> None:
    _, messages = derive([user(), text("a", "ended", "cancelled", failed=True)])
    assert (messages[1].kind, messages[1].status) == ("chat", "failed")


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([text("a")], "completed"),
        ([text("a", "ended", "partial")], "partial"),
        ([text("a", "ended", "cancelled", failed=True)], "cancelled"),
        ([text("a", "ended", "failed", failed=True)], "failed"),
        ([text("a", "ended", "failed", failed=True), text("b", "ended")], "completed"),
        ([], "running"),
        ([text("a", "open"), TOOL], "running"),
    ],
)
def test_the_state_of_the_last_run(parts: list[Part], state: str) -> None:
    runs, _ = derive([user(), *parts])
    assert [run.state for run in runs] == [state]


def test_a_run_that_never_answered_before_the_next_user_message_is_cancelled() -> None:
    runs, _ = derive([user("a"), TOOL, user("b"), text("c")])
    assert [run.state for run in runs] == ["cancelled", "completed"]


def test_what_stands_before_the_first_user_message_is_run_0() -> None:
    runs, messages = derive([SYSTEM, user(), text("a")])
    assert [run.id for run in runs] == ["run-0", "run-1"]
    assert [m.id for m in messages] == ["run-0/1", "run-1/1", "run-1/2"]


def test_runs_take_the_user_messages_id() -> None:
    runs, messages = derive([user(id="q1"), text("a")])
    assert runs[0].id == "run-of-q1"
    assert [m.id for m in messages] == ["q1", "run-of-q1/2"]


def test_a_long_id_leaves_room_for_derived_ones() -> None:
    runs, messages = derive([user(id="x" * 512), text("a")])
    assert runs[0].id == "run-1"
    assert messages[1].id == "run-1/2"


def test_e4_an_id_twice_names_both_places() -> None:
    with pytest.raises(DuplicateMessageId) as caught:
        derive([user("a", id="q"), user("b", id="q")])
    assert (caught.value.first, caught.value.second) == ("place of a", "place of b")


def test_e4_a_derived_id_that_the_file_has_too_is_refused() -> None:
    with pytest.raises(DuplicateMessageId):
        derive([user("a"), user("b", id="run-1/1")])


def test_e4_a_wrong_id_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidId, match="place of a id"):
        derive([user("a", id="x" * 513)])


def test_nothing_gives_nothing() -> None:
    assert derive([]) == ((), ())
