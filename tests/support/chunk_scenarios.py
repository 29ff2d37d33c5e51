"""Chunks, commands and facts of a window for tests, and given/when/then for its decider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from scenarios import (
    CONVERSATION,
    LEASE,
    MODEL,
    NOW,
    OTHER_MODEL,
    SCOPE,
    good,
    release,
    renew,
    start,
    truncated,
)

from compaction_ledger.domain.errors import InvalidInput, Refused
from compaction_ledger.domain.events import ReleaseReason
from compaction_ledger.domain.finish import Answer, FailureCode, output_digest
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.commands import (
    AcceptPin,
    ClaimChunk,
    FinishChunk,
    WindowCommand,
)
from compaction_ledger.domain.window.events import (
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkClaimReleased,
    ChunkClaimRenewed,
    ChunkCompleted,
    DeliveredChunk,
    DeliveredMessages,
    DeliveredStub,
    PinAccepted,
    WindowDelivered,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.summarization import ChunkVerdict
from compaction_ledger.domain.window.window_stream import (
    WindowDecision,
    WindowState,
    WindowStreamFact,
    decide,
    fold,
)

__all__ = ["LEASE", "MODEL", "NOW", "OTHER_MODEL", "release", "renew", "start", "truncated"]

WINDOW = WindowKey(SCOPE, CONVERSATION, "run-1")
OTHER_WINDOW = WindowKey(SCOPE, CONVERSATION, "run-2")
PROMPT = PromptVersion("window-compaction", 1)
BUDGET = WindowBudget(100_000)
SUMMARY = '{"decisions":["Fund A is bought"]}'
UNGROUNDED = (Ungrounded("amount", "EUR 9"), Ungrounded("date", "2031-05-01"))


def chunk(
    first: int,
    last: int,
    replaces: Sequence[ChunkJob] = (),
    *,
    model: ModelIdentity = MODEL,
    window: WindowKey = WINDOW,
) -> ChunkJob:
    """A chunk of messages that are all different."""
    digests = [f"{number:064x}" for number in range(first, last + 1)]
    source = chunk_source_hash(window, "openai-chat", first, digests)
    names = tuple(job.identity for job in replaces)
    return ChunkJob(window, first, last, source, model, PROMPT, names)


A, B, C = chunk(1, 5), chunk(6, 9), chunk(10, 20)
AB = chunk(1, 9, [A, B])
ABC = chunk(1, 20, [AB, C])


# --- commands ---------------------------------------------------------------------------------------


def claim(
    job: ChunkJob = A,
    claim_id: str = "c1",
    holder: str = "w1",
    now: int = NOW,
    lease: int = LEASE,
) -> ClaimChunk:
    """Claim a chunk."""
    return ClaimChunk(claim_id, holder, job, BUDGET, now, lease)


def verdict(*codes: FailureCode, text: str = SUMMARY) -> ChunkVerdict:
    """What an answer is worth: a summary, or these failures."""
    return ChunkVerdict(codes) if codes else ChunkVerdict((), text, UNGROUNDED)


def finish(
    claim_id: str = "c1",
    attempt_id: str = "a1",
    worth: ChunkVerdict | None = None,
    answer: Answer | None = None,
    now: int = NOW,
    retry_at: int | None = None,
) -> FinishChunk:
    """Finish an attempt; well, unless something else is given."""
    given_answer = good(SUMMARY) if answer is None else answer
    judged = verdict() if worth is None else worth
    return FinishChunk(claim_id, attempt_id, given_answer, judged, now, retry_at)


def pin(pin_id: str = "p1", message: int = 3, supersedes: str | None = None) -> PinAccepted:
    """A pin of the eleven characters behind the fourth of a message."""
    return PinAccepted(
        window=WINDOW,
        pin_id=pin_id,
        message=message,
        digest=f"{message:064x}",
        part=0,
        start=4,
        end=15,
        quote="no nuts, ok",
        exchange=1,
        proposer="rule",
        supersedes=supersedes,
    )


def accept(accepted: PinAccepted) -> AcceptPin:
    """Hold a pin."""
    return AcceptPin(accepted)


# --- facts ------------------------------------------------------------------------------------------


def claimed(
    job: ChunkJob = A, claim_id: str = "c1", holder: str = "w1", expires_at: int = NOW + LEASE
) -> ChunkClaimed:
    """A claim was made."""
    return ChunkClaimed(claim_id, holder, job.identity, job, BUDGET.numbers, expires_at)


def started(
    job: ChunkJob = A,
    claim_id: str = "c1",
    attempt_id: str = "a1",
    number: int = 1,
    expires_at: int = NOW + LEASE,
) -> ChunkAttemptStarted:
    """An attempt began."""
    return ChunkAttemptStarted(claim_id, attempt_id, job.identity, number, expires_at)


def renewed(
    job: ChunkJob = A, claim_id: str = "c1", expires_at: int = NOW + LEASE
) -> ChunkClaimRenewed:
    """A claim's lease began anew."""
    return ChunkClaimRenewed(claim_id, job.identity, expires_at)


