"""The port ``Log`` with the facts of windows, on every backend: as with ranges, in streams of their own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from at_once import all_at_once
from backends import SECOND, START, Backend
from chunk_scenarios import (
    AB,
    OTHER_WINDOW,
    SUMMARY,
    WINDOW,
    A,
    B,
    C,
    chunk,
    claimed,
    done,
    pin,
    verdict,
    window_delivery,
)
from facts import delivery
from histories import CONVERSATION, LEASE, SCOPE, Worker, made_up_job
from window_histories import ChunkWorker, complete, every_window_kind, hold

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    ChunkOverlaps,
    ConcurrentAppend,
    DamagedLog,
    DifferentResult,
    LeaseExpired,
    NotTheHolder,
    PinRefused,
    TimeHasPassed,
)
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.window_stream import EMPTY, current_pins, fold
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.cipher import PLAIN
from compaction_ledger.infrastructure.event_store.streams import range_stream, window_stream
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.renewing import Renewal, renewing
from compaction_ledger.usecases.window_session import WindowSession


def kinds(log: Log) -> list[str]:
    """The kinds of all facts."""
    return [type(entry.fact).__name__ for entry in log.read(0, 100)]


# --- append, load, read ---------------------------------------------------------------------------------


def test_a_window_of_which_nothing_is_known(parts: Parts) -> None:
    log = parts.context.log
    assert log.load_window(WINDOW) == EMPTY
    assert list(log.history(WINDOW)) == []
    assert log.size() == 0


def test_facts_come_back_as_they_were_appended(parts: Parts) -> None:
    log = parts.context.log
    first = [*done(A), pin()]
    assert log.append(WINDOW, EMPTY, first) == [0, 1, 2, 3]
    rest = [pin("p2", 6, "p1"), *done(B, AB)]
    assert log.append(WINDOW, fold(first), rest) == [4, 5, 6, 7, 8, 9, 10]
    entries = log.history(WINDOW)
    assert [entry.fact for entry in entries] == [*first, *rest]
    assert [entry.version for entry in entries] == list(range(1, 12))
    assert len({entry.stream for entry in entries}) == 1
    state = log.load_window(WINDOW)
    assert state == fold([*first, *rest])
    assert [one.version for one in state.chunks] == [11]
    assert [held.pin_id for held in current_pins(state)] == ["p2"]
    assert list(log.verify()) == []


def test_another_session_loads_the_same_and_other_windows_are_others(backend: Backend) -> None:
    complete(backend.open(), A)
    log = backend.open().context.log
    assert [one.identity for one in log.load_window(WINDOW).chunks] == [A.identity]
    for other in (
        OTHER_WINDOW,
        replace(WINDOW, conversation="c-2"),
        replace(WINDOW, scope="tenant-2"),
    ):
        assert log.load_window(other) == EMPTY
        assert list(log.history(other)) == []


def test_windows_and_ranges_of_one_conversation_are_never_mixed(parts: Parts) -> None:
    """A run may be called whatever a range's place in the streams is called."""
    log, window = parts.context.log, WindowKey(SCOPE, CONVERSATION, "0")
    Worker(parts, made_up_job()).complete()
    complete(parts, chunk(1, 5, window=window))
    assert len(log.history(window)) == len(log.history(RangeKey(SCOPE, CONVERSATION, 0))) == 3
    names = [
        range_stream("s", RangeKey(SCOPE, CONVERSATION, 0)),
        window_stream("s", window),
        window_stream("s", replace(window, run="range/0")),
    ]
    assert len(set(names)) == 3


def test_a_fact_that_is_none_of_the_stream_is_damage(parts: Parts) -> None:
    log = parts.context.log
    log.append(WINDOW, EMPTY, [pin()])
    log.append(RangeKey(SCOPE, CONVERSATION, 0), cast(Any, EMPTY), [pin()])
    with pytest.raises(DamagedLog):
        log.load(RangeKey(SCOPE, CONVERSATION, 0))


@pytest.mark.parametrize("run", ["läuft/😀", "window-delivery/d-1", "a" * 512])
def test_a_run_may_be_called_anything(parts: Parts, run: str) -> None:
    job = chunk(0, 2, window=replace(WINDOW, run=run))
    complete(parts, job)
    assert parts.context.log.load_window(job.window).chunks[0].identity == job.identity


def test_text_in_any_script_comes_back(parts: Parts) -> None:
    text = '{"entities":["基金 A 每年收 0.3 %。 😀 e\u0301 \u202e \u2028 \\u0000"]}'
    held = replace(pin(), quote="不要坚果 😀\u202e\x00\x01 é", start=0, end=11)
    ChunkWorker(parts).complete(text)
    hold(parts, held)
    facts = [entry.fact for entry in parts.context.log.history(WINDOW)]
    assert facts[-1] == held
    assert getattr(facts[2], "text", None) == text


