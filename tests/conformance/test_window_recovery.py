"""Windows that go on where something recorded does not hold, or cannot be summarized (T8, T9, T12, A6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from window_runs import BUDGET, PLACE, STOP, RememberingSummarizer, good, growing, window_on

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedOriginal, StoreError
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.commands import AcceptPin
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    PinAccepted,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Original
from compaction_ledger.domain.window.pins import pin_id
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import (
    INSTRUCTIONS,
    WINDOW_PROMPT,
    WindowPrompt,
    WindowPrompts,
)
from compaction_ledger.domain.window.structure import StructuredSummary
from compaction_ledger.domain.window.summarization import ChunkRequest, ChunkSummarizer
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.window.preparing import Prepared
from compaction_ledger.usecases.window_session import WindowSession
from compaction_ledger.window import Window
from compaction_ledger.window_parts import WindowOptions, open_window

KEY = WindowKey(*PLACE)


class Damaging:
    """Originals of which one message cannot be read."""

    def __init__(self, within: Any, position: int) -> None:
        self._within = within
        self._position = position

    def __getattr__(self, name: str) -> Any:
        return getattr(self._within, name)

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        return [
            replace(original, wire=b"[[") if original.position == self._position else original
            for original in self._within.read(key, start, stop)
        ]


@pytest.mark.slow_on("postgres")
def test_a_damaged_original_is_tried_at_each_turn_and_nothing_is_recorded(parts: Parts) -> None:
    """A6: it is seen before the claim."""
    originals: Any = Damaging(parts.originals, 2)
    window = window_on(replace(parts, originals=originals), summarizer := RememberingSummarizer())
    refused = 0
    for messages in growing(20):
        if window.prepare(messages).due is not None:
            with pytest.raises(DamagedOriginal, match="message m2 of run 'run-1'"):
                window.compact()
            refused += 1
    assert refused >= 10
    assert len(parts.context.log.history(KEY)) == 0
    assert summarizer.requests == []


def test_an_error_of_giving_back_does_not_hide_the_first_one(parts: Parts) -> None:
    """A6, A5: the store of originals fails behind the claim, and then the log."""
    reads: list[int] = []
    appends: list[int] = []

    class Failing(Damaging):
        def read(
            self, key: WindowKey, start: int = 0, stop: int | None = None
        ) -> Sequence[Original]:
            reads.append(start)
            if len(reads) == 2:
                raise StoreError("the originals are away")
            return super().read(key, start, stop)

    class Log:
        def __getattr__(self, name: str) -> Any:
            return getattr(parts.context.log, name)

        def append(self, *args: Any, **kwargs: Any) -> Any:
            appends.append(len(reads))
            if len(reads) >= 2:
                raise StoreError("the log is away")
            return parts.context.log.append(*args, **kwargs)

    log: Any = Log()
    originals: Any = Failing(parts.originals, -1)
    broken = replace(parts, originals=originals, context=replace(parts.context, log=log))
    window = window_on(broken, RememberingSummarizer())
    assert any(window.prepare(messages).due is not None for messages in growing(20))
    with pytest.raises(StoreError, match="the originals are away"):
        window.compact()
    assert appends == [1, 2]


@pytest.mark.parametrize(
    ("message", "quote", "reason"),
    [
        (0, "You look at cases.", "not_users_words"),
        (1, "Look at case 0, please.", None),
        (2, '{"number": 0}', "not_users_words"),
        (3, "case 0 is open", "not_users_words"),
        (4, "Its ticket is INC-00000.", "not_users_words"),
    ],
)
def test_a_recorded_pin_of_anybody_elses_words_is_not_used(
    parts: Parts, message: int, quote: str, reason: str | None
) -> None:
    """T9: whoever recorded it, and although the words do stand there."""
    window = window_on(parts)
    messages = list(growing(3))[-1]
    window.prepare(messages)
    (shape_part,) = [
        part for part in shape_named("openai-chat").parts(messages[message]) if quote in part.text
    ]
    start = shape_part.text.index(quote)
    place = message, shape_part.part, start, start + len(quote)
    pin = PinAccepted(
        window=KEY,
        pin_id=pin_id(KEY, *place),
        message=message,
        digest=parts.originals.digests(KEY)[message],
        part=shape_part.part,
        start=start,
        end=start + len(quote),
        quote=quote,
        exchange=0,
        proposer="caller",
        supersedes=None,
    )
    WindowSession(parts.context.log, KEY).execute(lambda _: AcceptPin(pin))
    prepared = window.prepare(messages)
    rejected = [(item.identity, item.reason) for item in prepared.rejected]
    assert rejected == ([] if reason is None else [(pin.pin_id, reason)])


# --- chunks in the place of others ------------------------------------------------------------------

REGROUPED = WindowBudget(9_000, trigger=3_000, keep=1_500, summaries=900)


def wordy(share: float) -> Callable[[ChunkRequest], Answer]:
    """Summaries that take up so much for each message: regrouped, they grow with their source."""

    def answer(request: ChunkRequest) -> Answer:
        ids = dict.fromkeys(line.message_id for line in request.lines)
        said = tuple(f"{name} {'of a case ' * int(share * 10)}".strip() for name in ids)
        return Answer(StructuredSummary(entities=said).canonical(), STOP)

    return answer


def left_out(prepared: Prepared) -> set[int]:
    """The messages that are left to search."""
    return {
        number
        for group in prepared.manifest.messages
        if group.reason == "left_to_search"
        for number in range(group.first, group.last + 1)
    }


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_a_regroup_that_brings_no_room_is_not_made_again_and_again(
    parts: Parts, share: float
) -> None:
    """T8: what is large stays large; then the oldest are left to search, and stay so (T10)."""
    window = window_on(parts, RememberingSummarizer(wordy(share)), budget=REGROUPED)
    gone = left_out_of_all(window)
    assert gone
    assert 1 <= len(regroup_attempts(parts)) <= 3


@pytest.mark.slow
def test_a_regroup_that_grows_is_tried_twice_and_never_again(parts: Parts) -> None:
    """T12: it is held against the blocks that it would replace, so no run pays for it at each turn."""

    def answer(request: ChunkRequest) -> Answer:
        return wordy(2.0 if len(request.lines) > 20 else 0.2)(request)

    summarizer = RememberingSummarizer(answer)
    window = window_on(parts, summarizer, budget=REGROUPED)
    assert left_out_of_all(window)
    attempts = regroup_attempts(parts)
    assert len(attempts) == 2
    failures = [fact for fact in facts_of(parts) if isinstance(fact, ChunkAttemptFailed)]
    assert [(each.identity, each.failure) for each in failures if each.identity in attempts] == [
        (attempts[0], "not_smaller"),
        (attempts[0], "not_smaller"),
    ]
    assert len(summarizer.requests) == len(spans(parts)) + 2


def left_out_of_all(window: Window) -> set[int]:
    """What is left to search at the end of a run of 60 turns; at each turn it is what it was, or more."""
    gone: set[int] = set()
    for messages in growing(60):
        prepared = window.prepare(messages)
        window.compact()
        assert gone <= left_out(prepared)
        gone = left_out(prepared)
    return gone


def regroup_attempts(parts: Parts) -> list[str]:
    """The identities of all attempts to make one chunk of several."""
    facts = facts_of(parts)
    jobs = {fact.identity: fact.job for fact in facts if isinstance(fact, ChunkClaimed)}
    started = [fact.identity for fact in facts if isinstance(fact, ChunkAttemptStarted)]
    return [identity for identity in started if jobs[identity].replaces]


@pytest.mark.slow
def test_what_is_left_to_search_stays_so_when_a_regroup_is_exhausted(parts: Parts) -> None:
    """T10: also with new chunks, in another process, and whatever a provider reports."""

    def answer(request: ChunkRequest) -> Answer:
        if request.lines[0].message_id == "m1" and spans(parts):
            return Answer("In short: all is well.", STOP)
        return wordy(0.3)(request)

    summarizer = RememberingSummarizer(answer)
    window = window_on(parts, summarizer, budget=REGROUPED)
    gone: set[int] = set()
    told = 0
    for number, messages in enumerate(growing(60)):
        prepared = window.prepare(messages)
        assert gone <= left_out(prepared)
        gone = left_out(prepared)
        window.compact()
        if number % 7 == 3:
            told += 1
            window.observe(int(prepared.tokens * (0.5, 1.3, 0.9)[told % 3]))
        if number == 100:
            window = window_on(parts, summarizer, budget=REGROUPED)
    assert gone
    assert len(regroup_attempts(parts)) == 2


def prompts(first: Literal["current", "usable", "withdrawn", "unknown"]) -> WindowPrompts:
    old, new = PromptVersion(WINDOW_PROMPT, 1), PromptVersion(WINDOW_PROMPT, 2)
    versions = [
        WindowPrompt(old, projectable=first != "withdrawn", instructions=INSTRUCTIONS),
        WindowPrompt(new, projectable=True, instructions=INSTRUCTIONS + "Be brief.\n"),
    ]
    if first == "current":
        return WindowPrompts(versions[:1], current=old)
    return WindowPrompts(versions[1:] if first == "unknown" else versions, current=new)


def window_under(parts: Parts, registry: WindowPrompts, summarizer: ChunkSummarizer) -> Window:
    options = WindowOptions(BUDGET, "openai-chat", summarizer, proposer=None, prompts=registry)
    return open_window(parts, Settings(), PLACE, options, background=False)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["withdrawn", "unknown"])
def test_chunks_of_a_withdrawn_prompt_are_made_anew_of_their_originals(
    parts: Parts, first: Literal["withdrawn", "unknown"]
) -> None:
    """V2, T8: compaction goes on, one chunk in the place of one."""
    lists = list(growing(60))
    before = window_under(parts, prompts("current"), RememberingSummarizer())
    for messages in lists[:60]:
        before.prepare(messages)
        before.compact()
    old = spans(parts)
    assert len(old) >= 3
    summarizer = RememberingSummarizer()
    after = window_under(parts, prompts(first), summarizer)
    prepared = after.prepare(lists[60])
    assert prepared.manifest.chunks == ()
    while after.compact() is not None:
        pass
    prepared = after.prepare(lists[61])
    assert spans(parts)[: len(old)] == old
    assert prepared.manifest.chunks
    assert prepared.rejected == ()
    assert all("Be brief" in request.instructions for request in summarizer.requests)
    assert "derived summary" not in str(summarizer.requests)
    for messages in lists[62:]:
        prepared = after.prepare(messages)
        after.compact()
    assert len(spans(parts)) > len(old)
    assert prepared.rejected == ()


@pytest.mark.slow_on("postgres")
def test_software_that_is_older_replaces_nothing_of_newer_one(parts: Parts) -> None:
    """V2: two of them in use at once would replace each other's chunks for ever."""
    lists = list(growing(40))
    newer = window_under(parts, prompts("usable"), RememberingSummarizer())
    for messages in lists[:60]:
        newer.prepare(messages)
        newer.compact()
    summarizer = RememberingSummarizer()
    older = window_under(parts, prompts("current"), summarizer)
    assert older.prepare(lists[60]).nothing_due == "rejected"
    assert older.compact() is None
    assert newer.prepare(lists[60]).rejected == ()


