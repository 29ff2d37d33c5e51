"""Which spans there are, what lies in what, and what is said of each."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, get_args

import pytest
from backends import Clock
from histories import CONVERSATION, SCOPE, TRUNCATED, UNAVAILABLE, Worker, lines, present_job
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from scenarios import CURRENT, MODEL, good
from watched import Watched

from compaction_ledger import (
    Answer,
    AsyncLedger,
    BudgetTooSmall,
    DamagedLog,
    Ledger,
    ModelIdentity,
    PydanticAISummarizer,
    Settings,
    SignalStop,
    Stopped,
    SummaryRequest,
    UnknownConversation,
)
from compaction_ledger.domain.errors import StoreUnavailable
from compaction_ledger.usecases.claiming import RangeResult

CHAT = f"chat {MODEL.name}"
Act = Callable[[], Any]


class Model:
    """A model that gives its answers in turn, or raises them; something may happen meanwhile."""

    def __init__(self, *answers: Answer | BaseException, model: ModelIdentity = MODEL) -> None:
        self.answers = list(answers)
        self.model = model
        self.meanwhile: Act = lambda: None

    def summarize(self, request: SummaryRequest) -> Answer:
        self.meanwhile()
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def compact(ledger: Ledger, *answers: Answer | BaseException, **named: Any) -> RangeResult:
    """Compact the conversation, and say what became of its range."""
    report = ledger.compact(CONVERSATION, scope=SCOPE, summarizer=Model(*answers), **named)
    return report.outcomes[0].result


def said(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def family(spans: list[ReadableSpan]) -> list[tuple[str, str | None]]:
    """Each span with the one that it lies in."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    return [(span.name, names.get(span.parent.span_id) if span.parent else None) for span in spans]


# --- what lies in what ----------------------------------------------------------------------------


def test_a_compaction_holds_all_that_it_does(ledger: Ledger, watched: Watched) -> None:
    assert compact(ledger, TRUNCATED, good()) == "completed"
    assert family(watched.spans()) == [
        ("compact", None),
        ("catch_up", "compact"),
        ("claim", "compact"),
        (CHAT, "claim"),
        (CHAT, "claim"),
        ("catch_up", "compact"),
    ]


def test_it_lies_in_what_the_host_does(ledger: Ledger, watched: Watched) -> None:
    with watched.tracers.get_tracer("host").start_as_current_span("request"):
        compact(ledger, good())
        ledger.assemble(CONVERSATION, scope=SCOPE, budget=100_000)
        ledger.rebuild()
        ledger.catch_up()
    tops = [name for name, parent in family(watched.spans()) if parent == "request"]
    assert tops == ["compact", "assemble", "rebuild", "catch_up"]


def test_also_from_an_event_loop(ledger: Ledger, watched: Watched) -> None:
    async def request() -> None:
        with watched.tracers.get_tracer("host").start_as_current_span("request"):
            await AsyncLedger(ledger).assemble(CONVERSATION, scope=SCOPE, budget=100_000)

    asyncio.run(request())
    assert ("assemble", "request") in family(watched.spans())


def test_what_a_provider_adapter_does_lies_in_the_attempt(ledger: Ledger, watched: Watched) -> None:
    """Spans of an HTTP client, say, which runs in a thread of the adapter's own."""

    async def answer(*_given: object) -> ModelResponse:
        with watched.tracers.get_tracer("client").start_as_current_span("POST"):
            return ModelResponse([TextPart("A summary.")], finish_reason="stop")

    with PydanticAISummarizer(FunctionModel(answer, model_name="f")) as summarizer:
        ledger.compact(CONVERSATION, scope=SCOPE, summarizer=summarizer)
    assert ("POST", "chat f") in family(watched.spans())


def test_nothing_stays_behind_in_the_thread(ledger: Ledger, watched: Watched) -> None:
    before = trace.get_current_span()
    with pytest.raises(Stopped):
        compact(ledger, Stopped())
    compact(ledger, RuntimeError())
    assert trace.get_current_span() is before


# --- what is said ---------------------------------------------------------------------------------


