"""What a window must hold to, in dictionaries and sets: written from the rules alone, without its decider.

A ``WindowBook`` says what each command must lead to (the name of its refusal, or ``None``) and notes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_WAIT = 2 * 3_600 * 1_000_000


@dataclass(frozen=True)
class Chunk:
    """A job as the book knows it."""

    name: str
    source: str
    messages: frozenset[int]
    replaces: tuple[str, ...] = ()


@dataclass
class Claim:
    """A claim; ``closed`` says how it ended."""

    claim_id: str
    chunk: Chunk
    expires: int
    attempt: str | None = None
    closed: str | None = None


@dataclass
class WindowBook:
    """Everything that is known of a window."""

    claims: dict[str, Claim] = field(default_factory=dict[str, Claim])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    waits: dict[str, int] = field(default_factory=dict[str, int])
    results: dict[str, str] = field(default_factory=dict[str, str])  # attempt to how it ended
    done: dict[str, Chunk] = field(default_factory=dict[str, Chunk])
    standing: list[str] = field(default_factory=list[str])
    begins: int | None = None
    pins: dict[str, tuple[int, str | None]] = field(
        default_factory=dict[str, tuple[int, str | None]]
    )

    # --- chunks ---

    def claim(self, claim_id: str, chunk: Chunk, now: int, lease: int) -> str | None:
        """A1, A3, A5, D3, T8, T11."""
        if chunk.name in self.done:
            return "already_completed"
        same = [one for one in self.open() if one.chunk.source == chunk.source]
        if any(now < one.expires for one in same):
            return "already_claimed"
        for one in same:
            self._expire(one)
        if self.attempts.get(chunk.name, 0) >= 2:
            return "exhausted"
        if now < self.waits.get(chunk.name, 0) <= now + LONGEST_WAIT:
            return "backing_off"
        for one in self.open():
            if one.expires <= now and one.chunk.messages & chunk.messages:
                self._expire(one)
        if not self._fits(chunk, now):
            return "chunk_overlaps"
        self.claims[claim_id] = Claim(claim_id, chunk, now + lease)
        first = min(chunk.messages)
        self.begins = first if self.begins is None else min(self.begins, first)
        return None

    def start(self, claim_id: str, attempt: str, now: int, lease: int) -> str | None:
        """A3, A4, D3."""
        claim = self.claims[claim_id]
        refusal = self._holder(claim, now)
        if refusal is not None:
            return refusal
        if claim.attempt is not None:
            return "attempt_out_of_turn"
        if now < self.waits.get(claim.chunk.name, 0) <= now + LONGEST_WAIT:
            return "backing_off"
        claim.attempt, claim.expires = attempt, now + lease
        self.attempts[claim.chunk.name] = self.attempts.get(claim.chunk.name, 0) + 1
        return None

    def renew(self, claim_id: str, now: int, lease: int) -> str | None:
        """A5."""
        claim = self.claims[claim_id]
        refusal = self._holder(claim, now)
        if refusal is not None:
            return refusal
        if claim.attempt is None:
            return "attempt_out_of_turn"
        claim.expires = max(claim.expires, now + lease)
        return None

    def finish(
        self, claim_id: str, attempt: str, result: str, now: int, retry_at: int | None = None
    ) -> str | None:
        """A2, A4, C4, T8. ``result`` is ``good`` or a code."""
        claim = self.claims[claim_id]
        ended = self.results.get(attempt)
        if claim.closed is not None or ended is not None:
            if ended == result:
                return None
            if claim.closed == "completed" or ended not in (None, "lease_expired"):
                return "different_result"
            return "not_the_holder"
        if claim.attempt != attempt:
            return "attempt_out_of_turn"
        refusal = self._holder(claim, now)
        if refusal is not None:
            return refusal
        self.results[attempt], claim.attempt = result, None
        if result == "good":
            self._complete(claim)
        else:
            if retry_at is not None:
                self.waits[claim.chunk.name] = min(retry_at, now + LONGEST_WAIT)
            if self.attempts[claim.chunk.name] >= 2:
                claim.closed = "exhausted"
        return None

    def release(self, claim_id: str, now: int) -> str | None:
        """A6."""
        claim = self.claims[claim_id]
        if claim.closed == "given_back":
            return None
        refusal = self._holder(claim, now)
        if refusal is not None:
            return refusal
        if claim.attempt is not None:
            return "attempt_out_of_turn"
        claim.closed = "given_back"
        return None

    def open(self) -> list[Claim]:
        """The claims that nobody has recorded the end of."""
        return [claim for claim in self.claims.values() if claim.closed is None]

    def spans(self) -> list[tuple[int, int]]:
        """First and last message of the chunks that stand, in order."""
        found = [self.done[name].messages for name in self.standing]
        return sorted((min(messages), max(messages)) for messages in found)

    # --- pins ---

    def pin(self, pin_id: str, place: int, supersedes: str | None) -> str | None:
        """T9. Pins of one place are of the same words."""
        same = {name: said for name, (where, said) in self.pins.items() if where == place}
        if pin_id in self.pins:
            known = pin_id in same and supersedes in (None, pin_id, same[pin_id])
            return None if known else "pin_id_used"
        if any(supersedes in (None, name, said) for name, said in same.items()):
            return None
        if supersedes is not None and (
            supersedes not in self.pins or supersedes in self.corrected()
        ):
            return "unknown_pin"
        self.pins[pin_id] = (place, supersedes)
        return None

    def corrected(self) -> set[str]:
        """The pins that others correct."""
        return {said for _, said in self.pins.values() if said is not None}

    # --- inside ---

    def _holder(self, claim: Claim, now: int) -> str | None:
        if claim.closed is not None:
            return "not_the_holder"
        if now >= claim.expires:
            self._expire(claim)
            return "lease_expired"
        return None

    def _expire(self, claim: Claim) -> None:
        claim.closed = "expired"
        if claim.attempt is not None:
            self.results[claim.attempt], claim.attempt = "lease_expired", None

    def _complete(self, claim: Claim) -> None:
        chunk = claim.chunk
        claim.closed = "completed"
        self.done[chunk.name] = chunk
        self.standing = [name for name in self.standing if name not in chunk.replaces]
        self.standing.append(chunk.name)
        self.standing.sort(key=lambda name: min(self.done[name].messages))

    def _fits(self, chunk: Chunk, now: int) -> bool:
        held = [one.chunk.messages for one in self.open() if now < one.expires]
        summarized = [self.done[name].messages for name in self.standing]
        if chunk.replaces:
            some = chunk.replaces
            side_by_side = any(
                tuple(self.standing[place : place + len(some)]) == some
                for place in range(len(self.standing))
            )
            return (
                side_by_side
                and frozenset().union(*(self.done[name].messages for name in some))
                == chunk.messages
                and not any(messages & chunk.messages for messages in held)
            )
        taken = frozenset().union(*held, *summarized)
        first = min(chunk.messages)
        if taken & chunk.messages:
            return False
        before = [message for message in taken if message < first]
        if before:
            return max(before) + 1 == first
        return not taken or self.begins is None or first >= self.begins
