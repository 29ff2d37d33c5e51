"""What a host hands in is not believed: answers, transcripts, stores that fail at the wrong moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, cast

import pytest
from backends import Clock

from compaction_ledger import (
    Answer,
    Conversation,
    FinishFacts,
    InvalidInput,
    InvalidSetting,
    Ledger,
    ModelIdentity,
    NewMessage,
    NewRun,
    StoreError,
    SummaryRequest,
    Usage,
)
from compaction_ledger.domain.errors import DifferentResult
from compaction_ledger.domain.events import AttemptFailed, ClaimReleased, RequestDelivered
from compaction_ledger.domain.finish import sound_answer
from compaction_ledger.domain.ports import Log, Progress, Transcripts
from compaction_ledger.infrastructure.transcripts.memory import MemoryTranscripts

PAIRS = 50  # three ranges
STOP = FinishFacts(("stop",))
ANY: Any = None  # for what the types would not let through


def filled(store: MemoryTranscripts, scope: str = "default") -> MemoryTranscripts:
    """A store with one conversation."""
    for n in range(PAIRS):
        question = NewMessage(f"q{n}", f"run{n}", "user", f"Question {n}?")
        reply = NewMessage(f"a{n}", f"run{n}", "assistant", f"Answer {n}. It has two sentences.")
        store.append(scope, "chat", [question, reply], [NewRun(f"run{n}")])
    return store


class Answering:
    """A summarizer that always gives the same answer, and counts."""

    model = ModelIdentity.of("test", "answering")

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def summarize(self, request: SummaryRequest) -> Answer:
        self.calls += 1
        return cast(Answer, self.answer)


MALFORMED: list[Any] = [
    None,
    "a summary",
    Answer(text=ANY, finish=STOP),
    Answer(text=cast(Any, b"bytes"), finish=STOP),
    Answer("A summary.", FinishFacts(cast(Any, ("weird",)))),
    Answer("A summary.", FinishFacts(cast(Any, ["stop"]))),
    Answer("A summary.", FinishFacts(("stop",), tool_calls=cast(Any, True))),
    Answer("A summary.", FinishFacts(("stop",), tool_calls=-1)),
    Answer("A summary.", FinishFacts(("stop",), refusal=cast(Any, 0))),
    Answer("A summary.", FinishFacts(("stop",), provider_words=(cast(Any, 7),))),
    Answer("A summary.", STOP, Usage(cast(Any, 12.5), 3)),
    Answer("A summary.", STOP, Usage(cast(Any, 0.0), 3)),
    Answer("A summary.", STOP, Usage(2**70, 3)),
    Answer("A summary.", STOP, Usage(-1)),
    Answer("A summary.", cast(Any, {"signals": ["stop"]})),
    Answer("A summary.", STOP, cast(Any, (1, 2))),
    Answer(fault=cast(Any, "on_fire")),
    Answer(fault="timeout", retry_after=cast(Any, "soon")),
    Answer(fault="timeout", detail=cast(Any, 404)),
]


@pytest.mark.parametrize("answer", MALFORMED)
def test_c4_a_malformed_answer_is_a_failed_attempt_and_nothing_worse(answer: Any) -> None:
    """A10, A11: whatever a host's summarizer returns, the log can be read for ever."""
    assert sound_answer(answer) == Answer(fault="provider_error", detail="malformed_answer")
    with Ledger.in_memory(transcripts=filled(MemoryTranscripts())) as ledger:
        report = ledger.compact("chat", summarizer=Answering(answer))
        assert {outcome.result for outcome in report.outcomes} == {"failed"}
        assert {row.failure for row in ledger.attempts("chat")} == {"provider_error"}
        assert {row.detail for row in ledger.attempts("chat")} == {"malformed_answer"}
        assert ledger.assemble("chat", budget=10**6).manifest.count("verbatim") == PAIRS
        assert ledger.verify().ok


def test_a_sound_answer_is_left_alone() -> None:
    answer = Answer("A summary.", FinishFacts(("stop",), 0, False, ("end",)), Usage(1, None))
    assert sound_answer(answer) is answer


def test_d3_an_earlier_plan_does_not_spend_the_second_attempt() -> None:
    """A8: another worker's plan from before the outage is refused by the ranges themselves."""
    clock = Clock()
    with Ledger.in_memory(transcripts=filled(MemoryTranscripts()), clock=clock) as ledger:
        out = Answering(Answer(fault="provider_unavailable", retry_after=600.0))
        inner = Meddling(lambda: ledger.compact("chat", summarizer=out))
        late = ledger.compact("chat", summarizer=inner)
        assert [outcome.result for outcome in late.outcomes[1:]] == ["waiting", "waiting"]
        assert out.calls == 2  # the first range was claimed by the other
        clock.advance(1_200)
        again = ledger.compact("chat", summarizer=Answering(Answer("A.", STOP)))
        assert again.completed == 2