def test_deliveries_have_a_stream_each(parts: Parts) -> None:
    log = parts.context.log
    assert log.deliver(window_delivery("d-1")) == 0
    assert log.deliver(delivery("d-1")) == 1  # one of the conversation, with the same id
    assert log.deliver(window_delivery("d-2")) == 2
    assert log.deliver(window_delivery("d-1")) == 0  # its acknowledgement was lost (A2)
    with pytest.raises(DifferentResult):
        log.deliver(replace(window_delivery("d-1"), tokens=901))
    entries = log.read(0, 10)
    assert len({entry.stream for entry in entries}) == 3
    assert entries[0].fact == window_delivery("d-1")


# --- A8: two that claim at once -------------------------------------------------------------------------


def test_a8_of_many_that_claim_at_once_exactly_one_wins(backend: Backend) -> None:
    sessions = [backend.open() for _ in range(4)]
    runs = [replace(WINDOW, run=f"run-{number}") for number in range(5)]

    def claim_all(number: int, wait: Callable[[], object]) -> list[str]:
        won: list[str] = []
        for window in runs:
            wait()
            try:
                ChunkWorker(sessions[number], chunk(1, 5, window=window), f"w{number}").claim()
            except AlreadyClaimed:
                continue
            won.append(window.run)
        return won

    won = [run for found in all_at_once(len(sessions), claim_all) for run in found]
    assert sorted(won) == [window.run for window in runs]
    log = sessions[0].context.log
    assert log.size() == len(runs)
    assert list(log.verify()) == []


def test_a8_of_two_that_overlap_one_wins_whatever_they_saw_before(backend: Backend) -> None:
    first = ChunkWorker(backend.open(), chunk(1, 5), "first")
    second = ChunkWorker(backend.open(), chunk(1, 9), "second")
    assert first.session.state == second.session.state == EMPTY
    first.claim()
    with pytest.raises(ChunkOverlaps):
        second.claim()
    assert kinds(first.parts.context.log) == ["ChunkClaimed"]


def test_a8_a_stale_state_is_refused_by_the_stores_key(backend: Backend) -> None:
    one, other = backend.open().context.log, backend.open().context.log
    one.append(WINDOW, EMPTY, [claimed(A)])
    with pytest.raises(ConcurrentAppend):
        other.append(WINDOW, EMPTY, [claimed(chunk(1, 9))])
    assert one.size() == 1


def test_a_pin_and_a_chunk_that_come_at_once_are_both_there(backend: Backend) -> None:
    worker = ChunkWorker(backend.open())
    worker.claim()
    hold(backend.open(), pin())
    worker.start()
    worker.finish()
    assert [one.version for one in worker.session.state.chunks] == [4]
    with pytest.raises(PinRefused):
        hold(backend.open(), replace(pin(), message=4))


# --- A9: an answer that was lost ------------------------------------------------------------------------


