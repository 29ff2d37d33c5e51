"""Read models of windows on every backend (P1 to P3, P5): chunks, pins, deliveries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from backends import SECOND, START, Backend
from chunk_scenarios import (
    AB,
    MODEL,
    OTHER_MODEL,
    OTHER_WINDOW,
    PROMPT,
    WINDOW,
    A,
    B,
    C,
    chunk,
    claimed,
    completed,
    pin,
    released,
    window_delivery,
)
from histories import CONVERSATION, LEASE, SCOPE, every_kind, fill
from read_model_tables import Stored, change
from window_histories import ChunkWorker, complete, every_window_kind, hold

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedLog, DamagedReadModel
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.read_models import (
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.window_stream import EMPTY, current_pins
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.settings import Settings


def caught_up(parts: Parts) -> Parts:
    """The rows reflect the log."""
    parts.read_models.catch_up(parts.context.log)
    return parts


def folded(parts: Parts) -> MemoryReadModels:
    """What the log implies, in fresh memory."""
    fresh = MemoryReadModels(DEFAULT_REGISTRY)
    fresh.catch_up(parts.context.log)
    return fresh


def row(parts: Parts, job: ChunkJob = A) -> WindowChunkRow:
    """The row of a chunk."""
    rows = caught_up(parts).read_models.window_chunks(SCOPE, CONVERSATION, job.window.run)
    return next(found for found in rows if found.identity == job.identity)


# --- rows (P1) ------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_fact(parts: Parts) -> None:
    models = caught_up(parts).read_models
    for ask in (models.window_chunks, models.window_pins, models.window_deliveries):
        assert list(ask(SCOPE, CONVERSATION)) == []


def test_a_second_completion_that_somebody_forged_replaces_nothing(parts: Parts) -> None:
    """(A2) No command makes one; whoever writes to the store by other ways can."""
    complete(parts, A)
    before = row(parts)
    state = parts.context.log.load_window(A.window)
    parts.context.log.append(A.window, state, [completed(text="entities:\n- forged")])
    assert row(parts) == before
    assert parts.read_models.records() == folded(parts).records()


def test_a_chunk_from_its_claim_to_its_completion(backend: Backend) -> None:
    parts = backend.open()
    worker = ChunkWorker(parts)
    worker.claim()
    assert row(parts) == WindowChunkRow(
        scope=SCOPE,
        conversation=CONVERSATION,
        run="run-1",
        first=1,
        last=5,
        identity=A.identity,
        source_hash=A.source_hash,
        model=MODEL,
        prompt=PROMPT,
        replaces=(),
        status="claimed",
        replaced_by=None,
        attempts=0,
        holder="w",
        expires_at=START + LEASE,
        retry_at=None,
        failure=None,
        index=None,
        recorded_at=None,
        ungrounded=None,
        input_tokens=None,
        output_tokens=None,
        updated_index=0,
        updated_at=START,
    )
    backend.clock.advance(1)
    worker.start()
    assert (row(parts).status, row(parts).attempts) == ("running", 1)
    assert row(parts).expires_at == START + LEASE + SECOND
    worker.renew(2 * LEASE)
    assert row(parts).expires_at == START + 2 * LEASE + SECOND
    worker.finish()
    done = row(parts)
    assert (done.status, done.index, done.recorded_at) == ("completed", 3, START + SECOND)
    assert (done.ungrounded, done.input_tokens, done.output_tokens) == (2, 100, 10)
    assert (done.holder, done.expires_at, done.failure) == (None, None, None)
    assert (done.updated_index, done.updated_at) == (3, START + SECOND)
    assert done.stands


def test_a_failure_a_release_and_the_end_of_all_attempts(parts: Parts) -> None:
    worker = ChunkWorker(parts)
    worker.claim()
    worker.release()
    released_row = row(parts)
    assert (released_row.status, released_row.holder) == ("released", None)
    again = ChunkWorker(parts, A, "again")
    again.claim()
    again.start()
    again.fail()
    assert (row(parts).status, row(parts).failure) == ("failed", "truncated")
    again.start(2)
    again.fail(number=2)
    exhausted = row(parts)
    assert (exhausted.status, exhausted.attempts, exhausted.holder) == ("exhausted", 2, None)
    assert not exhausted.stands


def test_d3_a_chunk_that_waits_says_until_when(parts: Parts) -> None:
    every_window_kind(parts)
    waiting = row(parts, chunk(10, 20, model=OTHER_MODEL))
    assert (waiting.status, waiting.failure) == ("failed", "provider_unavailable")
    assert waiting.retry_at == START + 3 * SECOND
    assert waiting.holder is None


def test_t8_a_chunk_in_the_place_of_others_is_told_with_each_of_them(parts: Parts) -> None:
    complete(parts, A, B)
    worker = ChunkWorker(parts, AB, "regroup")
    worker.claim()
    worker.start()
    assert row(parts, A).replaced_by is None
    worker.finish()
    assert row(parts, A).replaced_by == row(parts, B).replaced_by == AB.identity
    assert row(parts, AB).replaces == (A.identity, B.identity)
    stand = [found.identity for found in _chunks(parts) if found.stands]
    assert stand == [AB.identity]
    assert stand == [one.identity for one in parts.context.log.load_window(WINDOW).chunks]


def _chunks(parts: Parts, run: str | None = None) -> list[WindowChunkRow]:
    return list(caught_up(parts).read_models.window_chunks(SCOPE, CONVERSATION, run))


def test_chunks_stand_by_run_and_first_message(parts: Parts) -> None:
    complete(parts, chunk(0, 3, window=OTHER_WINDOW), A, B, C)
    places = [("run-1", 1), ("run-1", 6), ("run-1", 10), ("run-2", 0)]
    assert [(found.run, found.first) for found in _chunks(parts)] == places
    assert [(found.run, found.first) for found in _chunks(parts, "run-1")] == places[:3]
    assert _chunks(parts, "run-3") == _chunks(parts, "\ud800") == []


def test_t9_pins_are_told_with_what_corrected_them(parts: Parts) -> None:
    hold(parts, pin())
    hold(parts, pin("p2", 6))
    hold(parts, pin("p3", 8, "p1"))
    hold(parts, replace(pin(), window=OTHER_WINDOW))  # the same id in another window
    models = caught_up(parts).read_models
    first, second, third, other = models.window_pins(SCOPE, CONVERSATION)
    assert first == WindowPinRow(
        scope=SCOPE,
        conversation=CONVERSATION,
        run="run-1",
        pin_id="p1",
        message=3,
        digest=pin().digest,
        part=0,
        start=4,
        end=15,
        quote="no nuts, ok",
        exchange=1,
        proposer="rule",
        supersedes=None,
        superseded_by="p3",
        index=0,
        recorded_at=START,
    )
    assert (third.supersedes, third.superseded_by) == ("p1", None)
    assert (other.run, other.superseded_by) == ("run-2", None)
    current = [found.pin_id for found in (first, second, third) if found.current]
    assert current == ["p2", "p3"]
    state = parts.context.log.load_window(WINDOW)
    assert current == [held.pin_id for held in current_pins(state)]
    assert [found.pin_id for found in models.window_pins(SCOPE, CONVERSATION, "run-2")] == ["p1"]


def test_h8_deliveries_are_counted(parts: Parts) -> None:
    parts.context.log.deliver(window_delivery("d-1"))
    parts.context.log.deliver(window_delivery("d-1", replace(WINDOW, conversation="c-2")))
    parts.context.log.deliver(window_delivery("d-2", OTHER_WINDOW))
    models = caught_up(parts).read_models
    first, second = models.window_deliveries(SCOPE, CONVERSATION)
    assert first == WindowDeliveryRow(
        delivery_id="d-1",
        scope=SCOPE,
        conversation=CONVERSATION,
        run="run-1",
        shape="openai-chat",
        verbatim=10,
        summarized=9,
        left_out=2,
        chunks=1,
        pins=2,
        stubs=1,
        tokens=900,
        limit=1_000,
        bytes_sent=3_000,
        bytes_reused=700,
        request_digest="ab" * 32,
        index=0,
        recorded_at=START,
    )
    assert (second.run, second.index) == ("run-2", 2)
    assert list(models.window_deliveries(SCOPE, CONVERSATION, "run-2")) == [second]
    assert [found.index for found in models.window_deliveries(SCOPE, "c-2")] == [1]


def test_windows_leave_the_rows_of_ranges_alone(parts: Parts) -> None:
    every_window_kind(parts)
    tables = caught_up(parts).read_models.records()
    assert {name for name, rows in tables.items() if rows} == {
        "window_chunks",
        "window_pins",
        "window_deliveries",
    }


def test_ids_of_any_length_and_script_have_their_rows(parts: Parts) -> None:
    long = "界" * 512
    window = replace(WINDOW, conversation=long, run=long[::-1])
    held = replace(pin(long), window=window, quote="\x00\x1b 不要坚果 😀 ", start=0, end=10)
    complete(parts, chunk(0, 3, window=window))
    hold(parts, held)
    parts.context.log.deliver(window_delivery(long, window))
    models = caught_up(parts).read_models
    (found,) = models.window_pins(SCOPE, long, window.run)
    assert (found.pin_id, found.quote) == (long, held.quote)
    assert len(models.window_chunks(SCOPE, long, window.run)) == 1
    assert models.window_deliveries(SCOPE, long)[0].delivery_id == long


# --- rebuilt and live rows (P2, P3), and the past (P5) --------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 3, 1_000])
def test_rows_are_the_same_however_many_facts_are_applied_at_once(
    parts: Parts, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = getattr(parts.read_models, "_store", None)
    store = getattr(guarded, "_store", None)  # there is none in memory
    if store is not None:
        monkeypatch.setattr(type(store), "batch", at_once)
    every_window_kind(parts)
    live = caught_up(parts).read_models.records()
    assert live == folded(parts).records()
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == live
    assert Ledger(parts, Settings()).verify().ok


def test_rows_that_are_brought_up_fact_by_fact(parts: Parts) -> None:
    class Step:
        """Catches up whenever the log is asked for its time: before each command."""

        def __init__(self, now: Callable[[], int]) -> None:
            self._now = now

        def __call__(self) -> int:
            parts.read_models.catch_up(parts.context.log)
            return self._now()

    log = parts.context.log
    log.now = Step(log.now)  # type: ignore[method-assign]
    every_window_kind(parts)
    assert caught_up(parts).read_models.records() == folded(parts).records()


def test_p5_what_the_rows_said_at_any_place(parts: Parts) -> None:
    complete(parts, A)
    hold(parts, pin())
    hold(parts, pin("p2", 6, "p1"))
    ledger = Ledger(parts, Settings())
    told = [
        [found.status for found in ledger.at(index=index).window_chunks(SCOPE, CONVERSATION)]
        for index in range(3)
    ]
    assert told == [["claimed"], ["running"], ["completed"]]
    pins = [
        [found.superseded_by for found in ledger.at(index=index).window_pins(SCOPE, CONVERSATION)]
        for index in (2, 3, 4)
    ]
    assert pins == [[], [None], ["p2", None]]


def test_beside_ranges_all_tables_are_filled_and_verified(parts: Parts) -> None:
    fill(parts, 80)
    every_kind(parts)
    every_window_kind(parts)
    assert Ledger(caught_up(parts), Settings()).verify().ok
    assert parts.read_models.records() == folded(parts).records()


# --- damage (H9) ----------------------------------------------------------------------------------------


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("UPDATE window_chunks_1 SET status = 'imported'", "window_chunks"),
        ("UPDATE window_chunks_1 SET settings = 'no json'", "window_chunks"),
        ("UPDATE window_chunks_1 SET replaces = '[1]'", "window_chunks"),
        ("UPDATE window_chunks_1 SET replaced_by = 'x' WHERE first_message = 1", "window_chunks"),
        ("UPDATE window_pins_1 SET proposer = 'somebody'", "window_pins"),
        ("UPDATE window_pins_1 SET quote_end = -1", "window_pins"),
        ("UPDATE window_deliveries_1 SET request_digest = 'x'", "window_deliveries"),
        ("UPDATE window_deliveries_1 SET tokens = -1", "window_deliveries"),
    ],
)
def test_a_damaged_row_is_told_and_a_rebuild_mends_it(
    store: Stored, statement: str, table: str
) -> None:
    parts = store.open()
    every_window_kind(parts)
    live = caught_up(parts).read_models.records()
    change(store, statement)
    with pytest.raises(DamagedReadModel, match=table):
        getattr(parts.read_models, table)(SCOPE, CONVERSATION)
    assert not Ledger(parts, Settings()).verify().ok
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == live


def test_a_row_that_says_wrongly_what_it_replaces_is_damage(store: Stored) -> None:
    parts = store.open()
    complete(parts, A, B)
    worker = ChunkWorker(parts, AB, "regroup")
    worker.claim()
    worker.start()
    caught_up(parts)
    change(store, "UPDATE window_chunks_1 SET replaces = 'no json' WHERE status = 'running'")
    worker.finish()
    with pytest.raises(DamagedReadModel, match="replaces"):
        caught_up(parts)
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == folded(parts).records()


def test_facts_that_do_not_fit_together_are_damage_at_an_index(parts: Parts) -> None:
    parts.context.log.append(WINDOW, EMPTY, [claimed(A), released(B)])
    with pytest.raises(DamagedLog, match="no claim") as damage:
        parts.read_models.rebuild(parts.context.log)
    assert damage.value.index == 1


def test_a_correction_of_a_pin_that_is_not_there_is_damage(parts: Parts) -> None:
    parts.context.log.append(WINDOW, EMPTY, [pin("p2", 5, "p1")])
    with pytest.raises(DamagedLog, match="no pin p1") as damage:
        parts.read_models.rebuild(parts.context.log)
    assert damage.value.index == 0
