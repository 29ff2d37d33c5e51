"""What a person reads when something is refused: one line that names what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scenarios import (
    CONVERSATION,
    CURRENT,
    JOB,
    MIXED,
    SCOPE,
    SECOND,
    bring_in,
    claim,
    claimed,
    completed,
    exhausted_by,
    finish,
    good,
    imported,
    make_job,
    make_pair,
    make_pairs,
    release,
    start,
    started,
)

from compaction_ledger.domain.assembly import Options, assemble
from compaction_ledger.domain.binding import pairs_of
from compaction_ledger.domain.canonical import canonical_json
from compaction_ledger.domain.commands import Command
from compaction_ledger.domain.conversation import Conversation
from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.errors import (
    BudgetTooSmall,
    DamagedLog,
    DuplicateMessageId,
    InvalidInput,
    UnknownEvent,
)
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.prompts import (
    DEFAULT_REGISTRY,
    INSTRUCTIONS,
    PromptRegistry,
    PromptSpec,
)
from compaction_ledger.domain.range_stream import decide, fold
from compaction_ledger.domain.rendering import shape_named
from compaction_ledger.domain.summarization import AssistantReply, SummaryRequest
from compaction_ledger.domain.windows import Range, WindowPolicy

ANY: Any = None  # for what the types would not let through
BELL = "has a forbidden character U+0007 at position 0"


def spec(prompt: Any, given: Any = "assistant_only", *, projectable: bool = True) -> PromptSpec:
    """A registered prompt version."""
    return PromptSpec(prompt, given, "plain_text", projectable=projectable)


def assembled(**options: Any) -> object:
    """A request of nothing."""
    chosen = Options(**{"budget": 1_000, **options})
    return assemble(SCOPE, CONVERSATION, Eligibility([], []), [], DEFAULT_REGISTRY, chosen)


INPUTS: list[tuple[Callable[[], object], str | None, str]] = [
    (lambda: assembled(fallback="oldest"), "fallback", "'oldest' is no fallback"),
    (
        lambda: shape_named("smoke"),
        "shape",
        "'smoke' is none of openai-chat, anthropic, converse, pydantic-ai",
    ),
    (
        lambda: assembled(budget=14),
        None,
        "the request needs at least 15 bytes, 14 are allowed",
    ),
    (
        lambda: pairs_of(make_pairs(9), Range(0, 9)),
        None,
        "range 0-9 is not ten aligned pairs of this conversation",
    ),
    (lambda: canonical_json(2**53), None, f"integer {2**53} is not exact in canonical JSON"),
    (lambda: canonical_json({1: "x"}), None, "a key must be text, not int"),
    (lambda: canonical_json([0.5]), None, "a float has no canonical JSON form"),
    (lambda: Conversation("", "c", [], {}), "scope", "must not be empty"),
    (lambda: Conversation("s", "", [], {}), "conversation", "must not be empty"),
    (lambda: Conversation("s", "c", [], {"": ANY}), "run id at place 0", "must not be empty"),
    (
        lambda: PromptRegistry([spec(CURRENT), spec(CURRENT)], CURRENT),
        "prompt registry",
        "a prompt version is registered twice",
    ),
    (
        lambda: PromptRegistry([spec(MIXED, "mixed"), spec(CURRENT)], CURRENT),
        "prompt registry",
        "conversation-compaction@1 had mixed input and is never projected",
    ),
    (
        lambda: PromptRegistry([spec(SECOND)], CURRENT),
        "prompt registry",
        "the current prompt conversation-compaction@3 must be projectable and have instructions",
    ),
    (
        lambda: WindowPolicy(-1),
        None,
        "the three numbers must be whole and not negative, not (-1, 10, 20)",
    ),
    (lambda: WindowPolicy(range_pairs=9), None, "a range is 10 pairs, not 9"),
    (
        lambda: WindowPolicy(29),
        None,
        "minimum_pairs 29 must be at least range_pairs 10 plus keep_newest 20",
    ),
    (lambda: check_id(7, "a place"), "a place", "must be text, not int"),
    (
        lambda: check_id("x" * 513, "a place"),
        "a place",
        "has 513 characters, at most 512 are allowed",
    ),
    (
        lambda: check_id("a\x07", "a place"),
        "a place",
        "has a forbidden character U+0007 at position 1",
    ),
    (
        lambda: PromptVersion.parse("a@0"),
        "prompt",
        "'a@0' is not of the form name@version",
    ),
    (lambda: PromptVersion.parse("\x07@1"), "prompt name", BELL),
    (lambda: ModelIdentity.of("\x07", "m"), "model provider", BELL),
    (lambda: ModelIdentity.of("p", "\x07"), "model name", BELL),
    (lambda: ModelIdentity.of("p", "m", {"\x07": ""}), "model setting", BELL),
    (
        lambda: ModelIdentity.of("p", "m", {"heat": ANY}),
        "model setting 'heat'",
        "must be well-formed text",
    ),
]

COMMANDS: list[tuple[Command, str | None, str]] = [
    (claim("\x07"), "claim id", BELL),
    (claim("c2", "\x07"), "holder", BELL),
    (start("c1", "\x07"), "attempt id", BELL),
    (bring_in("\x07"), "import id", BELL),
    (bring_in(origin="\x07"), "origin", BELL),
    (
        bring_in(text="\x00" * 6001),
        "summary",
        "the text is not acceptable as a summary: malformed_text, too_long",
    ),
    (release("c1", ANY), "reason", "None is no reason to give back"),
    (
        claim("c2", now=-1),
        "lease",
        "now -1 and lease 1000 must be microseconds, the lease above zero",
    ),
    (
        claim("c2", job=make_job(pairs=make_pairs(10, start=10))),
        "stream",
        "the job is of ('tenant-1', 'c-1', 10), the stream of ('tenant-1', 'c-1', 0)",
    ),
    (claim("c2", job=replace(JOB, scope="")), "scope", "must not be empty"),
    (claim("c2", job=replace(JOB, conversation="")), "conversation", "must not be empty"),
    (
        claim("c2", job=replace(JOB, messages=("", *JOB.messages[1:]))),
        "message id 0",
        "must not be empty",
    ),
    (
        claim("c2", job=replace(JOB, from_pair=5)),
        None,
        "a range begins on a multiple of 10, not at 5",
    ),
    (claim("c2", job=replace(JOB, to_pair=8)), None, "a range is 10 pairs, not 0..8"),
    (
        claim("c2", job=replace(JOB, messages=JOB.messages[1:])),
        None,
        "a range has 20 unique message ids, not 19",
    ),
    (
        claim("c2", job=replace(JOB, source_hash="")),
        None,
        "the source hash is not 64 lower-case hexadecimal digits",
    ),
    (
        claim("c2", job=replace(JOB, model=ModelIdentity("p", "m", (("b", ""), ("a", ""))))),
        None,
        "the model's settings are not unique and in canonical order",
    ),
]


@pytest.mark.parametrize(("command", "place", "says"), COMMANDS)
def test_what_is_wrong_with_a_command_is_named_with_its_place(
    command: Command, place: str | None, says: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        decide(fold([claimed()]), command)
    assert raised.value.place == place
    assert str(raised.value) == (f"{place}: {says}" if place else says)


@pytest.mark.parametrize(("attempt", "place", "says"), INPUTS)
def test_what_is_wrong_with_an_input_is_named_with_its_place(
    attempt: Callable[[], object], place: str | None, says: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        attempt()
    assert raised.value.place == place
    assert str(raised.value) == (f"{place}: {says}" if place else says)


REFUSALS: list[tuple[list[RangeFact], Command, str]] = [
    (
        [claimed(expires_at=1_001_000)],
        claim("c2"),
        "already claimed by 'w1' until 1001000 µs since the epoch",
    ),
    ([imported()], claim(), "job 6a408d3bb867… is completed, by event 1 of its stream"),
    (exhausted_by(), claim("c2"), "job 6a408d3bb867… has used its 2 attempts"),
    ([], start("c1"), "claim c1 is not the open claim: no such claim"),
    (exhausted_by(), start("c1"), "claim c1 is not the open claim: exhausted"),
    (exhausted_by(), claim("c1"), "claim c1 is not the open claim: this claim id was used before"),
    ([claimed()], start(now=1_001_000), "claim c1 expired at 1001000 µs since the epoch"),
    ([claimed(), started()], start("c1", "a2"), "attempt a1 of this claim is open"),
    (
        [*exhausted_by("c0"), claimed("c1")],
        start("c1", "c0-a1"),
        "attempt id c0-a1 was used before",
    ),
    ([claimed()], finish(), "attempt a1 is not open"),
    (
        [claimed(), started()],
        release(),
        "attempt a1 is open and must be finished first",
    ),
    (
        [claimed(), started(), completed()],
        finish(answer=good("another")),
        "claim c1 has another result",
    ),
]


@pytest.mark.parametrize(("history", "command", "says"), REFUSALS)
def test_why_a_command_is_refused_is_said_in_one_line(
    history: list[RangeFact], command: Command, says: str
) -> None:
    assert str(decide(fold(history), command).refusal) == says


def test_a_damaged_log_is_named_by_the_first_index() -> None:
    assert str(DamagedLog("it is damaged", index=0)) == "index 0: it is damaged"
    assert DamagedLog("it is damaged", index=0).index == 0
    assert str(UnknownEvent("it is damaged")) == "it is damaged"
    assert UnknownEvent("it is damaged").index is None


def test_an_error_with_numbers_or_places_has_them_as_attributes() -> None:
    twice = DuplicateMessageId("m", "position 0", "position 7")
    assert str(twice) == "message id 'm' stands twice: at position 0 and at position 7"
    assert (twice.message_id, twice.first, twice.second) == ("m", "position 0", "position 7")
    small = BudgetTooSmall(15, 14)
    assert (small.needed, small.allowed, small.place) == (15, 14, None)


def test_b4_a_program_that_would_hand_over_a_users_text_is_told_what_is_allowed() -> None:
    pair = make_pair(0)
    with pytest.raises(TypeError) as raised:
        AssistantReply(ANY)
    assert str(raised.value) == (
        "an AssistantReply is made from a pair with an assistant's message"
    )
    with pytest.raises(TypeError) as raised:
        SummaryRequest(CURRENT, INSTRUCTIONS, (pair,))  # type: ignore[arg-type]
    assert str(raised.value) == "replies must be AssistantReply, not Pair"
    with pytest.raises(AttributeError) as changed:
        AssistantReply(pair).text = "other"
    assert str(changed.value) == "an AssistantReply cannot be changed"
