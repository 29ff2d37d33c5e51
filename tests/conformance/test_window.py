"""A window while its agent works, on every store (T2, T6 to T12, T15, A1 to A6, H2)."""

from __future__ import annotations

import copy
import json
import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from backends import SECOND, Backend
from window_runs import (
    BUDGET,
    PLACE,
    STOP,
    RememberingSummarizer,
    good,
    growing,
    text_of,
    turn,
    window_on,
)

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    BrokenTranscript,
    HistoryChanged,
    InvalidInput,
    PinRefused,
    WindowTooSmall,
)
from compaction_ledger.domain.finish import Answer, FinishFacts
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkClaimed,
    ChunkCompleted,
    WindowDelivered,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.summarization import ChunkRequest
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.window.preparing import Prepared
from compaction_ledger.window import Window

KEY = WindowKey(*PLACE)
CHECK = shape_named("openai-chat").problems


def completions(parts: Parts) -> dict[str, str]:
    """The stored summaries of the run, by identity."""
    return {
        entry.fact.identity: entry.fact.text
        for entry in parts.context.log.history(KEY)
        if isinstance(entry.fact, ChunkCompleted)
    }


def ran(window: Window, turns: int) -> list[Prepared]:
    """Every request of a run, compacted behind each turn where something was due."""
    return [prepared_and_compacted(window, messages) for messages in growing(turns)]


def prepared_and_compacted(window: Window, messages: list[dict[str, Any]]) -> Prepared:
    prepared = window.prepare(messages)
    window.compact()
    return prepared


@pytest.mark.slow_on("postgres")
def test_after_twenty_compactions_every_summary_is_of_originals_and_as_it_was(
    parts: Parts,
) -> None:
    """T8: no summary of a summary, and nothing drifts."""
    summarizer = RememberingSummarizer()
    window = window_on(parts, summarizer)
    seen: dict[str, str] = {}
    blocks: dict[str, str] = {}
    messages: list[dict[str, Any]] = []
    for messages in growing(130):
        prepared = window.prepare(messages)
        assert CHECK(prepared.messages) == []
        for chunk in prepared.manifest.chunks:
            (block,) = [
                str(message["content"])
                for message in prepared.messages
                if str(message["content"]).startswith(
                    f"[derived summary of messages m{chunk.first} to m{chunk.last} "
                )
            ]
            assert blocks.setdefault(chunk.identity, block) == block
        window.compact()
        for identity, text in completions(parts).items():
            assert seen.setdefault(identity, text) == text
    assert len(seen) >= 20
    originals = {f"m{n}": text_of(message) for n, message in enumerate(messages)}
    asked: list[str] = []
    for request in summarizer.requests:
        for line in request.lines:
            assert json.dumps(line.text, ensure_ascii=False)[1:-1] in originals[line.message_id]
            assert "derived summary" not in line.text
        asked += dict.fromkeys(line.message_id for line in request.lines)
    assert asked == list(dict.fromkeys(asked))  # each message was summarized once
    assert asked == [f"m{n}" for n in range(1, len(asked) + 1)]


@pytest.mark.slow_on("postgres")
def test_regrouped_chunks_are_made_of_the_originals_again(parts: Parts) -> None:
    summarizer = RememberingSummarizer()
    budget = WindowBudget(9_000, trigger=3_000, keep=1_500, summaries=900)
    window = window_on(parts, summarizer, budget=budget)
    last = ran(window, 20)[-1]
    jobs = [
        entry.fact.job
        for entry in parts.context.log.history(KEY)
        if isinstance(entry.fact, ChunkClaimed)
    ]
    regroups = [job for job in jobs if job.replaces]
    assert regroups
    for job in regroups:
        replaced = [other for other in jobs if other.identity in job.replaces]
        assert (replaced[0].first, replaced[-1].last) == (job.first, job.last)
    ids = {line.message_id for request in summarizer.requests for line in request.lines}
    assert "m1" in ids
    assert all("derived summary" not in line.text for r in summarizer.requests for line in r.lines)
    assert last.manifest.chunks[0].first == 1
    assert last.manifest.chunks[0].identity == regroups[-1].identity


