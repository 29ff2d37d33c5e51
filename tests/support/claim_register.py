"""The claims on one source as one caller at a time would find them: a model for ``linearizability``.

Written from the rules (A1 to A6, D3), without the domain's decider. It holds the one claim that may be open,
and what is known of each identity, claim and attempt. What it does with a command depends on the time that it
is by the store's clock; where that is not known, either may be: that a lease is over, and that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

Effect = tuple[str, ...]
"""What a fact says: ``("claimed", claim)``, ``("started", claim, attempt, number)``, ``("renewed", claim)``,
``("failed", claim, attempt, code)``, ``("completed", claim, attempt)``, ``("released", claim, reason)``."""

Refusal = tuple[str | int | None, ...]
"""A code, and what the refusal says beside it. In the model ``None`` is whatever it may be."""


# --- commands and answers -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim on an identity of the source."""

    claim: str
    holder: str
    identity: str


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an attempt."""

    claim: str
    attempt: str


@dataclass(frozen=True, slots=True)
class Renew:
    """A lease that is to begin anew."""

    claim: str
    lease: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an attempt: ``result`` is a failure code, or ``completed`` and the digest of a text."""

    claim: str
    attempt: str
    result: str
    retry_at: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A claim that is given back."""

    claim: str
    reason: str


Asked = Claim | Start | Renew | Finish | Release


@dataclass(frozen=True, slots=True)
class Told:
    """The answer: what was recorded, and done already or refused. ``until`` is the end of a lease it gave."""

    effects: tuple[Effect, ...] = ()
    refusal: Refusal | None = None
    already: bool = False
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A command with the time it was judged at, and the answer.

    ``told`` is ``None`` where nothing is known of the answer; where only what stands in the log is known of
    it, ``heard`` is false and the effects alone count.
    """

    asked: Asked
    told: Told | None
    at: int | None = None
    heard: bool = True


# --- the state ----------------------------------------------------------------------------------


class Frozen(dict[K, V]):
    """A dictionary that is never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def plus(self, key: K, value: V) -> Frozen[K, V]:
        """A copy with one more entry, or another one."""
        return Frozen({**self, key: value})


@dataclass(frozen=True, slots=True)
class Open:
    """The claim that is open; ``until`` is ``None`` where nobody heard when its lease ends."""

    claim: str
    holder: str
    identity: str
    until: int | None
    attempt: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an identity."""

    attempts: int = 0
    completed: bool = False
    retry_at: int = 0


@dataclass(frozen=True, slots=True)
class Register:
    """All claims on one source."""

    open: Open | None = None
    identities: Frozen[str, Known] = field(default_factory=Frozen)
    closed: Frozen[str, str] = field(default_factory=Frozen)
    """By claim, how it ended."""
    ended: Frozen[str, tuple[str, str]] = field(default_factory=Frozen)
    """By attempt, its claim and its result."""

    def known(self, identity: str) -> Known:
        return self.identities.get(identity, Known())

    def with_known(self, identity: str, known: Known) -> Register:
        return replace(self, identities=self.identities.plus(identity, known))

    def ending(self, one: Open, attempt: str, result: str) -> Register:
        """After an attempt of the open claim."""
        return replace(
            self,
            open=replace(one, attempt=None),
            ended=self.ended.plus(attempt, (one.claim, result)),
        )

    def closing(self, one: Open, how: str) -> Register:
        """After the open claim."""
        return replace(self, open=None, closed=self.closed.plus(one.claim, how))


Ways = Iterator[tuple[Told, Register]]


class ClaimRegister:
    """The model."""

    @property
    def start(self) -> Register:
        """Nothing has been claimed."""
        return Register()

    def after(self, state: Register, what: Exchange) -> Iterator[Register]:
        """How the claims may be after a command with this answer; of one without, if it changed anything."""
        for told, after in _ways(state, what):
            if what.told is None:
                if after != state:
                    yield after
            elif fits(told, what.told, heard=what.heard):
                yield after


def fits(model: Told, told: Told, *, heard: bool = True) -> bool:
    """Whether the answer is the model's."""
    if not heard:
        return model.effects == told.effects
    if (model.effects, model.already) != (told.effects, told.already):
        return False
    if model.refusal is None or told.refusal is None:
        return model.refusal == told.refusal
    return len(model.refusal) == len(told.refusal) and all(
        mine in (None, theirs) for mine, theirs in zip(model.refusal, told.refusal, strict=True)
    )


# --- what comes of each command -----------------------------------------------------------------


def _ways(state: Register, what: Exchange) -> Ways:
    match what.asked:
        case Claim():
            return _claim(state, what.asked, what)
        case Start():
            return _start(state, what.asked, what)
        case Renew():
            return _renew(state, what.asked, what)
        case Finish():
            return _finish(state, what.asked, what)
        case Release():
            return _release(state, what.asked, what)


def _until(what: Exchange) -> int | None:
    return what.told.until if what.told else None


def _is_over(one: Open, at: int | None) -> tuple[bool, ...]:
    """Whether a lease is over: both may be where the time is not known."""
    return (False, True) if at is None or one.until is None else (at >= one.until,)


def _waits(known: Known, at: int | None) -> tuple[bool, ...]:
    """Whether the second attempt has to wait (D3)."""
    return (False, known.retry_at > 0) if at is None else (at < known.retry_at,)


def _expiry(state: Register, one: Open) -> tuple[tuple[Effect, ...], Register]:
    """The end of a claim whose lease is over, as a fact, and that of its attempt (A5, A6)."""
    released = ("released", one.claim, "expired")
    if one.attempt is None:
        return (released,), state.closing(one, "expired")
    failed = ("failed", one.claim, one.attempt, "lease_expired")
    after = state.ending(one, one.attempt, "lease_expired").closing(one, "expired")
    return (failed, released), after


