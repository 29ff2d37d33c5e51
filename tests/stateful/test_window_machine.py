"""Workers on one window that claim, start, stall, come back late, fail, complete and regroup, and pins,
against a plain model (A1 to A6, D3, T8, T9, T11).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from backends import BACKENDS, SECOND, Backend, MemoryBackend
from chunk_scenarios import BUDGET, OTHER_MODEL, SUMMARY, WINDOW, chunk, pin, verdict
from histories import TRUNCATED, UNAVAILABLE
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from plain_window import Chunk, WindowBook
from scenarios import MODEL, good

from compaction_ledger.composition import Parts, past_read_models
from compaction_ledger.domain.commands import ReleaseClaim, RenewClaim, StartAttempt
from compaction_ledger.domain.errors import PinRefused, Refused
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.commands import (
    AcceptPin,
    ClaimChunk,
    FinishChunk,
    WindowCommand,
)
from compaction_ledger.domain.window.window_stream import current_pins
from compaction_ledger.usecases.window_session import WindowSession

WORKERS = ("w0", "w1", "w2")
LEASE = 60 * SECOND
RESULTS = {
    "good": (good(SUMMARY), verdict()),
    "truncated": (TRUNCATED, verdict("truncated")),
    "not_smaller": (good(SUMMARY), verdict("not_smaller")),
    "provider_unavailable": (UNAVAILABLE, verdict("provider_unavailable")),
}


class WindowMachine(RuleBasedStateMachine):
    """One window, three workers with connections and snapshots of their own, and a clock that may jump."""

    backend: Callable[[Path], Backend] = MemoryBackend

    def __init__(self) -> None:
        super().__init__()
        self.book = WindowBook()
        self.numbers = 0
        self.attempts: list[tuple[str, str]] = []  # claim and attempt
        self.jobs: dict[str, ChunkJob] = {}

    @initialize()
    def begin(self) -> None:
        self.store = self.backend(Path(mkdtemp(prefix="window-machine-")))
        self.parts: dict[str, Parts] = {name: self.store.open() for name in WORKERS}
        self.sessions = {
            name: WindowSession(parts.context.log, WINDOW) for name, parts in self.parts.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    # --- claims and attempts ---

    @rule(data=st.data(), worker=st.sampled_from(WORKERS), lease=st.sampled_from([LEASE, 1]))
    def claim(self, data: st.DataObject, worker: str, lease: int) -> None:
        job = data.draw(st.sampled_from(self._candidates()))
        claim_id, now = f"c{self._number()}", self.store.clock.now
        self.jobs[job.identity] = job
        messages = frozenset(range(job.first, job.last + 1))
        known = Chunk(job.identity, job.source_hash, messages, job.replaces)
        expected = self.book.claim(claim_id, known, now, lease)
        self._check(
            worker, expected, lambda at: ClaimChunk(claim_id, worker, job, BUDGET, at, lease)
        )

    def _candidates(self) -> list[ChunkJob]:
        """Jobs that fit in mostly, and some that nobody should be given."""
        spans = self.book.spans()
        behind = max((last for _, last in spans), default=self.book.begins or 1) + 1
        held = [max(one.chunk.messages) + 1 for one in self.book.open()]
        found = [
            chunk(first, first + length)
            for first in {behind, *held, self.book.begins or 2, 0}
            for length in (0, 2, 5)
        ]
        found += [chunk(first, last, model=OTHER_MODEL) for first, last in spans]
        found += [chunk(behind, behind + 2, model=OTHER_MODEL), chunk(behind + 1, behind + 3)]
        found += list(self.jobs.values())
        standing = [self.jobs[name] for name in self.book.standing]
        for number in range(2, len(standing) + 1):
            some = standing[:number]
            for model in (MODEL, OTHER_MODEL):
                found += [chunk(some[0].first, some[-1].last, some, model=model)] * 3
            found.append(chunk(some[0].first, some[-1].last + 1, some))
            found.append(chunk(some[-2].first, some[-1].last, some[-2:]))
        return found

    @precondition(lambda self: self.book.claims)
    @rule(data=st.data(), worker=st.sampled_from(WORKERS))
    def start(self, data: st.DataObject, worker: str) -> None:
        claim_id, now = self._claim(data), self.store.clock.now
        attempt = f"a{self._number()}"
        self.attempts.append((claim_id, attempt))
        expected = self.book.start(claim_id, attempt, now, LEASE)
        self._check(worker, expected, lambda at: StartAttempt(claim_id, attempt, at, LEASE))

    @precondition(lambda self: self.book.claims)
    @rule(data=st.data(), worker=st.sampled_from(WORKERS))
    def renew(self, data: st.DataObject, worker: str) -> None:
        claim_id, now = self._claim(data), self.store.clock.now
        expected = self.book.renew(claim_id, now, LEASE)
        self._check(worker, expected, lambda at: RenewClaim(claim_id, at, LEASE))

    @precondition(lambda self: self.attempts)
    @rule(
        data=st.data(),
        worker=st.sampled_from(WORKERS),
        result=st.sampled_from(["good", "good", "good", *RESULTS]),
        again=st.booleans(),
    )
    def finish(self, data: st.DataObject, worker: str, result: str, again: bool) -> None:
        running = [(one.claim_id, one.attempt) for one in self.book.open() if one.attempt]
        claim_id, attempt = data.draw(
            st.sampled_from(running or self.attempts) | st.sampled_from(self.attempts)
        )
        assert attempt is not None
        answer, worth = RESULTS[result]
        now = self.store.clock.now
        retry_at = now + 90 * SECOND if result == "provider_unavailable" else None
        for _ in range(1 + again):  # the answer was lost, perhaps
            expected = self.book.finish(claim_id, attempt, result, now, retry_at)
            self._check(
                worker,
                expected,
                lambda at: FinishChunk(claim_id, attempt, answer, worth, at, retry_at),
            )

    @precondition(lambda self: self.book.claims)
    @rule(data=st.data(), worker=st.sampled_from(WORKERS))
    def release(self, data: st.DataObject, worker: str) -> None:
        claim_id, now = self._claim(data), self.store.clock.now
        expected = self.book.release(claim_id, now)
        self._check(worker, expected, lambda at: ReleaseClaim(claim_id, "given_back", at))

    # --- pins ---

    @rule(data=st.data(), worker=st.sampled_from(WORKERS), place=st.integers(1, 4))
    def hold(self, data: st.DataObject, worker: str, place: int) -> None:
        names = [*self.book.pins, f"p{self._number()}"]
        pin_id = data.draw(st.sampled_from(names))
        supersedes = data.draw(st.none() | st.sampled_from(names))
        expected = self.book.pin(pin_id, place, supersedes)
        self._check(worker, expected, lambda _: AcceptPin(pin(pin_id, place, supersedes)))

    # --- what happens otherwise ---

    @rule(seconds=st.sampled_from([1, 59, 60, 61, 120, -1, -60, -100_000]))
    def time_passes(self, seconds: int) -> None:
        self.store.clock.advance(seconds)

    @rule(worker=st.sampled_from(WORKERS))
    def restart(self, worker: str) -> None:
        """The worker's process is another one, and knows nothing any more."""
        self.parts[worker] = self.store.open()
        self.sessions[worker] = WindowSession(self.parts[worker].context.log, WINDOW)

    @rule(worker=st.sampled_from(WORKERS), anew=st.booleans())
    def follow(self, worker: str, anew: bool) -> None:
        parts = self.parts[worker]
        (parts.read_models.rebuild if anew else parts.read_models.catch_up)(parts.context.log)
        log = parts.context.log
        past = past_read_models(DEFAULT_REGISTRY, log.size())
        past.catch_up(log)
        assert parts.read_models.records() == past.records()
        rows = parts.read_models.window_chunks(WINDOW.scope, WINDOW.conversation)
        assert sorted((row.first, row.last) for row in rows if row.stands) == self.book.spans()
        pins = parts.read_models.window_pins(WINDOW.scope, WINDOW.conversation)
        assert {row.pin_id for row in pins if not row.current} == self.book.corrected()

    # --- after each step ---

    @invariant()
    def the_log_says_what_the_book_says(self) -> None:
        if not hasattr(self, "store"):
            return
        log, book = self.parts["w0"].context.log, self.book
        state = log.load_window(WINDOW)
        assert [(one.first, one.last) for one in state.chunks] == book.spans()
        assert {one.identity for one in state.chunks} == set(book.standing)
        assert state.replaced == book.done.keys() - set(book.standing)
        assert set(state.open_jobs) == {one.claim_id for one in book.open()}
        assert state.lifecycle.attempts == book.attempts
        assert list(state.pins) == list(book.pins)
        assert {one.pin_id for one in current_pins(state)} == set(book.pins) - book.corrected()
        assert len(log.history(WINDOW)) == state.version == log.size()

    @invariant()
    def no_message_is_in_two_chunks_and_nothing_is_tried_more_than_twice(self) -> None:
        covered = [n for first, last in self.book.spans() for n in range(first, last + 1)]
        assert len(covered) == len(set(covered))
        assert all(count <= 2 for count in self.book.attempts.values())

    # --- inside ---

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _claim(self, data: st.DataObject) -> str:
        """One of the claims ever made; mostly one that is open."""
        is_open = [one.claim_id for one in self.book.open()]
        every = list(self.book.claims)
        return data.draw(st.sampled_from(is_open or every) | st.sampled_from(every))

    def _check(
        self, worker: str, expected: str | None, make: Callable[[int], WindowCommand]
    ) -> None:
        """Carry out a command and compare what becomes of it."""
        try:
            self.sessions[worker].execute(make)
            found: str | None = None
        except PinRefused as refusal:
            found = refusal.reason
        except Refused as refusal:
            found = refusal.code
        assert found == expected


def run(backend: Any, examples: int, steps: int) -> None:
    """Let the machine run on a store."""
    machine = type("Machine", (WindowMachine,), {"backend": backend})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
            derandomize="CI" in os.environ,
        ),
    )


@pytest.mark.slow
def test_a_window_in_memory_is_as_the_plain_model_says() -> None:
    run(MemoryBackend, examples=25, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_window_on_every_store_is_as_the_plain_model_says(name: str) -> None:
    run(BACKENDS[name], examples=120 if name == "memory" else 10, steps=60)