def test_the_turn_that_triggers_a_compaction_does_not_wait_for_it(parts: Parts) -> None:
    """T11: and what comes meanwhile is in the next request, behind a chunk that is fixed by its claim."""
    summarizer = RememberingSummarizer(held=True)
    with window_on(parts, summarizer, background=True) as window:
        messages: list[dict[str, Any]] = []
        run = growing(30)
        for messages in run:
            if window.prepare(messages).due is not None:
                break
        assert summarizer.begun.wait(30)
        meanwhile = next(run)
        prepared = window.prepare(meanwhile)
        assert prepared.messages == meanwhile  # nothing is summarized yet, nothing is lost
        assert prepared.nothing_due == "running"
        summarizer.may_answer.set()
        assert window.wait(30)
        after = window.prepare(next(run))
        (chunk,) = after.manifest.chunks
        assert chunk.last < len(messages)
        kept = after.manifest.messages[-1]
        assert (kept.first, kept.disposition) == (chunk.last + 1, "verbatim")
    assert len(summarizer.requests) == 1


@pytest.mark.slow
def test_two_windows_of_one_run_pay_for_a_chunk_once(backend: Backend) -> None:
    """A1, A8: whoever is later is refused, before the model is called."""
    one, other = backend.open(), backend.open()
    summarizers = [RememberingSummarizer(), RememberingSummarizer()]
    windows = [window_on(parts, s) for parts, s in zip((one, other), summarizers, strict=True)]
    for messages in growing(60):
        for window in windows:
            window.prepare(messages)
        threads = [threading.Thread(target=window.compact) for window in windows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    asked = [
        (request.lines[0].message_id, request.lines[-1].message_id)
        for summarizer in summarizers
        for request in summarizer.requests
    ]
    assert len(asked) == len(set(asked)) == len(completions(one)) > 3


@pytest.mark.slow
def test_a_window_that_is_opened_again_goes_on_where_it_was(backend: Backend) -> None:
    summarizer = RememberingSummarizer()
    lists = list(growing(40))
    first = window_on(backend.open(), summarizer)
    before = [prepared_and_compacted(first, messages) for messages in lists[:50]][-1]
    again = window_on(backend.open(), summarizer)
    after = prepared_and_compacted(again, lists[49])
    stood = before.manifest.chunks
    assert stood
    assert after.manifest.chunks[: len(stood)] == stood
    for messages in lists[50:]:
        after = prepared_and_compacted(again, messages)
    spans = [(chunk.first, chunk.last) for chunk in after.manifest.chunks]
    assert all(one[1] + 1 == other[0] for one, other in pairwise(spans))


@pytest.mark.slow_on("postgres")
def test_an_answer_that_is_no_structure_fails_twice_and_is_not_tried_at_every_turn(
    parts: Parts,
) -> None:
    """T7, A3: exhausted; a larger chunk has two attempts of its own."""
    summarizer = RememberingSummarizer(lambda _: Answer("In short: all is well.", STOP))
    ran(window_on(parts, summarizer), 40)
    failures = [
        entry.fact
        for entry in parts.context.log.history(KEY)
        if isinstance(entry.fact, ChunkAttemptFailed)
    ]
    assert {failure.failure for failure in failures} == {"invalid_structure"}
    assert completions(parts) == {}
    assert 2 <= len(summarizer.requests) <= 8
    spans = [len(request.lines) for request in summarizer.requests]
    assert spans[0::2] == spans[1::2]  # both attempts are of the same chunk


@pytest.mark.slow_on("postgres")
def test_a_summary_that_is_not_smaller_is_refused(parts: Parts) -> None:
    """T12."""

    def padded(request: Any) -> Answer:
        made = json.loads(good(request).text)
        made["entities"] += ["x" * 2_900, "y" * 2_900]
        return Answer(json.dumps(made), STOP)

    ran(window_on(parts, RememberingSummarizer(padded)), 20)
    failures = {
        entry.fact.failure
        for entry in parts.context.log.history(KEY)
        if isinstance(entry.fact, ChunkAttemptFailed)
    }
    assert failures == {"not_smaller"}


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("strict", [False, True])
def test_what_the_source_does_not_say_is_listed_or_refused(parts: Parts, strict: bool) -> None:
    """T13."""

    def invented(request: Any) -> Answer:
        made = json.loads(good(request).text)
        made["constraints"] = ["at most 9,999 EUR"]
        return Answer(json.dumps(made), STOP)

    ran(window_on(parts, RememberingSummarizer(invented), strict=strict), 20)
    facts = [entry.fact for entry in parts.context.log.history(KEY)]
    failed = {fact.failure for fact in facts if isinstance(fact, ChunkAttemptFailed)}
    listed = {
        item.text for fact in facts if isinstance(fact, ChunkCompleted) for item in fact.ungrounded
    }
    assert failed == ({"ungrounded"} if strict else set())
    assert any("9,999" in text for text in listed) is not strict


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer('{"decisions": [', FinishFacts(("length",))), "truncated"),
        (Answer("", FinishFacts(("stop",), tool_calls=1)), "tool_call"),
        (Answer("I cannot.", FinishFacts(("refusal",), refusal=True)), "refusal"),
        (Answer(fault="timeout"), "timeout"),
    ],
)
def test_an_attempt_that_fails_leaves_the_originals(
    parts: Parts, answer: Answer, code: str
) -> None:
    """C1 to C4, A11."""
    budget = replace(BUDGET, limit=40_000, trigger=2_000, keep=1_000)
    window = window_on(parts, RememberingSummarizer(lambda _: answer), budget=budget)
    prepared = ran(window, 6)[-1]
    failures = {
        entry.fact.failure
        for entry in parts.context.log.history(KEY)
        if isinstance(entry.fact, ChunkAttemptFailed)
    }
    assert failures == {code}
    assert prepared.messages == list(growing(6))[-1]


