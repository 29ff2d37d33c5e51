"""The checkers of histories find what is wrong and nothing else: by hand, and beside all orders there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import pytest
from claim_register import (
    Asked,
    Claim,
    ClaimRegister,
    Effect,
    Exchange,
    Finish,
    Refusal,
    Release,
    Renew,
    Start,
    Told,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from linearizability import Call, NotLinearizable, TooMuch, by_places, prove, search

# --- a register of one number -------------------------------------------------------------------


@dataclass(frozen=True)
class Op:
    """A number that is written, or one that was read."""

    writes: bool
    number: int


class Number:
    """Holds the number that was written last."""

    start = 0

    def after(self, state: int, what: Op) -> Iterator[int]:
        if what.writes:
            yield what.number
        elif state == what.number:
            yield state


def write(number: int, called: int, returned: int | None, place: int | None = None) -> Call[Op]:
    return Call(f"w{number}", Op(True, number), called, returned, place)


def read(number: int, called: int, returned: int) -> Call[Op]:
    return Call(f"r{number}", Op(False, number), called, returned)


def accepts(check: Callable[[], object]) -> bool:
    try:
        check()
    except NotLinearizable:
        return False
    return True


def some_order_holds(calls: Sequence[Call[Op]], *, by_place: bool) -> bool:
    """The same by trying them all."""
    needed = [call for call in calls if call.returned is not None or (by_place and call.place)]
    others = [call for call in calls if call.returned is None and not (by_place and call.place)]
    return any(
        accepts(lambda order=order: prove(order, calls, Number()))  # type: ignore[misc]
        for size in range(len(others) + 1)
        if not (by_place and size)
        for chosen in combinations(others, size)
        for order in permutations([*needed, *chosen])
        if not by_place or _is_by_place(order)
    )


def _is_by_place(order: Iterable[Call[Op]]) -> bool:
    places = [call.place for call in order if call.place is not None]
    return places == sorted(places)


@st.composite
def histories(draw: st.DrawFn, *, by_place: bool) -> list[Call[Op]]:
    """A few calls that overlap, with whatever answers; each write has a place, if places are wanted."""
    calls: list[Call[Op]] = []
    for place in range(1, draw(st.integers(1, 5)) + 1):
        called = draw(st.integers(0, 8))
        returned = called + draw(st.integers(0, 6))
        if draw(st.booleans()):
            pending = draw(st.integers(0, 3)) == 0
            ends = None if pending else returned
            at = place if by_place and (not pending or draw(st.booleans())) else None
            calls.append(write(draw(st.integers(1, 2)), called, ends, at))
        else:
            calls.append(read(draw(st.integers(0, 2)), called, returned))
    return calls


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(histories(by_place=False))
def test_search_finds_an_order_where_there_is_one(calls: list[Call[Op]]) -> None:
    found = accepts(lambda: search(calls, Number()))
    assert found == some_order_holds(calls, by_place=False)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(histories(by_place=True))
def test_places_lead_to_an_order_where_there_is_one(calls: list[Call[Op]]) -> None:
    found = accepts(lambda: by_places(calls, Number()))
    assert found == some_order_holds(calls, by_place=True)


def test_a_read_of_what_was_overwritten_before_is_found() -> None:
    calls = [write(1, 0, 1, place=1), write(2, 2, 3, place=2), read(1, 4, 5)]
    for check in (search, by_places):
        with pytest.raises(NotLinearizable):
            check(calls, Number())
    in_time = [*calls[:2], read(1, 2, 5)]
    assert [call.name for call in search(in_time, Number())] == ["w1", "r1", "w2"]
    assert [call.name for call in by_places(in_time, Number())] == ["w1", "r1", "w2"]


def test_reads_do_not_go_back() -> None:
    """Each by itself would fit: the second was made when the first had returned."""
    calls = [write(1, 0, 9, place=1), read(1, 1, 2), read(0, 3, 4)]
    for check in (search, by_places):
        with pytest.raises(NotLinearizable):
            check(calls, Number())


def test_an_order_is_not_taken_on_trust() -> None:
    first, second = write(1, 0, 1), write(2, 2, 3)
    prove([first, second], [first, second], Number())
    with pytest.raises(NotLinearizable, match="had returned before"):
        prove([second, first], [first, second], Number())
    with pytest.raises(NotLinearizable, match="missing"):
        prove([first], [first, second], Number())
    with pytest.raises(NotLinearizable, match="not made, or one of them twice"):
        prove([first, first, second], [first, second], Number())
    with pytest.raises(NotLinearizable, match="not made, or one of them twice"):
        prove([first, second, write(2, 2, 3)], [first, second], Number())
    with pytest.raises(NotLinearizable, match="not what the model does"):
        prove([first, wrong := read(3, 2, 3)], [first, wrong], Number())


def test_a_search_without_end_says_that_it_does_not_know() -> None:
    calls = [*(write(n, 0, 100) for n in range(12)), read(99, 0, 100)]
    with pytest.raises(TooMuch):
        search(calls, Number(), limit=1_000)


# --- claims -------------------------------------------------------------------------------------

LEASE = 10


class History:
    """Commands one by one; ``at`` is the time, by every clock, at which a command is judged."""

    def __init__(self) -> None:
        self.calls: list[Call[Exchange]] = []

    def add(
        self,
        asked: Asked,
        at: int,
        *effects: Effect,
        refusal: Refusal | None = None,
        already: bool = False,
        until: int | None = None,
        took: int = 0,
        place: int | None = None,
    ) -> History:
        """A command with its answer, which takes so long before and after it is judged."""
        told = Told(effects, refusal, already, until)
        if place is None and effects:
            place = len(self.calls)
        self.calls.append(
            Call(f"{len(self.calls)}", Exchange(asked, told, at), at - took, at + took, place)
        )
        return self

    def unheard(self, asked: Asked, at: int, *, effects: Sequence[Effect] = ()) -> History:
        """A command without an answer, of which stands in the log what is given."""
        told = Told(tuple(effects)) if effects else None
        place = len(self.calls) if effects else None
        exchange = Exchange(asked, told, at if effects else None, heard=False)
        self.calls.append(Call(f"{len(self.calls)}", exchange, at, None, place))
        return self

    def claimed(
        self,
        claim: str,
        at: int,
        identity: str = "i",
        *,
        took: int = 0,
        place: int | None = None,
    ) -> History:
        asked = Claim(claim, f"by-{claim}", identity)
        until = at + LEASE
        return self.add(asked, at, ("claimed", claim), until=until, took=took, place=place)

    def refused(self, claim: str, at: int, refusal: Refusal, identity: str = "i") -> History:
        return self.add(Claim(claim, f"by-{claim}", identity), at, refusal=refusal)

    def started(self, claim: str, at: int, number: int = 1, attempt: str = "") -> History:
        name = attempt or f"{claim}-{number}"
        effect = ("started", claim, name, str(number))
        return self.add(Start(claim, name), at, effect, until=at + LEASE)

    def completed(self, claim: str, at: int, number: int = 1) -> History:
        attempt = f"{claim}-{number}"
        return self.add(Finish(claim, attempt, "completed x"), at, ("completed", claim, attempt))

    def failed(self, claim: str, at: int, number: int = 1, retry_at: int | None = None) -> History:
        attempt = f"{claim}-{number}"
        effects: list[Effect] = [("failed", claim, attempt, "truncated")]
        if number == 2:
            effects.append(("released", claim, "exhausted"))
        return self.add(Finish(claim, attempt, "truncated", retry_at), at, *effects)

    def released(self, claim: str, at: int) -> History:
        return self.add(Release(claim, "given_back"), at, ("released", claim, "given_back"))

    def without_places(self) -> list[Call[Exchange]]:
        """As the journals alone tell it."""
        return [
            replace(
                call,
                place=None,
                what=call.what if call.what.heard else Exchange(call.what.asked, None),
            )
            for call in self.calls
        ]


def held_by(claim: str, until: int) -> Refusal:
    return ("already_claimed", claim, f"by-{claim}", until)


GOOD = {
    "one after the other": History()
    .claimed("a", 0)
    .refused("b", 1, held_by("a", 10))
    .started("a", 2)
    .refused("b", 3, held_by("a", 12))
    .completed("a", 4)
    .refused("b", 5, ("already_completed", "i"))
    .claimed("c", 6, "j"),
    "given back": History()
    .claimed("a", 0)
    .released("a", 1)
    .add(Release("a", "given_back"), 2, already=True)
    .claimed("b", 3),
    "a refusal that overlaps with the release": History()
    .claimed("a", 0)
    .released("a", 5)
    .add(Claim("b", "by-b", "i"), 6, refusal=held_by("a", 10), took=2),
    "a refusal that overlaps with the claim": History()
    .add(Claim("b", "by-b", "i"), 0, refusal=held_by("a", 11), took=2)
    .claimed("a", 1),
    "taken over": History()
    .claimed("a", 0)
    .started("a", 1)
    .add(
        Claim("b", "by-b", "i"),
        11,
        ("failed", "a", "a-1", "lease_expired"),
        ("released", "a", "expired"),
        ("claimed", "b"),
        until=21,
    )
    .add(Finish("a", "a-1", "completed x"), 12, refusal=("not_the_holder", "expired"))
    .started("b", 13, 2, "b-2")
    .completed("b", 14, 2),
    "late": History()
    .claimed("a", 0)
    .add(
        Start("a", "a-1"),
        10,
        ("released", "a", "expired"),
        refusal=("lease_expired", "a", 10),
    )
    .claimed("b", 11),
    "renewed": History()
    .claimed("a", 0)
    .started("a", 1)
    .add(Renew("a", 20), 9, ("renewed", "a"), until=29)
    .add(Renew("a", 5), 10, already=True)
    .completed("a", 28),
    "exhausted": History()
    .claimed("a", 0)
    .started("a", 1)
    .failed("a", 2)
    .started("a", 3, 2)
    .failed("a", 4, 2)
    .refused("b", 5, ("exhausted", "i", 2))
    .claimed("c", 6, "j"),
    "backing off": History()
    .claimed("a", 0)
    .started("a", 1)
    .failed("a", 2, retry_at=50)
    .released("a", 3)
    .refused("b", 49, ("backing_off", "i", 50))
    .claimed("b2", 50),
    "sent again": History()
    .claimed("a", 0)
    .add(Claim("a", "by-a", "i"), 1, already=True)
    .started("a", 2)
    .add(Start("a", "a-1"), 3, already=True)
    .completed("a", 4)
    .add(Finish("a", "a-1", "completed x"), 5, already=True)
    .add(Finish("a", "a-1", "completed y"), 6, refusal=("different_result",)),
    "killed behind the claim": History()
    .unheard(Claim("a", "by-a", "i"), 0, effects=[("claimed", "a")])
    .refused("b", 1, held_by("a", 10)),
    "killed before the claim": History().unheard(Claim("a", "by-a", "i"), 0).claimed("b", 1),
    "killed in the middle of a finish": History()
    .claimed("a", 0)
    .started("a", 1)
    .unheard(Finish("a", "a-1", "completed x"), 2, effects=[("completed", "a", "a-1")])
    .refused("b", 3, ("already_completed", "i")),
}

BAD = {
    "two winners": History().claimed("a", 0).claimed("b", 1),
    "two winners that overlap": History().claimed("a", 1, took=2).claimed("b", 1, took=2),
    "a winner that was killed, and another": History()
    .unheard(Claim("a", "by-a", "i"), 0, effects=[("claimed", "a")])
    .refused("c", 1, held_by("a", 10))
    .claimed("b", 2),
    "a lost update: both attempts are the first": History()
    .claimed("a", 0)
    .started("a", 1)
    .failed("a", 2)
    .started("a", 3, 1, "a-2"),
    "a lost completion": History()
    .claimed("a", 0)
    .started("a", 1)
    .completed("a", 2)
    .claimed("b", 3),
    "two results": History()
    .claimed("a", 0)
    .started("a", 1)
    .completed("a", 2)
    .add(Finish("a", "a-1", "completed y"), 3, ("completed", "a", "a-1")),
    "a third attempt": History()
    .claimed("a", 0)
    .started("a", 1)
    .failed("a", 2)
    .started("a", 3, 2)
    .failed("a", 4, 2)
    .claimed("b", 5),
    "a stale refusal": History().claimed("a", 0).released("a", 1).refused("b", 2, held_by("a", 10)),
    "a refusal from the future": History().refused("b", 0, held_by("a", 12)).claimed("a", 2),
    "a refusal that names another": History().claimed("a", 0).refused("b", 1, held_by("c", 10)),
    "a refusal with another end of the lease": History()
    .claimed("a", 0)
    .refused("b", 1, held_by("a", 11)),
    "refused, though the lease was over": History()
    .claimed("a", 0)
    .refused("b", 10, held_by("a", 10)),
    "taken over while the lease held": History()
    .claimed("a", 0)
    .add(Claim("b", "by-b", "i"), 9, ("released", "a", "expired"), ("claimed", "b"), until=19),
    "taken over without a word of the attempt": History()
    .claimed("a", 0)
    .started("a", 1)
    .add(Claim("b", "by-b", "i"), 11, ("released", "a", "expired"), ("claimed", "b"), until=21),
    "a summary past the lease": History().claimed("a", 0).started("a", 1).completed("a", 11),
    "a summary of who was taken over": History()
    .claimed("a", 0)
    .started("a", 1)
    .released("a", 2)
    .completed("a", 3),
    "a renewal past the lease": History()
    .claimed("a", 0)
    .started("a", 1)
    .add(Renew("a", 10), 11, ("renewed", "a"), until=21),
    "done already, but it never was": History().add(Claim("a", "by-a", "i"), 0, already=True),
    "done already, of what another has taken over": History()
    .claimed("a", 0)
    .released("a", 1)
    .add(Claim("a", "by-a", "i"), 2, already=True),
    "no wait where there is one": History()
    .claimed("a", 0)
    .started("a", 1)
    .failed("a", 2, retry_at=50)
    .released("a", 3)
    .claimed("b", 49),
    "refused to the holder": History()
    .claimed("a", 0)
    .add(Start("a", "a-1"), 1, refusal=("not_the_holder", "no such claim")),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_of_claims_that_may_be(name: str) -> None:
    history = GOOD[name]
    by_places(history.calls, ClaimRegister())
    search(history.without_places(), ClaimRegister())


@pytest.mark.parametrize("name", BAD)
def test_a_history_of_claims_that_may_not_be(name: str) -> None:
    history = BAD[name]
    with pytest.raises(NotLinearizable):
        by_places(history.calls, ClaimRegister())
    with pytest.raises(NotLinearizable):
        search(history.without_places(), ClaimRegister())


def test_a_log_that_has_answers_out_of_order_is_found() -> None:
    """Between them the second could be the first; but that was there when the second was made."""
    history = History().claimed("a", 0, place=1).released("a", 2).claimed("b", 4, place=0)
    with pytest.raises(NotLinearizable):
        by_places(history.calls, ClaimRegister())
    search(history.without_places(), ClaimRegister())


def test_a_stale_refusal_among_overlapping_calls_is_found_behind_another() -> None:
    """Each overlaps with the release; but the second was made when the first had seen it."""
    history = History().claimed("a", 0).released("a", 10)
    release = history.calls.pop()
    seen = Call(
        "s", Exchange(Start("a", "x"), Told(refusal=("not_the_holder", "given_back")), 5), 4, 6
    )
    stale = Call("t", Exchange(Claim("b", "by-b", "i"), Told(refusal=held_by("a", 10)), 8), 7, 9)
    calls = [*history.calls, replace(release, called=3, returned=12), seen, stale]
    with pytest.raises(NotLinearizable):
        by_places(calls, ClaimRegister())
    with pytest.raises(NotLinearizable):
        search([replace(call, place=None) for call in calls], ClaimRegister())
