"""The stores of originals, one suite for all: the system of record of running agents (T14, T15)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_servers import running_aws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from originals_stores import KEY, SHAPE, STORES, Store, message, messages

from compaction_ledger.domain.errors import (
    ConcurrentAppend,
    DamagedOriginal,
    InvalidId,
    InvalidInput,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, Original, Originals


@pytest.fixture(scope="session")
def aws() -> Iterator[Callable[[], str]]:
    """The address of a server of S3 and DynamoDB, which is started by the first who asks."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_aws()))


@pytest.fixture(params=sorted(STORES))
def store(
    request: pytest.FixtureRequest, tmp_path: Path, aws: Callable[[], str]
) -> Iterator[Store]:
    """A store of each kind."""
    made = STORES[request.param](tmp_path, aws)
    yield made
    made.close()


@pytest.fixture
def originals(store: Store) -> Originals:
    """One session on the store."""
    return store.open()


def kept(positions: range, given: list[NewOriginal]) -> list[Original]:
    return [
        Original(position, m.role, m.exchange, m.at, m.wire, m.digest)
        for position, m in zip(positions, given, strict=True)
    ]


# --- append and read back ------------------------------------------------------------------------


def test_of_what_nobody_began_there_is_nothing(originals: Originals) -> None:
    assert originals.count(KEY) == 0
    assert originals.shape(KEY) is None
    assert list(originals.digests(KEY)) == []
    assert list(originals.read(KEY)) == []
    assert list(originals.read(KEY, 3, 7)) == []
    assert list(originals.runs(KEY.scope, KEY.conversation)) == []
    assert originals.result(KEY.scope, KEY.conversation, "ab" * 32) is None
    originals.forget(KEY.scope, KEY.conversation)


def test_messages_come_back_in_order_as_they_were(store: Store) -> None:
    given = [
        message(0, "You are kind.", role="system", exchange=-1, at=-1),
        message(1, "Flights to Rome?", exchange=0, at=1_750_000_000_000_000),
        message(2, "Two.", role="assistant", exchange=0, at=0),
        message(3, "{}", role="tool", exchange=0, at=2**63 - 1),
        message(4, "The second.", exchange=1, at=-(2**63)),
    ]
    store.open().append(KEY, SHAPE, 0, given)
    found = store.open()
    assert found.count(KEY) == 5
    assert found.shape(KEY) == SHAPE
    assert list(found.read(KEY)) == kept(range(5), given)
    assert list(found.digests(KEY)) == [m.digest for m in given]
    assert [m.id for m in found.read(KEY)] == ["m0", "m1", "m2", "m3", "m4"]


def test_appending_goes_on_where_it_ended(originals: Originals) -> None:
    sizes, at = [1, 3, 1, 12, 2, 1], 0
    for size in sizes:
        originals.append(KEY, SHAPE, at, messages(at, at + size))
        at += size
        assert originals.count(KEY) == at
    assert list(originals.read(KEY)) == kept(range(at), messages(0, at))
    assert list(originals.digests(KEY)) == [m.digest for m in messages(0, at)]


def test_any_part_of_a_run_can_be_read(originals: Originals) -> None:
    at = 0
    for size in (1, 4, 2, 1):
        originals.append(KEY, SHAPE, at, messages(at, at + size))
        at += size
    whole = kept(range(8), messages(0, 8))
    for start in range(10):
        assert list(originals.read(KEY, start)) == whole[start:]
        for stop in range(11):
            assert list(originals.read(KEY, start, stop)) == whole[start:stop], (start, stop)
    assert list(originals.read(KEY, 0, 2**40)) == whole
    assert list(originals.read(KEY, 2**40)) == []


