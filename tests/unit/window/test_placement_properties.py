"""Whatever the run, its chunks, pins and budget: the request is valid and says what it holds (T4 to T10)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_cases import Case, cases
from wire_transcripts import SHAPES

from compaction_ledger.domain.errors import WindowTooSmall
from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.window.events import DeliveredMessages
from compaction_ledger.domain.window.placement import Request, Room, place
from compaction_ledger.domain.window.tokens import Utf8Counter
from compaction_ledger.usecases.window.reading import encode_all

Check = Callable[[str, st.DataObject], None]
COUNT = Utf8Counter().count
ROOMY = 10**9


def placed(case: Case, room: Room) -> Request:
    return place(case.transcript, case.holding, room, encode_all, COUNT)


def text_of(messages: Sequence[Wire]) -> str:
    return json.dumps(list(messages), ensure_ascii=False)


def problems(shape: str, case: Case, request: Request) -> list[str]:
    checker = case.transcript.shape.problems
    already = {problem.code for problem in checker(case.turn.messages)}
    assert already <= {"pending_call"}
    return [p.code for p in checker(request.messages) if p.code not in already]


def rooms(case: Case) -> st.SearchStrategy[Room]:
    total = sum(case.transcript.tokens) + 2_000
    return st.builds(
        Room,
        limit=st.integers(1, total),
        beside=st.integers(0, 200),
        share=st.none() | st.integers(1, 2_000),
    )


def check_what_comes_out_is_valid_and_fits_or_is_refused_with_both_numbers(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(cases(shape))
    given_messages = copy.deepcopy(list(case.turn.messages))
    room = data.draw(rooms(case))
    refused: WindowTooSmall | None = None
    try:
        request = placed(case, room)
    except WindowTooSmall as error:
        refused = error
    else:
        assert problems(shape, case, request) == []
        assert request.manifest.tokens + room.beside <= room.limit
        assert sum(COUNT(encode_all(request.messages))) == request.manifest.tokens
        assert [json.loads(text) for text in request.encoded] == request.messages
    assert refused is None or refused.needed > refused.allowed == room.limit
    assert case.turn.messages == given_messages  # T2: nothing of the caller's is changed


def check_where_there_is_room_every_message_stands_as_it_is_or_in_a_summary(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(cases(shape))
    request = placed(case, Room(ROOMY))
    chunks = case.holding.chunks
    covered = chunks[-1].last + 1 if chunks else 0
    assert [(c.first, c.last) for c in request.manifest.chunks] == [
        (c.first, c.last) for c in chunks
    ]
    retained = case.turn.messages[covered:]
    tail = request.messages[len(request.messages) - len(retained) :]
    if covered:  # the first retained turn may have taken blocks in
        retained, tail = retained[1:], tail[1:]
    assert all(one is other for one, other in zip(tail, retained, strict=True))
    if not chunks and not case.holding.pins:
        assert request.messages == list(case.turn.messages)


def check_the_manifest_tells_of_every_message_once(shape: str, data: st.DataObject) -> None:
    case = data.draw(cases(shape))
    try:
        request = placed(case, data.draw(rooms(case)))
    except WindowTooSmall:
        return
    assert _told(request.manifest.messages) == list(range(len(case.turn.messages)))
    assert request.manifest.messages[-1].disposition == "verbatim"
    for group in request.manifest.messages:
        assert (group.reason is not None) == (group.disposition == "left_out")


def _told(groups: Sequence[DeliveredMessages]) -> list[int]:
    return [position for group in groups for position in range(group.first, group.last + 1)]


def check_each_pin_stands_in_the_request_or_its_message_does(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(cases(shape))
    try:
        request = placed(case, data.draw(rooms(case)))
    except WindowTooSmall:
        return
    verbatim = {
        position
        for group in request.manifest.messages
        if group.disposition == "verbatim"
        for position in range(group.first, group.last + 1)
    }
    text = text_of(request.messages)
    for recorded in case.holding.pins:
        quote = json.dumps(recorded.pin.quote, ensure_ascii=False)[1:-1]
        gone = recorded.pin.pin_id in request.manifest.pins_left_out
        if recorded.pin.message not in verbatim:
            assert (recorded.pin.pin_id in request.manifest.pins) is not gone
        assert not gone or request.manifest.chunks == ()  # only where all else has gone before
        if recorded.pin.pin_id in request.manifest.pins:
            assert f"> {quote}" in text


def check_a_new_chunk_only_appends_its_block_behind_those_that_stand(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(cases(shape))
    chunks, pins = case.holding.chunks, case.holding.pins
    if len(chunks) < 2:
        return
    before = Case(
        case.turn,
        type(case.holding)(chunks[:-1], [pin for pin in pins if pin.index < chunks[-2].index]),
    )
    one, other = (b",".join(placed(each, Room(ROOMY)).encoded) for each in (before, case))
    shared = next((n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), len(one))
    end = b"[end of the derived summary of message"
    assert other[:shared].count(end) == len(chunks) - 1


CHECKS: Sequence[Check] = (
    check_what_comes_out_is_valid_and_fits_or_is_refused_with_both_numbers,
    check_where_there_is_room_every_message_stands_as_it_is_or_in_a_summary,
    check_the_manifest_tells_of_every_message_once,
    check_each_pin_stands_in_the_request_or_its_message_does,
    check_a_new_chunk_only_appends_its_block_behind_those_that_stand,
)
by_name = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])


@by_name
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=10)
@given(data=st.data())
def test_it_holds(shape: str, check: Check, data: st.DataObject) -> None:
    check(shape, data)


@pytest.mark.slow
@by_name
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60)
@given(data=st.data())
def test_it_holds_at_length(shape: str, check: Check, data: st.DataObject) -> None:
    check(shape, data)
