"""Whatever happened: the replay at each event is what a ledger says that has stopped there (P5).

Workers, imports, windows and deliveries at random, with a clock that jumps. What could be claimed at each
event is held against the plain model, which knows the rules alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from backends import SECOND, MemoryBackend
from chunk_scenarios import AB, A, B, pin, window_delivery
from facts import delivery
from histories import (
    CONVERSATION,
    LEASE,
    SCOPE,
    TRUNCATED,
    UNAVAILABLE,
    Worker,
    bring_in,
    key_of,
    made_up_job,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_model import Book
from scenarios import CURRENT, MIXED, OTHER_MODEL, claimed, released
from scenarios import SECOND as SECOND_PROMPT
from window_histories import ChunkWorker, hold

from compaction_ledger import Moment
from compaction_ledger.composition import Parts, past_read_models
from compaction_ledger.domain.errors import Refused
from compaction_ledger.domain.identity import Job
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.domain.replay import AnyRow, RangeThen
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings

PLACE = (SCOPE, CONVERSATION)
Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("claim", "second", "start", "finish", "fail", "unavailable", "renew", "release"),
                *("import", "complete", "deliver", "chunk", "replace", "pin", "deliver_window"),
                *("later", "much later", "back"),
            ]
        ),
        st.integers(0, 7),
    ),
    min_size=20,
    max_size=60,
)


def jobs() -> list[Job]:
    """Of two ranges: several sources, models and versions."""
    made = [
        made_up_job(),
        made_up_job(model=OTHER_MODEL),
        made_up_job(prompt=SECOND_PROMPT),
        made_up_job(prompt=MIXED),
    ]
    moved = [replace(made_up_job(), source_hash=f"{number:064x}") for number in (1, 2)]
    return [*made, *moved, made_up_job(10), made_up_job(10, OTHER_MODEL)]


@dataclass
class History:
    """A random history, carried out as far as the rules let it."""

    parts: Parts
    store: MemoryBackend
    jobs: list[Job] = field(default_factory=jobs)
    workers: dict[int, Worker] = field(default_factory=dict[int, Worker])
    numbers: int = 0

    def do(self, what: str, which: int) -> None:
        with suppress(Refused):
            self._steps()[what](which)
        self.parts.read_models.catch_up(self.parts.context.log)

    def _steps(self) -> dict[str, Callable[[int], object]]:
        clock, log = self.store.clock, self.parts.context.log
        return {
            "claim": lambda n: self._new(n).claim(LEASE * (1 + n)),
            "start": lambda n: self._worker(n).start(self._attempt(n)),
            "finish": lambda n: self._worker(n).finish(None, self._attempt(n)),
            "fail": lambda n: self._worker(n).finish(TRUNCATED, self._attempt(n)),
            "unavailable": lambda n: self._worker(n).finish(
                UNAVAILABLE, self._attempt(n), clock.now + 60 * SECOND
            ),
            "second": self._second,
            "renew": lambda n: self._worker(n).renew(LEASE * 4),
            "release": lambda n: self._worker(n).release(),
            "complete": lambda n: self._new(n).complete(),
            "import": lambda n: bring_in(self.parts, self.jobs[n], name=self._name()),
            "deliver": lambda _: log.deliver(
                replace(delivery(self._name()), scope=SCOPE, conversation=CONVERSATION)
            ),
            "chunk": lambda n: ChunkWorker(self.parts, (A, B)[n % 2], self._name()).complete(),
            "replace": lambda _: ChunkWorker(self.parts, AB, self._name()).complete(),
            "pin": lambda n: hold(self.parts, pin(f"p{n}", 3 + n, f"p{n - 1}" if n % 2 else None)),
            "deliver_window": lambda _: log.deliver(window_delivery(self._name())),
            "later": lambda n: clock.advance(1 + 30 * n),
            "much later": lambda n: clock.advance(3_000 * (1 + n)),
            "back": lambda n: clock.advance(-200 * (1 + n)),
        }

    def _second(self, which: int) -> None:
        """A second attempt is under way."""
        worker = self._new(which)
        worker.claim()
        worker.start(1)
        worker.finish(TRUNCATED, 1)
        worker.start(2)

    def _name(self) -> str:
        self.numbers += 1
        return f"n{self.numbers}"

    def _new(self, which: int) -> Worker:
        self.workers[which] = Worker(self.parts, self.jobs[which], self._name())
        return self.workers[which]

    def _worker(self, which: int) -> Worker:
        return self.workers.get(which) or self._new(which)

    def _attempt(self, which: int) -> int:
        return 1 + which % 2


class StoppedLog:
    """A log that has stopped after so many events."""

    def __init__(self, log: Log, size: int) -> None:
        self._log = log
        self._size = size

    def size(self) -> int:
        return self._size

    def read(self, start: int, limit: int, stop: int | None = None) -> Any:
        return self._log.read(start, min(limit, self._size - start), stop)


def carried_out(steps: list[Step], store: MemoryBackend) -> tuple[Parts, dict[int, Any]]:
    """The ledger, and its live rows after each step by how many events they reflect."""
    parts = store.open()
    parts.transcripts.append(
        SCOPE, CONVERSATION, [NewMessage("u", "r", "user", "t")], [NewRun("r")]
    )
    history = History(parts, store)
    live: dict[int, Any] = {0: parts.read_models.records()}
    for what, which in steps:
        history.do(what, which)
        live[parts.read_models.position()] = parts.read_models.records()
    return parts, live


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_the_replay_is_what_a_stopped_ledger_says(steps: list[Step]) -> None:
    with closing(MemoryBackend(Path())) as store:
        parts, live = carried_out(steps, store)
        log, ledger = parts.context.log, Ledger(parts, Settings())
        entries = list(ledger.events())
        book = Book()
        for index, entry in enumerate(entries):
            stopped: Any = StoppedLog(log, index + 1)
            alone = MemoryReadModels(DEFAULT_REGISTRY)
            alone.catch_up(stopped)
            past = past_read_models(DEFAULT_REGISTRY, 0)
            past.follow_to(log, index + 1)
            assert past.records() == alone.records()
            if index + 1 in live:
                assert past.records() == live[index + 1]
            found = ledger.replay(CONVERSATION, Moment(index), scope=SCOPE)
            assert [one.row for one in found.ranges] == alone.ranges(*PLACE)
            assert [one.row for one in found.summaries] == alone.summaries(*PLACE)
            assert list(found.attempts) == alone.attempts(*PLACE)
            assert list(found.deliveries) == alone.deliveries(*PLACE)
            assert list(found.chunks) == alone.window_chunks(*PLACE)
            assert list(found.pins) == alone.window_pins(*PLACE)
            assert list(found.window_deliveries) == alone.window_deliveries(*PLACE)
            read(book, entry)
            for one in found.ranges:
                check_claimable(book, one, entry.recorded_at)
            check_valid(
                book, {one.row.identity for one in found.summaries if one.validity == "valid"}
            )


def read(book: Book, entry: Recorded) -> None:
    """Let the auditor read an event; those that are no range's do not concern it."""
    fact: Any = entry.fact
    book.read([(entry.index, entry.recorded_at, fact)])


