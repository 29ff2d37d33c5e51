"""What an answer to a chunk's request is worth: C1 to C4, then T7, T12 and T13, in this order."""

from __future__ import annotations

import json

import pytest
from chunk_requests import FLIGHTS, chunk_request

from compaction_ledger.domain.finish import FAILURE_CODES, Answer, FinishFacts
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.window.judging import judge
from compaction_ledger.domain.window.structure import KEYS, StructuredSummary
from compaction_ledger.domain.window.summarization import ChunkVerdict

STOP = FinishFacts(("stop",))
REQUEST = chunk_request(FLIGHTS)
SOUND = StructuredSummary(entities=("LG12 costs 112 EUR (m3).",), tool_outcomes=("search_flights",))
INVENTED = StructuredSummary(decisions=("LG13 was booked for $112.",))
TRUE_BUT_LOOSE = json.dumps({key: [] for key in KEYS} | {"entities": ["LG12"]}, indent=1)


def judged(
    answer: Answer | StructuredSummary, *, replaced: int = 1_000, strict: bool = False
) -> ChunkVerdict:
    given = answer if isinstance(answer, Answer) else Answer(answer.canonical(), STOP)
    return judge(
        given,
        REQUEST,
        replaced_bytes=replaced,
        rendered_bytes=lambda text: len(text.encode()) + 100,
        strict=strict,
    )


@pytest.mark.parametrize("strict", [False, True])
def test_a_sound_answer_is_accepted_as_canonical_json(strict: bool) -> None:
    assert judged(SOUND, strict=strict) == ChunkVerdict((), SOUND.canonical())
    assert judged(Answer(TRUE_BUT_LOOSE, STOP)).text == (
        '{"constraints":[],"decisions":[],"entities":["LG12"],"open_questions":[],"tool_outcomes":[]}'
    )


@pytest.mark.parametrize(
    ("answer", "codes"),
    [
        (Answer(fault="timeout"), ("timeout", "missing_finish", "empty")),
        (Answer(SOUND.canonical(), FinishFacts(("length",))), ("truncated",)),
        (Answer(SOUND.canonical()[:-9], FinishFacts(("length",))), ("truncated",)),
        (Answer(SOUND.canonical(), FinishFacts(("stop",), tool_calls=1)), ("tool_call",)),
        (Answer(SOUND.canonical(), FinishFacts(("refusal",), refusal=True)), ("refusal",)),
        (Answer("", STOP), ("empty",)),
        (Answer(SOUND.canonical() + " " * 6_000, STOP), ("too_long",)),
        (Answer("no JSON", FinishFacts(("stop", "stop"))), ("multiple_finishes",)),
    ],
)
def test_c4_the_contract_of_a_finish_comes_first_and_the_answer_is_not_looked_into(
    answer: Answer, codes: tuple[str, ...]
) -> None:
    assert judged(answer, replaced=0, strict=True) == ChunkVerdict(codes)  # type: ignore[arg-type]


def test_t7_an_answer_without_structure_is_neither_measured_nor_compared() -> None:
    assert judged(Answer("Plain prose of $999.", STOP), replaced=0, strict=True).codes == (
        "invalid_structure",
    )


def test_t12_a_summary_must_be_smaller_than_what_it_replaces() -> None:
    size = len(SOUND.canonical().encode()) + 100

    assert judged(SOUND, replaced=size).codes == ("not_smaller",)
    assert judged(SOUND, replaced=size + 1).codes == ()


def test_t13_what_the_source_does_not_say_is_listed_or_in_strict_mode_a_failure() -> None:
    invented = (Ungrounded("identifier", "LG13"), Ungrounded("amount", "$112"))

    assert judged(INVENTED) == ChunkVerdict((), INVENTED.canonical(), invented)
    assert judged(INVENTED, strict=True) == ChunkVerdict(("ungrounded",))
    assert judged(INVENTED, strict=True, replaced=1).codes == ("not_smaller", "ungrounded")


def test_c4_the_codes_of_a_verdict_stand_in_the_order_of_all_codes() -> None:
    order = list(FAILURE_CODES)
    assert order.index("invalid_structure") < order.index("not_smaller") < order.index("ungrounded")
    assert order.index("too_long") < order.index("invalid_structure")
