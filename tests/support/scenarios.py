"""Conversations, jobs and facts for tests of the domain, and given/when/then for its decider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

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
from compaction_ledger.domain.conversation import (
    Conversation,
    Message,
    MessageKind,
    MessageStatus,
    Pair,
    Role,
    Run,
    RunState,
)
from compaction_ledger.domain.errors import InvalidInput, Refused
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    RangeClaimed,
    RangeCompleted,
    RangeFact,
    ReleaseReason,
    SummaryImported,
)
from compaction_ledger.domain.finish import (
    Answer,
    FailureCode,
    FinishFacts,
    Usage,
    output_digest,
)
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.range_stream import Decision, RangeState, decide, fold
from compaction_ledger.domain.windows import WindowPolicy

SCOPE = "tenant-1"
CONVERSATION = "c-1"
NOW = 1_000_000
LEASE = 1_000
POLICY = WindowPolicy()
MODEL = ModelIdentity.of("openai", "small", {"temperature": "0"})
OTHER_MODEL = ModelIdentity.of("anthropic", "large")
CURRENT = DEFAULT_REGISTRY.current
SECOND = PromptVersion(CURRENT.name, 2)
MIXED = PromptVersion(CURRENT.name, 1)
GOOD = "Fund A costs 0.3 % a year."


# --- conversations --------------------------------------------------------------------------------


def message(
    message_id: str,
    run: str,
    role: Role = "user",
    text: str = "text",
    *,
    status: MessageStatus = "completed",
    kind: MessageKind = "chat",
    conversation: str = CONVERSATION,
    scope: str = SCOPE,
) -> Message:
    """One line."""
    return Message(message_id, run, role, status, kind, text, conversation, scope)


def run(run_id: str, state: RunState = "completed", **where: str) -> Run:
    """One run."""
    return Run(run_id, state, where.get("conversation", CONVERSATION), where.get("scope", SCOPE))


def conversation(messages: Iterable[Message], runs: Iterable[Run] | None = None) -> Conversation:
    """A conversation; each run that a message names is completed unless ``runs`` says otherwise."""
    lines = list(messages)
    named = {line.run: run(line.run) for line in lines} if runs is None else {r.id: r for r in runs}
    return Conversation(SCOPE, CONVERSATION, lines, named)


def make_pair(index: int, user: str | None = None, assistant: str | None = None) -> Pair:
    """Pair number ``index``, with texts of its own unless some are given."""
    name = f"run-{index}"
    asked = f"user {index}: what of fund {index * 7}?" if user is None else user
    replied = f"assistant {index}: it costs {index}.{index} %." if assistant is None else assistant
    return Pair(
        index,
        name,
        message(f"u{index}", name, "user", asked),
        message(f"a{index}", name, "assistant", replied),
    )


def make_pairs(count: int, start: int = 0) -> list[Pair]:
    """``count`` pairs, numbered from ``start``."""
    return [make_pair(index) for index in range(start, start + count)]


def lines_of(pairs: Iterable[Pair]) -> list[Message]:
    """The messages of ``pairs`` in order."""
    return [line for pair in pairs for line in (pair.user, pair.assistant)]


def with_text(pair: Pair, side: Literal["user", "assistant"], text: str) -> Pair:
    """``pair`` with another text on one side."""
    changed = (pair.user if side == "user" else pair.assistant)._replace(text=text)
    return replace(pair, user=changed) if side == "user" else replace(pair, assistant=changed)


# --- jobs -----------------------------------------------------------------------------------------


def make_job(
    model: ModelIdentity = MODEL,
    prompt: PromptVersion = CURRENT,
    pairs: Sequence[Pair] | None = None,
) -> Job:
    """The job of the first ten pairs."""
    return job_for(SCOPE, CONVERSATION, make_pairs(10) if pairs is None else pairs, model, prompt)


JOB = make_job()
OTHER_MODEL_JOB = make_job(OTHER_MODEL)
OTHER_PROMPT_JOB = make_job(prompt=SECOND)
OLDER_SOURCE_JOB = make_job(pairs=[make_pair(0, "as it was"), *make_pairs(9, start=1)])


# --- answers --------------------------------------------------------------------------------------


def good(text: str = GOOD) -> Answer:
    """An answer that fulfills the contract of a finish."""
    return Answer(text, FinishFacts(("stop",)), Usage(100, 10))


def truncated(text: str = "Fund A co") -> Answer:
    """An answer that ran into its length limit."""
    return Answer(text, FinishFacts(("length",)), Usage(100, 5))


UNAVAILABLE = Answer(fault="provider_unavailable", detail="HTTP 503", retry_after=3.0)


# --- commands -------------------------------------------------------------------------------------


def claim(
    claim_id: str = "c1",
    holder: str = "w1",
    job: Job = JOB,
    now: int = NOW,
    lease: int = LEASE,
) -> ClaimRange:
    """Claim a job."""
    return ClaimRange(claim_id, holder, job, POLICY, now, lease)


def start(
    claim_id: str = "c1", attempt_id: str = "a1", now: int = NOW, lease: int = LEASE
) -> StartAttempt:
    """Start an attempt."""
    return StartAttempt(claim_id, attempt_id, now, lease)


def renew(claim_id: str = "c1", now: int = NOW, lease: int = LEASE) -> RenewClaim:
    """Renew a claim's lease."""
    return RenewClaim(claim_id, now, lease)