@pytest.mark.slow_on("postgres")
def test_a_worker_that_died_is_followed_by_another(backend: Backend) -> None:
    """A5, A6: its lease runs out, and its chunk is summarized with the second attempt."""
    parts = backend.open()
    dead = RememberingSummarizer(lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    window = window_on(parts, dead)
    messages: list[dict[str, Any]] = []
    for messages in growing(30):
        if window.prepare(messages).due is not None:
            break
    with pytest.raises(KeyboardInterrupt):
        window.compact()
    backend.clock.advance(Settings().lease_seconds + 1)
    alive = RememberingSummarizer()
    other = window_on(backend.open(), alive)
    assert other.prepare(messages).due is not None
    outcome = other.compact()
    assert outcome is not None
    assert outcome.result == "completed"
    assert backend.clock.now % SECOND == 0


def test_a_long_backlog_is_summarized_chunk_by_chunk_behind_its_first_turn(parts: Parts) -> None:
    """A run that was long before it got a window: what has no room is left out, and said so, and comes to
    be due.
    """
    summarizer = RememberingSummarizer()
    messages = list(growing(100))[-1]
    with window_on(parts, summarizer, background=True) as window:
        first = window.prepare(messages)
        assert {group.reason for group in first.manifest.messages} == {None, "over_limit"}
        assert CHECK(first.messages) == []
        assert window.wait(60)
        after = window.prepare(messages)
    spans = [(chunk.first, chunk.last) for chunk in first_to_last(parts)]
    assert spans[0][0] == 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(spans))
    assert len(spans) > 5
    assert after.nothing_due == "below_trigger"
    assert "over_limit" not in {group.reason for group in after.manifest.messages}
    bound = BUDGET.trigger
    assert all(sum(len(line.text) for line in r.lines) < bound for r in summarizer.requests)


