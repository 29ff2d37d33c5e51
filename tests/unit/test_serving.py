"""The loop of a worker: what ends it, what it lives through, and what it leaves behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from histories import SCOPE, lines
from kept_processes import wait_until
from scenarios import MODEL, good

from compaction_ledger import InvalidSetting, Ledger, SignalStop, StoreError
from compaction_ledger.domain.errors import DamagedLog, StoreUnavailable
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.serving import SILENCE, Activity, Listener, Pace, Served
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.working import LookFailure


class Model:
    """A model whose calls can be kept waiting, and interrupted."""

    model = MODEL

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = Event()
        self.go_on.set()
        self.cancelled = Event()
        self.error: Exception | None = None

    def summarize(self, request: SummaryRequest) -> Answer:
        self.asked += 1
        if self.error is not None:
            raise self.error
        while not self.go_on.wait(0.01):
            if self.cancelled.is_set():
                return Answer(fault="cancelled")
        return good()

    def cancel(self) -> None:
        self.cancelled.set()


class Ear(Listener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def range_done(self, scope: str, conversation: str, outcome: RangeOutcome) -> None:
        self.told.append(outcome.result)

    def failed(self, failure: LookFailure) -> None:
        self.told.append(failure.code)

    def store_away(self, error: StoreError) -> None:
        self.told.append("away")

    def store_back(self) -> None:
        self.told.append("back")


class Running:
    """A worker in a thread of its own."""

    def __init__(self, ledger: Ledger, model: Model, pace: Pace) -> None:
        self.stop = SignalStop()
        self.hurry = Event()
        self.ear = Ear()
        self.activity = Activity()
        self.served: Served | None = None
        self.error: Exception | None = None

        def run() -> None:
            try:
                self.served = ledger.work(
                    summarizer=model,
                    stop=self.stop,
                    pace=pace,
                    listener=self.ear,
                    activity=self.activity,
                    hurry=self.hurry,
                )
            except Exception as error:  # noqa: BLE001 - told to the test
                self.error = error

        self._thread = Thread(target=run)
        self._thread.start()

    def end(self) -> Served:
        self.stop.request()
        return self.join()

    def join(self) -> Served:
        self._thread.join(30)
        assert self.error is None, self.error
        assert self.served is not None
        return self.served


FAST = Pace(threads=2, poll=0.05, discover=0.05)
ONCE = Pace(threads=2, until_idle=True)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Three conversations of two ranges each."""
    with Ledger.in_memory() as opened:
        for name in "abc":
            opened.transcripts.append(SCOPE, name, *lines(40))
        yield opened


@pytest.fixture
def model() -> Model:
    return Model()


@contextmanager
def working(ledger: Ledger, model: Model, pace: Pace = FAST) -> Iterator[Running]:
    running = Running(ledger, model, pace)
    try:
        yield running
    finally:
        model.go_on.set()
        running.stop.request()
        running._thread.join(30)


def done(ledger: Ledger) -> int:
    return sum(row.status == "done" for row in ledger.ranges())