def test_windows_are_kept_apart(originals: Originals) -> None:
    keys = [WindowKey(*ids) for ids in ("abc", "abd", "acc", "bbc")]
    for number, key in enumerate(keys):
        originals.append(key, SHAPE, 0, messages(number, number + 2))
    for number, key in enumerate(keys):
        assert list(originals.read(key)) == kept(range(2), messages(number, number + 2))
    assert list(originals.runs("a", "b")) == ["c", "d"]
    assert list(originals.runs("b", "b")) == ["c"]
    assert list(originals.runs("b", "a")) == []


def test_runs_come_in_the_order_they_began(originals: Originals) -> None:
    names = [f"run-{number}" for number in (7, 3, 11, 1, 9)]
    for name in names:
        originals.append(replace(KEY, run=name), SHAPE, 0, messages(0, 1))
    for name in reversed(names):
        originals.append(replace(KEY, run=name), SHAPE, 1, messages(1, 2))
    assert list(originals.runs(KEY.scope, KEY.conversation)) == names


def test_each_run_has_its_shape(originals: Originals) -> None:
    originals.append(KEY, SHAPE, 0, messages(0, 1))
    other = replace(KEY, run="run-2")
    originals.append(other, "converse", 0, messages(0, 1))
    assert (originals.shape(KEY), originals.shape(other)) == (SHAPE, "converse")
    for first, more in ((1, messages(1, 2)), (0, messages(0, 1)), (1, []), (9, messages(9, 10))):
        with pytest.raises(InvalidInput, match="shape") as refusal:
            originals.append(KEY, "converse", first, more)
        assert refusal.value.place == "shape"
    assert originals.count(KEY) == 1


def test_an_empty_append_stores_nothing(originals: Originals) -> None:
    originals.append(KEY, SHAPE, 0, [])
    assert originals.shape(KEY) is None
    assert list(originals.runs(KEY.scope, KEY.conversation)) == []
    originals.append(KEY, SHAPE, 0, messages(0, 3))
    for first in range(4):
        originals.append(KEY, SHAPE, first, [])
    with pytest.raises(ConcurrentAppend):
        originals.append(KEY, SHAPE, 4, [])
    assert originals.count(KEY) == 3


# --- bit for bit (E6) ----------------------------------------------------------------------------

WIRES = {
    "nothing": b"",
    "nul": b'{"content":"a\x00b"}\x00',
    "lone surrogate": '{"content":"\ud800 and \udfff"}'.encode("utf-8", "surrogatepass"),
    "no text at all": bytes(range(256)),
    "line ends": b"\r\n\n\r\x0b\x0c\x85",
    "looks encoded": b"eyJ9 =?utf-8?B?",
    "chinese": "基金每年".encode(),
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_bytes_are_kept_bit_for_bit(store: Store, wire: bytes) -> None:
    given = [replace(message(0), wire=wire), message(1), replace(message(2), wire=wire)]
    store.open().append(KEY, SHAPE, 0, given)
    assert [m.wire for m in store.open().read(KEY)] == [m.wire for m in given]
    digest = store.open().keep_result(KEY.scope, KEY.conversation, wire)
    assert store.open().result(KEY.scope, KEY.conversation, digest) == wire


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=6), st.integers(0, 10**9))
def test_any_bytes_are_kept(store: Store, wires: list[bytes], run: int) -> None:
    key = replace(KEY, run=f"run-{run}")
    originals = store.open()
    originals.forget(key.scope, key.conversation)
    given = [replace(message(n), wire=wire) for n, wire in enumerate(wires)]
    originals.append(key, SHAPE, 0, given)
    assert list(originals.read(key)) == kept(range(len(given)), given)


ODD_IDS = [
    "/", ".", "..", "a/b", "../../etc", "c/", "/c", "%2F", "a b", "🙂 基金", "'\";--", "?x=1#y&z", "*",
    "~", "x" * 512, "\u0301\u202e", "\U0010ffff", "a\\b", "é", "e\u0301", "A", "a",
]  # fmt: skip