def first_to_last(parts: Parts) -> Any:
    return parts.context.log.load_window(KEY).chunks


@pytest.mark.slow
@pytest.mark.parametrize("beside", [0, 1_200, 2_400, 3_600])
def test_what_stands_beside_does_not_make_every_turn_a_chunk(parts: Parts, beside: int) -> None:
    """Tools and a system prompt take their room from all shares, not from the pause between two chunks."""
    summarizer = RememberingSummarizer()
    budget = WindowBudget(12_000, when_outgrown="search")
    window = window_on(parts, summarizer, budget=budget)
    for messages in growing(80):
        prepared = window.prepare(messages, beside=beside)
        assert prepared.tokens + beside <= 12_000
        window.compact()
    assert 5 <= len(summarizer.requests) <= 30


def test_turns_that_have_no_room_make_a_chunk_due_although_the_rest_is_small(parts: Parts) -> None:
    summarizer = RememberingSummarizer()
    window = window_on(parts, summarizer, budget=WindowBudget(1_000, trigger=900, keep=100))
    messages: list[dict[str, Any]] = []
    for number in range(2):
        messages += [
            {"role": "user", "content": f"{number} " * 250},
            {"role": "assistant", "content": "Yes."},
        ]
    messages.append({"role": "user", "content": "And now?"})
    prepared = window.prepare(messages[:3])
    assert prepared.tokens < 900
    assert prepared.manifest.messages[0].reason == "over_limit"
    assert prepared.due is not None


# --- what is refused --------------------------------------------------------------------------------


def test_a_recorded_message_that_is_another_now_is_named(parts: Parts) -> None:
    """T2."""
    window = window_on(parts)
    messages = list(growing(3))[-1]
    window.prepare(messages)
    changed = copy.deepcopy(messages)
    changed[1]["content"] += " And hurry."
    for tried in (window, window_on(parts)):  # the one that saw it, and one that did not
        with pytest.raises(HistoryChanged) as refused:
            tried.prepare(changed)
        assert refused.value.position == 1
        with pytest.raises(HistoryChanged):
            tried.prepare(messages[:-1])
    assert window.prepare(messages).messages == messages


def test_a_cache_marker_may_move(parts: Parts) -> None:
    """T1: it is no part of what was said."""
    window = window_on(parts, shape="anthropic")
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    window.prepare(messages)
    marked = copy.deepcopy(messages)
    marked[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert window.prepare(marked).messages == marked


def test_a_broken_transcript_is_refused_with_every_problem_and_kept_nowhere(parts: Parts) -> None:
    window = window_on(parts)
    messages = list(growing(2))[-1]
    broken = [*messages, {"role": "tool", "tool_call_id": "call_99", "content": "?"}]
    with pytest.raises(BrokenTranscript, match=f"message {len(messages)}"):
        window.prepare(broken)
    assert parts.originals.count(KEY) == 0


def test_a_call_that_was_never_answered_is_refused_when_the_user_speaks_again(parts: Parts) -> None:
    """T5: no orphan on either side."""
    window = window_on(parts)
    asked, called, result, _ = turn(0)
    window.prepare([asked, called])  # the result may still come
    with pytest.raises(BrokenTranscript, match=r"message 1 .*never has a result"):
        window.prepare([asked, called, {"role": "user", "content": "And?"}])
    assert parts.originals.count(KEY) == 2
    repaired = [asked, called, result, {"role": "user", "content": "And?"}]
    assert window.prepare(repaired).messages == repaired


def test_a_run_has_one_shape(parts: Parts) -> None:
    window_on(parts).prepare([{"role": "user", "content": "Hi"}])
    other = window_on(parts, shape="anthropic")
    with pytest.raises(InvalidInput, match="openai-chat"):
        other.prepare([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}])


