"""Counts, measures and gauges."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from backends import Clock
from histories import CONVERSATION, SCOPE, TRUNCATED, Worker, key_of, lines, present_job
from kept_processes import wait_until
from scenarios import MODEL, good
from watched import Watched

from compaction_ledger import (
    Answer,
    DamagedLog,
    FinishFacts,
    Ledger,
    Pace,
    Settings,
    SignalStop,
    StoreError,
    SummaryRequest,
    Usage,
)
from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.infrastructure.telemetry.names import COUNTERS, GAUGES, MEASURES
from compaction_ledger.serving import Listener
from compaction_ledger.usecases.renewing import Renewal, renewing
from compaction_ledger.usecases.working import LookFailure

DURATION = "gen_ai.client.inference.duration"
INPUT = "gen_ai.client.inference.usage.input_tokens"
OUTPUT = "gen_ai.client.inference.usage.output_tokens"
ATTEMPTS = "compaction_ledger.attempts"
RENEWALS = "compaction_ledger.renewals"
ERRORS = "compaction_ledger.work.errors"
LAG = "compaction_ledger.projection.lag"
BACKLOG = "compaction_ledger.work.backlog"
RESULT, ERROR, STATE = "compaction_ledger.result", "error.type", "compaction_ledger.work.state"
PLACE = (SCOPE, CONVERSATION)


class Model:
    """A model that gives its answers in turn; something may happen meanwhile."""

    model = MODEL

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.meanwhile: Callable[[], object] = lambda: None

    def summarize(self, request: SummaryRequest) -> Answer:
        self.meanwhile()
        return self.answers.pop(0)


def compact(ledger: Ledger, *answers: Answer) -> None:
    ledger.compact(CONVERSATION, scope=SCOPE, summarizer=Model(*answers))


def breaking(monkeypatch: pytest.MonkeyPatch, of: object, name: str, error: Exception) -> None:
    def broken(*_words: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(of, name, broken)


# --- calls of a model -----------------------------------------------------------------------------


def test_tokens_are_added_up(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, TRUNCATED, good())
    chat = (
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", MODEL.provider),
        ("gen_ai.request.model", MODEL.name),
        ("gen_ai.token.modality", "text"),
    )
    assert watched.numbers(INPUT) == {chat: 200}
    assert watched.numbers(OUTPUT) == {chat: 15}


def test_what_the_provider_did_not_count_is_not_counted(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, Answer("A summary.", FinishFacts(("stop",)), Usage(None, 3)))
    assert watched.numbers(INPUT) == {}
    assert sum(watched.numbers(OUTPUT).values()) == 3


def test_durations_by_what_the_call_failed_with(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, TRUNCATED, good())
    assert watched.by(DURATION, ERROR) == {"truncated": 1, None: 1}
    assert dict(next(iter(watched.numbers(DURATION)))).keys() <= {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "error.type",
    }


def test_the_buckets_are_those_of_the_conventions() -> None:
    buckets = MEASURES["attempt_seconds"].buckets
    assert (len(buckets), buckets[0], buckets[4], buckets[-1]) == (14, 0.01, 0.16, 81.92)


def test_an_attempt_whose_end_cannot_be_recorded(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, log = Model(good()), ledger._parts.context.log
    model.meanwhile = lambda: breaking(monkeypatch, log, "append", StoreUnavailable("gone"))
    with pytest.raises(StoreUnavailable):
        ledger.compact(CONVERSATION, scope=SCOPE, summarizer=model)
    assert watched.by(ATTEMPTS, RESULT, ERROR) == {("unrecorded", "store_unavailable"): 1}


# --- renewals -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, ("renewed", None)),
        (StoreUnavailable("gone"), ("failed", "store_unavailable")),
        (ZeroDivisionError(), ("failed", "ZeroDivisionError")),
    ],
)
def test_renewals_of_a_call_that_lasts(
    watched: Watched,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
    told: tuple[str, str | None],
) -> None:
    with Ledger.in_memory(settings=Settings(lease_seconds=3.0)) as ledger:
        ledger.transcripts.append(*PLACE, *lines(30))
        model = Model(good())

        def wait_for_renewal() -> None:
            with monkeypatch.context() as patch:
                if error is not None:
                    breaking(patch, ledger._parts.context.log, "append", error)
                wait_until(lambda: bool(watched.numbers(RENEWALS)))

        model.meanwhile = wait_for_renewal
        ledger.compact(CONVERSATION, scope=SCOPE, summarizer=model)
    assert told in watched.by(RENEWALS, RESULT, ERROR)


def test_a_renewal_that_is_refused(watched: Watched) -> None:
    with Ledger.in_memory() as ledger:
        ledger.transcripts.append(*PLACE, *lines(30))
        job = present_job(ledger._parts)
        renewal = Renewal(
            ledger._parts.context.log, key_of(job), "nobody", 30_000, watched.telemetry
        )
        with renewing(renewal, 60_000_000):
            wait_until(lambda: bool(watched.numbers(RENEWALS)))
    assert watched.by(RENEWALS, RESULT, ERROR) == {("refused", "not_the_holder"): 1}


# --- workers --------------------------------------------------------------------------------------


def test_errors_that_a_worker_goes_on_after(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compaction_ledger.serving.FIRST_AWAY", 0.05)
    stop, told = SignalStop(), Told()
    breaking(monkeypatch, ledger.transcripts, "conversation", DamagedLog("damaged"))
    pace = Pace(threads=1, poll=0.05, discover=0.05)

    def work() -> None:
        ledger.work(summarizer=Model(), stop=stop, pace=pace, listener=told)

    worker = Thread(target=work)
    worker.start()
    try:
        told.failure.wait(30)
        with monkeypatch.context() as patch:
            breaking(patch, ledger._parts.work, "take", StoreUnavailable("gone"))
            told.away.wait(30)
    finally:
        stop.request()
        worker.join(30)
    counted = watched.by(ERRORS, ERROR)
    assert counted.keys() == {"damaged_log", "store_unavailable"}
    assert counted["damaged_log"] == 1


class Told(Listener):
    """Knows what was told."""

    def __init__(self) -> None:
        self.failure, self.away = Event(), Event()

    def failed(self, failure: LookFailure) -> None:
        self.failure.set()

    def store_away(self, error: StoreError) -> None:
        self.away.set()


# --- gauges ---------------------------------------------------------------------------------------


def test_how_far_the_read_models_are_behind(ledger: Ledger, watched: Watched) -> None:
    assert watched.numbers(LAG) == {(): 0}
    Worker(ledger._parts, present_job(ledger._parts)).complete()
    assert watched.numbers(LAG) == {(): 3}
    ledger.catch_up()
    assert watched.numbers(LAG) == {(): 0}


def test_the_backlog_by_state(ledger: Ledger, watched: Watched, clock: Clock) -> None:
    work = ledger._parts.work
    ledger.notice([(SCOPE, name) for name in "abcd"])
    [item] = work.take("w", 1, 300)
    work.looked(item, clock.now + 1_000_000, None)
    work.take("w", 1, 300)
    assert watched.by(BACKLOG, STATE) == {"due": 2, "leased": 1, "waiting": 1}


def test_of_several_ledgers_the_greatest_number(ledger: Ledger, watched: Watched) -> None:
    ledger.notice([PLACE])
    with Ledger.in_memory() as other:
        other.notice([(SCOPE, "a"), (SCOPE, "b")])
        assert watched.by(BACKLOG, STATE)["due"] == 2
    assert watched.by(BACKLOG, STATE)["due"] == 1


def test_a_closed_ledger_is_not_asked(watched: Watched, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db"):
        assert watched.metrics() == {LAG, BACKLOG}
    assert watched.metrics() == set()


@pytest.mark.slow
def test_nor_is_one_that_is_gone(watched: Watched) -> None:
    Ledger.in_memory()
    gc.collect()
    assert watched.metrics() == set()


def test_a_store_that_is_away_leaves_a_gap(
    ledger: Ledger,
    watched: Watched,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaking(monkeypatch, ledger._parts.work, "backlog", StoreUnavailable("secret"))
    with caplog.at_level(logging.WARNING):
        assert watched.metrics() == {LAG}
        assert watched.metrics() == {LAG}
    assert [record.getMessage() for record in caplog.records] == [
        "some telemetry is lost, which is told once: StoreUnavailable"
    ]


def test_no_name_stands_twice() -> None:
    names = [shape.name for table in (COUNTERS, MEASURES, GAUGES) for shape in table.values()]
    assert len(set(names)) == len(names)