def check_claimable(book: Book, one: RangeThen, now: int) -> None:
    """A1, A3, D3: what could be claimed is what the rules would not refuse."""
    known = book.identities[one.row.identity]
    refusals = book.refusals_of_a_claim(one.row.identity, known.source, now)
    if (
        known.completion is not None and one.standing != "done"
    ):  # not projectable: a new identity (V2)
        refusals &= {"already_claimed"}
    if one.row.retry_at is None:  # it was claimed again since, and the clock was set back
        refusals -= {"backing_off"}
    assert one.claimable == (not refusals), (one, refusals)


def check_valid(book: Book, valid: set[str]) -> None:
    """V3: of each source that is the latest of its range, the best one alone."""
    for identity in valid:
        known = book.identities[identity]
        best = book.best(known.from_pair, known.source, {str(MIXED): "mixed_input", **PROJECTABLE})
        assert known.completion is best
        assert best is not None


PROJECTABLE = {str(SECOND_PROMPT): "projectable", str(CURRENT): "projectable"}


def key(row: AnyRow) -> tuple[object, ...]:
    """What a row is told from others by."""
    for names in (("identity", "number"), ("identity",), ("delivery_id",), ("run", "pin_id")):
        if all(hasattr(row, name) for name in names) and type(row).__name__ != "RangeRow":
            return type(row).__name__, *(getattr(row, name) for name in names)
    return type(row).__name__, getattr(row, "from_pair", None)


