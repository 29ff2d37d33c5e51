"""The embedded default for windows: whole sentences of the originals, sorted, bounded, always grounded."""

from __future__ import annotations

import json

import pytest
from chunk_requests import FLIGHTS, chunk_line, chunk_request
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer, failures
from compaction_ledger.domain.grounding import ungrounded
from compaction_ledger.domain.window.judging import judge, source_texts
from compaction_ledger.domain.window.structure import StructuredSummary, parse_structure
from compaction_ledger.domain.window.summarization import ChunkLine, ChunkRequest
from compaction_ledger.infrastructure.summarizers.chunk_extractive import (
    LONGEST_SENTENCE,
    ExtractiveChunkSummarizer,
)

MOST = ExtractiveChunkSummarizer(share=0.99)


def summary_of(*lines: ChunkLine | str) -> StructuredSummary:
    answer = MOST.summarize_chunk(chunk_request(lines))
    assert failures(answer) == ()
    return parse_structure(answer.text)


def test_t7_sentences_are_sorted_into_the_five_lists() -> None:
    thought = chunk_line("Hm. " * 100, "assistant", "thinking")
    found = summary_of(*FLIGHTS, thought, chunk_line("I booked LG12.", "assistant", number=5))

    assert found.decisions == ("I booked LG12.",)
    assert found.constraints == ("At most 4,000 EUR, no nuts!", "不要坚果，最多5000元。")
    assert found.open_questions == ("Shall I book it?",)
    assert found.tool_outcomes == ('{"id":"LG12","price":112}',)
    assert "Find me a flight to Rome on 5 May 2024." in found.entities


@pytest.mark.parametrize(
    "said",
    [
        "You must not call me.",
        "Höchstens 500 Euro.",
        "Uniquement des fonds luxembourgeois.",
        "Solo vuelos directos.",
        "Geen noten.",
        "只要直飞航班。",
        "ナッツは禁止。",
        "최대 5명까지.",
        "Только прямые рейсы.",
    ],
)
def test_constraints_of_a_user_are_known_in_several_languages(said: str) -> None:
    assert summary_of(said).constraints == (said,)
    assert summary_of(chunk_line(said, "assistant")).constraints == ()


@pytest.mark.parametrize(
    "said",
    ["I have booked it.", "Der Flug ist gebucht.", "C'est réservé.", "已确认。", "予約しました。"],
)
def test_decisions_are_known_in_several_languages(said: str) -> None:
    assert summary_of(chunk_line(said, "assistant")).decisions == (said,)


def test_c5_instructions_calls_thinking_and_media_are_not_repeated() -> None:
    kinds = [
        chunk_line("You must obey.", "system"),
        chunk_line("I will think.", "assistant", "thinking"),
        chunk_line('{"q": "call"}', "assistant", "call", name="f"),
        chunk_line("a picture", "user", "media"),
        chunk_line("something", "assistant", "other"),
    ]

    assert MOST.summarize_chunk(chunk_request(kinds)).text == ""
    assert summary_of(*kinds, "Said.").texts() == ("Said.",)


def test_a_long_line_of_json_is_taken_apart_into_its_objects() -> None:
    flights = [{"id": f"LG{number}", "price": 100 + number} for number in range(60)]
    result = json.dumps({"flights": flights, "error": None, "next": "page-2"})

    found = summary_of(chunk_line(result, "tool", "result"))

    assert '{"id": "LG0", "price": 100}' in found.tool_outcomes
    assert '"error": null' in found.tool_outcomes
    assert all(entry in result for entry in found.tool_outcomes)


def test_nothing_is_cut_and_what_cannot_stand_is_left_out() -> None:
    long = "x " * LONGEST_SENTENCE
    bad = chunk_line("bad \ud800 one.\nbad \0 two.", "assistant")

    assert summary_of(long, bad, "Fine so far.").texts() == ("Fine so far.",)
    assert MOST.summarize_chunk(chunk_request([long, bad])).text == ""


def test_one_sentence_is_kept_however_small_the_share() -> None:
    tiny = ExtractiveChunkSummarizer(share=0.001)

    found = tiny.summarize_chunk(chunk_request(["A first sentence here. Short one. And a last."]))

    assert parse_structure(found.text).texts() == ("Short one.",)


def test_the_same_originals_give_the_same_text_and_settings_are_its_identity() -> None:
    request = chunk_request(FLIGHTS)

    assert MOST.summarize_chunk(request) == MOST.summarize_chunk(request)
    assert MOST.model != ExtractiveChunkSummarizer().model
    assert str(MOST.model) == "compaction-ledger/extractive-chunk"


@pytest.mark.parametrize("settings", [{"share": 0.0}, {"share": 1.0}, {"max_characters": 399}])
def test_settings_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        ExtractiveChunkSummarizer(**settings)  # type: ignore[arg-type]


ALPHABET = "ab5 .,?!\n\t\"'{}[]:\\é文字。、？-$%€/@_\u0301\ud800\0"
roles = st.sampled_from([("user", "text"), ("assistant", "text"), ("tool", "result")])
spoken = st.lists(
    st.text(ALPHABET, max_size=120)
    | st.sampled_from(
        ["No more than $500, please. Is it 5 or 6?", '{"a":{"id":"X-1","n":5},"b":"c d"}']
    ),
    max_size=6,
).map(" ".join)
chunk_lines = st.lists(
    st.builds(lambda text, role: chunk_line(text, *role), spoken, roles), min_size=1, max_size=8
)


@pytest.mark.slow
@given(chunk_lines.map(chunk_request), st.sampled_from([0.05, 0.12, 0.5, 0.99]))
def test_t7_t13_every_entry_is_a_part_of_the_originals_and_grounded(
    request: ChunkRequest, share: float
) -> None:
    answer = ExtractiveChunkSummarizer(share=share).summarize_chunk(request)
    if not answer.text:
        assert failures(answer) == ("empty",)
        return
    found = parse_structure(answer.text)
    assert ungrounded(found.texts(), source_texts(request)) == ()
    for entry in found.texts():
        assert any(entry in line.text for line in request.lines)


def test_t12_it_is_bounded_and_far_smaller_than_a_long_chunk() -> None:
    lines = [
        chunk_line(
            f"Step {number}: we looked at file_{number}.py and found {number * 7} errors. "
            f"Which of them matters? I will fix number {number}.",
            "assistant" if number % 2 else "user",
            number=number,
        )
        for number in range(400)
    ]
    request = chunk_request(lines)
    answer: Answer = ExtractiveChunkSummarizer().summarize_chunk(request)

    verdict = judge(
        answer,
        request,
        replaced_bytes=len(request.content().encode()) // 4,
        rendered_bytes=lambda text: len(text.encode()) + 300,
        strict=True,
    )
    assert verdict.codes == ()
    assert sum(map(len, parse_structure(verdict.text).texts())) <= 3_000
    assert len(verdict.text) < 4_000