class LosingAnswers:
    """A log whose appends are stored, and answered with an error: the connection died meanwhile."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, *arguments: Any) -> Sequence[int]:
        self._log.append(*arguments)
        raise ConcurrentAppend("who knows")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.mark.parametrize(
    ("before", "act"),
    [
        ([], ChunkWorker.claim),
        ([ChunkWorker.claim], ChunkWorker.start),
        ([ChunkWorker.claim, ChunkWorker.start], ChunkWorker.finish),
        ([ChunkWorker.claim, ChunkWorker.start], ChunkWorker.fail),
        ([ChunkWorker.claim], ChunkWorker.release),
    ],
)
def test_a9_what_was_stored_though_its_answer_was_lost_is_done_already(
    parts: Parts,
    before: Sequence[Callable[[ChunkWorker], object]],
    act: Callable[[ChunkWorker], Any],
) -> None:
    worker = ChunkWorker(parts)
    for step in before:
        step(worker)
    worker.session = WindowSession(cast(Log, LosingAnswers(parts.context.log)), WINDOW)
    assert act(worker).already
    assert parts.context.log.size() == len(before) + 1
    assert act(worker).already
    assert parts.context.log.size() == len(before) + 1


def test_a9_a_pin_whose_answer_was_lost_is_done_already(parts: Parts) -> None:
    assert not hold(parts, pin()).already
    assert hold(parts, pin()).already
    assert hold(parts, pin("p9")).already
    assert parts.context.log.size() == 1


# --- A4, A5: leases -------------------------------------------------------------------------------------


def test_a5_whoever_takes_over_records_the_expiry_and_the_late_one_is_refused(
    backend: Backend,
) -> None:
    late = ChunkWorker(backend.open(), A, "late")
    late.claim()
    late.start()
    backend.clock.advance(LEASE / SECOND)
    taker = ChunkWorker(backend.open(), chunk(1, 9), "taker")
    taker.claim()
    with pytest.raises(NotTheHolder):
        late.finish()
    taker.start()
    taker.finish()
    assert kinds(late.parts.context.log) == [
        *("ChunkClaimed", "ChunkAttemptStarted"),
        *("ChunkAttemptFailed", "ChunkClaimReleased"),
        *("ChunkClaimed", "ChunkAttemptStarted", "ChunkCompleted"),
    ]
    assert [(c.first, c.last) for c in taker.session.state.chunks] == [(1, 9)]


def test_a5_a_decision_that_no_longer_holds_is_not_stored(parts: Parts) -> None:
    log = parts.context.log
    with pytest.raises(TimeHasPassed):
        log.append(WINDOW, EMPTY, [claimed()], (START + 1, START + 9))
    assert log.size() == 0


def test_a5_a_lease_that_ends_before_the_append_is_recorded_rather_than_the_finish(
    backend: Backend,
) -> None:
    worker = ChunkWorker(backend.open())
    worker.claim()
    worker.start()
    append, advance = worker.parts.context.log.append, [LEASE / SECOND]

    class Slow(LosingAnswers):
        def append(self, *arguments: Any) -> Sequence[int]:
            if advance:
                backend.clock.advance(advance.pop())
            return append(*arguments)

    worker.session = WindowSession(cast(Log, Slow(worker.parts.context.log)), WINDOW)
    with pytest.raises(LeaseExpired):
        worker.finish()
    assert kinds(worker.parts.context.log)[2:] == ["ChunkAttemptFailed", "ChunkClaimReleased"]


def test_a5_a_lease_goes_on_while_its_attempt_does(backend: Backend) -> None:
    worker = ChunkWorker(backend.open())
    lease = 60_000
    worker.claim(lease)
    worker.start(lease=lease)
    backend.clock.advance(lease / 2 / SECOND)
    renewal = Renewal(worker.parts.context.log, WINDOW, worker.claim_id, lease)
    log = worker.parts.context.log
    with renewing(renewal, 60 * SECOND):
        until = time.monotonic() + 30
        while log.size() < 3 and time.monotonic() < until:
            time.sleep(0.005)
    assert kinds(log)[2:3] == ["ChunkClaimRenewed"]


# --- the seal and its verification ----------------------------------------------------------------------


def test_every_kind_is_sealed_and_read_back(backend: Backend) -> None:
    parts = backend.open()
    every_window_kind(parts)
    log = parts.context.log
    assert list(log.verify()) == []
    found = set(kinds(log))
    assert found >= {
        "ChunkClaimed",
        "ChunkAttemptStarted",
        "ChunkClaimRenewed",
        "ChunkAttemptFailed",
        "ChunkCompleted",
        "ChunkClaimReleased",
        "PinAccepted",
        "WindowDelivered",
    }


def test_an_envelope_says_nothing_of_what_it_seals(backend: Backend) -> None:
    """No payload, no id that can be guessed (L3), also where a run has a telling name."""
    window = replace(WINDOW, run="invoice-4711")
    parts = backend.open()
    complete(parts, chunk(1, 5, window=window))
    hold(parts, replace(pin("pin-of-acme"), window=window))
    rows = backend.recorder().rows(0, 100)
    assert len({json.loads(row.envelope)["subject"] for row in rows}) == 1
    for row in rows:
        text = row.envelope.decode()
        for word in ("invoice-4711", "acme", SCOPE, "nuts", A.identity, A.source_hash, SUMMARY):
            assert word not in text


@pytest.mark.parametrize(
    "begin",
    [
        lambda log: log.append(WINDOW, EMPTY, [claimed()]),
        lambda log: log.append(WINDOW, EMPTY, [pin()]),
        lambda log: log.deliver(window_delivery()),
    ],
    ids=["chunk", "pin", "delivery"],
)
def test_verification_compares_a_reference_with_the_conversation_of_its_facts(
    begin: Callable[[Log], object], backend: Backend
) -> None:
    parts = backend.open()
    begin(parts.context.log)
    log = LedgerLog(cast(Any, Renamed(backend.recorder())), backend.open().ring or PLAIN)
    found = list(log.verify())
    log.close()
    assert [finding.code for finding in found] == ["subject"]
    assert "another conversation" in found[0].message


class Renamed:
    """A recorder whose references stand for other conversations: as somebody may have changed the table."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    def subjects(self) -> dict[str, Any]:
        known = self._recorder.subjects()
        return {name: one._replace(conversation="c-9") for name, one in known.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)


# --- what the ledger says of them -----------------------------------------------------------------------


def test_the_window_that_a_fact_is_about(parts: Parts) -> None:
    complete(parts, A)
    hold(parts, pin())
    parts.context.log.deliver(window_delivery())
    Worker(parts, made_up_job(10)).complete()
    parts.context.log.deliver(delivery())
    ledger = Ledger(parts, Settings())
    about = [ledger.stream_of(entry) for entry in ledger.events()]
    assert about == [*[WINDOW] * 5, *[RangeKey(SCOPE, CONVERSATION, 10)] * 3, None]
    assert [ledger.range_of(entry) for entry in ledger.events()][:5] == [None] * 5


def test_codes_that_only_windows_know_are_read_back(parts: Parts) -> None:
    worker = ChunkWorker(parts, C)
    worker.claim()
    worker.start()
    worker.finish(worth=verdict("not_smaller", "ungrounded"))
    fact = parts.context.log.history(WINDOW)[2].fact
    assert getattr(fact, "failure", None) == "not_smaller"
    assert getattr(fact, "also", None) == ("ungrounded",)