def test_ids_may_hold_anything(originals: Originals) -> None:
    """Whatever E4 allows, in each of the three places; none is taken for another."""
    for number, odd in enumerate(ODD_IDS):
        originals.append(WindowKey(odd, odd, odd), SHAPE, 0, messages(number, number + 1))
        originals.append(WindowKey("s", "c", odd), SHAPE, 0, messages(number, number + 1))
    for number, odd in enumerate(ODD_IDS):
        for key in (WindowKey(odd, odd, odd), WindowKey("s", "c", odd)):
            assert list(originals.read(key)) == kept(range(1), messages(number, number + 1))
        assert list(originals.runs(odd, odd)) == [odd]
    assert list(originals.runs("s", "c")) == ODD_IDS
    originals.forget("a", "a")
    assert originals.count(WindowKey("A", "A", "A")) == 1
    assert originals.count(WindowKey("a", "a", "a")) == 0


def test_long_ids_together(originals: Originals) -> None:
    key = WindowKey("基" * 512, "金" * 512, "年" * 512)
    originals.append(key, SHAPE, 0, messages(0, 1))
    assert originals.count(key) == 1
    assert list(originals.runs(key.scope, key.conversation)) == [key.run]


def test_large_messages_and_many_at_once(store: Store) -> None:
    """Larger than an item of DynamoDB, larger than a page; and more than one statement takes."""
    large = replace(message(0), wire=bytes(range(256)) * 4 * 10_240)  # 10 MiB
    originals = store.open()
    originals.append(KEY, SHAPE, 0, [message(0), large])
    many = messages(2, 5_002)
    originals.append(KEY, SHAPE, 2, many)
    originals.append(KEY, SHAPE, 5_002, [large])
    assert originals.count(KEY) == 5_003
    assert [m.wire for m in originals.read(KEY, 1, 2)] == [large.wire]
    assert list(originals.read(KEY, 4_998)) == kept(range(4_998, 5_003), [*many[-4:], large])
    assert list(originals.digests(KEY))[2:-1] == [m.digest for m in many]
    originals.append(KEY, SHAPE, 1, [large])  # again (A9)
    originals.append(KEY, SHAPE, 2, many)
    with pytest.raises(ConcurrentAppend):
        originals.append(KEY, SHAPE, 2, [*many[:-1], message(9)])
    assert originals.count(KEY) == 5_003


# --- who was first (A8, A9) ----------------------------------------------------------------------


def test_the_same_messages_again_are_no_error(originals: Originals) -> None:
    originals.append(KEY, SHAPE, 0, messages(0, 3))
    originals.append(KEY, SHAPE, 3, messages(3, 5))
    for start, stop in ((0, 3), (3, 5), (0, 5), (1, 4), (4, 5), (0, 1)):
        originals.append(KEY, SHAPE, start, messages(start, stop))
    later = [replace(m, at=99, wire=b"written anew") for m in messages(0, 3)]
    originals.append(KEY, SHAPE, 0, later)  # compared by role, exchange and digest
    assert list(originals.read(KEY)) == kept(range(5), messages(0, 5))


@pytest.mark.parametrize(
    ("first", "given"),
    [
        (0, [message(1)]),
        (0, [message(0, role="assistant")]),
        (0, [message(0, exchange=7)]),
        (2, [message(9)]),
        (2, [message(2), message(3)]),  # the second is not there yet
        (0, messages(0, 4)),
        (0, [message(0), message(1), message(9)]),
        (4, [message(4)]),  # leaves a gap
        (99, [message(99)]),
    ],
)
def test_what_others_wrote_stays_and_gaps_are_refused(
    originals: Originals, first: int, given: list[NewOriginal]
) -> None:
    originals.append(KEY, SHAPE, 0, messages(0, 2))
    originals.append(KEY, SHAPE, 2, messages(2, 3))
    with pytest.raises(ConcurrentAppend, match="run-1"):
        originals.append(KEY, SHAPE, first, given)
    assert list(originals.read(KEY)) == kept(range(3), messages(0, 3))