def rows_at(log: Log, index: int) -> dict[tuple[object, ...], AnyRow]:
    past = past_read_models(DEFAULT_REGISTRY, index + 1)
    past.catch_up(log)
    rows: list[AnyRow] = [
        *past.ranges(),
        *past.summaries(*PLACE),
        *past.attempts(*PLACE),
        *past.deliveries(*PLACE),
        *past.window_chunks(*PLACE),
        *past.window_pins(*PLACE),
        *past.window_deliveries(*PLACE),
    ]
    return {key(row): row for row in rows}


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(steps=STEPS, data=st.data())
def test_the_difference_applied_to_one_state_is_the_other(
    steps: list[Step], data: st.DataObject
) -> None:
    with closing(MemoryBackend(Path())) as store:
        parts, _ = carried_out(steps, store)
        log, ledger = parts.context.log, Ledger(parts, Settings())
        last = log.size() - 1
        start = data.draw(st.integers(-1, last))
        end = data.draw(st.integers(start, last))
        found = ledger.diff(Moment(start), Moment(end))
        state = rows_at(log, start)
        for change in found.changes:
            assert state.get(key(change.after)) == change.before != change.after
            assert start < change.index <= end
            state[key(change.after)] = change.after
        assert state == rows_at(log, end)
        valid = {
            one.row.identity
            for one in ledger.replay(CONVERSATION, Moment(start), scope=SCOPE).summaries
            if one.validity == "valid"
        }
        for one in found.validity:
            assert start < one.index <= end
            assert (one.before == "valid") == (one.row.identity in valid)
            (valid.add if one.after == "valid" else valid.discard)(one.row.identity)
        assert valid == {
            one.row.identity
            for one in ledger.replay(CONVERSATION, Moment(end), scope=SCOPE).summaries
            if one.validity == "valid"
        }


class CountingLog:
    """A log that remembers how much of it was asked for at once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, start: int, limit: int, stop: int | None = None) -> Any:
        found = self._log.read(start, limit, stop)
        self.most = max(self.most, len(found))
        return found

    def at(self, indices: Any) -> Any:
        found = self._log.at(indices)
        self.most = max(self.most, len(found))
        return found


@pytest.mark.slow
def test_the_log_is_read_in_batches_whatever_its_length() -> None:
    """Memory grows with the rows, not with the events."""
    with closing(MemoryBackend(Path())) as store:
        parts = store.open()
        job = made_up_job()
        facts = [
            fact
            for n in range(1_500)
            for fact in (claimed(f"c{n}", job=job), released(f"c{n}", job=job))
        ]
        parts.context.log.append(key_of(job), EMPTY, facts)
        counting: Any = CountingLog(parts.context.log)
        context = replace(parts.context, log=counting)
        ledger = Ledger(replace(parts, context=context), Settings())
        assert len(ledger.replay_all(Moment(time=store.clock.now)).conversations) == 1
        ledger.diff(Moment(10), Moment())
        ledger.delivered("run")
        assert 0 < counting.most <= 500
