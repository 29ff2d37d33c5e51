"""A stop asked for in one thread while another one compacts, and in the very thread that does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from model_servers import model_server

from compaction_ledger import (
    Answer,
    AsyncLedger,
    CompactionReport,
    FinishFacts,
    Ledger,
    ModelIdentity,
    NewMessage,
    NewRun,
    PydanticAISummarizer,
    SignalStop,
    Stopped,
    SummaryRequest,
)

STOPPED_IN_A_CALL = [
    ("RangeClaimed", None),
    ("AttemptStarted", None),
    ("AttemptFailed", "cancelled"),
    ("ClaimReleased", "stopped"),
]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """A conversation of forty pairs: two ranges are due."""
    with Ledger.in_memory() as opened:
        for n in range(40):
            question = NewMessage(f"q{n}", f"run{n}", "user", f"Question {n}?")
            answer = NewMessage(f"a{n}", f"run{n}", "assistant", f"Answer {n}. " * 20)
            opened.transcripts.append("default", "chat", [question, answer], [NewRun(f"run{n}")])
        yield opened


class Waiting:
    """A summarizer that answers when it is told to; ``cancel`` ends its calls."""

    model = ModelIdentity.of("example.org", "waiting")

    def __init__(self) -> None:
        self.asked = Event()
        self.answer = Event()
        self.cancelled = False

    def summarize(self, request: SummaryRequest) -> Answer:
        self.asked.set()
        assert self.answer.wait(30)
        if self.cancelled:
            return Answer(fault="cancelled")
        return Answer("A summary.", FinishFacts(signals=("stop",)))

    def cancel(self) -> None:
        self.cancelled = True
        self.answer.set()


def recorded(ledger: Ledger) -> list[tuple[str, str | None]]:
    """Names of the recorded facts, with what says how they ended."""
    facts: list[Any] = [entry.fact for entry in ledger.events()]
    return [
        (type(fact).__name__, getattr(fact, "failure", None) or getattr(fact, "reason", None))
        for fact in facts
    ]


def results(report: CompactionReport) -> list[str]:
    return [outcome.result for outcome in report.outcomes]


def in_another_thread(
    ledger: Ledger, summarizer: Waiting, stop: SignalStop, meanwhile: Callable[[], None]
) -> CompactionReport:
    """Compact in another thread, and do ``meanwhile`` in this one while the model is asked."""
    with ThreadPoolExecutor(1) as pool:
        compacting: Future[CompactionReport] = pool.submit(
            ledger.compact, "chat", summarizer=summarizer, stop=stop
        )
        assert summarizer.asked.wait(30)
        meanwhile()
        summarizer.answer.set()
        return compacting.result(30)


def test_a_request_from_another_thread_is_heeded_before_the_next_step(ledger: Ledger) -> None:
    stop = SignalStop()
    report = in_another_thread(ledger, Waiting(), stop, stop.request)
    assert results(report) == ["completed"]
    assert stop.requested
    assert stop.signal_number is None


def test_a_request_ends_the_call_of_another_thread_where_it_can_be_cancelled(
    ledger: Ledger,
) -> None:
    summarizer = Waiting()
    stop = SignalStop(on_request=summarizer.cancel)
    report = in_another_thread(ledger, summarizer, stop, stop.request)
    assert results(report) == ["stopped"]
    assert recorded(ledger) == STOPPED_IN_A_CALL


@pytest.mark.slow
def test_a_call_to_a_provider_is_ended_from_another_thread(ledger: Ledger) -> None:
    with (
        model_server(hangs=True) as server,
        PydanticAISummarizer("openai-compatible:m", base_url=server.url) as summarizer,
        ThreadPoolExecutor(1) as pool,
    ):
        stop = SignalStop(on_request=summarizer.cancel)
        compacting = pool.submit(ledger.compact, "chat", summarizer=summarizer, stop=stop)
        assert server.asked.wait(30)
        stop.request()
        assert results(compacting.result(30)) == ["stopped"]
    assert recorded(ledger) == STOPPED_IN_A_CALL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("cancels", [False, True], ids=["finishes the call", "cancels the call"])
def test_a_signal_stops_a_compaction_under_asyncio(
    ledger: Ledger, number: signal.Signals, cancels: bool
) -> None:
    summarizer = Waiting()
    stop = SignalStop(on_request=summarizer.cancel if cancels else None)

    async def host() -> CompactionReport:
        asynchronous = AsyncLedger(ledger)
        with stop.on_signals():
            compacting = asyncio.create_task(
                asynchronous.compact("chat", summarizer=summarizer, stop=stop)
            )
            assert await asyncio.to_thread(summarizer.asked.wait, 30)
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)  # this thread goes on as if nothing had happened
            summarizer.answer.set()
            return await compacting

    report = asyncio.run(host())
    assert results(report) == (["stopped"] if cancels else ["completed"])
    assert (stop.requested, stop.signal_number) == (True, number)


def test_a_request_in_the_thread_that_waits_for_the_model_interrupts_it(ledger: Ledger) -> None:
    stop = SignalStop()

    class Asks(Waiting):
        def summarize(self, request: SummaryRequest) -> Answer:
            stop.request()
            raise AssertionError("the call was not interrupted")

    with pytest.raises(Stopped):
        ledger.compact("chat", summarizer=Asks(), stop=stop)
    assert recorded(ledger) == STOPPED_IN_A_CALL


def test_threads_that_share_a_stop_do_not_interrupt_each_other() -> None:
    stop = SignalStop()
    inside = Event()

    def waits() -> bool:
        with stop.interruptible():
            inside.set()
            return second_done.wait(30)

    second_done = Event()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(waits)
        assert inside.wait(30)
        with pytest.raises(Stopped), stop.interruptible():
            stop.request()
        stop.request()  # outside of any call of this thread: nothing is raised
        second_done.set()
        assert first.result(30)


def test_a_stop_that_came_before_the_call_is_heeded_at_its_beginning() -> None:
    stop = SignalStop()
    stop.request()
    with pytest.raises(Stopped), stop.interruptible():
        raise AssertionError("the call was begun")


def test_a_cancelled_task_stops_its_compaction_after_the_call_under_way(ledger: Ledger) -> None:
    summarizer = Waiting()

    async def host() -> None:
        async with AsyncLedger(ledger, threads=2) as asynchronous:
            compacting = asyncio.create_task(asynchronous.compact("chat", summarizer=summarizer))
            assert await asyncio.to_thread(summarizer.asked.wait, 30)
            compacting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await compacting
            summarizer.answer.set()
            await asynchronous.run(lambda: None)
            await asyncio.to_thread(asynchronous._executor.shutdown)
            facts = [type(entry.fact).__name__ for entry in ledger.events()]
            assert facts == ["RangeClaimed", "AttemptStarted", "RangeCompleted"]

    asyncio.run(host())


def test_the_asynchronous_face_has_the_types_of_the_ledger(ledger: Ledger) -> None:
    async def host() -> tuple[int, int]:
        async with AsyncLedger(ledger) as asynchronous:
            assembly = await asynchronous.assemble("chat", budget=100_000)
            index = await asynchronous.record_delivery(assembly, run="run-1")
            rows = await asynchronous.deliveries("chat")
            return index, rows[0].index

    assert asyncio.run(host()) == (0, 0)
