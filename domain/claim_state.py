"""What the facts of a stream say of claims, attempts and completions: the same for ranges and for chunks.

Which fact changes what is a table from its type to a function (:data:`Changes`): a stream names its own
facts in one, and the functions here read those members that the facts of all streams have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from compaction_ledger.domain.finish import output_digest


class Claimable(Protocol):
    """A job of any kind: what can be claimed, attempted at most twice and completed once (A1 to A3)."""

    @property
    def identity(self) -> str:
        """The digest of all that makes it this job (I1)."""
        ...

    @property
    def source_hash(self) -> str:
        """What it is bound to (B1)."""
        ...

    @property
    def key(self) -> Hashable:
        """Its stream."""
        ...

    def check(self) -> None:
        """A7. Raises :class:`InvalidInput` kinds."""
        ...


@dataclass(frozen=True, slots=True)
class OpenClaim:
    """A claim that nobody has recorded the end of."""

    claim_id: str
    holder: str
    identity: str
    source_hash: str
    expires_at: int
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The one completion of an identity: by which claim or import, with which text, where in the stream."""

    by: str
    text_digest: str
    version: int


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that is over: under which claim, and its failure code or the digest of its summary."""

    claim_id: str
    result: str


@dataclass(frozen=True, slots=True)
class ClaimState:
    """What the facts of a stream say. ``version`` counts them; ``key`` is that of the stream's jobs."""

    version: int = 0
    key: Hashable | None = None
    open: Mapping[str, OpenClaim] = field(default_factory=dict[str, OpenClaim])  # by claim id
    attempts: Mapping[str, int] = field(default_factory=dict[str, int])  # by identity
    retry_at: Mapping[str, int] = field(default_factory=dict[str, int])  # by identity
    completions: Mapping[str, Completion] = field(
        default_factory=dict[str, Completion]
    )  # by identity
    closed: Mapping[str, str] = field(default_factory=dict[str, str])  # claim id to how it ended
    ended: Mapping[str, EndedAttempt] = field(
        default_factory=dict[str, EndedAttempt]
    )  # by attempt id


EMPTY = ClaimState()

Changes = Mapping[type[Any], Callable[[ClaimState, Any], dict[str, Any]]]
"""By the type of a fact: what gives the fields of a state that it changes."""


def changed(state: ClaimState, fact: object, changes: Changes) -> ClaimState:
    """The state after ``fact``. Judges nothing (A10)."""
    return replace(state, version=state.version + 1, **changes[type(fact)](state, fact))


# --- what facts change: of claims, attempts and completions of any kind -----------------------------


def claimed(state: ClaimState, fact: Any) -> dict[str, Any]:
    """A claim is open, and the stream has its key."""
    claim = OpenClaim(
        fact.claim_id, fact.holder, fact.identity, fact.job.source_hash, fact.expires_at
    )
    return {"key": fact.job.key, "open": {**state.open, fact.claim_id: claim}}


def started(state: ClaimState, fact: Any) -> dict[str, Any]:
    """The claim has an attempt, which counts."""
    attempt = {"attempt_id": fact.attempt_id, "expires_at": fact.expires_at}
    count = state.attempts.get(fact.identity, 0) + 1
    return {
        "open": _open_with(state, fact.claim_id, attempt),
        "attempts": {**state.attempts, fact.identity: count},
    }


def renewed(state: ClaimState, fact: Any) -> dict[str, Any]:
    """The claim's lease ends later."""
    return {"open": _open_with(state, fact.claim_id, {"expires_at": fact.expires_at})}


def failed(state: ClaimState, fact: Any) -> dict[str, Any]:
    """The attempt is over; the next one may have to wait (D3)."""
    waits = {} if fact.retry_at is None else {fact.identity: fact.retry_at}
    return {
        "open": _open_with(state, fact.claim_id, {"attempt_id": None}),
        "ended": _ended(state, fact, fact.failure),
        "retry_at": {**state.retry_at, **waits},
    }


def completed(state: ClaimState, fact: Any) -> dict[str, Any]:
    """The identity has its completion, and the claim is over."""
    digest = output_digest(fact.text)
    return {
        **_closed(state, fact.claim_id, "completed"),
        "ended": _ended(state, fact, digest),
        "completions": completions_with(state, fact.identity, fact.claim_id, digest),
    }


def released(state: ClaimState, fact: Any) -> dict[str, Any]:
    """The claim is over."""
    return _closed(state, fact.claim_id, fact.reason)


def completions_with(
    state: ClaimState, identity: str, by: str, text_digest: str
) -> Mapping[str, Completion]:
    """The completions, with one by the next fact of the stream."""
    return {**state.completions, identity: Completion(by, text_digest, state.version + 1)}


def _open_with(
    state: ClaimState, claim_id: str, changes: Mapping[str, Any]
) -> Mapping[str, OpenClaim]:
    """The open claims with one changed. A claim that is not open stays as it is (A10)."""
    claim = state.open.get(claim_id)
    return state.open if claim is None else {**state.open, claim_id: replace(claim, **changes)}


def _ended(state: ClaimState, fact: Any, result: str) -> Mapping[str, EndedAttempt]:
    return {**state.ended, fact.attempt_id: EndedAttempt(fact.claim_id, result)}


def _closed(state: ClaimState, claim_id: str, how: str) -> dict[str, Any]:
    still_open = {key: claim for key, claim in state.open.items() if key != claim_id}
    return {"open": still_open, "closed": {**state.closed, claim_id: how}}