def _claim(state: Register, asked: Claim, what: Exchange) -> Ways:
    """A1 to A3: at most one open claim, and none on what is completed or exhausted."""
    one = state.open
    if asked.claim in state.closed:
        yield Told(refusal=("not_the_holder", "this claim id was used before")), state
        return
    if one is not None and one.claim == asked.claim:
        yield Told(already=True), state
        return
    if state.known(asked.identity).completed:
        yield Told(refusal=("already_completed", asked.identity)), state
        return
    for over in _is_over(one, what.at) if one else (True,):
        if one is None:
            yield from _claim_of_free_source(state, asked, what, ())
        elif over:
            effects, after = _expiry(state, one)
            yield from _claim_of_free_source(after, asked, what, effects)
        else:
            yield Told(refusal=("already_claimed", one.claim, one.holder, one.until)), state


def _claim_of_free_source(
    state: Register, asked: Claim, what: Exchange, expiry: tuple[Effect, ...]
) -> Ways:
    known = state.known(asked.identity)
    if known.attempts >= 2:
        yield Told(expiry, ("exhausted", asked.identity, known.attempts)), state
        return
    for waits in _waits(known, what.at):
        if waits:
            yield Told(expiry, ("backing_off", asked.identity, known.retry_at)), state
        else:
            new = Open(asked.claim, asked.holder, asked.identity, _until(what))
            yield Told((*expiry, ("claimed", asked.claim))), replace(state, open=new)


def _held(state: Register, claim: str, at: int | None) -> Iterator[tuple[Told, Register] | Open]:
    """A4: the open claim where it is this one and holds; else why not."""
    one = state.open
    if one is None or one.claim != claim:
        why = state.closed.get(claim, "no such claim")
        yield Told(refusal=("not_the_holder", why)), state
        return
    for over in _is_over(one, at):
        if over:
            effects, after = _expiry(state, one)
            yield Told(effects, ("lease_expired", claim, one.until)), after
        else:
            yield one


def _start(state: Register, asked: Start, what: Exchange) -> Ways:
    for one in _held(state, asked.claim, what.at):
        if not isinstance(one, Open):
            yield one
        elif one.attempt == asked.attempt:
            yield Told(already=True), state
        elif one.attempt is not None or asked.attempt in state.ended:
            yield Told(refusal=("attempt_out_of_turn",)), state
        else:
            yield from _start_of_idle(state, one, asked, what)


def _start_of_idle(state: Register, one: Open, asked: Start, what: Exchange) -> Ways:
    known = state.known(one.identity)
    for waits in _waits(known, what.at):
        if waits:
            yield Told(refusal=("backing_off", one.identity, known.retry_at)), state
        elif known.attempts < 2 and not known.completed:
            number = known.attempts + 1
            running = replace(one, attempt=asked.attempt, until=_until(what))
            after = replace(state, open=running).with_known(
                one.identity, replace(known, attempts=number)
            )
            yield Told((("started", one.claim, asked.attempt, str(number)),)), after


def _renew(state: Register, asked: Renew, what: Exchange) -> Ways:
    for one in _held(state, asked.claim, what.at):
        if not isinstance(one, Open):
            yield one
        elif one.attempt is None:
            yield Told(refusal=("attempt_out_of_turn",)), state
        else:
            until = _until(what)
            if None in (what.at, one.until) or (what.at or 0) + asked.lease <= (one.until or 0):
                yield Told(already=True), state  # it holds for long enough
            if until is None or one.until is None or until > one.until:
                after = replace(state, open=replace(one, until=until))
                yield Told((("renewed", one.claim),)), after


def _finish(state: Register, asked: Finish, what: Exchange) -> Ways:
    ended = state.ended.get(asked.attempt)
    if ended is not None and ended[0] == asked.claim:
        if ended[1] == asked.result:
            yield Told(already=True), state  # A2
        elif ended[1] == "lease_expired":
            yield Told(refusal=("not_the_holder", state.closed[asked.claim])), state
        else:
            yield Told(refusal=("different_result",)), state
        return
    if state.closed.get(asked.claim) == "completed":
        yield Told(refusal=("different_result",)), state
        return
    one = state.open
    if one is not None and one.claim == asked.claim and one.attempt != asked.attempt:
        yield Told(refusal=("attempt_out_of_turn",)), state
        return
    for found in _held(state, asked.claim, what.at):
        if isinstance(found, Open):
            yield _finish_of_running(state, found, asked)
        else:
            yield found


def _finish_of_running(state: Register, one: Open, asked: Finish) -> tuple[Told, Register]:
    known = state.known(one.identity)
    after = state.ending(one, asked.attempt, asked.result)
    if asked.result.startswith("completed "):
        done = after.closing(one, "completed").with_known(
            one.identity, replace(known, completed=True)
        )
        return Told((("completed", one.claim, asked.attempt),)), done
    if asked.retry_at is not None:
        known = replace(known, retry_at=asked.retry_at)
        after = after.with_known(one.identity, known)
    failed = ("failed", one.claim, asked.attempt, asked.result)
    if known.attempts < 2:
        return Told((failed,)), after
    return Told((failed, ("released", one.claim, "exhausted"))), after.closing(one, "exhausted")


def _release(state: Register, asked: Release, what: Exchange) -> Ways:
    if state.closed.get(asked.claim) == asked.reason:
        yield Told(already=True), state
        return
    for one in _held(state, asked.claim, what.at):
        if not isinstance(one, Open):
            yield one
        elif one.attempt is not None:
            yield Told(refusal=("attempt_out_of_turn",)), state
        else:
            yield Told((("released", one.claim, asked.reason),)), state.closing(one, asked.reason)
