"""The port ``ReadModels`` on every backend: rows, following, rebuilding, the past (P1 to P5)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from backends import START, Backend, PostgresBackend
from facts import delivery
from histories import (
    CONVERSATION,
    CURRENT,
    LEASE,
    SCOPE,
    TRUNCATED,
    UNAVAILABLE,
    Worker,
    bring_in,
    every_kind,
    fill,
    key_of,
    made_up_job,
    present_job,
)
from processes import run_all, running, wait_for, worker
from read_model_tables import Stored, change, generations, place, tables_of_summaries
from scenarios import (
    MODEL,
    OTHER_MODEL,
    claimed,
    completed,
    imported,
    make_pairs,
    released,
    renewed,
    started,
)
from window_histories import every_window_kind

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    AlreadyCompleted,
    DamagedLog,
    DamagedReadModel,
    RebuildOvertaken,
)
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.identity import Job, PromptVersion, job_for
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry
from compaction_ledger.domain.range_stream import EMPTY, fold
from compaction_ledger.domain.read_models import (
    AttemptRow,
    GenerationProgress,
    RangeCensus,
    RangeRow,
    SummaryRow,
)
from compaction_ledger.ledger import Ledger
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.projections.postgres import PostgresStore
from compaction_ledger.projections.sqlite import SQLiteStore
from compaction_ledger.settings import Settings

JOB = made_up_job()
OTHER = made_up_job(model=OTHER_MODEL)
Records = dict[str, list[tuple[object, ...]]]


def caught_up(parts: Parts) -> Parts:
    parts.read_models.catch_up(parts.context.log)
    return parts


def summary(parts: Parts, job: Job = JOB) -> SummaryRow:
    rows = caught_up(parts).read_models.summaries(SCOPE, CONVERSATION)
    return next(row for row in rows if row.identity == job.identity)


def range_row(parts: Parts, from_pair: int = 0) -> RangeRow:
    rows = caught_up(parts).read_models.ranges(SCOPE, CONVERSATION)
    return next(row for row in rows if row.from_pair == from_pair)


def attempts(parts: Parts) -> Sequence[AttemptRow]:
    return caught_up(parts).read_models.attempts(SCOPE, CONVERSATION)


def folded(
    parts: Parts, registry: PromptRegistry = DEFAULT_REGISTRY, stop: int | None = None
) -> Records:
    """What the log implies, in fresh memory."""
    fresh = MemoryReadModels(registry, stop=stop)
    fresh.catch_up(parts.context.log)
    return fresh.records()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many facts are more than two batches of a rebuild in this process, with small batches."""
    for store in (PostgresStore, SQLiteStore):
        monkeypatch.setattr(store, "rebuild_batch", 100)
    monkeypatch.setattr("compaction_ledger.projections.memory.BATCH", 100)
    return 202