def test_the_last_exchange_alone_is_too_large(parts: Parts) -> None:
    """T6: both numbers, and what was given is as it was."""
    window = window_on(parts)
    messages = [*turn(0), {"role": "user", "content": "x" * 7_000}]
    before = copy.deepcopy(messages)
    with pytest.raises(WindowTooSmall) as refused:
        window.prepare(messages)
    assert refused.value.needed > 7_000 > refused.value.allowed == 6_000
    assert messages == before
    assert parts.originals.count(KEY) == 0
    messages[-1] = {"role": "user", "content": "shorter"}  # nothing was kept of the refused one
    assert window.prepare(messages).messages == messages


# --- pins -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pin_reaches_every_later_request(parts: Parts) -> None:
    """T9: also when its message is summarized, left to search or left out."""
    window = window_on(parts, RememberingSummarizer(), rules=True)
    words = {0: "Never open case 13. ", 7: "At most 4,000 EUR. ", 20: "Only use the EU region. "}
    for number, messages in enumerate(growing(60, words)):
        prepared = window.prepare(messages)
        window.compact()
        sent = text_of(prepared.messages)
        for place, said in words.items():
            if number >= 2 * place:
                assert said.strip() in sent
    assert [pin.quote for pin in window.pins()] == [said.strip() for said in words.values()]


def test_what_is_said_again_in_the_same_words_is_one_pin(parts: Parts) -> None:
    window = window_on(parts, RememberingSummarizer(), rules=True)
    messages: list[dict[str, Any]] = []
    for number in range(5):
        messages.append({"role": "user", "content": f"Look at case {number}. Never call me."})
        window.prepare(messages)
        messages.append({"role": "assistant", "content": "Understood."})
    assert [(pin.message, pin.quote) for pin in window.pins()] == [(0, "Never call me.")]


@pytest.mark.slow
def test_pins_never_make_a_run_impossible(parts: Parts) -> None:
    """T6: only the last exchange alone may be too large. What has no room is named, and found by search."""
    window = window_on(parts, RememberingSummarizer(), budget=3_000, rules=True)
    messages: list[dict[str, Any]] = []
    prepared: Prepared | None = None
    for number in range(60):
        said = f"Never open the case {number} without asking the owner of case {number} before."
        messages.append({"role": "user", "content": said})
        prepared = window.prepare(messages)
        assert prepared.tokens <= 3_000
        assert CHECK(prepared.messages) == []
        messages.append({"role": "assistant", "content": "Understood."})
        window.compact()
    assert prepared is not None
    assert len(window.pins()) == 60
    told = {*prepared.manifest.pins, *prepared.manifest.pins_left_out}
    assert prepared.manifest.pins_left_out
    assert {pin.pin_id for pin in window.pins()[:-1]} <= told
    assert "pinned in earlier messages have no room here" in text_of(prepared.messages)
    assert "case 3 " in window.history.search('"open the case 3 without"').hits[0].quote


def test_a_pin_that_nobody_said_is_refused(parts: Parts) -> None:
    window = window_on(parts)
    window.prepare([{"role": "user", "content": "At most $5,000 in all."}])
    for quote in ("At most $500 in all.", "$500", "At most $5,000 in all. Or more."):
        with pytest.raises(PinRefused):
            window.pin(quote)
    pin = window.pin("At most $5,000 in all.")
    assert (pin.message, pin.start, pin.end) == (0, 0, 22)
    assert window.pins() == (pin,)


def test_a_pin_of_one_conversation_never_shows_in_another(parts: Parts) -> None:
    one = window_on(parts)
    one.prepare([{"role": "user", "content": "No nuts, please."}])
    one.pin("No nuts, please.")
    for place in (("tenant", "other", "run-1"), ("other", "support", "run-1")):
        other = window_on(parts, place=place)
        prepared = other.prepare([{"role": "user", "content": "What may I eat?"}])
        assert other.pins() == ()
        assert "nuts" not in text_of(prepared.messages)
        with pytest.raises(PinRefused):
            other.pin("No nuts, please.")