def test_a_run_begins_at_its_beginning(originals: Originals) -> None:
    with pytest.raises(ConcurrentAppend):
        originals.append(KEY, SHAPE, 1, messages(1, 2))
    assert originals.shape(KEY) is None
    assert list(originals.runs(KEY.scope, KEY.conversation)) == []


def test_of_threads_at_the_same_place_one_wins(store: Store) -> None:
    sessions = [store.open() for _ in range(4)]

    def write(number: int) -> bool:
        try:
            sessions[number].append(KEY, SHAPE, at, messages(at, at + 1 + number, f"by {number}"))
        except ConcurrentAppend:
            return False
        return True

    at = 0
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            won = list(pool.map(write, range(4)))
            assert sum(won) == 1
            winner = won.index(True)
            expected = messages(at, at + 1 + winner, f"by {winner}")
            assert list(sessions[0].read(KEY, at)) == kept(range(at, at + 1 + winner), expected)
            at += 1 + winner
    assert sessions[1].count(KEY) == at
    assert list(sessions[0].runs(KEY.scope, KEY.conversation)) == [KEY.run]


def test_of_threads_with_the_same_messages_all_win(store: Store) -> None:
    sessions = [store.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for at in range(4):
            list(pool.map(lambda one, at=at: one.append(KEY, SHAPE, at, [message(at)]), sessions))
    assert list(sessions[0].read(KEY)) == kept(range(4), messages(0, 4))


def test_threads_begin_runs_at_once_and_none_is_lost(store: Store) -> None:
    sessions = [store.open() for _ in range(3)]

    def begin(number: int) -> None:
        for n in range(4):
            key = replace(KEY, run=f"run-{number}-{n}")
            sessions[number].append(key, SHAPE, 0, messages(0, 1))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(begin, range(3)))
    found = list(sessions[0].runs(KEY.scope, KEY.conversation))
    assert sorted(found) == sorted(f"run-{w}-{n}" for w in range(3) for n in range(4))
    for number in range(3):
        own = [run for run in found if run.startswith(f"run-{number}-")]
        assert own == [f"run-{number}-{n}" for n in range(4)]


# --- tool results (T14) --------------------------------------------------------------------------


def test_a_result_is_kept_once_by_its_content(store: Store) -> None:
    originals, content = store.open(), b'[{"flight":"LG 1"}]'
    digest = originals.keep_result(KEY.scope, KEY.conversation, content)
    assert digest == hashlib.sha256(content).hexdigest()
    assert originals.keep_result(KEY.scope, KEY.conversation, content) == digest
    assert store.open().result(KEY.scope, KEY.conversation, digest) == content


def test_a_result_belongs_to_its_conversation(originals: Originals) -> None:
    digest = originals.keep_result("a", "b", b"x")
    for place in (("a", "c"), ("b", "b"), ("b", "a")):
        assert originals.result(*place, digest) is None
    assert originals.result("a", "b", "00" * 32) is None
    for no_digest in ("", "x", digest.upper(), f"../{digest}", digest + "0"):
        assert originals.result("a", "b", no_digest) is None


def test_a_large_result_is_kept(store: Store) -> None:
    content = b"0123456789abcdef" * 200_000  # 3.2 MB
    digest = store.open().keep_result(KEY.scope, KEY.conversation, content)
    assert store.open().result(KEY.scope, KEY.conversation, digest) == content
    assert store.open().keep_result(KEY.scope, KEY.conversation, content) == digest


# --- forget (S3) ---------------------------------------------------------------------------------


