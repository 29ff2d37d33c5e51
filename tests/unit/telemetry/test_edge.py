"""Telemetry is never in the way: without the package, without an SDK, and when it is broken."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, cast

import pytest
from histories import CONVERSATION, SCOPE, lines
from opentelemetry import context
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import Span, TracerProvider
from watched import Watched

from compaction_ledger import BudgetTooSmall, Ledger, LedgerError, composition
from compaction_ledger.infrastructure.telemetry.opentelemetry import OpenTelemetry
from compaction_ledger.usecases.telemetry import NO_TELEMETRY, Telemetry

WORK = """
import sys, threading
from compaction_ledger import Ledger, NewMessage, NewRun, Pace, composition

def work(name="chat"):
    for n in range(40):
        ledger.transcripts.append(
            "default", name,
            [NewMessage(f"q{n}", f"r{n}", "user", f"Question {n}?"),
             NewMessage(f"a{n}", f"r{n}", "assistant", f"Answer {n}. " * 20)],
            [NewRun(f"r{n}")],
        )
    ledger.work(pace=Pace(threads=1, until_idle=True))
    ledger.rebuild()
    return len(ledger.assemble(name, budget=10**6).manifest.summaries)

ledger = Ledger.in_memory()
"""


def run(code: str) -> list[str]:
    """What a process of its own prints, in words."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


# --- what is installed ----------------------------------------------------------------------------


@pytest.mark.slow
def test_without_the_package_everything_works() -> None:
    hidden = "import sys\nsys.modules['opentelemetry'] = None\n"
    code = hidden + WORK + "print(work(), type(composition.telemetry()).__name__)"
    assert run(code) == ["2", "NoTelemetry"]


@pytest.mark.slow
def test_without_an_sdk_everything_works_and_nothing_is_set_up() -> None:
    code = f"""{WORK}
from opentelemetry import metrics, trace
print(work(), type(composition.telemetry()).__name__)
print(threading.active_count(), "opentelemetry.sdk" in sys.modules)
print(trace.get_tracer_provider() is trace._PROXY_TRACER_PROVIDER)
print(trace.get_current_span().is_recording())
"""
    assert run(code) == ["2", "OpenTelemetry", "1", "False", "True", "False"]


@pytest.mark.slow
def test_an_sdk_may_be_set_up_after_the_ledger_was_opened() -> None:
    code = f"""{WORK}
work("before")
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
work("after")
print(*sorted({{span.name.replace(" ", "_") for span in exporter.get_finished_spans()}}))
[scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(*sorted(metric.name for metric in scope.metrics))
"""
    assert run(code) == [
        *("assemble", "catch_up", "chat_extractive", "claim", "compact", "rebuild"),
        *("compaction_ledger.attempts", "compaction_ledger.projection.lag"),
        *("compaction_ledger.ranges", "compaction_ledger.work.backlog"),
        "gen_ai.client.inference.duration",
    ]


def choose() -> Telemetry:
    """What is chosen in a process that has not chosen yet."""
    return composition.telemetry.__wrapped__()


def test_a_package_that_does_not_fit_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def too_old(*_given: object) -> None:
        raise TypeError("unexpected keyword")

    monkeypatch.setattr(OpenTelemetry, "__init__", too_old)
    assert choose() is NO_TELEMETRY
    assert [record.getMessage() for record in caplog.records] == [
        "there is no telemetry: TypeError"
    ]


def test_it_is_chosen_once() -> None:
    assert composition.telemetry() is composition.telemetry()
    assert isinstance(choose(), OpenTelemetry)


def test_the_scope_has_the_version(watched: Watched) -> None:
    with watched.telemetry.span("rebuild"):
        pass
    scope = watched.span("rebuild").instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version) == ("compaction-ledger", "0")


def test_nobody_watches_at_no_cost() -> None:
    first, second = NO_TELEMETRY.span("compact", due=1), NO_TELEMETRY.span("claim")
    assert first is second
    with first as span:
        span.tell(completed=1)
    NO_TELEMETRY.count("ranges", result="completed")
    NO_TELEMETRY.record("attempt_seconds", 1.0)
    with pytest.raises(ZeroDivisionError), NO_TELEMETRY.span("claim"):
        raise ZeroDivisionError


# --- what is broken -------------------------------------------------------------------------------


class Broken:
    """Whatever it is asked for, it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("broken telemetry")


def broken(*_given: object, **_named: object) -> None:
    raise RuntimeError("broken telemetry")


def broken_instruments(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("_counters", "_measures"):
        names = getattr(telemetry, table)
        monkeypatch.setattr(telemetry, table, dict.fromkeys(names, Broken()))


def broken_beginning(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_tracer", Broken())


def broken_attributes(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Span, "set_attributes", broken)


def broken_end(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Span, "end", broken)


def broken_context(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "attach", broken)


def broken_return(telemetry: OpenTelemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "detach", broken)


BREAKS = [
    broken_instruments,
    broken_beginning,
    broken_attributes,
    broken_end,
    broken_context,
    broken_return,
]


@pytest.mark.parametrize("break_it", BREAKS)
def test_what_is_broken_in_it_touches_nothing(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    break_it: Callable[[OpenTelemetry, pytest.MonkeyPatch], None],
) -> None:
    telemetry = OpenTelemetry("0", TracerProvider(), NoOpMeterProvider())
    monkeypatch.setattr(composition, "telemetry", lambda: telemetry)

    def work(ledger: Ledger) -> None:
        report = ledger.compact(CONVERSATION, scope=SCOPE)
        with pytest.raises(BudgetTooSmall):
            ledger.assemble(CONVERSATION, scope=SCOPE, budget=1)
        assembly = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
        ledger.rebuild()
        assert report.completed == len(assembly.manifest.summaries) == 2

    with Ledger.in_memory() as ledger, monkeypatch.context() as patch:
        ledger.transcripts.append(SCOPE, CONVERSATION, *lines(40))
        break_it(telemetry, patch)
        copy_context().run(work, ledger)  # one in which a span may be left behind
    lost = [record for record in caplog.records if "telemetry" in record.getMessage()]
    assert [record.getMessage() for record in lost if record.levelno >= logging.WARNING] == [
        "some telemetry is lost, which is told once: RuntimeError"
    ]


class Untold(LedgerError):
    """An error of a host that cannot even say what it is."""

    @property
    def code(self) -> str:  # type: ignore[override]
        raise RuntimeError("broken error")


def test_an_error_that_cannot_be_told_comes_out_as_it_is(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conversation(*_place: str) -> None:
        raise Untold("of the host")

    with Ledger.in_memory() as ledger:
        monkeypatch.setattr(ledger.transcripts, "conversation", conversation)
        with pytest.raises(Untold, match="of the host"):
            ledger.assemble(CONVERSATION, scope=SCOPE, budget=1)
    assert watched.span("assemble").end_time is not None


def test_values_of_another_kind_are_left_out(watched: Watched) -> None:
    with watched.telemetry.span("claim", **cast(Any, {"from_pair": 1.5, "to_pair": [9]})) as span:
        span.tell(result="completed")
    assert dict(watched.span("claim").attributes or {}) == {"compaction_ledger.result": "completed"}