def long_history(parts: Parts, facts: int) -> None:
    """More than two batches of a rebuild of facts, in few appends."""
    many = [
        fact
        for n in range(facts // 2)
        for fact in (claimed(f"c{n}", job=JOB), released(f"c{n}", job=JOB))
    ]
    parts.context.log.append(key_of(JOB), EMPTY, many)


# --- rows (P1) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("by_import", [False, True])
def test_a_second_completion_that_somebody_forged_replaces_nothing(
    parts: Parts, by_import: bool
) -> None:
    """(A2) No command makes one; whoever writes to the store by other ways can."""
    facts: list[RangeFact] = [imported()] if by_import else [claimed(), started(), completed()]
    log = parts.context.log
    log.append(key_of(JOB), EMPTY, facts)
    caught_up(parts)
    before = parts.read_models.records()
    forged: list[RangeFact] = [completed(text="Forged."), imported("i2", text="Forged.")]
    log.append(key_of(JOB), fold(facts), forged)
    caught_up(parts)
    assert log.size() == len(facts) + 2
    assert parts.read_models.records() == before == folded(parts)


def test_nothing_is_known_before_the_first_fact(parts: Parts) -> None:
    models = caught_up(parts).read_models
    assert models.position() == 0
    assert list(models.summaries(SCOPE, CONVERSATION)) == []
    assert list(models.ranges()) == []
    assert list(models.attempts(SCOPE, CONVERSATION)) == []
    assert list(models.deliveries(SCOPE, CONVERSATION)) == []
    assert models.registry_fingerprint() == DEFAULT_REGISTRY.fingerprint


def test_a_claim(parts: Parts) -> None:
    Worker(parts, JOB).claim()
    assert summary(parts) == SummaryRow(
        scope=SCOPE,
        conversation=CONVERSATION,
        from_pair=0,
        to_pair=9,
        identity=JOB.identity,
        source_hash=JOB.source_hash,
        model=MODEL,
        prompt=CURRENT,
        status="claimed",
        validity="projectable",
        attempts=0,
        holder="w",
        expires_at=START + LEASE,
        retry_at=None,
        failure=None,
        index=None,
        recorded_at=None,
        origin=None,
        input_tokens=None,
        output_tokens=None,
    )
    assert range_row(parts) == RangeRow(
        scope=SCOPE,
        conversation=CONVERSATION,
        from_pair=0,
        to_pair=9,
        status="running",
        source_hash=JOB.source_hash,
        identity=JOB.identity,
        expires_at=START + LEASE,
        retry_at=None,
        updated_index=0,
        updated_at=START,
    )
    assert list(attempts(parts)) == []


@pytest.mark.slow_on("postgres")
def test_a_claim_given_back(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.release()
    row = summary(parts)
    assert (row.status, row.holder, row.expires_at, row.attempts) == ("released", None, None, 0)
    assert (range_row(parts).status, range_row(parts).expires_at) == ("due", None)


def test_an_attempt_under_way(parts: Parts, backend: Backend) -> None:
    one = Worker(parts, JOB)
    one.claim()
    backend.clock.advance(10)
    one.start()
    row = summary(parts)
    assert (row.status, row.attempts) == ("running", 1)
    assert row.expires_at == range_row(parts).expires_at == START + 10_000_000 + LEASE
    (attempt,) = attempts(parts)
    assert (attempt.number, attempt.outcome, attempt.holder) == (1, "running", "w")
    assert (attempt.started_index, attempt.started_at) == (1, START + 10_000_000)
    assert (attempt.ended_index, attempt.ended_at) == (None, None)


def test_a_renewed_lease(parts: Parts, backend: Backend) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    before, (attempt,) = summary(parts), attempts(parts)
    backend.clock.advance(10)
    one.renew()
    row, found = summary(parts), range_row(parts)
    assert row == replace(before, expires_at=START + 10_000_000 + LEASE)
    assert (found.status, found.expires_at) == ("running", row.expires_at)
    assert (found.updated_index, found.updated_at) == (2, START + 10_000_000)
    assert list(attempts(parts)) == [attempt]


@pytest.mark.slow_on("postgres")
def test_a_renewal_beside_an_import_of_its_identity_says_nothing_more(parts: Parts) -> None:
    """Today's rules refuse it; what was legal once is read for ever (A10)."""
    facts = (claimed(job=JOB), started(job=JOB), imported(job=JOB))
    parts.context.log.append(key_of(JOB), EMPTY, facts)
    rows = summary(parts), range_row(parts)
    renewal = renewed(expires_at=START + 9 * LEASE, job=JOB)
    parts.context.log.append(key_of(JOB), fold(facts), [renewal])
    assert (summary(parts), range_row(parts)) == rows
    assert (rows[0].status, rows[1].status) == ("imported", "done")


@pytest.mark.slow_on("postgres")
def test_an_old_source_that_is_renewed_leaves_the_range_to_the_new_one(
    parts: Parts, backend: Backend
) -> None:
    older = replace(JOB, source_hash="ab" * 32)
    old, new = Worker(parts, older, "old"), Worker(parts, JOB, "new")
    old.claim()
    old.start()
    new.claim()
    before = range_row(parts)
    backend.clock.advance(10)
    old.renew()
    assert range_row(parts) == before
    assert summary(parts, older).expires_at == START + 10_000_000 + LEASE


def test_a_completion(parts: Parts, backend: Backend) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    backend.clock.advance(3)
    one.finish()
    row = summary(parts)
    assert (row.status, row.index, row.recorded_at) == ("completed", 2, START + 3_000_000)
    assert (row.holder, row.expires_at, row.retry_at, row.failure) == (None, None, None, None)
    assert (row.input_tokens, row.output_tokens) == (100, 10)
    (attempt,) = attempts(parts)
    assert (attempt.outcome, attempt.signals, attempt.tool_calls) == ("completed", ("stop",), 0)
    assert (attempt.ended_index, attempt.ended_at) == (2, START + 3_000_000)
    assert (range_row(parts).status, range_row(parts).expires_at) == ("done", None)


def test_a_failure_and_then_exhaustion(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start(1)
    one.finish(TRUNCATED, 1)
    row = summary(parts)
    assert (row.status, row.failure, row.attempts) == ("failed", "truncated", 1)
    assert range_row(parts).status == "failed"
    one.start(2)
    one.finish(TRUNCATED, 2)
    row = summary(parts)
    assert (row.status, row.failure, row.attempts, row.holder) == (
        "exhausted",
        "truncated",
        2,
        None,
    )
    assert range_row(parts).status == "exhausted"
    first, second = attempts(parts)
    assert (first.number, second.number) == (1, 2)
    assert first.failure == second.failure == "truncated"
    assert first.output_digest == second.output_digest
    assert first.output_digest is not None
    assert first.signals == ("length",)


def test_an_unavailable_provider(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    one.finish(UNAVAILABLE, retry_at=START + 7)
    one.release("backing_off")
    row = summary(parts)
    assert (row.status, row.failure, row.retry_at) == ("failed", "provider_unavailable", START + 7)
    assert range_row(parts).retry_at == START + 7
    (attempt,) = attempts(parts)
    assert (attempt.detail, attempt.output_digest) == ("HTTP 503", None)
    assert set(attempt.also) == {"missing_finish", "empty"}


def test_a_take_over_after_the_lease(parts: Parts, backend: Backend) -> None:
    late, next_one = Worker(parts, JOB, "late"), Worker(parts, JOB, "next")
    late.claim()
    late.start()
    backend.clock.advance(LEASE / 1e6)
    next_one.claim()
    row = summary(parts)
    assert (row.status, row.holder, row.attempts) == ("claimed", "next", 1)
    next_one.start(1)
    next_one.finish()
    first, second = attempts(parts)
    assert (first.holder, first.outcome, first.failure) == ("late", "failed", "lease_expired")
    assert (second.holder, second.number, second.outcome) == ("next", 2, "completed")
    assert summary(parts).status == "completed"


def test_an_import(parts: Parts) -> None:
    bring_in(parts, JOB)
    row = summary(parts)
    assert (row.status, row.origin, row.index, row.attempts) == ("imported", "old store", 0, 0)
    assert range_row(parts).status == "done"


def test_an_import_that_is_never_projected_leaves_the_range_alone(parts: Parts) -> None:
    mixed = made_up_job(prompt=PromptVersion(CURRENT.name, 1))
    unknown = made_up_job(prompt=PromptVersion("someone-elses", 1))
    bring_in(parts, mixed, name="1")
    bring_in(parts, unknown, name="2")
    assert summary(parts, mixed).validity == "mixed_input"
    assert summary(parts, unknown).validity == "unknown_version"
    assert list(parts.read_models.ranges()) == []


def test_an_import_while_an_attempt_runs(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    bring_in(parts, JOB)
    one.finish(TRUNCATED)
    one.release()
    row = summary(parts)
    assert (row.status, row.index, row.failure) == ("imported", 2, None)
    assert range_row(parts).status == "done"
    (attempt,) = attempts(parts)
    assert (attempt.outcome, attempt.failure) == ("failed", "truncated")


def test_an_attempt_that_an_import_outdid(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    bring_in(parts, JOB)
    with pytest.raises(AlreadyCompleted):
        one.finish()
    row = summary(parts)
    assert (row.status, row.index, row.holder) == ("imported", 2, None)
    assert range_row(parts).status == "done"
    (attempt,) = attempts(parts)
    assert (attempt.outcome, attempt.failure) == ("outdone", None)
    assert (attempt.ended_index, attempt.ended_at) == (3, START)
    assert attempt.input_tokens is None


def test_a_claim_that_an_import_outdid_before_its_attempt(parts: Parts) -> None:
    one = Worker(parts, JOB)
    one.claim()
    bring_in(parts, JOB)
    with pytest.raises(AlreadyCompleted):
        one.start()
    assert summary(parts).status == "imported"
    assert list(attempts(parts)) == []


def test_an_upgrade_under_way_does_not_hide_that_the_range_is_done(parts: Parts) -> None:
    bring_in(parts, made_up_job(prompt=PromptVersion(CURRENT.name, 2)))
    Worker(parts, JOB).claim()
    assert range_row(parts).status == "done"
    assert summary(parts).status == "claimed"


def test_a_range_speaks_of_its_newest_source(parts: Parts) -> None:
    fill(parts)
    old = present_job(parts)
    slow = Worker(parts, old, "slow")
    slow.claim()
    slow.start()
    parts.transcripts.revise(SCOPE, CONVERSATION, "a3", "corrected")
    new = present_job(parts)
    Worker(parts, new, "new").complete()
    slow.finish()  # late, and of the older source: recorded, but not the range's word
    row = range_row(parts)
    assert (row.status, row.source_hash, row.identity) == ("done", new.source_hash, new.identity)
    assert summary(parts, old).status == summary(parts, new).status == "completed"


def test_deliveries(parts: Parts) -> None:
    index = parts.context.log.deliver(delivery())
    (row,) = caught_up(parts).read_models.deliveries(SCOPE, CONVERSATION)
    assert (row.delivery_id, row.run, row.shape, row.index) == (
        "d-1",
        "run-9",
        "openai-chat",
        index,
    )
    assert (row.bytes_used, row.bytes_allowed) == (900, 1_000)


def test_questions_are_answered_per_conversation_and_in_order(parts: Parts) -> None:
    for conversation in ("c-2", "c-1"):
        fill(parts, 40, conversation)
        for from_pair in (10, 0):
            job = present_job(parts, from_pair, conversation=conversation)
            Worker(parts, job, f"{conversation}-{from_pair}").complete()
    models = caught_up(parts).read_models
    assert [row.from_pair for row in models.summaries(SCOPE, "c-1")] == [0, 10]
    assert [row.started_index for row in models.attempts(SCOPE, "c-1")] == [7, 10]
    everything = [("c-1", 0), ("c-1", 10), ("c-2", 0), ("c-2", 10)]
    assert [(row.conversation, row.from_pair) for row in models.ranges()] == everything
    assert [(row.conversation, row.from_pair) for row in models.ranges(SCOPE)] == everything
    assert [(row.conversation, row.from_pair) for row in models.ranges(SCOPE, "c-2")] == everything[
        2:
    ]
    assert list(models.ranges("another")) == []
    assert list(models.summaries("another", "c-1")) == []


@pytest.mark.slow_on("postgres")
def test_the_longest_ids_have_their_rows(parts: Parts) -> None:
    """E4: 512 characters each, which no compression makes shorter."""
    chance = random.Random(4)
    scope, conversation, other, name = (
        "".join(chr(chance.randrange(0x20000, 0x2A6DF)) for _ in range(512)) for _ in range(4)
    )
    for thread in (conversation, other):
        job = job_for(scope, thread, make_pairs(10), MODEL, CURRENT)
        Worker(parts, job, name[:490]).complete()
        sent = replace(delivery(name[:-2] + thread[:2], thread), scope=scope)
        parts.context.log.deliver(sent)
    models = caught_up(parts).read_models
    for _ in range(2):
        (row,) = models.summaries(scope, conversation)
        assert (row.scope, row.conversation, row.status) == (scope, conversation, "completed")
        assert [row.conversation for row in models.ranges(scope, other)] == [other]
        assert len(models.ranges(scope)) == 2
        assert [row.outcome for row in models.attempts(scope, other)] == ["completed"]
        assert len(models.deliveries(scope, conversation)) == 1
        assert models.records() == folded(parts)
        models.rebuild(parts.context.log)


def test_text_that_a_database_cannot_hold_comes_back_as_it_was(parts: Parts) -> None:
    """E6: of what a row holds, only the word of an adapter may be any text at all."""
    for number, word in enumerate(("a\x00b", "\x1b0000", "\ud800", '\\"{},\n', "\x1f")):
        one = Worker(parts, made_up_job(10 * number), f"w{number}")
        one.claim()
        one.start()
        one.finish(replace(UNAVAILABLE, detail=word), retry_at=START + 7)
        (attempt,) = (row for row in attempts(parts) if row.from_pair == 10 * number)
        assert attempt.detail == word.replace("\ud800", "\ufffd")
    assert parts.read_models.records() == folded(parts)
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == folded(parts)
    assert Ledger(parts, Settings()).verify().ok


def test_a_question_of_what_cannot_be_is_answered_with_nothing(parts: Parts) -> None:
    Worker(parts, JOB).complete()
    models = caught_up(parts).read_models
    for word in ("\x00", "\ud800", "", "x" * 5_000):
        assert list(models.summaries(word, CONVERSATION)) == []
        assert list(models.ranges(word)) == []
        assert list(models.attempts(SCOPE, word)) == []
        assert list(models.deliveries(word, word)) == []


def test_how_far_the_rows_are_is_told_while_they_are_rebuilt(short: int, parts: Parts) -> None:
    long_history(parts, short)
    caught_up(parts)
    models = parts.read_models
    ((number, active),) = ((at.number, at.active) for at in models.progress())
    assert active
    told: list[Sequence[GenerationProgress]] = []
    models.rebuild(parts.context.log, lambda _done, _total: told.append(models.progress()))
    for serving, rebuilt in (progress for progress in told if len(progress) == 2):
        assert serving == GenerationProgress(number, short, active=True)
        assert (rebuilt.number, rebuilt.active) == (number + 1, False)
        assert 0 < rebuilt.position <= short
    assert len(told) > 1
    assert list(models.progress()) == [GenerationProgress(number + 1, short, active=True)]


def test_models_with_settings_keep_them(parts: Parts) -> None:
    bring_in(parts, made_up_job(model=OTHER_MODEL), name="plain")
    bring_in(parts, made_up_job(model=MODEL), name="set")
    assert summary(parts, made_up_job(model=OTHER_MODEL)).model == OTHER_MODEL
    assert summary(parts, made_up_job(model=MODEL)).model == MODEL


@pytest.mark.parametrize("how", ["completed", "imported while it ran", "failed behind an import"])
def test_a_completed_identity_that_may_not_be_projected_leaves_its_range_due(
    backend: Backend, how: str
) -> None:
    """P4, W4: what may not be projected is no reason not to make another."""
    parts = backend.open(only_version(2))
    one = Worker(parts, JOB)
    one.claim()
    one.start()
    if how == "completed":
        one.finish()
    else:
        bring_in(parts, JOB)
        assert range_row(parts).status == "running"
        if how == "failed behind an import":
            one.finish(TRUNCATED)
            one.release()
        else:
            with pytest.raises(AlreadyCompleted):
                one.finish()
    assert summary(parts).validity == "not_projectable"
    row = range_row(parts)
    assert (row.status, row.identity, row.expires_at) == ("due", JOB.identity, None)
    second = made_up_job(prompt=PromptVersion(CURRENT.name, 2))
    Worker(parts, second, "second").complete()
    assert range_row(parts).status == "done"
    Worker(parts, made_up_job(model=OTHER_MODEL), "third").complete()
    row = range_row(parts)
    assert (row.status, row.identity) == ("done", second.identity)


def only_version(version: int) -> PromptRegistry:
    """As the default one, but only summaries of ``version`` are projected."""
    instructions = DEFAULT_REGISTRY.instructions(CURRENT)
    specs = [
        replace(spec, projectable=spec.prompt.version == version, instructions=instructions)
        for spec in DEFAULT_REGISTRY
    ]
    return PromptRegistry(specs, PromptVersion(CURRENT.name, version))


# --- following the log (P2) ---------------------------------------------------------------------


def test_catching_up_twice_changes_nothing(parts: Parts) -> None:
    fill(parts, 80)
    every_kind(parts)
    size = parts.context.log.size()
    assert parts.read_models.catch_up(parts.context.log) == size
    once = parts.read_models.records()
    assert parts.read_models.catch_up(parts.context.log) == size
    assert parts.read_models.records() == once == folded(parts)


@pytest.mark.slow_on("postgres")
def test_progress_is_told(parts: Parts) -> None:
    long_history(parts, 1_200)
    told: list[tuple[int, int]] = []
    parts.read_models.catch_up(parts.context.log, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == (1_200, 1_200)


@pytest.mark.slow_on("postgres")
def test_every_position_is_the_same_whether_followed_one_by_one_or_at_once(
    backend: Backend,
) -> None:
    parts = backend.open()
    fill(parts, 80)
    seen: dict[int, Records] = {0: parts.read_models.records()}
    log = parts.context.log

    class Following:
        """A session whose read models follow each single append."""

        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def append(self, *arguments: Any) -> Sequence[int]:
            indices = log.append(*arguments)
            parts.read_models.catch_up(log)
            seen[parts.read_models.position()] = parts.read_models.records()
            return indices

    context = composition.parts_of(
        Following(),  # type: ignore[arg-type]
        parts.transcripts,
        parts.read_models,
        parts.context.policy,
        parts.context.registry,
        Settings(),
        lambda: None,
    )
    every_kind(context)
    assert len(seen) > 15
    ledger = Ledger(parts, Settings())
    for position, records in seen.items():
        assert folded(parts, stop=position) == records
        past = ledger.at(index=position - 1)
        assert isinstance(past, MemoryReadModels)
        assert past.records() == records  # P5


def test_a_past_time_can_be_asked(backend: Backend) -> None:
    parts = backend.open()
    one = Worker(parts, JOB)
    one.claim()
    backend.clock.advance(10)
    one.start()
    backend.clock.advance(10)
    one.finish()
    ledger = Ledger(parts, Settings())
    statuses = [
        [
            row.status
            for row in ledger.at(time=START + seconds * 1_000_000).summaries(SCOPE, CONVERSATION)
        ]
        for seconds in (-1, 0, 9, 10, 19, 20, 1_000)
    ]
    assert statuses == [
        [],
        ["claimed"],
        ["claimed"],
        ["running"],
        ["running"],
        ["completed"],
        ["completed"],
    ]


class Slow:
    """A log that lets other threads run between reading and what is done with it."""

    def __init__(self, log: Any, pause: Callable[[], None] = lambda: time.sleep(0.002)) -> None:
        self._log = log
        self._pause = pause

    def size(self) -> int:
        return int(self._log.size())

    def read(self, *arguments: Any) -> Sequence[Recorded]:
        entries: Sequence[Recorded] = self._log.read(*arguments)
        self._pause()
        return entries

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.mark.slow_on("postgres")
def test_followers_at_once_apply_each_fact_once(backend: Backend) -> None:
    writer = backend.open()
    fill(writer, 80)
    sessions = [backend.open() for _ in range(4)]
    done = False

    def follow(number: int) -> None:
        session = sessions[number]
        while not done or session.read_models.position() < session.context.log.size():
            session.read_models.catch_up(cast(Any, Slow(session.context.log)))

    with ThreadPoolExecutor(5) as pool:
        following = [pool.submit(follow, number) for number in range(4)]
        every_kind(writer)
        Worker(writer, made_up_job(60), "extra").complete()
        done = True
        for future in following:
            future.result()
    assert sessions[0].read_models.records() == folded(writer)


def test_readers_see_whole_batches_whatever_the_moment(backend: Backend) -> None:
    """Rows and position change together, and reading never stumbles over a follower (P2)."""
    writer, reader = backend.open(), backend.open()
    for number in range(60):
        job = made_up_job(number * 10)
        writer.context.log.append(key_of(job), EMPTY, [claimed(f"c{number}", job=job)])
    done = False

    def watch() -> list[tuple[int, int]]:
        seen = [(reader.read_models.position(), len(reader.read_models.ranges()))]
        while not done:
            position = reader.read_models.position()
            seen.append((position, len(reader.read_models.records()["ranges"])))
            assert len(reader.read_models.summaries(SCOPE, CONVERSATION)) >= position
        return seen

    with ThreadPoolExecutor(2) as pool:
        watching = [pool.submit(watch) for _ in range(2)]
        for _ in range(3):
            writer.read_models.rebuild(writer.context.log)
        writer.read_models.catch_up(writer.context.log)
        done = True
        seen = [pair for future in watching for pair in future.result()]
    # The position is asked first: rows may be newer than it, never older.
    assert all(rows >= position for position, rows in seen)


@pytest.mark.slow
def test_following_processes_apply_each_fact_once(store: Stored) -> None:
    parts = store.open()
    long_history(parts, 1_200)
    run_all([worker("follow", place(store), 1_200) for _ in range(3)])
    assert parts.read_models.position() == 1_200
    assert parts.read_models.records() == folded(parts)


@pytest.mark.slow_on("postgres")
def test_verification_beside_writers_finds_nothing(backend: Backend) -> None:
    """Rows, position and log are compared as of one moment, whatever happens meanwhile."""
    writer, auditor = backend.open(), Ledger(backend.open(), Settings())
    fill(writer, 80)
    stop = False

    def verify_again_and_again() -> int:
        times = 0
        while not stop or not times:
            assert auditor.verify().findings == ()
            times += 1
        return times

    with ThreadPoolExecutor(1) as pool:
        verifying = pool.submit(verify_again_and_again)
        for number in range(40):
            Worker(writer, made_up_job(number * 10), f"w{number}").complete()
            writer.read_models.catch_up(writer.context.log)
        stop = True
        assert verifying.result() > 0
    assert auditor.verify().lag == 0


@pytest.mark.slow
def test_a_conversation_that_begins_during_a_verification_is_no_finding(backend: Backend) -> None:
    """Its reference (L3) is not among those that were read before the first event was looked at."""
    writer, auditor = backend.open(), Ledger(backend.open(), Settings())
    for number in range(90):
        Worker(writer, made_up_job(number * 10), f"w{number}").complete()
    begun: list[int] = []

    def begin_another(done: int, total: int) -> None:
        if not begun:
            begun.append(done)
            Worker(writer, replace(made_up_job(0), conversation="begun-meanwhile")).complete()

    found = auditor.verify(begin_another)
    assert found.findings == ()
    assert (begun, found.events) == ([256], 273)


# --- rebuilding (P3) ----------------------------------------------------------------------------


def test_a_rebuilt_table_equals_the_live_one_row_for_row(parts: Parts) -> None:
    fill(parts, 80)
    every_kind(parts)
    parts.context.log.deliver(delivery())
    every_window_kind(parts)
    live = caught_up(parts).read_models.records()
    told: list[tuple[int, int]] = []
    size = parts.context.log.size()
    assert parts.read_models.rebuild(parts.context.log, lambda d, t: told.append((d, t))) == size
    assert told[-1] == (size, size)
    assert parts.read_models.records() == live == folded(parts)
    assert all(live.values())


def test_rebuilding_twice_and_from_behind(parts: Parts) -> None:
    fill(parts, 80)
    every_kind(parts)
    for _ in range(3):
        parts.read_models.rebuild(parts.context.log)
        assert parts.read_models.records() == folded(parts)
        assert parts.read_models.position() == parts.context.log.size()


def test_an_empty_log_can_be_rebuilt(parts: Parts) -> None:
    assert parts.read_models.rebuild(parts.context.log) == 0
    assert parts.read_models.position() == 0


@pytest.mark.slow_on("postgres")
def test_a_rebuild_while_writes_go_on(backend: Backend, short: int) -> None:
    parts, other = backend.open(), backend.open()
    long_history(parts, short)
    caught_up(parts)
    served: list[int] = []
    more = iter(range(10, 40, 10))

    def meanwhile(_done: int, _total: int) -> None:
        from_pair = next(more, None)
        if from_pair is not None:
            Worker(other, made_up_job(from_pair), f"w{from_pair}").complete()
            served.append(len(other.read_models.ranges()))  # the old rows go on serving

    position = parts.read_models.rebuild(parts.context.log, meanwhile)
    assert position == parts.context.log.size() == short + 9
    assert served == [1, 1, 1]
    assert parts.read_models.records() == folded(parts)
    assert caught_up(other).read_models.records() == folded(parts)


@pytest.mark.slow_on("postgres")
def test_rebuilding_twice_under_writes_and_followers_equals_a_fold(backend: Backend) -> None:
    writer, follower, rebuilder = (backend.open() for _ in range(3))
    done = False

    def write() -> None:
        number = 0
        while not done:
            Worker(writer, made_up_job(10 * number), f"w{number}").complete()
            number += 1

    def follow() -> None:
        while not done:
            follower.read_models.catch_up(follower.context.log)

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(write), pool.submit(follow)]
        try:
            for _ in range(2):
                before = rebuilder.context.log.size()
                assert rebuilder.read_models.rebuild(rebuilder.context.log) >= before
        finally:
            done = True
        for other in others:
            other.result()
    size = caught_up(rebuilder).context.log.size()
    assert rebuilder.read_models.position() == size
    assert rebuilder.read_models.records() == folded(rebuilder)


@pytest.mark.slow_on("postgres")
def test_a_follower_goes_on_with_the_new_tables_after_a_switch(store: Stored) -> None:
    follower, rebuilder = store.open(), store.open()
    long_history(follower, 1_200)
    rebuilt: list[int] = []

    def rebuild_once() -> None:
        if not rebuilt:
            rebuilt.append(rebuilder.read_models.rebuild(rebuilder.context.log))

    assert (
        follower.read_models.catch_up(cast(Any, Slow(follower.context.log, rebuild_once))) == 1_200
    )
    assert rebuilt == [1_200]
    assert follower.read_models.records() == folded(follower)


def once(work: Callable[[], object]) -> Callable[[], None]:
    """What does ``work`` the first time it is called."""
    done: list[object] = []

    def first_time() -> None:
        if not done:
            done.append(None)
            work()

    return first_time


@pytest.mark.slow_on("postgres")
def test_a_rebuild_within_a_rebuild_is_complete_for_both(store: Stored) -> None:
    first, second = store.open(), store.open()
    long_history(first, 1_200)
    rebuild = once(lambda: second.read_models.rebuild(second.context.log))
    assert first.read_models.rebuild(cast(Any, Slow(first.context.log, rebuild))) == 1_200
    assert first.read_models.position() == 1_200
    assert first.read_models.records() == folded(first)


@pytest.mark.slow_on("postgres")
def test_a_rebuild_that_was_overtaken_by_one_that_died_carries_on_with_its_tables(
    store: Stored,
    short: int,
) -> None:
    first, second = store.open(), store.open()
    long_history(first, short)

    class Died(Exception):
        """Where the second rebuild was, when it died."""

    def die(_done: int, _total: int) -> None:
        raise Died

    def begin_and_die() -> None:
        with pytest.raises(Died):
            second.read_models.rebuild(second.context.log, die)

    slow = Slow(first.context.log, once(begin_and_die))
    assert first.read_models.rebuild(cast(Any, slow)) == short
    assert first.read_models.records() == folded(first)


def test_of_rebuilds_under_two_registries_the_later_one_counts(store: Stored) -> None:
    first, second = store.open(), store.open(registry_without(2))
    bring_in(first, made_up_job(prompt=PromptVersion(CURRENT.name, 2)))
    rebuild = once(lambda: second.read_models.rebuild(second.context.log))
    with pytest.raises(RebuildOvertaken):
        first.read_models.rebuild(cast(Any, Slow(first.context.log, rebuild)))
    assert first.read_models.records() == folded(first, registry_without(2))


@pytest.mark.slow_on("postgres")
def test_rebuilds_at_once_in_many_threads_and_sessions_all_end(store: Stored) -> None:
    sessions = [store.open() for _ in range(2)]
    long_history(sessions[0], 1_200)
    with ThreadPoolExecutor(4) as pool:
        rebuilding = [
            pool.submit(session.read_models.rebuild, cast(Any, Slow(session.context.log)))
            for session in sessions * 2
        ]
        assert [future.result() for future in rebuilding] == [1_200] * 4
    assert sessions[0].read_models.records() == folded(sessions[0])


def test_rows_that_claim_to_know_more_than_the_log_has_do_not_keep_a_rebuild_for_ever(
    store: Stored,
) -> None:
    parts = store.open()
    Worker(parts, JOB).complete()
    caught_up(parts)
    change(store, "UPDATE read_model_generations SET position = 10000")
    assert parts.read_models.rebuild(parts.context.log) == 3
    assert parts.read_models.records() == folded(parts)


@pytest.mark.slow
def test_a_rebuild_that_is_killed_starts_again(store: Stored, short: int) -> None:
    parts = store.open()
    long_history(parts, short)
    live = caught_up(parts).read_models.records()
    for _ in range(2):
        with running("rebuild", place(store), (short - 2) // 2) as rebuilding:
            done, total = wait_for(rebuilding, "progress")
        assert 0 < int(done) < int(total)  # halfway
        assert parts.read_models.records() == live  # the old rows serve as if nothing had been
        assert parts.read_models.position() == short
    Worker(parts, made_up_job(10)).complete()
    assert parts.read_models.rebuild(parts.context.log) == short + 3
    assert parts.read_models.records() == folded(parts)
    assert len(tables_of_summaries(store)) == 1  # nothing is left of what was killed
    assert generations(store) == 1


def only_where_it_can_be(store: Stored, statement: str) -> None:
    """PostgreSQL lets nothing but a number into a column of numbers, and only migrations make its tables."""
    made_by_migrations = statement.startswith(("DROP TABLE read_", "ALTER TABLE read_"))
    if isinstance(store, PostgresBackend) and (made_by_migrations or "layout = 'x'" in statement):
        pytest.skip("not on PostgreSQL")


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE summaries_1",
        "DELETE FROM read_model_generations",
        "UPDATE read_model_generations SET active = 0",
        "DROP TABLE read_model_generations",
        "UPDATE read_model_generations SET position = 10000",
        "DELETE FROM summaries_1",
        "UPDATE ranges_1 SET status = 'due', identity = x'00'",
    ],
)
def test_damaged_read_models_are_rebuilt(store: Stored, damage: str) -> None:
    only_where_it_can_be(store, damage)
    parts = store.open()
    fill(parts, 80)
    every_kind(parts)
    caught_up(parts)
    change(store, damage)
    again = store.open()
    again.read_models.rebuild(again.context.log)
    assert again.read_models.records() == folded(again)
    assert Ledger(again, Settings()).verify().ok


def test_a_log_whose_facts_do_not_fit_together_is_damaged_at_an_index(parts: Parts) -> None:
    parts.context.log.append(key_of(JOB), EMPTY, [claimed("c", job=JOB), released("c", job=OTHER)])
    for follow in (parts.read_models.rebuild, MemoryReadModels(DEFAULT_REGISTRY).catch_up):
        with pytest.raises(DamagedLog, match="no claim") as damage:
            follow(parts.context.log)
        assert damage.value.index == 1
    (finding,) = Ledger(parts, Settings()).verify().findings
    assert (finding.code, finding.index) == ("damaged_log", 1)


def test_an_attempt_that_never_began_is_damage_too(parts: Parts) -> None:
    parts.context.log.append(key_of(JOB), EMPTY, (claimed("c", job=JOB), completed("c", job=JOB)))
    with pytest.raises(DamagedLog, match="no attempt") as damage:
        parts.read_models.rebuild(parts.context.log)
    assert damage.value.index == 1


def test_rows_that_are_missing_are_not_taken_for_damage_of_the_log(
    store: Stored,
) -> None:
    parts = store.open()
    one = Worker(parts, JOB)
    one.claim()
    caught_up(parts)
    change(store, "DELETE FROM summaries_1")
    one.start()
    with pytest.raises(DamagedReadModel):
        caught_up(parts)
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == folded(parts)


def test_a_table_that_is_missing_is_damage_that_a_rebuild_mends(store: Stored) -> None:
    parts = store.open()
    one = Worker(parts, JOB)
    one.claim()
    caught_up(parts)
    change(store, "DROP TABLE summaries_1")
    one.start()
    with pytest.raises(DamagedReadModel):
        parts.read_models.summaries(SCOPE, CONVERSATION)
    with pytest.raises(DamagedLog):
        caught_up(parts)
    parts.read_models.rebuild(parts.context.log)
    assert parts.read_models.records() == folded(parts)


# --- the layout of the tables --------------------------------------------------------------------

OTHER_LAYOUTS = {
    "older": "UPDATE read_model_generations SET layout = 0",
    "none": "UPDATE read_model_generations SET layout = 'x'",
    "another shape": "ALTER TABLE read_model_generations RENAME COLUMN layout TO registry",
    "not there": "DROP TABLE read_model_generations",
}


@pytest.mark.parametrize("statement", OTHER_LAYOUTS.values(), ids=list(OTHER_LAYOUTS))
def test_rows_of_an_older_layout_are_not_read_and_a_follower_builds_them_anew(
    store: Stored, statement: str
) -> None:
    only_where_it_can_be(store, statement)
    parts = store.open()
    Worker(parts, JOB).complete()
    caught_up(parts)
    change(store, statement)
    models = parts.read_models
    assert (models.position(), models.registry_fingerprint()) == (0, "")
    assert list(models.summaries(SCOPE, CONVERSATION)) == []
    assert list(models.ranges()) == []
    assert not any(models.records().values())
    assert Ledger(parts, Settings()).verify().lag == 3
    assert models.catch_up(parts.context.log) == 3
    assert models.records() == folded(parts)
    assert len(models.ranges()) == 1
    serving_table(store)


def test_rows_of_a_newer_layout_are_left_to_newer_software(store: Stored) -> None:
    parts = store.open()
    Worker(parts, JOB).complete()
    caught_up(parts)
    change(store, "UPDATE read_model_generations SET layout = 1000")
    generation = serving_table(store)
    assert parts.read_models.catch_up(parts.context.log) == 0
    assert list(parts.read_models.ranges()) == []
    assert serving_table(store) == generation
    assert parts.read_models.rebuild(parts.context.log) == 3  # who wants the older one gets it
    assert parts.read_models.records() == folded(parts)


# --- the registry (P4) --------------------------------------------------------------------------


def registry_without(version: int) -> PromptRegistry:
    """As the default one, but summaries of ``version`` are not projected."""
    specs = [
        replace(spec, projectable=spec.projectable and spec.prompt.version != version)
        for spec in DEFAULT_REGISTRY
    ]
    return PromptRegistry(specs, DEFAULT_REGISTRY.current)


@pytest.mark.slow_on("postgres")
def test_another_registry_changes_what_is_projected_and_not_one_event(backend: Backend) -> None:
    parts = backend.open()
    second = made_up_job(prompt=PromptVersion(CURRENT.name, 2))
    bring_in(parts, second)
    Worker(parts, made_up_job(10)).complete()
    caught_up(parts)
    events = backend.recorder().rows(0, 100)
    changed = backend.open(registry_without(2))
    changed.read_models.rebuild(changed.context.log)
    validity = {
        row.identity: row.validity for row in changed.read_models.summaries(SCOPE, CONVERSATION)
    }
    assert validity == {second.identity: "not_projectable", made_up_job(10).identity: "projectable"}
    assert [row.from_pair for row in changed.read_models.ranges()] == [10]
    assert changed.read_models.registry_fingerprint() == registry_without(2).fingerprint
    assert changed.read_models.records() == folded(changed, registry_without(2))
    back = backend.open()
    back.read_models.rebuild(back.context.log)
    assert summary(back, second).validity == "projectable"
    assert backend.recorder().rows(0, 100) == events


@pytest.mark.slow_on("postgres")
def test_new_facts_under_another_registry_are_judged_as_the_rows_that_serve(
    store: Stored,
) -> None:
    """P4: rows of one generation are judged by one registry, and only a rebuild changes which."""
    parts, changed = store.open(), store.open(registry_without(2))
    second, later = (
        made_up_job(from_pair, prompt=PromptVersion(CURRENT.name, 2)) for from_pair in (0, 10)
    )
    unknown = made_up_job(20, prompt=PromptVersion("someone-elses", 1))
    bring_in(parts, second)
    caught_up(parts)
    for number, job in enumerate((later, unknown)):
        bring_in(changed, job, name=str(number))
    generation = serving_table(store)
    for session in (changed, parts, changed):
        caught_up(session)
        assert session.read_models.records() == folded(parts)
        assert session.read_models.registry_fingerprint() == DEFAULT_REGISTRY.fingerprint
    assert summary(changed, later).validity == "projectable"
    assert summary(changed, unknown).validity == "unknown_version"
    assert serving_table(store) == generation  # nobody rebuilt
    assert Ledger(parts, Settings()).verify().ok
    changed.read_models.rebuild(changed.context.log)
    assert summary(changed, later).validity == "not_projectable"
    assert summary(parts, second).validity == "not_projectable"
    assert changed.read_models.records() == folded(changed, registry_without(2))
    assert Ledger(changed, Settings()).verify().ok


def serving_table(store: Stored) -> str:
    """The name of the table of summaries that serves."""
    (name,) = tables_of_summaries(store)
    return name


@pytest.mark.slow_on("postgres")
def test_verification_says_that_the_registry_is_another(store: Stored) -> None:
    parts = store.open()
    bring_in(parts, JOB)
    caught_up(parts)
    changed = Ledger(store.open(registry_without(2)), Settings())
    assert [finding.code for finding in changed.verify().findings] == ["registry"]
    changed.rebuild()
    assert changed.verify().ok


# --- how many there are ------------------------------------------------------------------------------


def test_ranges_are_counted_by_status(backend: Backend) -> None:
    parts = backend.open()
    assert caught_up(parts).read_models.census() == RangeCensus(0, {}, None)
    jobs = [made_up_job(from_pair) for from_pair in range(0, 60, 10)]
    Worker(parts, jobs[0], "a").complete()
    Worker(parts, jobs[1], "b").exhaust()
    for number, job in enumerate(jobs[2:5]):
        Worker(parts, job, f"c{number}").claim(LEASE + number)
    given_back = Worker(parts, jobs[5], "d")
    given_back.claim()
    given_back.release()
    assert parts.read_models.census().position == 0
    found = caught_up(parts).read_models.census()
    assert found.counts == {"done": 1, "exhausted": 1, "running": 3, "due": 1}
    assert (found.position, found.next_expiry) == (parts.context.log.size(), START + LEASE)
    assert found.next_expiry == min(
        row.expires_at for row in parts.read_models.ranges() if row.expires_at is not None
    )


def test_what_is_no_status_is_not_counted(store: Stored) -> None:
    parts = store.open()
    Worker(parts, JOB).complete()
    caught_up(parts)
    change(store, "UPDATE ranges_1 SET status = 'lost'")
    with pytest.raises(DamagedReadModel, match="status"):
        parts.read_models.census()


def test_a_reader_may_be_the_first_to_open_a_ledger(tmp_path: Path) -> None:
    """Who migrates makes tables and no rows: they are begun under the registry of who writes first (P4)."""
    store = PostgresBackend(tmp_path)
    with closing(Ledger.open(store.url, create=False, read_only=True)) as reader:
        assert (reader.position(), reader.size(), list(reader.ranges())) == (0, 0, [])
        assert reader.status().ranges == {}
    store.close()