def breaking(monkeypatch: pytest.MonkeyPatch, of: object, name: str, error: Exception) -> None:
    def broken(*_words: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(of, name, broken)


# --- what it does ---------------------------------------------------------------------------------


def test_until_nothing_is_due(ledger: Ledger, model: Model) -> None:
    served = ledger.work(summarizer=model, pace=ONCE)
    assert served == Served(
        {"conversations": 3, "discovered": 3, "ranges_completed": 6}, stopped=False
    )
    assert done(ledger) == 6
    assert ledger.work(summarizer=model, pace=ONCE).counts == {"discovered": 0}


def test_who_looked_before_anything_was_discovered_looks_again(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity, work = Activity(), ledger._parts.work
    take = work.take

    def slowly(holder: str, limit: int, lease: float) -> Any:
        taken = take(holder, limit, lease)
        wait_until(lambda: "discovered" in activity.condition().counts)
        return taken

    monkeypatch.setattr(work, "take", slowly)
    discover = work.discover

    def late(*given: Any, **named: Any) -> Any:
        time.sleep(0.2)
        return discover(*given, **named)

    monkeypatch.setattr(work, "discover", late)
    pace = Pace(threads=1, until_idle=True)
    assert ledger.work(summarizer=model, pace=pace, activity=activity).counts["conversations"] == 3


def test_it_goes_on_and_finds_what_changed(ledger: Ledger, model: Model) -> None:
    with working(ledger, model) as running:
        wait_until(lambda: done(ledger) == 6)
        ledger.transcripts.append(SCOPE, "b", *lines(10, start=40))
        wait_until(lambda: done(ledger) == 7)
        served = running.end()
    assert served.stopped
    assert running.ear.told == ["completed"] * 7
    assert ledger.backlog().leased == 0


def test_a_notice_is_faster_than_the_search(ledger: Ledger, model: Model) -> None:
    with working(ledger, model, Pace(poll=0.05, discover=3_600)):
        wait_until(lambda: done(ledger) == 6)
        ledger.transcripts.append(SCOPE, "b", *lines(10, start=40))
        assert ledger.notice([(SCOPE, "b")]) == 1
        wait_until(lambda: done(ledger) == 7)


def test_threads_make_calls_at_once(ledger: Ledger, model: Model) -> None:
    model.go_on.clear()
    with working(ledger, model, Pace(threads=3)) as running:
        wait_until(lambda: model.asked == 3)
        assert running.activity.condition().busy == 3
        assert ledger.backlog().leased == 3
        model.go_on.set()
        wait_until(lambda: done(ledger) == 6)


def test_a_model_that_is_not_the_last_one_looks_at_everything_anew(
    ledger: Ledger, model: Model
) -> None:
    ledger.work(summarizer=model, pace=ONCE)

    class Other(Model):
        model = type(MODEL).of("example.org", "other")

    assert ledger.work(summarizer=Other(), pace=ONCE).counts["conversations"] == 3


# --- the end --------------------------------------------------------------------------------------


def test_a_call_that_is_under_way_may_end(ledger: Ledger, model: Model) -> None:
    model.go_on.clear()
    with working(ledger, model) as running:
        wait_until(lambda: model.asked == 2)
        running.stop.request()
        wait_until(lambda: running.activity.condition().draining)
        model.go_on.set()
        served = running.join()
    assert (done(ledger), model.asked, served.abandoned) == (2, 2, 0)
    assert ledger.backlog().leased == 0
    assert not model.cancelled.is_set()


@pytest.mark.parametrize("hurries", [False, True])
def test_but_not_for_ever(ledger: Ledger, model: Model, hurries: bool) -> None:
    model.go_on.clear()
    pace = Pace(threads=2, drain=3_600 if hurries else 0.2)
    with working(ledger, model, pace) as running:
        wait_until(lambda: model.asked == 2)
        running.stop.request()
        if hurries:
            running.hurry.set()
        served = running.join()
    assert served.abandoned == 0
    assert model.cancelled.is_set()
    attempts = [row for name in "abc" for row in ledger.attempts(name, scope=SCOPE)]
    assert [row.failure for row in attempts] == ["cancelled", "cancelled"]
    assert {row.status for row in ledger.ranges()} == {"failed"}  # nobody holds a claim
    assert ledger.backlog().leased == 0


@pytest.mark.slow
def test_what_cannot_be_interrupted_is_left(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compaction_ledger.serving.INTERRUPTED", 0.2)
    monkeypatch.setattr(Model, "cancel", lambda _: None)
    model.go_on.clear()
    with working(ledger, model, Pace(threads=2, drain=0.1)) as running:
        wait_until(lambda: model.asked == 2)
        assert running.end().abandoned == 2


def test_a_summarizer_that_is_set_wrongly_ends_it(ledger: Ledger, model: Model) -> None:
    model.error = InvalidSetting("no key")
    with pytest.raises(InvalidSetting, match="no key"):
        ledger.work(summarizer=model, pace=FAST)


def test_so_does_a_defect_of_its_own(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, ledger._parts.work, "take", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        ledger.work(summarizer=model, pace=FAST)


def test_an_interrupted_caller_leaves_nothing_behind(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting(SignalStop):
        @property
        def requested(self) -> bool:
            if done(ledger) == 6:
                raise KeyboardInterrupt
            return False

    with pytest.raises(KeyboardInterrupt):
        ledger.work(summarizer=model, pace=FAST, stop=Interrupting())
    assert ledger.backlog().leased == 0


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_error_of_one_conversation_delays_that_one(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ledger.transcripts.conversation

    def conversation(scope: str, name: str) -> Any:
        if name == "b":
            raise DamagedLog("damaged")
        return known(scope, name)

    monkeypatch.setattr(ledger.transcripts, "conversation", conversation)
    with working(ledger, model) as running:
        wait_until(lambda: done(ledger) == 4)
        time.sleep(0.3)
        served = running.end()
    assert running.ear.told.count("damaged_log") == 1
    assert served.counts["failures"] == 1
    assert ledger.backlog().waiting == 1


@pytest.mark.slow
def test_it_waits_for_the_store_and_goes_on(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compaction_ledger.serving.FIRST_AWAY", 0.05)
    model.go_on.clear()
    with working(ledger, model, Pace(threads=1, poll=0.05, discover=0.05)) as running:
        wait_until(lambda: model.asked == 1)
        for of, name in (
            (ledger._parts.work, "take"),
            (ledger._parts.work, "looked"),
            (ledger._parts.work, "discover"),
            (ledger._parts.context.log, "append"),
        ):
            breaking(monkeypatch, of, name, StoreUnavailable("gone"))
        model.go_on.set()
        wait_until(lambda: "away" in running.ear.told)
        time.sleep(0.2)
        monkeypatch.undo()
        ledger.transcripts.append(SCOPE, "d", *lines(40))
        wait_until(lambda: "back" in running.ear.told)
        wait_until(lambda: len([row for row in ledger.ranges() if row.conversation == "d"]) == 2)
        running.end()
    assert running.ear.told.count("away") == 1
    assert ledger.backlog().leased == 0  # what was under way was given back


def test_who_works_until_nothing_is_due_does_not_wait_for_the_store(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, ledger._parts.work, "take", StoreUnavailable("gone"))
    with pytest.raises(StoreUnavailable):
        ledger.work(summarizer=model, pace=ONCE)


def test_transcripts_that_cannot_be_listed_are_asked_again(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, ledger._parts.work, "discover", OSError("the host's own error"))
    with working(ledger, model) as running:
        wait_until(lambda: running.activity.condition().counts.get("failures", 0) > 1)
        monkeypatch.undo()
        wait_until(lambda: done(ledger) == 6)


def test_unless_nobody_would_ask_again(
    ledger: Ledger, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, ledger._parts.work, "discover", OSError("the host's own error"))
    with pytest.raises(OSError, match="the host's own error"):
        ledger.work(summarizer=model, pace=ONCE)


# --- how it is ------------------------------------------------------------------------------------


def test_it_is_ready_while_the_store_answers(ledger: Ledger, model: Model) -> None:
    with working(ledger, model) as running:
        wait_until(lambda: running.activity.condition().trouble is None)
        running.end()
    assert running.activity.condition().trouble == "it is about to end"


def test_what_makes_it_unready() -> None:
    now = 100.0
    activity = Activity(lambda: now)
    activity.begin(2, stall=60)
    assert activity.condition().trouble == "the store does not answer"
    activity.answered()
    assert activity.condition().trouble is None
    now += SILENCE + 1
    assert activity.condition().trouble == "the store does not answer"
    now += 60
    activity.answered()
    activity.alive(0)
    assert activity.condition().trouble == "a thread has not ended its turn for long"
    activity.alive(1)
    assert activity.condition().trouble is None


WRONG: list[Callable[[], Pace]] = [
    lambda: Pace(threads=0),
    lambda: Pace(ranges=0),
    lambda: Pace(poll=0),
    lambda: Pace(discover=float("nan")),
    lambda: Pace(drain=-1),
]


@pytest.mark.parametrize("make", WRONG)
def test_a_pace_is_checked(make: Callable[[], Pace]) -> None:
    with pytest.raises(InvalidSetting):
        make()


def test_the_log_of_the_process_is_told_where_nobody_listens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ear = Listener()
    ear.failed(LookFailure("s", "a-name", "damaged_log", "a-name is damaged", 2))
    ear.store_away(StoreUnavailable("gone"))
    ear.store_back()
    assert "a conversation met damaged_log" in caplog.text
    assert "gone" in caplog.text
    assert "a-name" not in caplog.text
