"""A run is read a few messages at a time (T2, T3, T4, T14): that is the same as reading all at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_cases import read
from window_runs import turn
from wire_transcripts import transcripts

from compaction_ledger.domain.errors import BrokenTranscript, MalformedMessage
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.usecases.window import reading
from compaction_ledger.usecases.window.reading import Turn

AT_ONCE = reading.AT_ONCE


@pytest.mark.parametrize("shape", sorted(SHAPES))
@given(data=st.data(), at_once=st.integers(1, 7), over=st.sampled_from([None, 0, 200]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_in_whatever_batches_a_run_is_read_it_is_the_same(
    shape: str, data: st.DataObject, at_once: int, over: int | None
) -> None:
    messages = data.draw(transcripts(shape, turns=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "AT_ONCE", 10**9)
        whole = read(shape, messages, over)
        patch.setattr(reading, "AT_ONCE", at_once)
        assert read(shape, messages, over) == whole


def long_run() -> list[Any]:
    """More messages than are read at once."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    while len(messages) < 2 * AT_ONCE:
        messages += turn(len(messages))
    return messages


def test_a_long_run_is_read_whole() -> None:
    messages = long_run()
    made: Turn = read("openai-chat", messages)
    assert [entry.position for entry in made.entries] == list(range(len(messages)))
    assert list(made.transcript.messages) == messages
    assert len(made.transcript.tokens) == len(made.originals) == len(messages)
    assert list(made.transcript.instructions) == [0]
    assert list(made.transcript.boundaries) == [
        place for place, message in enumerate(messages) if message["role"] == "user"
    ]


@pytest.mark.parametrize("place", [0, AT_ONCE - 1, AT_ONCE, AT_ONCE + 500])
def test_what_is_wrong_is_named_wherever_it_stands(place: int) -> None:
    for wrong in (
        {"role": "nobody", "content": ""},
        {"role": "user", "content": "x", "y": object()},
    ):
        with pytest.raises(MalformedMessage) as caught:
            read("openai-chat", [*long_run()[:place], wrong, *long_run()[place:]])
        assert str(caught.value.place).startswith(f"message {place}")


def test_a_call_and_its_result_may_be_in_different_batches() -> None:
    call = {"id": "far", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "far", "content": "late"}
    run = long_run()
    whole = read("openai-chat", [calling, *run, result, *turn(0)])
    assert list(whole.transcript.boundaries) == [len(run) + 2]
    with pytest.raises(BrokenTranscript) as caught:
        read("openai-chat", [*run, result])
    assert [each[1] for each in caught.value.problems] == [f"message {len(run)} part 0"]