def failed(
    job: ChunkJob = A,
    claim_id: str = "c1",
    attempt_id: str = "a1",
    failure: FailureCode = "truncated",
    answer: Answer | None = None,
    **more: Any,
) -> ChunkAttemptFailed:
    """An attempt failed with ``failure``, as ``answer`` ended."""
    known = answer or Answer()
    return ChunkAttemptFailed(
        claim_id=claim_id,
        attempt_id=attempt_id,
        identity=job.identity,
        failure=failure,
        also=more.get("also", ()),
        finish=known.finish,
        usage=known.usage,
        output_digest=output_digest(known.text) if known.text else None,
        retry_at=more.get("retry_at"),
        detail=known.detail,
    )


def completed(
    job: ChunkJob = A, claim_id: str = "c1", attempt_id: str = "a1", text: str = SUMMARY
) -> ChunkCompleted:
    """An attempt succeeded."""
    answer = good(text)
    return ChunkCompleted(
        claim_id,
        attempt_id,
        job.identity,
        job.source_hash,
        text,
        UNGROUNDED,
        answer.finish,
        answer.usage,
    )


def released(
    job: ChunkJob = A, claim_id: str = "c1", reason: ReleaseReason = "given_back"
) -> ChunkClaimReleased:
    """A claim ended without a completion."""
    return ChunkClaimReleased(claim_id, job.identity, reason)


def done(*jobs: ChunkJob) -> list[WindowStreamFact]:
    """Each of these was claimed, attempted and completed, one after the other."""
    facts: list[WindowStreamFact] = []
    for job in jobs:
        name = f"done-{job.first}-{job.last}-{len(job.replaces)}"
        facts += [claimed(job, name), started(job, name, name), completed(job, name, name)]
    return facts


def exhausted(job: ChunkJob = A, name: str = "exhausted") -> list[WindowStreamFact]:
    """Two failed attempts under one claim, which ends with the second."""
    facts: list[WindowStreamFact] = [claimed(job, name)]
    for number in (1, 2):
        attempt = f"{name}-{number}"
        facts += [started(job, name, attempt, number), failed(job, name, attempt)]
    return [*facts, released(job, name, "exhausted")]


def window_delivery(delivery_id: str = "d-1", window: WindowKey = WINDOW) -> WindowDelivered:
    """What a request held, with every kind of entry."""
    return WindowDelivered(
        delivery_id=delivery_id,
        window=window,
        shape="openai-chat",
        messages=(
            DeliveredMessages(0, 0, "verbatim", None),
            DeliveredMessages(1, 9, "summarized", None),
            DeliveredMessages(10, 11, "left_out", "over_budget"),
            DeliveredMessages(12, 20, "verbatim", None),
        ),
        chunks=(DeliveredChunk(1, 9, AB.identity, 8),),
        pins=("p1", "p2"),
        stubs=(DeliveredStub(14, 0, "cd" * 32, 48_211),),
        tokens=900,
        limit=1_000,
        bytes_sent=3_000,
        bytes_reused=700,
        request_digest="ab" * 32,
    )


# --- given, when, then ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a command led to, to be compared with what was expected."""

    state: WindowState
    command: WindowCommand

    def then(self, *facts: WindowStreamFact) -> WindowState:
        """The command is carried out with exactly these facts; returns the state after them."""
        decision = decide(self.state, self.command)
        assert decision == WindowDecision(facts)
        return fold(decision.facts, self.state)

    def then_already_done(self) -> None:
        """The command was carried out before: no fact and no error."""
        assert decide(self.state, self.command) == WindowDecision(already=True)

    def then_refused(
        self,
        refusal: type[Refused],
        *,
        recording: Sequence[WindowStreamFact] = (),
        says: Mapping[str, object] | None = None,
    ) -> Refused:
        """The command is refused after these facts (ends of claims); returns the refusal."""
        decision = decide(self.state, self.command)
        assert decision.refusal is not None
        assert type(decision.refusal) is refusal
        assert decision.facts == tuple(recording)
        assert not decision.already
        for name, value in (says or {}).items():
            assert getattr(decision.refusal, name) == value
        return decision.refusal

    def then_invalid(self, error: type[InvalidInput]) -> InvalidInput:
        """The command is malformed: exactly this error is raised and nothing happens."""
        with pytest.raises(error) as raised:
            decide(self.state, self.command)
        assert raised.type is error
        return raised.value


@dataclass(frozen=True)
class Given:
    """A history."""

    state: WindowState

    def when(self, command: WindowCommand) -> Outcome:
        """A command comes."""
        return Outcome(self.state, command)


def given(*facts: WindowStreamFact) -> Given:
    """The history of ``facts``, whether today's rules would allow it or not."""
    return Given(fold(facts))