def finish(
    claim_id: str = "c1",
    attempt_id: str = "a1",
    answer: Answer | None = None,
    now: int = NOW,
    retry_at: int | None = None,
) -> FinishAttempt:
    """Finish an attempt; well, unless an answer is given."""
    return FinishAttempt(claim_id, attempt_id, good() if answer is None else answer, now, retry_at)


def release(
    claim_id: str = "c1", reason: GiveBackReason = "given_back", now: int = NOW
) -> ReleaseClaim:
    """Give a claim back."""
    return ReleaseClaim(claim_id, reason, now)


def bring_in(
    import_id: str = "i1", job: Job = JOB, text: str = GOOD, origin: str = "old-store"
) -> ImportSummary:
    """Import a summary."""
    return ImportSummary(import_id, job, text, origin)


# --- facts ----------------------------------------------------------------------------------------


def claimed(
    claim_id: str = "c1", holder: str = "w1", job: Job = JOB, expires_at: int = NOW + LEASE
) -> RangeClaimed:
    """A claim was made."""
    return RangeClaimed(claim_id, holder, job.identity, job, POLICY.numbers, expires_at)


def started(
    claim_id: str = "c1",
    attempt_id: str = "a1",
    number: int = 1,
    job: Job = JOB,
    expires_at: int = NOW + LEASE,
) -> AttemptStarted:
    """An attempt began."""
    return AttemptStarted(claim_id, attempt_id, job.identity, number, expires_at)


def renewed(claim_id: str = "c1", expires_at: int = NOW + LEASE, job: Job = JOB) -> ClaimRenewed:
    """A claim's lease began anew."""
    return ClaimRenewed(claim_id, job.identity, expires_at)


def failed(
    claim_id: str = "c1",
    attempt_id: str = "a1",
    failure: FailureCode = "truncated",
    answer: Answer | None = None,
    job: Job = JOB,
    **more: Any,
) -> AttemptFailed:
    """An attempt failed with ``failure``, as ``answer`` ended."""
    known = answer or Answer()
    return AttemptFailed(
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
    claim_id: str = "c1", attempt_id: str = "a1", text: str = GOOD, job: Job = JOB
) -> RangeCompleted:
    """An attempt succeeded."""
    answer = good(text)
    return RangeCompleted(
        claim_id, attempt_id, job.identity, job.source_hash, text, answer.finish, answer.usage
    )


def released(
    claim_id: str = "c1", reason: ReleaseReason = "given_back", job: Job = JOB
) -> ClaimReleased:
    """A claim ended without a completion."""
    return ClaimReleased(claim_id, job.identity, reason)


def imported(
    import_id: str = "i1", job: Job = JOB, text: str = GOOD, origin: str = "old-store"
) -> SummaryImported:
    """A summary was brought in."""
    return SummaryImported(import_id, job.identity, job, text, origin, None)


def exhausted_by(claim_id: str = "c1", job: Job = JOB) -> list[RangeFact]:
    """Two failed attempts under one claim, which ends with the second."""
    facts: list[RangeFact] = [claimed(claim_id, job=job)]
    for number in (1, 2):
        attempt_id = f"{claim_id}-a{number}"
        facts += [
            started(claim_id, attempt_id, number, job),
            failed(claim_id, attempt_id, answer=truncated(), job=job),
        ]
    return [*facts, released(claim_id, "exhausted", job)]


# --- given, when, then ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a command led to, to be compared with what was expected."""

    state: RangeState
    command: Command

    def then(self, *facts: RangeFact) -> RangeState:
        """The command is carried out with exactly these facts; returns the state after them."""
        decision = decide(self.state, self.command)
        assert decision == Decision(facts)
        return fold(decision.facts, self.state)

    def then_already_done(self) -> None:
        """The command was carried out before: no fact and no error."""
        assert decide(self.state, self.command) == Decision(already=True)

    def then_refused(
        self,
        refusal: type[Refused],
        *,
        recording: Sequence[RangeFact] = (),
        says: Mapping[str, object] | None = None,
    ) -> RangeState:
        """The command is refused after these facts (ends of claims); returns the state after."""
        decision = decide(self.state, self.command)
        assert type(decision.refusal) is refusal
        assert decision.facts == tuple(recording)
        assert not decision.already
        for name, value in (says or {}).items():
            assert getattr(decision.refusal, name) == value
        return fold(decision.facts, self.state)

    def then_invalid(self, error: type[InvalidInput]) -> InvalidInput:
        """The command is malformed: exactly this error is raised and nothing happens."""
        with pytest.raises(error) as raised:
            decide(self.state, self.command)
        assert raised.type is error
        return raised.value


@dataclass(frozen=True)
class Given:
    """A history."""

    state: RangeState

    def when(self, command: Command) -> Outcome:
        """A command comes."""
        return Outcome(self.state, command)


def given(*facts: RangeFact) -> Given:
    """The history of ``facts``, whether today's rules would allow it or not."""
    return Given(fold(facts))
