"""Workers that claim, start, crash, expire, come back late, fail and complete, against a plain model.

Each step is one command of one worker, or something that happens to the conversation, the clock, the
registry or the read models. ``plain_model.Book`` reads the log as an auditor would; before each command it
also says what must come of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from backends import BACKENDS, SECOND, START, Backend, MemoryBackend
from histories import CONVERSATION, SCOPE, TRUNCATED, UNAVAILABLE, key_of, lines
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from plain_model import VERDICTS, Book, Claim
from scenarios import MODEL, OTHER_MODEL, POLICY, good

from compaction_ledger.composition import Parts, compactor, past_read_models
from compaction_ledger.domain.binding import pairs_of, source_hash
from compaction_ledger.domain.commands import (
    ClaimRange,
    Command,
    FinishAttempt,
    ImportSummary,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.eligibility import eligible
from compaction_ledger.domain.errors import Refused
from compaction_ledger.domain.finish import Answer, failures
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.domain.windows import Range
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.range_session import RangeSession
from compaction_ledger.usecases.stopping import NeverStop, Stopped

NAME = "conversation-compaction"
PAIRS = 42
RANGES = (0, 10)
WORKERS = ("w0", "w1", "w2")
LEASE = 60 * SECOND

SPECS = list(DEFAULT_REGISTRY)
WAS_CURRENT = replace(SPECS[2], prompt=PromptVersion(NAME, 2))  # when it was the current one
OLD = PromptRegistry([SPECS[0], WAS_CURRENT], WAS_CURRENT.prompt)  # knows nothing of version 3 yet
REGISTRIES: dict[str, tuple[PromptRegistry, dict[str, str]]] = {
    "old": (OLD, {name: VERDICTS[name] for name in list(VERDICTS)[:2]}),
    "new": (DEFAULT_REGISTRY, VERDICTS),
}

Source = tuple[tuple[str, str, str], ...]
"""What a source is made of, for the model: run, user's text and reply of ten pairs."""


@dataclass
class Held:
    """A claim as its worker knows it: with the state it last saw, however old."""

    claim_id: str
    job: Job
    session: RangeSession
    attempts: int = 0


class Scripted:
    """A summarizer that does as it is told, call after call."""

    model: ModelIdentity = MODEL
    objection: AssertionError | None = None

    def __init__(self, machine: LedgerMachine, script: list[str]) -> None:
        self._machine = machine
        self._script = script

    def summarize(self, request: SummaryRequest) -> Answer:
        try:
            self._machine.check_the_call(request)
        except AssertionError as objection:  # the worker must not swallow it
            self.objection = objection
            raise
        happens = self._script.pop(0) if self._script else "good"
        match happens:
            case "truncated":
                return TRUNCATED
            case "unavailable":
                return UNAVAILABLE
            case "raises":
                raise RuntimeError("a defect of the summarizer")
            case "stopped":
                raise Stopped
            case "another range is edited":
                self._machine.edit_during_a_call(request, its_own=False)
            case "its own range is edited":
                self._machine.edit_during_a_call(request, its_own=True)
                return TRUNCATED  # so that there would be a second attempt
            case "is slow":
                self._machine.store.clock.advance(2 * LEASE / SECOND)
        return good(f"A summary of {request.replies[0].message_id}, by {happens}.")


