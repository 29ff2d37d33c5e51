"""What must be so of a log that many processes wrote to at once, by its facts and their journals alone.

Nothing here asks the domain: it counts and compares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from claim_register import Asked, Claim, Effect, Exchange, Finish, Release, Renew, Start, Told
from journals import Entry
from linearizability import Call

from compaction_ledger.domain.events import (
    AttemptStarted,
    ClaimReleased,
    RangeClaimed,
    RangeCompleted,
    RangeFact,
)

ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Stored:
    """A fact as it stands in the log: with the digest of its payload, and what it says in short."""

    index: int
    recorded_at: int
    digest: str
    fact: RangeFact
    effect: Effect


class Place(NamedTuple):
    """A source of a range: the claims on it have to do with each other, and with no others (A1)."""

    from_pair: int
    source: str


History = list[Call[Exchange]]


# --- the log by itself --------------------------------------------------------------------------


def check_log(stored: Sequence[Stored]) -> None:
    """Dense (L1); one completion (A2) and two attempts (A3) at most; one open claim per source (A1)."""
    assert [one.index for one in stored] == list(range(len(stored)))
    facts = [one.fact for one in stored]
    completed = Counter(fact.identity for fact in facts if isinstance(fact, RangeCompleted))
    assert set(completed.values()) <= {1}, "A2"
    started = Counter(fact.identity for fact in facts if isinstance(fact, AttemptStarted))
    assert max(started.values(), default=0) <= ATTEMPTS, "A3"
    _check_open_claims(facts)
    _check_after_completion(facts)


def _check_open_claims(facts: Iterable[RangeFact]) -> None:
    open_claims: dict[Place, str] = {}
    places: dict[str, Place] = {}
    for fact in facts:
        if isinstance(fact, RangeClaimed):
            place = places[fact.claim_id] = Place(fact.job.from_pair, fact.job.source_hash)
            assert place not in open_claims, "A1: a second open claim on one source"
            open_claims[place] = fact.claim_id
        elif isinstance(fact, ClaimReleased | RangeCompleted):
            assert open_claims.pop(places[fact.claim_id]) == fact.claim_id, "A4"


def _check_after_completion(facts: Iterable[RangeFact]) -> None:
    completed: set[str] = set()
    for fact in facts:
        assert fact.identity not in completed or isinstance(fact, ClaimReleased), "A2"
        if isinstance(fact, RangeCompleted):
            completed.add(fact.identity)


def check_ends(stored: Sequence[Stored], identities: Iterable[str]) -> Counter[str]:
    """Each of these identities has its one completion, or has used its two attempts; how many of each."""
    facts = [one.fact for one in stored]
    completed = {fact.identity for fact in facts if isinstance(fact, RangeCompleted)}
    started = Counter(fact.identity for fact in facts if isinstance(fact, AttemptStarted))
    ends: Counter[str] = Counter()
    for identity in identities:
        assert identity in completed or started[identity] == ATTEMPTS
        ends["completed" if identity in completed else "exhausted"] += 1
    return ends


# --- the log and the journals -------------------------------------------------------------------


def settle(entries: Sequence[Entry]) -> tuple[list[Entry], int]:
    """The commands, each fact told to one of them; and how many were told of what another had stored.

    That a claim is expired is the same fact whoever records it. A process whose answer was lost looks for
    what it wanted to store (A9), and may find what another stored, which cannot be told apart: nothing is
    wrong with either. Whoever stored more at once stored it, or else whoever was called first; the others
    found it done.
    """
    by_place: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        for index, _ in entry.answer.places if entry.answer else ():
            by_place[index].append(entry)
    found: set[int] = set()
    for sharing in by_place.values():
        if len(sharing) > 1:
            first = min(sharing, key=lambda entry: (_only_expires(entry), entry.called))
            others = [entry for entry in sharing if entry is not first]
            assert all(map(_only_expires, others)), "one fact, told to two"
            found.update(map(id, others))
    return [_done_by_another(e) if id(e) in found else e for e in entries], len(found)


def _only_expires(entry: Entry) -> bool:
    """Whether a command did nothing but to record the end of a claim whose lease was over."""
    told = entry.told
    return told is not None and all(
        effect[-1] in ("expired", "lease_expired") for effect in told.effects
    )


def _done_by_another(entry: Entry) -> Entry:
    """As if the expiry had been found recorded: then the holder is not the holder any more."""
    assert entry.answer
    assert entry.told
    assert entry.told.refusal
    refusal = entry.told.refusal
    if refusal[0] == "lease_expired":
        refusal = ("not_the_holder", "expired")
    told = replace(entry.told, effects=(), refusal=refusal)
    return replace(entry, answer=replace(entry.answer, places=(), told=told))


def check_acknowledged(stored: Sequence[Stored], entries: Iterable[Entry]) -> int:
    """Each fact that somebody was told to be stored is there, as it was, once; returns how many there are."""
    places = Counter(one.digest for one in stored)
    told: set[int] = set()
    for entry in entries:
        if entry.answer is None:
            continue
        here = [stored[index] for index, _ in entry.answer.places]
        assert [one.digest for one in here] == [digest for _, digest in entry.answer.places]
        assert all(places[one.digest] == 1 for one in here)
        if entry.told:
            assert tuple(one.effect for one in here) == entry.told.effects
        indices = [one.index for one in here]
        assert indices == list(range(indices[0], indices[0] + len(indices))) if indices else True
        assert told.isdisjoint(indices), "one fact, told to two"
        told.update(indices)
    return len(told)


def check_times(entries: Iterable[Entry]) -> None:
    """Each command was judged at a time that it was while it ran.

    A process carries the reading of the store's clock on that came with an answer; so its time is behind by
    as long as that answer took, at most.
    """
    longest: dict[str, int] = defaultdict(int)
    known = [entry for entry in entries if entry.told and entry.wall]
    for entry in known:
        assert entry.wall
        longest[entry.process] = max(longest[entry.process], entry.wall[1] - entry.wall[0])
    for entry in known:
        assert entry.wall
        assert entry.answer
        before, after = entry.wall
        assert before - longest[entry.process] - 1_000 <= entry.answer.now <= after + 1_000, entry


# --- histories ----------------------------------------------------------------------------------


def as_asked_and_told(entries: Iterable[Entry]) -> dict[Place, History]:
    """The history of each source by the journals alone: what was asked when, and what was told."""
    histories: dict[Place, History] = defaultdict(list)
    for entry in entries:
        at = entry.answer.now if entry.answer and entry.told else None
        histories[_place(entry)].append(
            Call(
                entry.process,
                Exchange(entry.asked, entry.told, at),
                entry.called,
                entry.returned if entry.told else None,
            )
        )
    return histories


def as_recorded(entries: Sequence[Entry], stored: Sequence[Stored]) -> dict[Place, History]:
    """The history of each source with the places in the log of what was done, and the times that it has.

    Also of what nobody was told of any more: every fact was recorded by somebody who wanted to.
    """
    unheard = _found(entries, stored)
    histories: dict[Place, History] = defaultdict(list)
    for entry in entries:
        if entry.told is None:
            here = unheard.get(id(entry), [])
            until = getattr(here[-1].fact, "expires_at", None) if here else None
            told = Told(tuple(one.effect for one in here), until=until) if here else None
        else:
            assert entry.answer
            here = [stored[index] for index, _ in entry.answer.places]
            told = entry.told
        now = entry.answer.now if entry.answer and entry.told else None
        histories[_place(entry)].append(
            Call(
                entry.process,
                Exchange(
                    entry.asked, told, here[-1].recorded_at if here else now, bool(entry.told)
                ),
                entry.called,
                entry.returned if entry.told else None,
                here[-1].index if here else None,
            )
        )
    return histories


def _place(entry: Entry) -> Place:
    return Place(entry.about.from_pair, entry.about.source)


def _found(entries: Iterable[Entry], stored: Sequence[Stored]) -> Mapping[int, list[Stored]]:
    """By ``id`` of an entry without an answer, what it recorded, if it recorded anything."""
    entries = list(entries)
    told = {index for entry in entries if entry.answer for index, _ in entry.answer.places}
    return _Finder([one for one in stored if one.index not in told], stored).find(
        sorted((entry for entry in entries if entry.told is None), key=lambda e: e.called)
    )


class _Finder:
    """Who recorded the facts that nobody was told of."""

    def __init__(self, left: Iterable[Stored], stored: Iterable[Stored]) -> None:
        self._left = {one.index: one for one in left}
        self._places = {
            one.fact.claim_id: Place(one.fact.job.from_pair, one.fact.job.source_hash)
            for one in stored
            if isinstance(one.fact, RangeClaimed)
        }

    def find(self, pending: Sequence[Entry]) -> Mapping[int, list[Stored]]:
        found: dict[int, list[Stored]] = {}
        for entry in pending:
            if own := self._own(entry.asked):
                found[id(entry)] = own
        for entry in sorted(pending, key=lambda e: (isinstance(e.asked, Claim), e.called)):
            if id(entry) not in found and (expiry := self._expiry_by(entry)):
                found[id(entry)] = expiry
        assert not self._left, f"nobody recorded {list(self._left.values())}"
        return found

    def _own(self, asked: Asked) -> list[Stored]:
        """What a command is about, and what stands beside it in the same append."""
        index = next((i for i, one in self._left.items() if _is_of(one.effect, asked)), None)
        if index is None:
            return []
        here = [self._left.pop(index)]
        if isinstance(asked, Claim):
            place = self._places[asked.claim]
            while self._is_expiry(index - len(here), place):
                here.insert(0, self._left.pop(index - len(here)))
        follows = self._left.get(index + 1)
        if follows and follows.effect == ("released", asked.claim, "exhausted"):
            here.append(self._left.pop(index + 1))
        return here

    def _is_expiry(self, index: int, place: Place) -> bool:
        one = self._left.get(index)
        return (
            one is not None
            and one.effect[-1] in ("expired", "lease_expired")
            and self._places[one.effect[1]] == place
        )

    def _expiry_by(self, entry: Entry) -> list[Stored]:
        """The end of a claim whose lease was over, found by its holder or whoever wanted to follow."""
        for index in list(self._left):
            here = [self._left[index]]
            place = self._places[here[0].effect[1]]
            if place != _place(entry) or not self._is_expiry(index, place):
                continue
            if not isinstance(entry.asked, Claim) and entry.asked.claim != here[0].effect[1]:
                continue
            if here[0].effect[0] == "failed":
                here.append(self._left[index + 1])
            for one in here:
                del self._left[one.index]
            return here
        return []


def _is_of(effect: Effect, asked: Asked) -> bool:
    """Whether this is what the command is about."""
    match asked:
        case Claim():
            return effect == ("claimed", asked.claim)
        case Start():
            return effect[:3] == ("started", asked.claim, asked.attempt)
        case Renew():
            return effect == ("renewed", asked.claim)
        case Finish():
            if asked.result.startswith("completed "):
                return effect == ("completed", asked.claim, asked.attempt)
            return effect == ("failed", asked.claim, asked.attempt, asked.result)
        case Release():
            return effect == ("released", asked.claim, asked.reason)