def test_all_that_is_said_of_an_attempt(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, TRUNCATED, good())
    first, second = watched.spans(CHAT)
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": MODEL.provider,
        "gen_ai.request.model": MODEL.name,
        "gen_ai.prompt.name": CURRENT.name,
        "gen_ai.prompt.version": str(CURRENT.version),
        "compaction_ledger.range.from": 0,
        "compaction_ledger.range.to": 9,
    }
    assert said(first) == {
        **common,
        "compaction_ledger.attempt.number": 1,
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "error.type": "truncated",
    }
    assert said(second) == {
        **common,
        "compaction_ledger.attempt.number": 2,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    assert {first.kind, second.kind} == {SpanKind.CLIENT}
    assert (first.status.status_code, second.status.status_code) == (
        StatusCode.ERROR,
        StatusCode.UNSET,
    )


def test_all_that_is_said_of_the_others(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, good())
    used = ledger.assemble(CONVERSATION, scope=SCOPE, budget=100_000).manifest.bytes_used
    ledger.rebuild()
    model = {"gen_ai.provider.name": MODEL.provider, "gen_ai.request.model": MODEL.name}
    assert said(watched.span("compact")) == {
        **model,
        "compaction_ledger.ranges.due": 1,
        "compaction_ledger.ranges.completed": 1,
    }
    assert said(watched.span("claim")) == {
        **model,
        "gen_ai.prompt.name": CURRENT.name,
        "gen_ai.prompt.version": str(CURRENT.version),
        "compaction_ledger.range.from": 0,
        "compaction_ledger.range.to": 9,
        "compaction_ledger.result": "completed",
    }
    assert said(watched.span("assemble")) == {
        "compaction_ledger.assembly.mode": "full",
        "compaction_ledger.assembly.summaries": 1,
        "compaction_ledger.assembly.rejected": 0,
        "compaction_ledger.assembly.bytes_used": used,
        "compaction_ledger.assembly.bytes_allowed": 100_000,
    }
    assert [said(span) for span in watched.spans("catch_up")] == [
        {"compaction_ledger.position": 0},
        {"compaction_ledger.position": 3},
    ]
    assert said(watched.span("rebuild")) == {"compaction_ledger.position": 3}


@pytest.mark.parametrize(
    ("provider", "told"),
    [("bedrock", "aws.bedrock"), ("google", "gcp.gemini"), ("openai", "openai"), ("own", "own")],
)
def test_providers_are_named_by_the_conventions(
    ledger: Ledger, watched: Watched, provider: str, told: str
) -> None:
    model = Model(good(), model=ModelIdentity.of(provider, "m"))
    ledger.compact(CONVERSATION, scope=SCOPE, summarizer=model)
    assert said(watched.span("chat m"))["gen_ai.provider.name"] == told
    durations = watched.by("gen_ai.client.inference.duration", "gen_ai.provider.name")
    assert durations == {told: 1}


def test_what_was_not_counted_is_not_said(ledger: Ledger, watched: Watched) -> None:
    compact(ledger, UNAVAILABLE)
    told = said(watched.span(CHAT))
    assert not [name for name in told if name.startswith("gen_ai.usage")]
    assert told["gen_ai.response.finish_reasons"] == ("error",)
    assert told["error.type"] == "provider_unavailable"


# --- every outcome of a range ---------------------------------------------------------------------


def completed(ledger: Ledger, clock: Clock) -> RangeResult:
    return compact(ledger, good())


def failed(ledger: Ledger, clock: Clock) -> RangeResult:
    return compact(ledger, UNAVAILABLE)


def exhausted(ledger: Ledger, clock: Clock) -> RangeResult:
    return compact(ledger, TRUNCATED, TRUNCATED)


def waiting(ledger: Ledger, clock: Clock) -> RangeResult:
    """The read models do not know yet that it waits."""
    one = other(ledger)
    one.claim()
    one.start()
    one.finish(UNAVAILABLE, retry_at=clock.now + 3_000_000)
    one.release("backing_off")
    return behind(ledger)


def claimed_elsewhere(ledger: Ledger, clock: Clock) -> RangeResult:
    other(ledger).claim()
    return behind(ledger)


def already_completed(ledger: Ledger, clock: Clock) -> RangeResult:
    other(ledger).complete()
    return behind(ledger)


def source_changed(ledger: Ledger, clock: Clock) -> RangeResult:
    """Between the plan and the attempt."""
    claim = ledger._parts.context.log.append

    def append(*given: Any) -> Any:
        done = claim(*given)
        ledger.transcripts.revise(SCOPE, CONVERSATION, "a3", "Another text.")
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger._parts.context.log, "append", append)
        return compact(ledger)


def refused(ledger: Ledger, clock: Clock) -> RangeResult:
    """It comes back after its lease."""
    model = Model(good())
    model.meanwhile = lambda: clock.advance(3_600)
    report = ledger.compact(CONVERSATION, scope=SCOPE, summarizer=model)
    return report.outcomes[0].result


def not_admitted(ledger: Ledger, clock: Clock) -> RangeResult:
    slots = [ledger._parts.admission.admit() for _ in range(Settings().attempts_at_once)]
    assert None not in slots
    return compact(ledger)


def outage(ledger: Ledger, clock: Clock) -> RangeResult:
    for _ in range(Settings().outage_after):
        ledger._parts.gate.unavailable(clock.now)
    return compact(ledger)


def stopped(ledger: Ledger, clock: Clock) -> RangeResult:
    stop = SignalStop()
    stop.request()
    return compact(ledger, stop=stop)


def other(ledger: Ledger) -> Worker:
    """Somebody else, on the same range."""
    return Worker(ledger._parts, present_job(ledger._parts))