class LedgerMachine(RuleBasedStateMachine):
    """One conversation, three workers, one log."""

    store_class: Callable[[Path], Backend] = MemoryBackend

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp())
        self.store: Backend = self.store_class(self.folder)
        self.book = Book()
        self.held: list[Held] = []
        self.snapshots: dict[tuple[str, int], RangeSession] = {}
        self.registry = "old"
        self.texts: dict[str, str] = {}
        self.failed_runs: set[str] = set()
        self.sources: dict[str, Source] = {}  # by source hash
        self.jobs: dict[str, tuple[Source, str, str]] = {}  # identity to what makes it
        self.planned: list[Job] = []
        self.numbers = 0

    @initialize()
    def begin(self) -> None:
        self.sessions = {name: self._open() for name in WORKERS}
        self.recorder = self.store.recorder()
        messages, runs = lines(PAIRS)
        self.sessions["w0"].transcripts.append(SCOPE, CONVERSATION, messages, runs)
        self.texts = {message.id: message.text for message in messages}
        self._learn()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    # --- the conversation ---

    @rule(
        pair=st.integers(0, 19),
        side=st.sampled_from(["user", "assistant"]),
        text=st.sampled_from(["as it was", "corrected", "corrected again"]),
    )
    def edit(self, pair: int, side: str, text: str) -> None:
        self.change_text(pair, side, text)

    def change_text(self, pair: int, side: str, text: str) -> None:
        name = f"{side[0]}{pair}"
        if text == "as it was":
            text = next(message.text for message in lines(PAIRS)[0] if message.id == name)
        else:
            text += " and long enough to be worth a summary" * 20
        self.parts.transcripts.revise(SCOPE, CONVERSATION, name, text)
        self.texts[name] = text
        self._learn()

    def edit_during_a_call(self, request: SummaryRequest, *, its_own: bool) -> None:
        called = int(request.replies[0].message_id.removeprefix("a")) // 10
        self.change_text(
            10 * called + 5 if its_own else 15 - 10 * called, "user", f"edited, {self._number()}"
        )

    @rule(pair=st.integers(0, 12))
    def run_fails_or_recovers(self, pair: int) -> None:
        """Pairs shift: what a range is made of changes without any edit (W5)."""
        run = f"run-{pair}"
        recovers = run in self.failed_runs
        assume(recovers or len(self.failed_runs) < 2)
        self.failed_runs ^= {run}
        self.parts.transcripts.set_run(
            SCOPE, CONVERSATION, run, "completed" if recovers else "failed"
        )
        self._learn()

    # --- time and the software itself ---

    @rule(seconds=st.sampled_from([1, 30, 61, 200, 86_400, -61, -86_400]))
    def time_passes_or_jumps(self, seconds: int) -> None:
        self.store.clock.now = max(START - 10**12, self.store.clock.now + seconds * SECOND)

    @rule(worker=st.sampled_from(WORKERS))
    def a_worker_crashes(self, worker: str) -> None:
        """What it knew is gone; what it claimed stays claimed."""
        self._restart(worker)

    @rule()
    def the_software_is_upgraded(self) -> None:
        """Another registry (V1): all workers start anew with it, and the read models are rebuilt (P4)."""
        before = self._events()
        self.registry = "new" if self.registry == "old" else "old"
        for name in WORKERS:
            self._restart(name)
        self.parts.read_models.rebuild(self.parts.context.log)
        assert self._events() == before

    # --- commands, one by one ---

    @rule(
        worker=st.sampled_from(WORKERS),
        from_pair=st.sampled_from(RANGES),
        other_model=st.booleans(),
        stale=st.integers(0, 3),
        seconds=st.sampled_from([10, 60]),
    )
    def claim(
        self, worker: str, from_pair: int, other_model: bool, stale: int, seconds: int
    ) -> None:
        """Claim the present source, or one that a plan of earlier times named."""
        job = self._present_job(from_pair, OTHER_MODEL if other_model else MODEL)
        earlier = [planned for planned in self.planned if planned.from_pair == from_pair]
        if stale == 0 and earlier:
            job = earlier[self._number() % len(earlier)]
        self.planned.append(job)
        claim_id = f"claim-{self._number()}"
        session = self.snapshots.pop((worker, from_pair), None)
        if session is None:
            session = RangeSession(self.sessions[worker].context.log, key_of(job))
        now = self.store.clock.now
        allowed = self.book.refusals_of_a_claim(job.identity, job.source_hash, now)
        refusal = self._execute(
            session,
            lambda now: ClaimRange(claim_id, worker, job, POLICY, now, seconds * SECOND),
        )
        assert (refusal in allowed) if allowed else (refusal is None), (refusal, allowed)
        if refusal is None:
            self.held.append(Held(claim_id, job, session))

    @rule(worker=st.sampled_from(WORKERS), from_pair=st.sampled_from(RANGES))
    def take_a_snapshot(self, worker: str, from_pair: int) -> None:
        """What a worker has seen of a range long before it claims (A8: that never decides)."""
        key = RangeKey(SCOPE, CONVERSATION, from_pair)
        session = RangeSession(self.sessions[worker].context.log, key)
        assert session.state.version >= 0
        self.snapshots[worker, from_pair] = session

    @precondition(lambda self: self.held)
    @rule(data=st.data(), again=st.booleans(), fresh=st.booleans(), late=st.booleans())
    def start(self, data: st.DataObject, again: bool, fresh: bool, late: bool) -> None:
        """Start an attempt, perhaps after the lease, perhaps once more."""
        one, claim = self._some_claim(data, late=late)
        if not (again and one.attempts):
            one.attempts += 1
        attempt = f"{one.claim_id}-{one.attempts}"
        now = self.store.clock.now
        known = self.book.identities[one.job.identity]
        expected: str | None = None
        if claim.closed is not None:
            expected = "not_the_holder"
        elif now >= claim.expires:
            expected = "lease_expired"
        elif claim.attempt not in (None, attempt) or (
            claim.attempt is None and attempt in self.book.ended
        ):
            expected = "attempt_out_of_turn"
        elif claim.attempt is None and known.completion is not None:
            expected = "already_completed"
        elif claim.attempt is None and known.waits(now):
            expected = "backing_off"
        refusal = self._execute(
            self._session_of(one, fresh),
            lambda now: StartAttempt(one.claim_id, attempt, now, LEASE),
        )
        assert refusal == expected

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(), seconds=st.sampled_from([10, 60]), fresh=st.booleans(), late=st.booleans()
    )
    def renew(self, data: st.DataObject, seconds: int, fresh: bool, late: bool) -> None:
        """Let the lease begin anew: while an attempt runs, and within the lease."""
        one, claim = self._some_claim(data, late=late)
        now, expires = self.store.clock.now, claim.expires
        expected: str | None = None
        if claim.closed is not None:
            expected = "not_the_holder"
        elif now >= claim.expires:
            expected = "lease_expired"
        elif claim.attempt is None:
            expected = "attempt_out_of_turn"
        elif self.book.identities[one.job.identity].completion is not None:
            expected = "already_completed"
        lease = seconds * SECOND
        refusal = self._execute(
            self._session_of(one, fresh), lambda now: RenewClaim(one.claim_id, now, lease)
        )
        assert refusal == expected
        assert claim.expires == (expires if expected else max(expires, now + lease))

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        number=st.integers(0, 1),
        answer=st.sampled_from(["good", "other", "truncated", "unavailable"]),
        fresh=st.booleans(),
        late=st.booleans(),
    )
    def finish(
        self, data: st.DataObject, number: int, answer: str, fresh: bool, late: bool
    ) -> None:
        """Finish an attempt: in time, too late, twice, or with a second, different result."""
        one, claim = self._some_claim(data, late=late)
        assume(one.attempts)
        attempt = f"{one.claim_id}-{max(1, one.attempts - number)}"
        given = {
            "good": good("A fine summary."),
            "other": good("Another fine summary."),
            "truncated": TRUNCATED,
            "unavailable": UNAVAILABLE,
        }[answer]
        allowed = self._results_of_finish(claim, attempt, given)
        refusal = self._execute(
            self._session_of(one, fresh),
            lambda now: FinishAttempt(one.claim_id, attempt, given, now),
        )
        assert refusal in allowed, (refusal, allowed)

    def _results_of_finish(self, claim: Claim, attempt: str, answer: Answer) -> set[str | None]:
        codes = failures(answer)
        result = f"{claim.claim_id} {codes[0] if codes else f'completed {answer.text}'}"
        before = self.book.ended.get(attempt)
        if before is not None:
            return {None} if before == result else {"different_result", "not_the_holder"}
        if claim.closed is not None:
            return {"not_the_holder", "different_result"}
        if claim.attempt != attempt:
            return {"attempt_out_of_turn"}
        if self.store.clock.now >= claim.expires:
            return {"lease_expired"}
        completed = self.book.identities[claim.identity].completion is not None
        return {"already_completed"} if completed and not codes else {None}

    @precondition(lambda self: self.held)
    @rule(data=st.data(), fresh=st.booleans(), late=st.booleans())
    def release(self, data: st.DataObject, fresh: bool, late: bool) -> None:
        one, claim = self._some_claim(data, late=late)
        expected: str | None = None
        if claim.closed is not None:
            expected = None if claim.closed == "given_back" else "not_the_holder"
        elif self.store.clock.now >= claim.expires:
            expected = "lease_expired"
        elif claim.attempt is not None:
            expected = "attempt_out_of_turn"
        refusal = self._execute(
            self._session_of(one, fresh), lambda now: ReleaseClaim(one.claim_id, "given_back", now)
        )
        assert refusal == expected

    @rule(
        from_pair=st.sampled_from(RANGES),
        version=st.integers(1, 4),
        text=st.sampled_from(["Made elsewhere.", "Made elsewhere, otherwise."]),
    )
    def bring_in(self, from_pair: int, version: int, text: str) -> None:
        """Import a summary of the present source, by whatever prompt version (V2)."""
        job = self._present_job(from_pair, MODEL, PromptVersion(NAME, version))
        known = self.book.identities.get(job.identity)
        before = known.completion if known else None
        refusal = self._execute(
            RangeSession(self.parts.context.log, key_of(job)),
            lambda _now: ImportSummary(f"import-{self._number()}", job, text, "old store"),
        )
        assert refusal == (None if before is None or before.text == text else "already_completed")

    @rule(
        worker=st.sampled_from(WORKERS),
        from_pair=st.sampled_from(RANGES),
        other_model=st.booleans(),
    )
    def complete_at_once(self, worker: str, from_pair: int, other_model: bool) -> None:
        """A worker to which nothing happens."""
        job = self._present_job(from_pair, OTHER_MODEL if other_model else MODEL)
        allowed = self.book.refusals_of_a_claim(job.identity, job.source_hash, self.store.clock.now)
        claim_id = f"claim-{self._number()}"
        attempt = f"{claim_id}-1"
        session = RangeSession(self.sessions[worker].context.log, key_of(job))
        refusal = self._execute(
            session, lambda now: ClaimRange(claim_id, worker, job, POLICY, now, LEASE)
        )
        assert (refusal in allowed) if allowed else (refusal is None), (refusal, allowed)
        if refusal is not None:
            return
        answer = good(f"By {job.model} in {claim_id}.")
        assert (
            self._execute(session, lambda now: StartAttempt(claim_id, attempt, now, LEASE)) is None
        )
        assert (
            self._execute(session, lambda now: FinishAttempt(claim_id, attempt, answer, now))
            is None
        )
        assert self.book.identities[job.identity].completion is not None

    # --- whole compactions ---

    @rule(
        worker=st.sampled_from(WORKERS),
        script=st.lists(
            st.sampled_from(
                [
                    "good",
                    "truncated",
                    "unavailable",
                    "raises",
                    "stopped",
                    "is slow",
                    "another range is edited",
                    "its own range is edited",
                ]
            ),
            max_size=4,
        ),
        upgrade=st.booleans(),
    )
    def compact(self, worker: str, script: list[str], upgrade: bool) -> None:
        """The real worker, with a summarizer to which anything may happen (A6, A11)."""
        calm = not script
        session = self.sessions[worker]
        summarizer = Scripted(self, list(script))
        work = compactor(session, summarizer, Settings(lease_seconds=60), stop=NeverStop())
        try:
            work.compact(SCOPE, CONVERSATION, upgrade=upgrade)
        except Stopped:
            assert "stopped" in script
        if summarizer.objection is not None:
            raise summarizer.objection
        self._audit()
        if calm:
            self._everything_possible_is_done()

    def check_the_call(self, request: SummaryRequest) -> None:
        """While the model is called, its attempt is bound to the conversation as it is (A6, B3, B4)."""
        self._audit()
        called = {reply.message_id for reply in request.replies}
        for claim in self.book.open():
            source = self.sources.get(claim.source)
            if claim.attempt is None or claim.holder in WORKERS or source is None:
                continue
            replies = {self._id_of(run, "a") for run, _, _ in source}
            if replies == called:
                assert source in [self._source(from_pair) for from_pair in RANGES], "A6"
                assert [reply.text for reply in request.replies] == [text for _, _, text in source]
                return
        raise AssertionError("a call without an attempt of its source")

    def _everything_possible_is_done(self) -> None:
        now = self.store.clock.now
        for from_pair in RANGES:
            job = self._present_job(from_pair, MODEL)
            if self.book.live(job.source_hash, now):
                continue
            known = self.book.identities.get(job.identity)
            exhausted = known is not None and known.attempts >= 2
            best = self.book.best(from_pair, job.source_hash, self.verdicts)
            waits = known is not None and known.attempts == 1
            assert best is not None or exhausted or waits

    # --- read models ---

    @rule(worker=st.sampled_from(WORKERS))
    def catch_up(self, worker: str) -> None:
        session = self.sessions[worker]
        assert session.read_models.catch_up(session.context.log) == self.book.size
        self._rows_say_what_the_book_says()

    @rule(worker=st.sampled_from(WORKERS))
    def rebuild(self, worker: str) -> None:
        session = self.sessions[worker]
        session.read_models.catch_up(session.context.log)
        live = session.read_models.records()
        session.read_models.rebuild(session.context.log)
        assert session.read_models.records() == live
        self._rows_say_what_the_book_says()

    def _rows_say_what_the_book_says(self) -> None:
        rows = {row.identity: row for row in self.parts.read_models.summaries(SCOPE, CONVERSATION)}
        assert rows.keys() == self.book.identities.keys()
        for identity, known in self.book.identities.items():
            row = rows[identity]
            assert (row.from_pair, row.source_hash, str(row.prompt)) == (
                known.from_pair,
                known.source,
                known.prompt,
            )
            assert row.attempts == known.attempts
            assert row.index == (known.completion.index if known.completion else None)
            assert row.status == self.book.status(identity)
            assert row.expires_at == self.book.lease_end(identity)
            assert row.validity == self.verdicts.get(known.prompt, "unknown_version")
        assert len(self.parts.read_models.attempts(SCOPE, CONVERSATION)) == sum(
            known.attempts for known in self.book.identities.values()
        )

    # --- after each step ---

    @invariant()
    def the_log_is_sealed_and_every_fact_was_legal(self) -> None:
        if not self.texts:
            return
        self._audit()
        log = self.parts.context.log
        assert log.size() == self.book.size
        assert list(log.verify()) == []
        for from_pair in RANGES:
            state = log.load(RangeKey(SCOPE, CONVERSATION, from_pair))  # history always loads (A10)
            assert {c.claim_id for c in state.open.values()} == {
                claim.claim_id
                for claim in self.book.open()
                if self.book.identities[claim.identity].from_pair == from_pair
            }

    @invariant()
    def a_request_holds_only_summaries_of_what_the_conversation_is_now(self) -> None:
        """B3, V2, V3, H2: with read models as late as they may be; exactly the best, once caught up."""
        if not self.texts:
            return
        position = self.parts.read_models.position()
        assert position <= self.book.size
        ledger = Ledger(self.parts, Settings())
        manifest = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**7).manifest
        best = {
            from_pair: self.book.best(from_pair, self._source_hash(from_pair), self.verdicts)
            for from_pair in RANGES
        }
        for used in manifest.summaries:
            known = self.book.identities[used.identity]
            assert known.completion is not None
            assert known.source == self._source_hash(used.from_pair)
            assert self.verdicts.get(known.prompt) == "projectable"
        if position == self.book.size:
            assert {used.from_pair: used.index for used in manifest.summaries} == {
                from_pair: found.index for from_pair, found in best.items() if found is not None
            }
        assert manifest.count("verbatim") + manifest.count("summarized") == self._pair_count()

    @invariant()
    def the_rows_are_a_fold_of_the_log(self) -> None:
        """P2 to P5: whatever position the live rows have, they are what the log says up to there."""
        if not self.texts:
            return
        position, _, records = self.parts.read_models.snapshot()
        past = past_read_models(self.parts.context.registry, position)
        past.catch_up(self.parts.context.log)
        assert past.records() == records

    # --- inside ---

    @property
    def parts(self) -> Parts:
        return self.sessions["w0"]

    @property
    def verdicts(self) -> dict[str, str]:
        return REGISTRIES[self.registry][1]

    def _open(self) -> Parts:
        return self.store.open(REGISTRIES[self.registry][0])

    def _restart(self, worker: str) -> None:
        """Open a worker's connections anew; what was claimed over the old ones goes on there."""
        old, new = self.sessions[worker], self._open()
        self.sessions[worker] = new
        for session in (*(one.session for one in self.held), *self.snapshots.values()):
            if session._log is old.context.log:
                session._log = new.context.log
        old.close()

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _events(self) -> list[Any]:
        return list(self.recorder.rows(0, 10**6))

    def _execute(self, session: RangeSession, make: Callable[[int], Command]) -> str | None:
        """Carry out a command; the code of its refusal, if it was refused."""
        try:
            session.execute(make)
        except Refused as refusal:
            return refusal.code
        finally:
            self._audit()
        return None

    def _audit(self) -> None:
        new = self.parts.context.log.read(self.book.size, 10**6)
        self.book.read((entry.index, entry.recorded_at, entry.fact) for entry in new)

    def _some_claim(self, data: st.DataObject, *, late: bool) -> tuple[Held, Claim]:
        """One of the claims ever made, whose worker may come back when its lease has run out."""
        open_ones = [one for one in self.held if self.book.claims[one.claim_id].closed is None]
        one = data.draw(st.sampled_from(open_ones or self.held) | st.sampled_from(self.held))
        claim = self.book.claims[one.claim_id]
        if late and self.store.clock.now < claim.expires:
            self.store.clock.now = claim.expires
        return one, claim

    def _session_of(self, one: Held, fresh: bool) -> RangeSession:
        """As the holder saw the range last, or after a restart."""
        if fresh:
            one.session = RangeSession(self.parts.context.log, key_of(one.job))
        return one.session

    def _present_job(
        self, from_pair: int, model: ModelIdentity, prompt: PromptVersion | None = None
    ) -> Job:
        pairs = eligible(self.parts.transcripts.conversation(SCOPE, CONVERSATION)).pairs
        prompt = prompt or REGISTRIES[self.registry][0].current
        job = job_for(SCOPE, CONVERSATION, pairs_of(pairs, Range.at(from_pair)), model, prompt)
        made_of = (self._source(from_pair), str(model), str(prompt))
        assert self.jobs.setdefault(job.identity, made_of) == made_of  # I1: one identity, one job
        assert sum(known == made_of for known in self.jobs.values()) == 1
        return job

    def _learn(self) -> None:
        """Remember what the sources are made of that can be claimed from now on."""
        for from_pair in RANGES:
            digest, source = self._source_hash(from_pair), self._source(from_pair)
            assert self.sources.setdefault(digest, source) == source  # B1: one hash, one source

    def _source_hash(self, from_pair: int) -> str:
        pairs = eligible(self.parts.transcripts.conversation(SCOPE, CONVERSATION)).pairs
        return source_hash(SCOPE, CONVERSATION, pairs_of(pairs, Range.at(from_pair)))

    def _source(self, from_pair: int) -> Source:
        """By our own bookkeeping: the ten pairs from there whose runs have not failed."""
        runs = [f"run-{n}" for n in range(PAIRS) if f"run-{n}" not in self.failed_runs]
        return tuple(
            (run, self.texts[self._id_of(run, "u")], self.texts[self._id_of(run, "a")])
            for run in runs[from_pair : from_pair + 10]
        )

    def _id_of(self, run: str, side: str) -> str:
        return side + run.removeprefix("run-")

    def _pair_count(self) -> int:
        return PAIRS - len(self.failed_runs)


# The same on every store there is.
MACHINES = {
    name: type(f"LedgerMachineOn{name.title()}", (LedgerMachine,), {"store_class": store})
    for name, store in BACKENDS.items()
}
# How many examples are tried, in a few seconds and at length, where it takes longer than elsewhere.
EXAMPLES = {"postgres": (3, 6), "sqlite": (12, 30)}


def run(machine: type[LedgerMachine], examples: int, steps: int) -> None:
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
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
            derandomize="CI" in os.environ,
        ),
    )


@pytest.mark.slow_on("postgres")
@pytest.mark.stateful
@pytest.mark.parametrize("kind", sorted(MACHINES))
def test_workers_against_the_plain_model(kind: str) -> None:
    examples, _ = EXAMPLES.get(kind, (25, 60))
    run(MACHINES[kind], examples, steps=25)


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.stateful
@pytest.mark.parametrize("kind", sorted(MACHINES))
def test_workers_against_the_plain_model_at_length(kind: str) -> None:
    _, examples = EXAMPLES.get(kind, (25, 60))
    run(MACHINES[kind], examples, steps=60)