# --- what was sent, proved --------------------------------------------------------------------------


@pytest.mark.slow_on("postgres")
def test_a_delivery_says_what_the_model_was_given(parts: Parts) -> None:
    window = window_on(parts, RememberingSummarizer(), rules=True)
    prepared = ran(window, 30)[-1]
    index = window.deliver(prepared, delivery_id="d-1")
    assert window.deliver(prepared, delivery_id="d-1") == index  # A2
    fact = parts.context.log.at([index])[index].fact
    assert isinstance(fact, WindowDelivered)
    assert fact.window == KEY
    assert fact.request_digest == prepared.manifest.request_digest
    told = [n for group in fact.messages for n in range(group.first, group.last + 1)]
    assert told == list(range(len(list(growing(30))[-1])))
    assert fact.bytes_sent == prepared.bytes_sent


@pytest.mark.slow_on("postgres")
def test_the_rows_of_a_run_follow_what_is_recorded(parts: Parts) -> None:
    """P1, P2: chunks, pins and deliveries, for who looks at it from outside."""
    window = window_on(parts, RememberingSummarizer(), rules=True)
    words = {0: "Never open case 13. "}
    prepared = [prepared_and_compacted(window, messages) for messages in growing(30, words)][-1]
    window.deliver(prepared)
    rows = parts.read_models
    chunks = rows.window_chunks(KEY.scope, KEY.conversation, KEY.run)
    assert [row.identity for row in chunks if row.stands] == list(completions(parts))
    (pin,) = rows.window_pins(KEY.scope, KEY.conversation)
    assert (pin.quote, pin.current) == ("Never open case 13.", True)
    (delivery,) = rows.window_deliveries(KEY.scope, KEY.conversation)
    assert delivery.request_digest == prepared.manifest.request_digest
    assert list(rows.window_chunks(KEY.scope, "another")) == []


def test_a_large_result_is_kept_apart_and_reread(parts: Parts) -> None:
    """T14."""
    budget = WindowBudget(6_000, externalize_over=1_000)
    window = window_on(parts, budget=budget)
    messages = turn(0)
    messages[2]["content"] = result = "line\n" * 2_000
    messages.append({"role": "user", "content": "And?"})
    prepared = window.prepare(messages)
    assert prepared.tokens < 2_000
    (stub,) = prepared.manifest.stubs
    assert f"tr_{stub.digest}" in text_of(prepared.messages)
    assert messages[2]["content"] == result
    text, start = "", 0
    while True:
        page = json.loads(
            window.call_tool("read_tool_result", {"handle": f"tr_{stub.digest}", "start": start})
        )
        text += page["text"]
        if page["next_start"] is None:
            break
        start = page["next_start"]
    assert text == result
    assert CHECK(prepared.messages) == []


# --- summaries that save nothing --------------------------------------------------------------------


def test_a_summary_is_held_against_the_stubs_that_it_stands_for(parts: Parts) -> None:
    """T12, T14: what is kept apart is in no request, so nothing is saved by leaving it out."""

    def long(request: ChunkRequest) -> Answer:
        made = json.loads(good(request).text)
        made["tool_outcomes"] = [f"a line of a log, number {n}" for n in range(100)]
        return Answer(json.dumps(made), STOP)

    summarizer = RememberingSummarizer(long)
    budget = WindowBudget(6_000, trigger=900, keep=200, externalize_over=1_000)
    window = window_on(parts, summarizer, budget=budget)
    messages = turn(0)
    messages[2]["content"] = "a line of a log\n" * 1_000
    messages += turn(1)
    window.prepare(messages)
    outcome = window.compact()
    assert outcome is not None
    assert outcome.failures == ("not_smaller", "not_smaller")
    assert all(len(line.text) < 1_000 for line in summarizer.requests[0].lines)
