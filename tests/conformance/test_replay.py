"""Replay and difference on every backend: the past as it was, and nothing written (P5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backends import SECOND, START, Backend
from facts import delivery
from histories import (
    CONVERSATION,
    LEASE,
    SCOPE,
    TRUNCATED,
    Worker,
    every_kind,
    fill,
    present_job,
)
from read_model_tables import Stored, place
from scenarios import OTHER_MODEL
from window_histories import every_window_kind

from compaction_ledger import (
    Conversation,
    InvalidSetting,
    Moment,
    ServingOptions,
    UnknownConversation,
)
from compaction_ledger.composition import Parts, past_read_models
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.read_models import RangeRow, WindowPinRow
from compaction_ledger.domain.replay import AnyRow
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.replaying import ConversationThen


def ledger_of(parts: Parts) -> Ledger:
    return Ledger(parts, Settings())


def then(parts: Parts, index: int | None = None, time: int | None = None) -> ConversationThen:
    return ledger_of(parts).replay(CONVERSATION, Moment(index, time), scope=SCOPE)


def standings(parts: Parts, index: int | None = None, time: int | None = None) -> dict[int, str]:
    found = then(parts, index, time)
    return {one.row.from_pair: one.standing for one in found.ranges}


def key(row: AnyRow) -> tuple[object, ...]:
    """What a row is told from others of its kind by."""
    names = {
        "RangeRow": ("from_pair",),
        "SummaryRow": ("identity",),
        "AttemptRow": ("identity", "number"),
        "DeliveryRow": ("delivery_id",),
        "WindowChunkRow": ("identity",),
        "WindowPinRow": ("run", "pin_id"),
        "WindowDeliveryRow": ("run", "delivery_id"),
    }
    kind = type(row).__name__
    return kind, row.scope, row.conversation, *(getattr(row, name) for name in names[kind])


def state(parts: Parts, index: int) -> dict[tuple[object, ...], AnyRow]:
    """Every row that a ledger has which has stopped at an index."""
    past = past_read_models(DEFAULT_REGISTRY, index + 1)
    past.catch_up(parts.context.log)
    return {key(row): row for row in past.rows()}


@pytest.fixture
def filled(parts: Parts) -> Parts:
    """A history in which each fact stands."""
    fill(parts, 80)
    every_kind(parts)
    every_window_kind(parts)
    parts.context.log.deliver(replace(delivery(), conversation=CONVERSATION, scope=SCOPE))
    return parts


# --- points -------------------------------------------------------------------------------------


def test_each_range_as_it_stood(filled: Parts, backend: Backend) -> None:
    assert standings(filled, -1) == {}
    assert standings(filled, 0) == {0: "running"}
    assert standings(filled, 2) == {0: "done"}
    assert standings(filled, 6) == {0: "done", 10: "done", 20: "due"}
    ranges = {one.row.from_pair: one for one in then(filled).ranges}
    assert [one.standing for one in ranges.values()] == [
        *("done", "done", "due", "waiting", "running", "exhausted"),
    ]
    assert [one.claimable for one in ranges.values()] == [False, False, True, False, False, False]
    assert ranges[40].holder == "running"
    later = standings(filled, time=backend.clock.now + LEASE)
    assert (later[30], later[40]) == ("failed", "lease_over")


def test_a_time_is_a_place_in_the_log_also_where_clocks_jump(
    parts: Parts, backend: Backend
) -> None:  # docs/decisions/0016
    fill(parts, 40)
    Worker(parts, present_job(parts)).complete()
    backend.clock.now = START + 10 * SECOND
    Worker(parts, present_job(parts, 10)).claim()
    backend.clock.now = START + 5 * SECOND
    Worker(parts, present_job(parts, 20)).claim()
    assert then(parts, time=START - 1).point.index == -1
    assert then(parts, time=START).point.index == 2
    assert then(parts, time=START + 5 * SECOND).point.index == 4  # what bears a later time included
    assert then(parts, 1, START + 5 * SECOND).point.index == 1


@pytest.mark.parametrize("index", [-2, 3, 10**9])
def test_a_place_that_the_log_has_not_got(parts: Parts, index: int) -> None:
    fill(parts)
    Worker(parts, present_job(parts)).complete()
    with pytest.raises(InvalidSetting, match="the log has no event"):
        then(parts, index)
    with pytest.raises(InvalidSetting, match="comes before"):
        ledger_of(parts).diff(Moment(2), Moment(1))


def test_what_nobody_knows(parts: Parts) -> None:
    with pytest.raises(UnknownConversation):
        then(parts)
    fill(parts)
    assert then(parts).ranges == []
    with pytest.raises(UnknownConversation):
        ledger_of(parts).replay(CONVERSATION, Moment(), scope="another")


# --- what would have been served ----------------------------------------------------------------


def test_a_request_of_the_summaries_known_then(parts: Parts) -> None:
    fill(parts, 40)
    ledger = ledger_of(parts)
    bare = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
    Worker(parts, present_job(parts)).complete()
    ledger.catch_up()
    one = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
    at = ledger.record_delivery(one, run="run-40")
    Worker(parts, present_job(parts, 10)).complete()
    ledger.catch_up()
    for index, expected, recorded in ((-1, bare, None), (2, one, None), (at, one, at)):
        served = then(parts, index).served
        assert served is not None
        assert served.assembly.body == expected.body
        assert served.assembly.manifest.summaries == expected.manifest.summaries
        assert (list(served.changed), served.delivery) == ([], recorded)
    both = then(parts).served
    assert both is not None
    assert [used.from_pair for used in both.assembly.manifest.summaries] == [0, 10]


def test_a_range_that_was_changed_since_is_named_and_its_summary_not_shown(parts: Parts) -> None:
    """B3: what stands now is not what stood there then, and nobody guesses what did."""
    fill(parts, 40)
    Worker(parts, present_job(parts)).complete()
    parts.transcripts.revise(SCOPE, CONVERSATION, "u3", "Another question.")
    found = then(parts)
    assert [one.validity for one in found.summaries] == ["valid"]  # by all that the log says
    assert found.served is not None
    assert [(window.from_pair, window.to_pair) for window in found.served.changed] == [(0, 9)]
    (rejected,) = found.served.assembly.manifest.rejected
    assert (rejected.identity, rejected.reason) == (
        found.summaries[0].row.identity,
        "source_changed",
    )


def test_who_knows_how_many_pairs_there_were_says_so(parts: Parts) -> None:
    fill(parts, 40)
    Worker(parts, present_job(parts, 10)).complete()
    ledger = ledger_of(parts)
    found = ledger.replay(CONVERSATION, Moment(), scope=SCOPE, serving=ServingOptions(pairs=30))
    assert found.served is not None
    assert (found.served.pairs_now, found.served.pairs_used, found.pairs_known) == (40, 30, 20)
    assert found.served.assembly.manifest.groups[-1].to_pair == 29
    for pairs in (-1, 41):
        with pytest.raises(InvalidSetting, match="has 40 pairs"):
            ledger.replay(CONVERSATION, Moment(), scope=SCOPE, serving=ServingOptions(pairs=pairs))


def test_without_a_transcript_it_is_said_that_nothing_can_be_said(filled: Parts) -> None:
    other = replace(filled.context, transcripts=NoTranscripts())
    found = Ledger(replace(filled, context=other), Settings()).replay(
        CONVERSATION, Moment(2), scope=SCOPE
    )
    assert found.served is None
    assert [one.standing for one in found.ranges] == ["done"]


class NoTranscripts:
    """Transcripts that know nothing."""

    def conversation(self, scope: str, conversation: str) -> Conversation:
        raise UnknownConversation(f"{scope} {conversation}")

    def revision(self, scope: str, conversation: str) -> str | None:
        raise UnknownConversation(f"{scope} {conversation}")

    def conversations(self) -> list[tuple[str, str]]:
        return []


# --- the whole ledger, and what changed ---------------------------------------------------------


def test_an_overview_counts_every_conversation(filled: Parts) -> None:
    (one,) = ledger_of(filled).replay_all(Moment()).conversations
    assert (one.scope, one.conversation) == (SCOPE, CONVERSATION)
    assert sum(one.ranges.values()) == 6
    found = then(filled)
    assert one.claimable == sum(each.claimable for each in found.ranges) == 1
    assert one.valid == sum(each.validity == "valid" for each in found.summaries) == 2
    assert one.excluded == 1  # of mixed input
    assert one.chunks == sum(row.stands for row in found.chunks)
    assert one.pins == 2
    assert one.requests == 3
    assert ledger_of(filled).replay_all(Moment(-1)).conversations == []
    assert ledger_of(filled).replay_all(Moment(), scope="another").conversations == []


def test_what_changed_applied_to_the_first_state_is_the_second(filled: Parts) -> None:
    ledger = ledger_of(filled)
    size = ledger.size()
    for start, end in ((-1, size - 1), (2, 2), (4, 12), (12, 30), (size - 3, size - 1)):
        found = ledger.diff(Moment(start), Moment(end))
        before = state(filled, start)
        for change in found.changes:
            assert before.get(key(change.after)) == change.before
            assert start < change.index <= end
            before[key(change.after)] = change.after
        assert before == state(filled, end)
        indices = [change.index for change in found.changes]
        assert indices == sorted(indices)


def test_each_change_names_its_event(filled: Parts) -> None:
    found = ledger_of(filled).diff(Moment(-1), Moment(2), CONVERSATION, scope=SCOPE)
    assert {change.index for change in found.changes} == {2}
    assert [(one.after, one.index) for one in found.validity] == [("valid", 2)]
    everything = ledger_of(filled).diff(Moment(-1), Moment()).changes
    pins = [change for change in everything if isinstance(change.after, WindowPinRow)]
    assert len(pins) == 3
    for change in pins:  # the first one is changed by its correction
        corrected = isinstance(change.after, WindowPinRow) and change.after.superseded_by == "p3"
        assert (change.index == change.after.index) == (not corrected)  # type: ignore[union-attr]
    assert ledger_of(filled).diff(Moment(-1), Moment(2), "another").changes == []


def test_a_newer_source_is_an_event_of_its_own(parts: Parts) -> None:
    fill(parts, 40)
    Worker(parts, present_job(parts)).complete()
    parts.transcripts.revise(SCOPE, CONVERSATION, "u3", "Another question.")
    Worker(parts, present_job(parts), "again").complete()
    Worker(parts, present_job(parts, model=OTHER_MODEL), "other").exhaust()
    found = ledger_of(parts).diff(Moment(2), Moment(), CONVERSATION, scope=SCOPE)
    assert [(one.before, one.after, one.index) for one in found.validity] == [
        ("valid", "older_source", 3),
        (None, "valid", 5),
    ]
    (change,) = [one for one in found.changes if isinstance(one.after, RangeRow)]
    assert change.source_index == 3


def test_a_failed_attempt_is_a_change_and_no_validity(parts: Parts) -> None:
    fill(parts)
    worker = Worker(parts, present_job(parts))
    worker.claim()
    worker.start()
    worker.finish(TRUNCATED)
    found = ledger_of(parts).diff(Moment(1), Moment(2))
    assert {type(change.after).__name__ for change in found.changes} == {
        *("RangeRow", "SummaryRow", "AttemptRow"),
    }
    assert list(found.validity) == []


# --- nothing is written -------------------------------------------------------------------------


def test_review_appends_nothing_and_moves_no_row(filled: Parts) -> None:
    ledger = ledger_of(filled)
    before = ledger.size(), filled.read_models.snapshot(), list(ledger.events())
    then(filled, 5)
    ledger.replay_all(Moment(5))
    ledger.diff(Moment(-1), Moment())
    ledger.delivered("run-1")
    assert (ledger.size(), filled.read_models.snapshot(), list(ledger.events())) == before


@pytest.mark.slow_on("postgres")
def test_a_session_that_may_only_read_is_enough(store: Stored) -> None:
    parts = store.open()
    fill(parts, 80)
    every_kind(parts)
    every_window_kind(parts)
    expected = then(parts, 12)
    with Ledger.open(place(store), create=False, read_only=True) as reading:
        found = reading.replay(CONVERSATION, Moment(12), scope=SCOPE)
        assert found == expected
        assert len(reading.diff(Moment(-1), Moment(12)).changes) > 0
        assert reading.replay_all(Moment(12)).conversations
        assert len(reading.delivered("run-1").requests) == 1
