"""What requests were given, proved later from the sealed log, on every backend (section 0, Delivery; H8)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backends import Backend
from histories import CONVERSATION, SCOPE, Worker, fill, present_job
from window_runs import PLACE, RememberingSummarizer, turn, window_on

from compaction_ledger import ConversationThen, Moment, Prepared
from compaction_ledger.composition import Parts
from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.events import RequestDelivered
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.given import Delivered, Given

RUN = "run-40"
ON = Settings(record_deliveries="on")


@pytest.fixture
def ledger(parts: Parts) -> Ledger:
    """A conversation with one summary."""
    fill(parts, 40)
    Worker(parts, present_job(parts)).complete("The costs are 0.0 % to 9.9 %.")
    opened = Ledger(parts, Settings())
    opened.catch_up()
    return opened


def assembled(ledger: Ledger, budget: int = 10**6, next_user: str | None = None) -> Assembly:
    return ledger.assemble(CONVERSATION, scope=SCOPE, budget=budget, next_user=next_user)


def one(found: Delivered) -> Given:
    assert list(found.damaged) == []
    (request,) = found.requests
    return request


# --- requests of a conversation -----------------------------------------------------------------


def test_exactly_what_a_request_was_given(ledger: Ledger) -> None:
    made = assembled(ledger, next_user="And now?")
    index = ledger.record_delivery(made, run=RUN)
    given = one(ledger.delivered(RUN))
    assert given.entry.index == index
    assert given.fact.request_digest == made.manifest.request_digest
    summarized, verbatim = given.groups
    assert (summarized.told, verbatim.told) == ("by_seal", "by_source")
    assert summarized.messages == tuple(f"{side}{n}" for n in range(10) for side in "ua")
    assert verbatim.messages == tuple(f"{side}{n}" for n in range(10, 40) for side in "ua")
    (summary,) = given.summaries
    assert (summary.state, summary.text) == ("sealed", "The costs are 0.0 % to 9.9 %.")
    assert summary.messages == summarized.messages
    assert given.sound


def test_left_out_and_rejected_are_told(ledger: Ledger) -> None:
    ledger.record_delivery(assembled(ledger, 3_000), run=RUN)
    given = one(ledger.delivered(RUN))
    left_out, verbatim = given.groups
    assert (left_out.disposition, left_out.reason, left_out.messages) == (
        *("left_out", "over_budget"),
        (),
    )
    assert verbatim.told == "by_source"
    assert isinstance(given.fact, RequestDelivered)
    assert [no.reason for no in given.fact.rejected] == ["over_budget"]


def test_what_was_changed_since_is_not_passed_off_as_what_was_given(
    ledger: Ledger, parts: Parts
) -> None:  # B3
    ledger.record_delivery(assembled(ledger), run=RUN)
    parts.transcripts.revise(SCOPE, CONVERSATION, "a20", "Another answer.")
    parts.transcripts.revise(SCOPE, CONVERSATION, "a3", "Another answer.")
    summarized, verbatim = one(ledger.delivered(RUN)).groups
    assert (verbatim.told, verbatim.messages) == ("changed", ())
    assert summarized.told == "by_seal"  # the log has the ids of what it was made of


def test_a_run_is_found_in_its_place_and_in_the_logs_order(ledger: Ledger) -> None:
    first = ledger.record_delivery(assembled(ledger), run=RUN)
    ledger.record_delivery(assembled(ledger), run="another")
    ledger.record_delivery(assembled(ledger))
    last = ledger.record_delivery(assembled(ledger, 5_000), run=RUN)
    assert [given.entry.index for given in ledger.delivered(RUN).requests] == [first, last]
    assert ledger.delivered(RUN, scope="another").requests == []
    assert ledger.delivered(RUN, conversation="another").requests == []
    assert len(ledger.delivered(RUN, scope=SCOPE, conversation=CONVERSATION).requests) == 2
    assert ledger.delivered("nobody").requests == []


def test_a_request_is_known_again_by_its_bytes(ledger: Ledger) -> None:
    made, other = assembled(ledger), assembled(ledger, 5_000)
    index = ledger.record_delivery(made, run=RUN)
    found = ledger.delivered(RUN)
    assert [given.entry.index for given in ledger.delivery_of(found, made.body)] == [index]
    assert ledger.delivery_of(found, other.body) == []
    assert ledger.delivery_of(found, made.body.replace(b"fund", b"bond", 1)) == []


@pytest.mark.slow_on("postgres")
def test_a_delivery_that_names_another_event_is_not_sound(ledger: Ledger, parts: Parts) -> None:
    ledger.record_delivery(assembled(ledger), run=RUN)
    fact = one(ledger.delivered(RUN)).fact
    assert isinstance(fact, RequestDelivered)
    for number, index in enumerate((0, 3, 99)):
        moved = replace(fact.summaries[0], index=index)
        parts.context.log.deliver(
            replace(fact, delivery_id=f"d{number}", run=f"r{number}", summaries=(moved,))
        )
    states = [one(ledger.delivered(f"r{number}")).summaries[0].state for number in range(3)]
    assert states == ["other_summary", "other_summary", "damaged"]
    assert not one(ledger.delivered("r0")).sound


# --- windows ------------------------------------------------------------------------------------


@pytest.mark.slow_on("postgres")
def test_the_requests_of_a_window(parts: Parts) -> None:
    messages: list[dict[str, object]] = []
    sent: list[Prepared] = []
    with window_on(parts, RememberingSummarizer(), rules=True) as window:
        for number in range(14):
            messages += turn(number, "At most 4,000 EUR. " if number == 0 else "")
            sent.append(window.prepare(messages))
            window.deliver(sent[-1])
            while window.compact() is not None:
                pass
    ledger = Ledger(parts, Settings())
    found = ledger.delivered(PLACE[2])
    assert len(found.requests) == 14
    last = found.requests[-1]
    assert last.kind == "window"
    assert last.sound
    assert last.summaries
    assert [summary.state for summary in last.summaries] == ["sealed"] * len(last.summaries)
    assert last.pins
    assert all(pin.quote is not None for pin in last.pins)
    told = [name for group in last.groups for name in group.messages]
    assert told == [f"m{place}" for place in range(len(messages))]
    request = b"[" + b",".join(sent[-1].encoded) + b"]"
    assert [given.entry.index for given in ledger.delivery_of(found, request)] == [last.entry.index]
    then: ConversationThen = ledger.replay(PLACE[1], Moment(last.entry.index), scope=PLACE[0])
    assert len(then.window_deliveries) == 14


# --- recorded by a setting ----------------------------------------------------------------------


def test_by_a_setting_each_request_is_recorded_once(ledger: Ledger, parts: Parts) -> None:
    recording = Ledger(parts, ON)
    size = recording.size()
    made = recording.assemble(CONVERSATION, scope=SCOPE, budget=10**6, run=RUN)
    again = recording.assemble(CONVERSATION, scope=SCOPE, budget=10**6, run=RUN)
    assert made.body == again.body
    assert recording.size() == size + 1  # the call failed, and the request was made again
    assert one(recording.delivered(RUN)).fact.request_digest == made.manifest.request_digest
    recording.assemble(CONVERSATION, scope=SCOPE, budget=10**6, run="another")
    recording.assemble(CONVERSATION, scope=SCOPE, budget=5_000, run=RUN)
    assert recording.size() == size + 3
    ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6, run=RUN)
    assert recording.size() == size + 3


def test_by_a_setting_in_another_process_it_is_the_same_delivery(
    ledger: Ledger, parts: Parts, backend: Backend
) -> None:
    for session in (parts, backend.open()):
        Ledger(session, ON).assemble(CONVERSATION, scope=SCOPE, budget=10**6, run=RUN)
    assert len(ledger.delivered(RUN).requests) == 1


@pytest.mark.slow_on("postgres")
def test_by_a_setting_a_window_records_what_it_prepares(parts: Parts) -> None:
    ledger = Ledger(parts, ON)
    options = {"run": PLACE[2], "shape": "openai-chat", "budget": 6_000, "scope": PLACE[0]}
    messages = turn(0)
    for _ in range(2):  # as after a process died: nothing is known of what was sent before
        with ledger.window(PLACE[1], **options) as window:  # type: ignore[arg-type]
            window.prepare(messages)
            window.prepare(messages)
    assert len(ledger.delivered(PLACE[2]).requests) == 1
    with ledger.window(PLACE[1], **options) as window:  # type: ignore[arg-type]
        window.prepare(messages + turn(1))
    assert len(ledger.delivered(PLACE[2]).requests) == 2