def behind(ledger: Ledger) -> RangeResult:
    """Compact while the read models stay behind, so that the range is planned again (W3)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger._parts.read_models, "catch_up", lambda *_: 0)
        return compact(ledger)


# For each: whether a claim was made or tried, why it was refused, and how its attempts ended.
OUTCOMES: dict[Callable[[Ledger, Clock], RangeResult], tuple[bool, str | None, list[Any]]] = {
    completed: (True, None, [("completed", None)]),
    failed: (True, None, [("failed", "provider_unavailable")]),
    exhausted: (True, None, [("failed", "truncated")] * 2),
    waiting: (True, "backing_off", []),
    claimed_elsewhere: (True, "already_claimed", []),
    already_completed: (True, "already_completed", []),
    source_changed: (True, None, []),
    refused: (True, None, [("refused", "lease_expired")]),
    not_admitted: (False, None, []),
    outage: (False, None, []),
    stopped: (False, None, []),
}


def test_every_outcome_is_here() -> None:
    assert {case.__name__ for case in OUTCOMES} == set(get_args(RangeResult))


@pytest.mark.parametrize("case", OUTCOMES)
def test_the_outcome_of_a_range(
    ledger: Ledger, clock: Clock, watched: Watched, case: Callable[[Ledger, Clock], RangeResult]
) -> None:
    is_claimed, why, attempts = OUTCOMES[case]
    name = case.__name__
    assert case(ledger, clock) == name
    claims = [said(span)["compaction_ledger.result"] for span in watched.spans("claim")]
    assert claims == ([name] if is_claimed else [])
    assert len(watched.spans(CHAT)) == len(attempts)
    assert watched.by("compaction_ledger.ranges", "compaction_ledger.result") == {name: 1}
    refusals = watched.by("compaction_ledger.claims.refused", "error.type")
    assert refusals == ({why: 1} if why else {})
    told = watched.by("compaction_ledger.attempts", "compaction_ledger.result", "error.type")
    assert told == {attempt: attempts.count(attempt) for attempt in attempts}
    asked = watched.by("compaction_ledger.admissions.refused")
    assert sum(asked.values()) == (name == "not_admitted")


# --- errors ---------------------------------------------------------------------------------------


def failure(span: ReadableSpan) -> object:
    """What a span failed with; of the error's words there is nothing."""
    assert not span.events
    assert span.status.description is None
    assert span.status.status_code is StatusCode.ERROR
    return said(span)["error.type"]


def test_an_error_is_its_code(ledger: Ledger, watched: Watched) -> None:
    with pytest.raises(UnknownConversation):
        ledger.compact("nobody", summarizer=Model())
    with pytest.raises(BudgetTooSmall):
        ledger.assemble(CONVERSATION, scope=SCOPE, budget=1)
    assert failure(watched.span("compact")) == "unknown_conversation"
    assert failure(watched.span("assemble")) == "budget_too_small"


def test_an_error_of_the_host_is_its_class(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conversation(*_place: str) -> Any:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(ledger.transcripts, "conversation", conversation)
    with pytest.raises(ZeroDivisionError, match="secret"):
        compact(ledger)
    assert failure(watched.span("compact")) == "ZeroDivisionError"


def test_read_models_that_stay_behind_have_failed_alone(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch_up(*_given: object) -> int:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(ledger._parts.read_models, "catch_up", catch_up)
    assert compact(ledger, good()) == "completed"
    assert [failure(span) for span in watched.spans("catch_up")] == ["store_unavailable"] * 2
    assert watched.span("compact").status.status_code is StatusCode.UNSET


def test_a_rebuild_that_fails(
    ledger: Ledger, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rebuild(*_given: object) -> int:
        raise DamagedLog("broken")

    monkeypatch.setattr(ledger._parts.read_models, "rebuild", rebuild)
    with pytest.raises(DamagedLog):
        ledger.rebuild()
    assert failure(watched.span("rebuild")) == "damaged_log"


def test_a_summarizer_that_raises_has_failed_as_it_is_recorded(
    ledger: Ledger, watched: Watched
) -> None:
    """C4."""
    compact(ledger, RuntimeError("secret"))
    [attempt] = ledger.attempts(CONVERSATION, scope=SCOPE)
    assert failure(watched.span(CHAT)) == attempt.failure == "provider_error"


def test_a_stop_in_a_call(ledger: Ledger, watched: Watched) -> None:
    model = Model(good())
    stop = SignalStop()
    model.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with stop.on_signals(), pytest.raises(Stopped):
        ledger.compact(CONVERSATION, scope=SCOPE, summarizer=model, stop=stop)
    assert failure(watched.span(CHAT)) == "cancelled"
    for name in ("claim", "compact"):  # which is no error
        assert said(watched.span(name))["compaction_ledger.result"] == "stopped"
        assert watched.span(name).status.status_code is StatusCode.UNSET
    told = watched.by("compaction_ledger.attempts", "compaction_ledger.result", "error.type")
    assert told == {("failed", "cancelled"): 1}


def test_workers_begin_a_trace_for_each_conversation(ledger: Ledger, watched: Watched) -> None:
    ledger.transcripts.append(SCOPE, "another", *lines(30))
    ledger.compact_all(summarizer=Model(good(), good()))
    assert [span.parent for span in watched.spans("compact")] == [None, None]
