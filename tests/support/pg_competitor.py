"""One of many processes on the same ranges: it claims, starts, renews, fails, forgets, and comes late."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any, cast

from claim_register import Asked, Claim, Effect, Finish, Refusal, Release, Renew, Start, Told
from histories import CONVERSATION, SCOPE, TRUNCATED, UNAVAILABLE, key_of
from journals import About, Answer, Journal, wall
from scenarios import CURRENT, MODEL, OTHER_MODEL, POLICY, good, make_pair, make_pairs

from compaction_ledger.composition import Parts
from compaction_ledger.domain.commands import (
    ClaimRange,
    Command,
    FinishAttempt,
    ReleaseClaim,
    RenewClaim,
    StartAttempt,
)
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    AlreadyCompleted,
    BackingOff,
    ConcurrentAppend,
    Exhausted,
    LeaseExpired,
    NotTheHolder,
    Refused,
    StoreError,
)
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.finish import Answer as ModelAnswer
from compaction_ledger.domain.finish import failures
from compaction_ledger.domain.identity import Job, PromptVersion, job_for
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.range_stream import EMPTY, RangeState
from compaction_ledger.infrastructure.event_store.codec import encode
from compaction_ledger.usecases.range_session import Outcome, RangeSession

RANGES = tuple(range(0, 80, 10))
IDENTITIES_PER_SOURCE = 4
LEASES = (60_000, 250_000, 1_200_000)
"""Microseconds. What is forgotten is soon taken over."""
BACK_OFF = 300_000


@cache
def job_number(from_pair: int, number: int) -> Job:
    """The jobs of a range, without end: source after source, and of each several models and prompts."""
    source, variant = divmod(number, IDENTITIES_PER_SOURCE)
    pairs = [
        make_pair(from_pair, f"user, in version {source}"),
        *make_pairs(9, start=from_pair + 1),
    ]
    model = (MODEL, OTHER_MODEL)[variant % 2]
    prompt = PromptVersion(CURRENT.name, CURRENT.version - variant // 2)
    return job_for(SCOPE, CONVERSATION, pairs, model, prompt)


def about(from_pair: int, number: int) -> About:
    """What is written down of a job."""
    job = job_number(from_pair, number)
    return About(from_pair, number, job.source_hash, job.identity)


def effect(fact: Fact) -> Effect:
    """What a fact says, as the journal has it."""
    match fact:
        case RangeClaimed():
            return ("claimed", fact.claim_id)
        case AttemptStarted():
            return ("started", fact.claim_id, fact.attempt_id, str(fact.number))
        case ClaimRenewed():
            return ("renewed", fact.claim_id)
        case AttemptFailed():
            return ("failed", fact.claim_id, fact.attempt_id, fact.failure)
        case RangeCompleted():
            return ("completed", fact.claim_id, fact.attempt_id)
        case ClaimReleased():
            return ("released", fact.claim_id, fact.reason)
        case _:
            raise AssertionError(f"nobody records {fact}")


def lease_end(facts: Sequence[Fact]) -> int | None:
    """The end of the lease that the last of these facts gave."""
    last = facts[-1] if facts else None
    if isinstance(last, RangeClaimed | AttemptStarted | ClaimRenewed):
        return last.expires_at
    return None


def said_by(refused: Refused) -> Refusal:
    """A refusal as the journal has it: what the caller can read off it."""
    match refused:
        case AlreadyClaimed():
            return (refused.code, refused.claim_id, refused.holder, refused.expires_at)
        case AlreadyCompleted():
            return (refused.code, refused.identity)
        case Exhausted():
            return (refused.code, refused.identity, refused.attempts)
        case BackingOff():
            return (refused.code, refused.identity, refused.retry_at)
        case LeaseExpired():
            return (refused.code, refused.claim_id, refused.expired_at)
        case NotTheHolder():
            return (refused.code, refused.why)
        case _:
            return (refused.code,)


class Witnessed:
    """A log that notes what is stored in it, and how often others were faster."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.begin()

    def begin(self) -> None:
        """Forget what was noted."""
        self.stored: list[tuple[int, Fact]] = []
        self.beaten = 0

    def now(self) -> int:
        return self._log.now()

    def load(self, key: RangeKey) -> RangeState:
        return self._log.load(key)

    def append(
        self,
        key: RangeKey,
        state: RangeState,
        facts: Sequence[Any],
        within: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        try:
            indices = self._log.append(key, state, facts, within)
        except ConcurrentAppend:
            self.beaten += 1
            raise
        self.stored += zip(indices, facts, strict=True)
        return indices


@dataclass
class Competitor:
    """A process that works on random ranges. What it is told stands in its journal before it goes on."""

    name: str
    parts: Parts
    journal: Journal
    chance: random.Random
    rounds: int = 0
    _now: int = 0
    _sessions: dict[int, RangeSession] = field(default_factory=dict[int, RangeSession])
    _to_do: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def __post_init__(self) -> None:
        self._log = Witnessed(self.parts.context.log)

    # --- rounds ---

    def work(self, goes_on: Callable[[], bool], ended: Callable[[], object]) -> None:
        """Round after round; ``ended`` is called at the end of each."""
        while goes_on():
            self.round()
            ended()
            if self._may(0.1):
                self.parts.read_models.catch_up(self.parts.context.log)

    def round(self) -> None:
        """One claim, and whatever comes of it."""
        self.rounds += 1
        from_pair = self.chance.choice(RANGES)
        number = self._choose(from_pair)
        one = Round(self, from_pair, number, f"{self.name}-{self.rounds}")
        if one.claim(self._lease()):
            self._one_that_was_claimed(one)
        elif one.code in ("already_completed", "exhausted"):
            del self._to_do[from_pair]
        elif one.code == "backing_off":
            time.sleep(self.chance.uniform(0, BACK_OFF / 1e6))

    def complete(self, from_pair: int, number: int) -> None:
        """See to it that a job is done, or that nobody may try again."""
        self.rounds += 1
        for attempt in range(1_000):
            one = Round(self, from_pair, number, f"{self.name}-{self.rounds}-{attempt}")
            if one.claim(60_000_000):
                one.start(1, 60_000_000)
                one.finish(good(f"By {one.claim_id}, at last."), 1)
            elif one.code in ("already_completed", "exhausted"):
                return
            else:
                time.sleep(0.02)
        raise AssertionError(f"{from_pair}, {number} cannot be completed")

    def _one_that_was_claimed(self, one: Round) -> None:
        if self._may(0.15):
            self._dawdle(one, 0.5)
            one.claim_again()  # as if the answer had been lost
        if self._may(0.15):
            self._dawdle(one, 0.3)
            one.release("given_back")
            if self._may(0.3):
                one.release("given_back")
            return
        if self._may(0.05):
            return  # forgotten
        if not one.start(1, self._lease()):
            return
        if self._may(0.15):
            return  # forgotten, with its attempt
        if self._may(0.1):
            one.start(1, self._lease())  # once more
        self._summarize(one)
        self._finish(one)

    def _summarize(self, one: Round) -> None:
        time.sleep(self.chance.uniform(0, 0.03))
        while self._may(0.3):
            one.renew(self._lease())
        self._dawdle(one, 0.15)

    def _dawdle(self, one: Round, probability: float) -> None:
        """Perhaps let the lease run out."""
        if one.until is not None and self._may(probability):
            time.sleep(max(0.0, (one.until - wall()) / 1e6) + self.chance.uniform(0, 0.05))

    def _finish(self, one: Round) -> None:
        answers = (good(f"By {one.claim_id}."), good(f"By {one.claim_id}."), TRUNCATED, UNAVAILABLE)
        answer = self.chance.choice(answers)
        done = one.finish(answer, 1)
        if self._may(0.1):
            one.finish(answer, 1)  # as if the answer had been lost
        if self._may(0.05):
            one.finish(good("Another result."), 1)
        if not done or one.code == "completed":
            return
        if answer is UNAVAILABLE and self._may(0.5):
            one.release("backing_off")
        elif self._may(0.6) and one.start(2, self._lease()):
            self._summarize(one)
            one.finish(self.chance.choice((good(f"By {one.claim_id} again."), TRUNCATED)), 2)
        elif self._may(0.5):
            one.release("given_back")

    def _choose(self, from_pair: int) -> int:
        """A job with something left to do, perhaps of another source; or now and then an old one."""
        if from_pair not in self._to_do:
            self._to_do[from_pair] = self._look(from_pair)
        to_do = self._to_do[from_pair]
        if self._may(0.1):
            return self.chance.randrange(to_do[0] + 1)
        return self.chance.choice((to_do[0], to_do[0], to_do[0], to_do[1], to_do[-1]))

    def _look(self, from_pair: int) -> list[int]:
        """The next few jobs of a range that are neither completed nor exhausted, of two sources at least."""
        state = self._log.load(key_of(job_number(from_pair, 0)))
        open_ones = {claim.identity for claim in state.open.values()}
        found: list[int] = []
        for number in count():
            identity = job_number(from_pair, number).identity
            used_up = state.attempts.get(identity, 0) == 2 and identity not in open_ones
            if identity not in state.completions and not used_up:
                found.append(number)
            if len(found) > IDENTITIES_PER_SOURCE:
                break
        return found

    def _lease(self) -> int:
        return self.chance.choice(LEASES)

    def _may(self, probability: float) -> bool:
        return self.chance.random() < probability

    # --- commands ---

    def session(self, from_pair: int) -> RangeSession:
        """A view of a range: new, or as old as it may be (A8), or one that knows nothing."""
        session = self._sessions.get(from_pair)
        if session is None or self._may(0.5):
            key = key_of(job_number(from_pair, 0))
            session = RangeSession(cast(Log, self._log), key, EMPTY if self._may(0.1) else None)
            self._sessions[from_pair] = session
        return session

    def give(self, what: About, asked: Asked, make: Callable[[int], Command]) -> Answer:
        """Give a command; once more where it is not known what became of it (A9)."""
        session = self.session(what.from_pair)
        answer = self._give(session, what, asked, make)
        for _ in range(100):
            if answer.error is None:
                return answer
            answer = self._give(session, what, asked, make)
        raise AssertionError(f"the store does not come back: {answer.error}")

    def _give(
        self, session: RangeSession, what: About, asked: Asked, make: Callable[[int], Command]
    ) -> Answer:
        told = error = None
        self._log.begin()
        self.journal.calling(what, asked)
        try:
            outcome = session.execute(lambda now: make(self._judged(now)))
            at = self.journal.returned()
            told = self._told(outcome, None)
        except Refused as refused:
            at = self.journal.returned()
            told = self._told(None, refused)
        except StoreError as failed:
            at = self.journal.returned()
            error = failed.code
        answer = Answer(self._now, self._places(), told, error, self._log.beaten)
        self.journal.answered(at, answer)
        return answer

    def _judged(self, now: int) -> int:
        self._now = now
        return now

    def _told(self, outcome: Outcome | None, refused: Refused | None) -> Told:
        facts = [fact for _, fact in self._log.stored]
        if outcome is not None:
            places = list(zip(outcome.indices, outcome.facts, strict=True))
            assert places == self._log.stored, "what was told is what was stored"
        return Told(
            tuple(map(effect, facts)),
            said_by(refused) if refused else None,
            already=outcome is not None and outcome.already,
            until=lease_end(facts),
        )

    def _places(self) -> list[tuple[int, str]]:
        return [
            (index, hashlib.sha256(encode(fact)).hexdigest()) for index, fact in self._log.stored
        ]


@dataclass
class Round:
    """One claim of a competitor. ``code`` says how the last command was refused or ended."""

    by: Competitor
    from_pair: int
    number: int
    claim_id: str
    until: int | None = None
    code: str | None = None

    def claim(self, lease: int) -> bool:
        name, job = self.by.name, job_number(self.from_pair, self.number)
        return self._give(
            Claim(self.claim_id, name, job.identity),
            lambda now: ClaimRange(self.claim_id, name, job, POLICY, now, lease),
        )

    def claim_again(self) -> bool:
        return self.claim(LEASES[0])

    def start(self, number: int, lease: int) -> bool:
        attempt = self._attempt(number)
        return self._give(
            Start(self.claim_id, attempt),
            lambda now: StartAttempt(self.claim_id, attempt, now, lease),
        )

    def renew(self, lease: int) -> bool:
        return self._give(
            Renew(self.claim_id, lease), lambda now: RenewClaim(self.claim_id, now, lease)
        )

    def finish(self, answer: ModelAnswer, number: int) -> bool:
        attempt, codes = self._attempt(number), failures(answer)
        text = hashlib.sha256(answer.text.encode()).hexdigest()
        retry_at = wall() + BACK_OFF if answer.fault else None
        return self._give(
            Finish(self.claim_id, attempt, codes[0] if codes else f"completed {text}", retry_at),
            lambda now: FinishAttempt(self.claim_id, attempt, answer, now, retry_at),
        )

    def release(self, reason: Any) -> bool:
        return self._give(
            Release(self.claim_id, reason), lambda now: ReleaseClaim(self.claim_id, reason, now)
        )

    def _attempt(self, number: int) -> str:
        return f"{self.claim_id}-attempt-{number}"

    def _give(self, asked: Asked, make: Callable[[int], Command]) -> bool:
        """Whether it was carried out."""
        answer = self.by.give(about(self.from_pair, self.number), asked, make)
        told = answer.told
        assert told is not None
        self.code = (
            str(told.refusal[0]) if told.refusal else (told.effects or [("already",)])[-1][0]
        )
        if told.until is not None:
            self.until = told.until
        return told.refusal is None
