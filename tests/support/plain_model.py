"""What a ledger must hold to, in dictionaries: written from the rules alone, without the domain's decider.

``Book`` reads the facts one by one, as an auditor would, and objects to any that breaks a rule. What it has
read so far says what each command must lead to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact

LONGEST_WAIT = 2 * 3_600 * 1_000_000
"""No wait is longer (D3): a clock that was set back by more cannot keep anybody waiting."""

VERDICTS = {
    "conversation-compaction@1": "mixed_input",
    "conversation-compaction@2": "projectable",
    "conversation-compaction@3": "projectable",
}


@dataclass
class Claim:
    """A claim as the book knows it; ``closed`` says how it ended."""

    claim_id: str
    holder: str
    identity: str
    source: str
    expires: int
    attempt: str | None = None
    closed: str | None = None


@dataclass
class Completion:
    """The one completion of an identity."""

    index: int
    text: str
    imported: bool


@dataclass
class Known:
    """What is known of one identity."""

    from_pair: int
    source: str
    prompt: str
    attempts: int = 0
    wait_until: int = 0
    completion: Completion | None = None

    def waits(self, now: int) -> bool:
        """Whether the second attempt has to wait (D3)."""
        return now < self.wait_until <= now + LONGEST_WAIT


@dataclass
class Book:
    """All facts so far."""

    size: int = 0
    claims: dict[str, Claim] = field(default_factory=dict)
    identities: dict[str, Known] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)  # attempt id to its result

    # --- what must be so ---

    def live(self, source: str, now: int) -> list[Claim]:
        """Open claims on a source whose lease holds (A1)."""
        return [claim for claim in self.open(source) if now < claim.expires]

    def open(self, source: str | None = None) -> list[Claim]:
        """Claims that nobody has recorded the end of, on a source or on any."""
        return [
            claim
            for claim in self.claims.values()
            if claim.closed is None and source in (None, claim.source)
        ]

    def refusals_of_a_claim(self, identity: str, source: str, now: int) -> set[str]:
        """Why a claim must be refused; empty if it must succeed (A1, A2, A3, D3)."""
        reasons: set[str] = set()
        if self.live(source, now):
            reasons.add("already_claimed")
        known = self.identities.get(identity)
        if known is not None and known.completion is not None:
            reasons.add("already_completed")
        if known is not None and known.attempts >= 2:
            reasons.add("exhausted")
        if known is not None and known.waits(now):
            reasons.add("backing_off")
        return reasons

    def best(self, from_pair: int, source: str, verdicts: dict[str, str]) -> Completion | None:
        """The summary that stands for a source (V3): newest version, then latest completion."""
        candidates = [
            (known.prompt, known.completion.index, known.completion)
            for known in self.identities.values()
            if known.completion is not None
            and (known.from_pair, known.source) == (from_pair, source)
            and verdicts.get(known.prompt) == "projectable"
        ]
        return max(candidates)[2] if candidates else None

    def status(self, identity: str) -> str:
        """The status that a read model must show for an identity."""
        known = self.identities[identity]
        if known.completion is not None:
            return "imported" if known.completion.imported else "completed"
        for claim in self.open():
            if claim.identity == identity:
                if claim.attempt is not None:
                    return "running"
                return "claimed" if not self._tried(claim) else "failed"
        return ("released", "failed", "exhausted")[known.attempts]

    def lease_end(self, identity: str) -> int | None:
        """When the lease of an identity's open claim is over, as a read model must show it."""
        if self.identities[identity].completion is not None:
            return None
        ends = [claim.expires for claim in self.open() if claim.identity == identity]
        return ends[0] if ends else None

    def _tried(self, claim: Claim) -> bool:
        return any(result.startswith(f"{claim.claim_id} ") for result in self.ended.values())

    # --- reading facts ---

    def read(self, facts: Iterable[tuple[int, int, Fact]]) -> None:
        """Take in facts with their index and time; objects to what breaks a rule."""
        for index, at, fact in facts:
            assert index == self.size  # dense (L1)
            self.size += 1
            match fact:
                case RangeClaimed():
                    self._claimed(fact, at)
                case AttemptStarted():
                    self._started(fact, at)
                case ClaimRenewed():
                    self._renewed(fact, at)
                case AttemptFailed():
                    self._failed(fact, at)
                case RangeCompleted():
                    self._completed(fact, at, index)
                case ClaimReleased():
                    self._released(fact, at)
                case SummaryImported():
                    self._imported(fact, index)

    def _claimed(self, fact: RangeClaimed, at: int) -> None:
        source = fact.job.source_hash
        assert fact.claim_id not in self.claims
        assert fact.identity == fact.job.identity
        assert fact.expires_at > at
        assert self.open(source) == [], "A1: two open claims on one source"
        assert self.refusals_of_a_claim(fact.identity, source, at) == set(), "A1 to A3"
        self.claims[fact.claim_id] = Claim(
            fact.claim_id, fact.holder, fact.identity, source, fact.expires_at
        )
        self._known(fact.identity, fact.job.from_pair, source, str(fact.job.prompt))

    def _started(self, fact: AttemptStarted, at: int) -> None:
        claim, known = self.claims[fact.claim_id], self.identities[fact.identity]
        assert claim.closed is None, "A4: an attempt under a claim that is over"
        assert at < claim.expires, "A4: an attempt past the lease"
        assert claim.attempt is None
        assert fact.identity == claim.identity
        assert fact.attempt_id not in self.ended
        assert known.completion is None, "A2: an attempt at what is completed"
        known.attempts += 1
        assert fact.number == known.attempts <= 2, "A3: a third attempt"
        claim.attempt, claim.expires = fact.attempt_id, fact.expires_at

    def _renewed(self, fact: ClaimRenewed, at: int) -> None:
        claim, known = self.claims[fact.claim_id], self.identities[fact.identity]
        assert claim.closed is None, "A4: a renewal of a claim that is over"
        assert at < claim.expires, "A5: a renewal past the lease"
        assert claim.attempt is not None, "A5: a renewal without an attempt"
        assert fact.identity == claim.identity
        assert known.completion is None, "A1: a renewal at what is completed"
        assert fact.expires_at > claim.expires, "A5: a lease that was cut short"
        claim.expires = fact.expires_at

    def _failed(self, fact: AttemptFailed, at: int) -> None:
        claim = self.claims[fact.claim_id]
        assert claim.closed is None
        assert claim.attempt == fact.attempt_id
        assert (fact.failure == "lease_expired") == (at >= claim.expires), "A5"
        self.ended[fact.attempt_id] = f"{fact.claim_id} {fact.failure}"
        claim.attempt = None
        if fact.retry_at is not None:
            self.identities[fact.identity].wait_until = fact.retry_at

    def _completed(self, fact: RangeCompleted, at: int, index: int) -> None:
        claim, known = self.claims[fact.claim_id], self.identities[fact.identity]
        assert claim.closed is None, "A4: a summary under a claim that is over"
        assert at < claim.expires, "A4: a summary past the lease"
        assert claim.attempt == fact.attempt_id
        assert (fact.identity, fact.source_hash) == (claim.identity, claim.source)
        assert known.completion is None, "A2: a second completion"
        known.completion = Completion(index, fact.text, imported=False)
        self.ended[fact.attempt_id] = f"{fact.claim_id} completed {fact.text}"
        claim.attempt, claim.closed = None, "completed"

    def _released(self, fact: ClaimReleased, at: int) -> None:
        claim, known = self.claims[fact.claim_id], self.identities[fact.identity]
        assert claim.closed is None
        assert (fact.reason == "expired") == (at >= claim.expires), (
            "A5: expiry is a fact of its own"
        )
        if fact.reason == "outdone":
            assert known.completion is not None
        else:
            assert claim.attempt is None, "a claim ends after its attempt"
        if fact.reason == "exhausted":
            assert known.attempts == 2
        claim.attempt, claim.closed = None, fact.reason

    def _imported(self, fact: SummaryImported, index: int) -> None:
        known = self._known(
            fact.identity, fact.job.from_pair, fact.job.source_hash, str(fact.job.prompt)
        )
        assert known.completion is None, "A2: an import over a completion"
        known.completion = Completion(index, fact.text, imported=True)

    def _known(self, identity: str, from_pair: int, source: str, prompt: str) -> Known:
        known = self.identities.setdefault(identity, Known(from_pair, source, prompt))
        assert (known.from_pair, known.source, known.prompt) == (from_pair, source, prompt)
        return known
