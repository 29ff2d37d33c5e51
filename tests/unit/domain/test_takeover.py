"""What is stored of a conversation that comes from outside, and what is refused (E4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.conversation import Message, Run
from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidId,
    InvalidInput,
    NotAnUpdate,
)
from compaction_ledger.domain.takeover import (
    KnownThread,
    NewThread,
    Revision,
    ThreadChanges,
    check_threads,
    thread_changes,
)
from compaction_ledger.domain.transcript import NewMessage, NewRun

QUESTION = NewMessage("q", "r", "user", "What does it cost?")
ANSWER = NewMessage("a", "r", "assistant", "0.3 %", "streaming")
MORE = NewMessage("q2", "r2", "user", "And the other?")
LAST = NewMessage("a2", "r2", "assistant", "0.4 %")


def thread(*messages: NewMessage, runs: tuple[NewRun, ...] = ()) -> NewThread:
    return NewThread("c", messages, runs)


def known(
    *messages: NewMessage, deleted: tuple[str, ...] = (), runs: tuple[NewRun, ...] = ()
) -> KnownThread:
    """What a store has after these messages were appended and some of them deleted."""
    return KnownThread(
        [
            Message(m.id, m.run, m.role, m.status, m.kind, m.text, "c", "s")
            for m in messages
            if m.id not in deleted
        ],
        {message.id: place for place, message in enumerate(messages)},
        {run.id: Run(run.id, run.state, "c", "s") for run in runs},
    )


def refused(new: NewThread, there: KnownThread) -> str:
    """What is said of an update that is none."""
    with pytest.raises(NotAnUpdate) as refusal:
        thread_changes(new, there, update=True)
    return str(refusal.value)


@pytest.mark.parametrize("update", [False, True])
def test_of_a_new_conversation_everything_is_appended(update: bool) -> None:
    runs = (NewRun("r", "running"), NewRun("r2"))
    found = thread_changes(thread(QUESTION, ANSWER, runs=runs), None, update=update)
    assert found == ThreadChanges("c", [], (QUESTION, ANSWER), list(runs), 0)
    assert found.any


def test_without_update_new_messages_go_behind_the_known_ones() -> None:
    found = thread_changes(thread(MORE, LAST), known(QUESTION, ANSWER), update=False)
    assert (found.revised, found.appended, found.unchanged) == ([], (MORE, LAST), 0)


def test_without_update_a_known_message_is_refused_with_a_hint() -> None:
    with pytest.raises(DuplicateMessageId) as refusal:
        thread_changes(thread(MORE, ANSWER), known(QUESTION, ANSWER), update=False)
    assert str(refusal.value) == (
        "message id 'a' stands twice: at position 1 of conversation 'c' in the ledger and at message 1"
        " of the import; to take over what is new or changed, import it as an update (--update)"
    )


def test_without_update_a_deleted_message_is_known() -> None:
    with pytest.raises(DuplicateMessageId):
        thread_changes(thread(QUESTION), known(QUESTION, deleted=("q",)), update=False)


def test_an_update_appends_what_is_new_and_leaves_what_is_equal() -> None:
    found = thread_changes(
        thread(QUESTION, ANSWER, MORE, LAST), known(QUESTION, ANSWER), update=True
    )
    assert found == ThreadChanges("c", [], (MORE, LAST), [], 2)


def test_an_update_with_nothing_new_stores_nothing() -> None:
    runs = (NewRun("r", "running"),)
    found = thread_changes(
        thread(QUESTION, ANSWER, runs=runs), known(QUESTION, ANSWER, runs=runs), update=True
    )
    assert found == ThreadChanges("c", [], (), [], 2)
    assert not found.any


@pytest.mark.parametrize(
    ("now", "revision"),
    [
        ({"text": "0.35 %"}, Revision("a", "0.35 %", None)),
        ({"status": "completed"}, Revision("a", None, "completed")),
        ({"text": "", "status": "failed"}, Revision("a", "", "failed")),
    ],
)
def test_another_text_or_status_is_a_revision(now: dict[str, str], revision: Revision) -> None:
    changed = replace(ANSWER, **now)  # type: ignore[arg-type]
    found = thread_changes(thread(QUESTION, changed, MORE), known(QUESTION, ANSWER), update=True)
    assert found == ThreadChanges("c", [revision], (MORE,), [], 1)
    assert thread_changes(thread(QUESTION, changed), known(QUESTION, ANSWER), update=True).any


def test_another_time_is_no_change() -> None:
    later = replace(QUESTION, created_at=5)
    assert not thread_changes(thread(later), known(QUESTION), update=True).any


@pytest.mark.parametrize("update", [False, True])
def test_runs_that_are_new_or_in_another_state_are_recorded(update: bool) -> None:
    there = known(runs=(NewRun("r", "running"), NewRun("r2"), NewRun("r3", "failed")))
    given = (NewRun("r", "completed"), NewRun("r2"), NewRun("r4", "queued"), NewRun("r4"))
    found = thread_changes(thread(runs=given), there, update=update)
    assert found.runs == [NewRun("r", "completed"), NewRun("r4")]
    assert found.any


# --- what is no update ------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(), (QUESTION,), (QUESTION, LAST), (LAST, QUESTION)])
def test_a_message_that_is_missing_is_not_deleted(given: tuple[NewMessage, ...]) -> None:
    said = refused(thread(*given), known(QUESTION, ANSWER, MORE, LAST))
    first = "q" if not given else "a"
    assert said == (
        f"conversation 'c': message '{first}': is in the ledger and not in the import;"
        " if that is meant, delete it in the ledger first"
    )


def test_a_new_message_before_a_known_one() -> None:
    said = refused(thread(QUESTION, MORE, ANSWER), known(QUESTION, ANSWER))
    assert said == (
        "conversation 'c': message 'q2': is new and stands before 'a', which the ledger has;"
        " new messages come behind"
    )


def test_another_order() -> None:
    said = refused(thread(ANSWER, QUESTION), known(QUESTION, ANSWER))
    assert said == (
        "conversation 'c': message 'a': stands where the ledger has 'q'; the order cannot change"
    )


@pytest.mark.parametrize("deleted", ["a", "q2"])
def test_a_message_that_was_deleted_in_the_ledger(deleted: str) -> None:
    there = known(QUESTION, ANSWER, MORE, deleted=(deleted,))
    said = refused(thread(QUESTION, ANSWER, MORE), there)
    assert said == (
        f"conversation 'c': message '{deleted}': was deleted in the ledger,"
        " and an id is never used again"
    )


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [("run", "r", "r2"), ("role", "assistant", "user"), ("kind", "chat", "trace")],
)
def test_what_a_revision_cannot_change(field: str, before: str, after: str) -> None:
    changed = replace(ANSWER, **{field: after})  # type: ignore[arg-type]
    said = refused(thread(QUESTION, changed), known(QUESTION, ANSWER))
    assert said == (
        f"conversation 'c': message 'a': has the {field} '{before}' in the ledger and '{after}'"
        " in the import; only text and status can change"
    )


def test_the_place_names_conversation_and_message() -> None:
    with pytest.raises(NotAnUpdate) as refusal:
        thread_changes(thread(), known(QUESTION), update=True)
    assert refusal.value.place == "conversation 'c': message 'q'"


# --- what is checked without a store ----------------------------------------------------------------


def test_an_id_that_stands_twice_names_both_places() -> None:
    with pytest.raises(DuplicateMessageId) as refusal:
        check_threads("s", [thread(QUESTION, ANSWER, MORE, ANSWER)])
    assert (refusal.value.first, refusal.value.second) == ("message 1", "message 3")
    assert str(refusal.value).endswith("at message 1 and at message 3")


def test_a_conversation_that_stands_twice() -> None:
    with pytest.raises(InvalidInput, match="conversation 'c': stands twice"):
        check_threads("s", [thread(QUESTION), thread(ANSWER)])


@pytest.mark.parametrize(
    ("scope", "conversation", "place"), [("", "c", "scope"), ("s", "", "conversation")]
)
def test_ids(scope: str, conversation: str, place: str) -> None:
    with pytest.raises(InvalidId) as refusal:
        check_threads(scope, [NewThread(conversation, ())])
    assert refusal.value.place == place


@pytest.mark.parametrize(
    "wrong",
    [
        thread(replace(QUESTION, role="robot")),  # type: ignore[arg-type]
        thread(runs=(NewRun("r", "asleep"),)),  # type: ignore[arg-type]
    ],
)
def test_lines(wrong: NewThread) -> None:
    with pytest.raises(InvalidInput):
        check_threads("s", [wrong])


def test_what_is_right_is_let_through() -> None:
    check_threads("s", [thread(QUESTION, ANSWER), NewThread("c2", (QUESTION,))])


# --- any growth -------------------------------------------------------------------------------------

SIDES = st.builds(
    NewMessage,
    id=st.just(""),
    run=st.sampled_from("rs"),
    role=st.sampled_from(("user", "assistant")),
    text=st.text(max_size=3),
    status=st.sampled_from(("streaming", "completed")),
)


@given(
    messages=st.lists(SIDES, max_size=6),
    length=st.integers(0, 6),
    edits=st.dictionaries(st.integers(0, 5), st.text(max_size=3)),
)
def test_an_update_brings_any_grown_conversation_up_to_date(
    messages: list[NewMessage], length: int, edits: dict[int, str]
) -> None:
    numbered = [replace(message, id=f"m{place}") for place, message in enumerate(messages)]
    before = numbered[:length]
    after = [
        replace(message, text=edits.get(place, message.text))
        for place, message in enumerate(numbered)
    ]
    found = thread_changes(thread(*after), known(*before), update=True)
    texts = {message.id: message.text for message in before}
    texts |= {revision.message_id: revision.text or "" for revision in found.revised}
    texts |= {message.id: message.text for message in found.appended}
    assert texts == {message.id: message.text for message in after}
    assert len(found.revised) + found.unchanged == len(before)
    assert not thread_changes(thread(*after), known(*after), update=True).any
