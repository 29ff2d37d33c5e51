"""Histories for tests of the stores: transcripts to append, jobs of them, and whole lifecycles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scenarios import MODEL, POLICY, good, make_pairs

from compaction_ledger.composition import Parts
from compaction_ledger.domain.binding import pairs_of
from compaction_ledger.domain.commands import (
    ClaimRange,
    Command,
    FinishAttempt,
    GiveBackReason,
    ImportSummary,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.eligibility import eligible
from compaction_ledger.domain.finish import Answer, FinishFacts, Usage
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.domain.windows import Range
from compaction_ledger.usecases.range_session import Outcome, RangeSession

SCOPE = "tenant-1"
CONVERSATION = "c-1"
CURRENT = DEFAULT_REGISTRY.current
LEASE = 300_000_000

TRUNCATED = Answer("Fund A co", FinishFacts(("length",)), Usage(100, 5))
UNAVAILABLE = Answer(fault="provider_unavailable", detail="HTTP 503", retry_after=3.0)


def lines(count: int, start: int = 0, sentences: int = 20) -> tuple[list[NewMessage], list[NewRun]]:
    """``count`` pairs as new messages and runs, numbered from ``start``; worth a summary."""
    messages: list[NewMessage] = []
    runs: list[NewRun] = []
    for index in range(start, start + count):
        run = f"run-{index}"
        reply = (
            f"assistant {index}: it costs {index}.{index} %. "
            + "Costs are taken yearly. " * sentences
        )
        messages += (
            NewMessage(f"u{index}", run, "user", f"user {index}: what of fund {index * 7}?"),
            NewMessage(f"a{index}", run, "assistant", reply),
        )
        runs.append(NewRun(run))
    return messages, runs


def fill(parts: Parts, pairs: int = 30, conversation: str = CONVERSATION) -> None:
    """A conversation of so many pairs in the embedded store."""
    parts.transcripts.append(SCOPE, conversation, *lines(pairs))


def present_job(
    parts: Parts,
    from_pair: int = 0,
    *,
    conversation: str = CONVERSATION,
    model: ModelIdentity = MODEL,
    prompt: PromptVersion = CURRENT,
) -> Job:
    """The job of a range as the conversation is now."""
    pairs = eligible(parts.context.transcripts.conversation(SCOPE, conversation)).pairs
    return job_for(SCOPE, conversation, pairs_of(pairs, Range.at(from_pair)), model, prompt)


def made_up_job(
    from_pair: int = 0, model: ModelIdentity = MODEL, prompt: PromptVersion = CURRENT
) -> Job:
    """A job of pairs that stand in no store."""
    return job_for(SCOPE, CONVERSATION, make_pairs(10, from_pair), model, prompt)


def key_of(job: Job) -> RangeKey:
    """The stream that a job belongs to."""
    return RangeKey(job.scope, job.conversation, job.from_pair)


@dataclass
class Worker:
    """A worker on one range, by hand: each step is one command at the store's present time."""

    parts: Parts
    job: Job
    name: str = "w"

    def __post_init__(self) -> None:
        self.session = RangeSession(self.parts.context.log, key_of(self.job))
        self.claim_id = f"{self.name}-claim"

    def claim(self, lease: int = LEASE) -> Outcome:
        return self._do(
            lambda now: ClaimRange(self.claim_id, self.name, self.job, POLICY, now, lease)
        )

    def start(self, number: int = 1, lease: int = LEASE) -> Outcome:
        return self._do(lambda now: StartAttempt(self.claim_id, self._attempt(number), now, lease))

    def renew(self, lease: int = LEASE) -> Outcome:
        return self._do(lambda now: RenewClaim(self.claim_id, now, lease))

    def finish(
        self, answer: Answer | None = None, number: int = 1, retry_at: int | None = None
    ) -> Outcome:
        given = answer or good()
        return self._do(
            lambda now: FinishAttempt(self.claim_id, self._attempt(number), given, now, retry_at)
        )

    def release(self, reason: GiveBackReason = "given_back") -> Outcome:
        return self._do(lambda now: ReleaseClaim(self.claim_id, reason, now))

    def complete(self, text: str | None = None) -> Outcome:
        """Claim, start and finish well."""
        self.claim()
        self.start()
        return self.finish(None if text is None else good(text))

    def exhaust(self, renewed: int = 0) -> Outcome:
        """Claim and fail twice; before the second failure the lease is renewed, if one is given."""
        self.claim()
        self.start(1)
        self.finish(TRUNCATED, 1)
        self.start(2)
        if renewed:
            self.renew(renewed)
        return self.finish(TRUNCATED, 2)

    def _attempt(self, number: int) -> str:
        return f"{self.claim_id}-attempt-{number}"

    def _do(self, make: Callable[[int], Command]) -> Outcome:
        return self.session.execute(make)


def bring_in(parts: Parts, job: Job, text: str = "Made elsewhere.", name: str = "i") -> Outcome:
    """Import a summary."""
    session = RangeSession(parts.context.log, key_of(job))
    return session.execute(lambda _now: ImportSummary(f"import-{name}", job, text, "old store"))


def every_kind(parts: Parts, ranges: Sequence[int] = (0, 10, 20, 30, 40, 50)) -> None:
    """A history in which each fact of a range stands at least once (deliveries aside).

    By index: 0 to 2 a completion, 3 and 4 imports (the second of mixed input, into the first range),
    5 and 6 a claim given back, 7 to 10 an unavailable provider, 11 and 12 an attempt under way, and
    from 13 on an exhausted identity, whose second attempt renews its lease.
    """
    jobs = [present_job(parts, from_pair) for from_pair in ranges]
    Worker(parts, jobs[0], "done").complete()
    bring_in(parts, jobs[1])
    bring_in(
        parts, present_job(parts, ranges[0], prompt=PromptVersion(CURRENT.name, 1)), name="mixed"
    )
    given_back = Worker(parts, jobs[2], "given-back")
    given_back.claim()
    given_back.release()
    waiting = Worker(parts, jobs[3], "waiting")
    waiting.claim()
    waiting.start()
    waiting.finish(UNAVAILABLE, retry_at=parts.context.log.now() + 3_000_000)
    waiting.release("backing_off")
    running = Worker(parts, jobs[4], "running")
    running.claim()
    running.start()
    Worker(parts, jobs[5], "exhausted").exhaust(renewed=2 * LEASE)