def test_a_conversation_is_forgotten_and_can_begin_again(store: Store) -> None:
    originals = store.open()
    for run in ("run-1", "run-2"):
        for at in range(3):
            originals.append(replace(KEY, run=run), SHAPE, at, [message(at)])
    digest = originals.keep_result(KEY.scope, KEY.conversation, b"x" * 700_000)
    beside = [WindowKey(KEY.scope, "c-10", "run-1"), WindowKey("tenant-10", KEY.conversation, "r")]
    for key in beside:
        originals.append(key, SHAPE, 0, messages(0, 2))
        originals.keep_result(key.scope, key.conversation, b"x" * 700_000)
    for _ in range(2):
        originals.forget(KEY.scope, KEY.conversation)
        assert originals.count(KEY) == 0
        assert originals.shape(KEY) is None
        assert list(originals.runs(KEY.scope, KEY.conversation)) == []
        assert list(originals.digests(KEY)) == []
        assert originals.result(KEY.scope, KEY.conversation, digest) is None
    for key in beside:
        assert originals.count(key) == 2
        assert originals.result(key.scope, key.conversation, digest) == b"x" * 700_000
    originals.append(KEY, "converse", 0, messages(5, 7))
    assert list(originals.read(KEY)) == kept(range(2), messages(5, 7))
    assert list(originals.digests(KEY)) == [m.digest for m in messages(5, 7)]
    assert list(originals.runs(KEY.scope, KEY.conversation)) == ["run-1"]


# --- what is refused -----------------------------------------------------------------------------

BAD_IDS: list[Any] = ["", "x" * 513, "a\nb", "\x00", "\ud800", 7, None, b"id"]


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
def test_an_id_that_is_none_is_refused_everywhere(originals: Originals, bad: Any) -> None:
    keys = [WindowKey(bad, "c", "r"), WindowKey("s", bad, "r"), WindowKey("s", "c", bad)]
    attempts: list[Callable[[], object]] = []
    for key in keys:
        attempts += [
            lambda key=key: originals.append(key, SHAPE, 0, messages(0, 1)),
            lambda key=key: originals.count(key),
            lambda key=key: originals.shape(key),
            lambda key=key: originals.digests(key),
            lambda key=key: originals.read(key),
        ]
    for place in ((bad, "c"), ("s", bad)):
        attempts += [
            lambda place=place: originals.runs(*place),
            lambda place=place: originals.keep_result(*place, b"x"),
            lambda place=place: originals.result(*place, "ab" * 32),
            lambda place=place: originals.forget(*place),
        ]
    attempts.append(lambda: originals.append(KEY, bad, 0, messages(0, 1)))
    for attempt in attempts:
        with pytest.raises(InvalidId):
            attempt()


BAD_MESSAGES: dict[str, Any] = {
    "role": replace(message(1), role="robot"),  # type: ignore[arg-type]
    "exchange": replace(message(1), exchange=-2),
    "large exchange": replace(message(1), exchange=2**31),
    "at": replace(message(1), at=2**63),
    "text": replace(message(1), wire="{}"),  # type: ignore[arg-type]
    "digest": replace(message(1), digest="AB" * 32),
    "no digest": replace(message(1), digest=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("bad", BAD_MESSAGES.values(), ids=BAD_MESSAGES)
def test_a_malformed_message_is_named_and_nothing_is_stored(
    originals: Originals, bad: NewOriginal
) -> None:
    with pytest.raises(InvalidInput, match="message 1"):
        originals.append(KEY, SHAPE, 0, [message(0), bad])
    assert originals.count(KEY) == 0


def test_numbers_that_are_none_are_refused(originals: Originals) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: originals.append(KEY, SHAPE, -1, messages(0, 1)),
        lambda: originals.append(KEY, SHAPE, 2**31, messages(0, 1)),
        lambda: originals.append(KEY, SHAPE, "0", messages(0, 1)),  # type: ignore[arg-type]
        lambda: originals.read(KEY, -1),
        lambda: originals.read(KEY, 0, -1),
        lambda: originals.keep_result("s", "c", "text"),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInput):
            attempt()


def test_damage_is_a_kind_of_damaged_log() -> None:
    assert DamagedOriginal.code == "damaged_original"