@pytest.mark.slow
def test_a_chunk_that_cannot_be_made_anew_is_made_anew_with_the_next_ones(parts: Parts) -> None:
    """A3, V2: two attempts of its own, and then as a part of a larger one."""
    lists = list(growing(60))
    before = window_under(parts, prompts("current"), RememberingSummarizer())
    for messages in lists[:60]:
        before.prepare(messages)
        before.compact()
    old = spans(parts)

    def answer(request: ChunkRequest) -> Answer:
        last = request.lines[-1].message_id
        return Answer("No.", STOP) if last == f"m{old[0][1]}" else good(request)

    after = window_under(parts, prompts("withdrawn"), RememberingSummarizer(answer))
    for _ in range(len(old) + 1):
        after.prepare(lists[60])
        after.compact()
    assert spans(parts)[0] == (old[0][0], old[1][1])
    failed = [fact for fact in facts_of(parts) if isinstance(fact, ChunkAttemptFailed)]
    assert len(failed) == 2


def spans(parts: Parts) -> list[tuple[int, int]]:
    """First and last message of each chunk that stands."""
    return [(chunk.first, chunk.last) for chunk in parts.context.log.load_window(KEY).chunks]


def facts_of(parts: Parts) -> list[Any]:
    return [entry.fact for entry in parts.context.log.history(KEY)]