class Meddling:
    """A summarizer during whose first call something else happens."""

    model = ModelIdentity.of("test", "answering")

    def __init__(self, meanwhile: Any) -> None:
        self.meanwhile = meanwhile

    def summarize(self, request: SummaryRequest) -> Answer:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return Answer("A.", STOP)


class Broken(MemoryTranscripts):
    """Transcripts that cannot be read between the claim and the attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def revision(self, scope: str, conversation: str) -> str | None:
        self.reads += 1
        if self.reads == 2:
            raise ConnectionError("the host's database is gone")
        return super().revision(scope, conversation)


def test_a6_a_claim_whose_source_cannot_be_read_is_given_back() -> None:
    with Ledger.in_memory(transcripts=filled(Broken())) as ledger:
        with pytest.raises(ConnectionError):
            ledger.compact("chat")
        facts = [entry.fact for entry in ledger.events()]
        assert isinstance(facts[-1], ClaimReleased)
        assert facts[-1].reason == "given_back"
        assert ledger.compact("chat").completed == 3


class Crossing:
    """Transcripts that answer with another scope's conversation than the one asked for."""

    def __init__(self, inner: Transcripts) -> None:
        self.inner = inner

    def conversation(self, scope: str, conversation: str) -> Conversation:
        return self.inner.conversation("tenant-b", conversation)

    def revision(self, scope: str, conversation: str) -> str | None:
        return None

    def conversations(self) -> Iterable[tuple[str, str]]:
        return [("tenant-a", "chat")]


def test_e2_a_scope_is_never_crossed_by_what_transcripts_answer() -> None:
    crossing = Crossing(filled(MemoryTranscripts(), "tenant-b"))
    with Ledger.in_memory(transcripts=crossing) as ledger:
        for use in (
            lambda: ledger.plan("chat", scope="tenant-a"),
            lambda: ledger.compact("chat", scope="tenant-a"),
            lambda: ledger.assemble("chat", scope="tenant-a", budget=10**6),
        ):
            with pytest.raises(InvalidInput, match="transcripts"):
                use()
        assert ledger.size() == 0


def test_d3_a_probe_that_asked_nobody_goes_to_the_next() -> None:
    """A claim that is refused, or that a store's error ends, says nothing about the provider."""
    clock = Clock()
    with Ledger.in_memory(transcripts=filled(MemoryTranscripts()), clock=clock) as ledger:
        ledger.compact("chat", summarizer=Answering(Answer(fault="timeout")))  # three in a row
        clock.advance(3_600)
        gate = ledger._parts.gate
        assert gate.state == "open"
        failing = dataclasses.replace(
            ledger._parts,
            context=dataclasses.replace(
                ledger._parts.context, log=cast(Log, Refusing(ledger._parts.context.log))
            ),
        )
        with pytest.raises(StoreError):
            Ledger(failing, ledger._settings).compact("chat")
        assert gate.state == "open"
        assert ledger.compact("chat", summarizer=Answering(Answer("A.", STOP))).completed == 3


class Refusing:
    """A log that cannot be appended to."""

    def __init__(self, inner: Log) -> None:
        self._inner = inner

    def append(self, *_: Any) -> Any:
        raise StoreError("the disk is gone")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_what_was_recorded_is_told_even_when_the_rows_stay_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Ledger.in_memory(transcripts=filled(MemoryTranscripts())) as ledger:
        assembly = ledger.assemble("chat", budget=10**6)

        def busy(log: Log, progress: Progress | None = None) -> int:
            raise StoreError("busy")

        monkeypatch.setattr(ledger._parts.read_models, "catch_up", busy)
        index = ledger.record_delivery(assembly, run="run-9", delivery_id="d-1")
        assert ledger.record_delivery(assembly, run="run-9", delivery_id="d-1") == index
        assert [type(entry.fact) for entry in ledger.events()] == [RequestDelivered]
        with pytest.raises(DifferentResult):
            ledger.record_delivery(assembly, run="another", delivery_id="d-1")
        assert ledger.compact("chat").completed == 3


def test_a_wrong_setting_is_recorded_given_back_and_raised() -> None:
    class Misconfigured(Answering):
        def summarize(self, request: SummaryRequest) -> Answer:
            raise InvalidSetting("no such model", place="model")

    with Ledger.in_memory(transcripts=filled(MemoryTranscripts())) as ledger:
        with pytest.raises(InvalidSetting):
            ledger.compact("chat", summarizer=Misconfigured(None))
        failed, released = [entry.fact for entry in ledger.events()][-2:]
        assert isinstance(failed, AttemptFailed)
        assert (failed.failure, failed.detail) == ("provider_error", "InvalidSetting")
        assert isinstance(released, ClaimReleased)
        assert released.reason == "given_back"
