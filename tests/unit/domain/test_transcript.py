"""E4: new lines are checked before they are stored, and what is wrong is named with its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidId, InvalidInput
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines, check_revision

LINE = NewMessage("m", "r", "user", "text")
RUN = NewRun("r")
END_OF_TIME = 2**53 - 1


def refused(messages: Iterable[NewMessage] = (), runs: Iterable[NewRun] = ()) -> InvalidInput:
    """The error for these lines."""
    with pytest.raises(InvalidInput) as raised:
        check_lines(messages, runs)
    return raised.value


def line(**changes: Any) -> NewMessage:
    """``LINE`` with something else in it."""
    values: dict[str, Any] = {"id": "m", "run": "r", "role": "user", "text": "text", **changes}
    return NewMessage(**values)


@pytest.mark.parametrize(
    "fine",
    [
        LINE,
        line(text=""),
        line(text="\x00\ud800"),
        line(role="tool", status="streaming", kind="effect", created_at=0),
        line(created_at=END_OF_TIME),
        line(created_at=-END_OF_TIME),
    ],
)
def test_a_line_may_say_anything_in_its_text_and_nothing_of_its_time(fine: NewMessage) -> None:
    check_lines([fine], [RUN])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (line(role="robot"), "message 'm': role: 'robot' is none of assistant, system, tool, user"),
        (
            line(status="done"),
            "message 'm': status: 'done' is none of completed, failed, streaming",
        ),
        (line(kind="talk"), "message 'm': kind: 'talk' is none of chat, effect, tool, trace"),
        (line(text=b"text"), "message 'm': text: must be text"),
        (line(text=None), "message 'm': text: must be text"),
        *(
            (
                line(created_at=when),
                "message 'm': created_at: must be microseconds since the epoch, as a whole number",
            )
            for when in (END_OF_TIME + 1, -END_OF_TIME - 1, 1.0, True, "1")
        ),
    ],
)
def test_what_is_wrong_with_a_line_is_named_with_its_place(bad: NewMessage, says: str) -> None:
    error = refused([LINE, bad])
    assert str(error) == says
    assert error.place == says.rpartition(": ")[0]


def test_an_id_that_is_none_is_named_with_its_place() -> None:
    assert refused([LINE, line(id="")]).place == "message 1: id"
    assert refused([line(run="")]).place == "message 'm': run"
    assert refused(runs=[NewRun("")]).place == "run id"
    assert isinstance(refused([line(id="")]), InvalidId)


def test_a_runs_state_is_one_of_seven() -> None:
    wrong: Any = "done"
    assert str(refused(runs=[RUN, NewRun("s", wrong)])) == (
        "run 's': state: 'done' is none of cancelled, clarify_pending, completed, failed, partial, "
        "queued, running"
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [("new", None), ("", None), (None, "failed"), ("new", "completed"), ("\ud800", "streaming")],
)
def test_a_revision_changes_the_text_or_the_status(text: str | None, status: str | None) -> None:
    check_revision("m", text, status)


@pytest.mark.parametrize(
    ("text", "status", "place", "says"),
    [
        (None, None, "message 'm'", "a revision changes the text or the status"),
        (b"new", None, "message 'm': text", "must be text"),
        (b"new", "failed", "message 'm': text", "must be text"),
        (
            "new",
            "done",
            "message 'm': status",
            "'done' is none of completed, failed, streaming",
        ),
        (None, "", "message 'm': status", "'' is none of completed, failed, streaming"),
    ],
)
def test_a_revision_of_nothing_or_to_something_else_is_refused(
    text: Any, status: str | None, place: str, says: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        check_revision("m", text, status)
    assert str(raised.value) == f"{place}: {says}"
    assert raised.value.place == place
