"""What belongs to people never goes out: no text, no id, no holder, and no message of an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from watched import Watched

from compaction_ledger import (
    Answer,
    FinishFacts,
    Ledger,
    LedgerError,
    ModelIdentity,
    NewMessage,
    NewRun,
    Pace,
    PromptVersion,
    Stopped,
    SummaryRequest,
    Usage,
)
from compaction_ledger.domain.errors import DamagedLog, StoreUnavailable

MARK = "MARKED"
SCOPE, CHAT, OTHER = f"scope {MARK}", f"chat {MARK}", f"other {MARK}"
MODEL = ModelIdentity.of("openai", "small", {"endpoint": f"{MARK}.example.org"})
STOP = FinishFacts(("stop",), provider_words=(MARK,))


class Model:
    """A model whose answers and errors are full of marks."""

    model = MODEL

    def __init__(self) -> None:
        self.answers: list[Answer | BaseException] = [
            Answer(f"A summary {MARK}.", STOP, Usage(10, 2), detail=MARK),
            Answer(f"Cut {MARK}", FinishFacts(("length",), provider_words=(MARK,)), detail=MARK),
            Answer("", FinishFacts(("tool_call",), 1), Usage(1, 1)),
            Answer(fault="provider_unavailable", detail=f"HTTP 503 {MARK}"),
            RuntimeError(MARK),
            Answer(
                f"Another {MARK}.", STOP
            ),  # in between: three failures in a row would be an outage
            LedgerError(MARK),
            Stopped(MARK),
        ]

    def summarize(self, request: SummaryRequest) -> Answer:
        assert MARK in request.replies[0].text
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def marked(pairs: int) -> tuple[list[NewMessage], list[NewRun]]:
    """Pairs that are marked wherever a mark can stand."""
    messages: list[NewMessage] = []
    runs: list[NewRun] = []
    for n in range(pairs):
        run = f"run {n} {MARK}"
        messages.append(NewMessage(f"q {n} {MARK}", run, "user", f"Question {n} {MARK}?"))
        text = f"Answer {n} {MARK}. " * 20
        messages.append(NewMessage(f"a {n} {MARK}", run, "assistant", text))
        runs.append(NewRun(run))
    return messages, runs


@pytest.fixture
def ledger(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A marked file, whose worker has a marked name."""
    monkeypatch.setattr("compaction_ledger.composition.worker_name", lambda: f"holder {MARK}")
    folder = tmp_path / MARK
    folder.mkdir()
    with Ledger.open(folder / f"{MARK}.db") as opened:
        opened.transcripts.append(SCOPE, CHAT, *marked(90))
        opened.transcripts.append(SCOPE, OTHER, *marked(30))
        yield opened


def everything(ledger: Ledger) -> None:
    """One of each thing that is told."""
    model = Model()
    with suppress(Stopped):
        ledger.compact(CHAT, scope=SCOPE, summarizer=model)
    assert [row.outcome for row in ledger.attempts(CHAT, scope=SCOPE)].count("failed") >= 3
    ledger.compact_all(scope=SCOPE)
    assembly = ledger.assemble(
        CHAT, scope=SCOPE, budget=10**6, system=f"Be {MARK}.", next_user=f"And {MARK}?"
    )
    ledger.record_delivery(assembly, run=f"run 1 {MARK}", delivery_id=f"delivery {MARK}")
    job = ledger.job_of_present_source(
        CHAT, scope=SCOPE, from_pair=0, model=MODEL, prompt=PromptVersion("old", 1)
    )
    with suppress(LedgerError):
        ledger.import_summary(job, f"Imported {MARK}.", origin=f"store {MARK}")
    ledger.rebuild()
    ledger.work(pace=Pace(threads=1, until_idle=True))


def raising(error: BaseException) -> Callable[..., Any]:
    def raises(*_given: object, **_named: object) -> Any:
        raise error

    return raises


ERRORS: list[Exception] = [
    LedgerError(MARK),
    StoreUnavailable(MARK),
    DamagedLog(MARK),
    ZeroDivisionError(MARK),
]


def broken(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thing once more, while something raises what is marked."""
    parts = ledger._parts
    places: list[tuple[object, str]] = [
        (parts.transcripts, "conversation"),
        (parts.read_models, "summaries"),
        (parts.read_models, "catch_up"),
        (parts.read_models, "rebuild"),
        (parts.context.log, "append"),
        (parts.context.log, "at"),
        (parts.admission, "admit"),
        (parts.work, "backlog"),
        (parts.work, "take"),
    ]
    calls: list[Callable[[], object]] = [
        lambda: ledger.compact(CHAT, scope=SCOPE, upgrade=True),
        lambda: ledger.compact(f"unknown {MARK}", scope=SCOPE),
        lambda: ledger.assemble(CHAT, scope=SCOPE, budget=10**6),
        lambda: ledger.assemble(CHAT, scope=SCOPE, budget=1, system=MARK),
        ledger.catch_up,
        ledger.rebuild,
    ]
    for number, (of, name) in enumerate(places):
        ledger.transcripts.append(SCOPE, f"new {number} {MARK}", *marked(30))
        for error in ERRORS:
            with monkeypatch.context() as patch:
                patch.setattr(of, name, raising(error))
                for call in calls:
                    with suppress(LedgerError, ZeroDivisionError):
                        call()
        with monkeypatch.context() as patch, suppress(LedgerError):
            patch.setattr(of, name, raising(ERRORS[number % 3]))
            ledger.work(pace=Pace(threads=1, until_idle=True))


@pytest.mark.slow
def test_nothing_of_it_goes_out(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(ledger)
    broken(ledger, monkeypatch)
    told = watched.everything()
    assert {span.name for span in watched.spans()} == {
        *("compact", "claim", "chat small", "chat extractive"),
        *("catch_up", "rebuild", "assemble"),
    }
    failures = {str((span.attributes or {}).get("error.type")) for span in watched.spans()}
    assert {"ledger_error", "store_unavailable", "damaged_log", "ZeroDivisionError"} <= failures
    assert MARK not in told
    events = [event for span in watched.spans() for event in span.events]
    assert events == []


def test_the_mark_would_be_seen(watched: Watched) -> None:
    """Both where it stands in a span and where it stands in a metric."""
    with watched.telemetry.span("assemble", mode=f"one {MARK}"):
        watched.telemetry.count("errors", error=f"another {MARK}")
    told = watched.everything()
    assert f"one {MARK}" in told
    assert f"another {MARK}" in told


@pytest.mark.parametrize("name", ["scope", "conversation", "text", "holder", "run", "anything"])
def test_what_has_no_name_outside_stays_inside(watched: Watched, name: str) -> None:
    with watched.telemetry.span("claim", **{name: MARK}) as span:
        span.tell(**{name: MARK})
    watched.telemetry.count("ranges", 1, **{name: MARK})
    watched.telemetry.record("attempt_seconds", 1.0, **{name: MARK})
    assert len(watched.spans()) == 1
    assert watched.metrics() == {"compaction_ledger.ranges", "gen_ai.client.inference.duration"}
    assert MARK not in watched.everything()
