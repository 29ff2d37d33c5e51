"""The stores of originals, one suite for all: the system of record of running agents (T14, T15)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aws_servers import running_aws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from originals_messages import SHAPE, message, messages
from originals_stores import STORES, Store

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import (
    ConcurrentAppend,
    InvalidId,
    InvalidInput,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, Original, Originals


@pytest.fixture(scope="module")
def aws() -> Iterator[Callable[[], str]]:
    """The address of a server of S3 and DynamoDB, which is started by the first who asks."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_aws()))


@pytest.fixture(scope="module", params=sorted(STORES))
def store(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    aws: Callable[[], str],
) -> Iterator[Store]:
    """A store of each kind: the tests share it, and each has a scope of its own."""
    made = STORES[request.param](tmp_path_factory.mktemp("store"), aws)
    yield made
    made.close()


@pytest.fixture(scope="module")
def originals(store: Store) -> Originals:
    """One session on the store."""
    return store.open()


@pytest.fixture
def key() -> WindowKey:
    """A window that no other test has, nor its scope."""
    return WindowKey(f"tenant-{uuid4().hex}", "c-1", "run-1")


def kept(positions: range, given: list[NewOriginal]) -> list[Original]:
    return [
        Original(position, m.role, m.exchange, m.at, m.wire, m.digest)
        for position, m in zip(positions, given, strict=True)
    ]


# --- append and read back ------------------------------------------------------------------------


@pytest.mark.slow
def test_of_what_nobody_began_there_is_nothing(originals: Originals, key: WindowKey) -> None:
    assert originals.count(key) == 0
    assert originals.shape(key) is None
    assert list(originals.digests(key)) == []
    assert list(originals.read(key)) == []
    assert list(originals.read(key, 3, 7)) == []
    assert list(originals.runs(key.scope, key.conversation)) == []
    assert originals.result(key.scope, key.conversation, "ab" * 32) is None
    originals.forget(key.scope, key.conversation)


@pytest.mark.slow
def test_messages_come_back_in_order_as_they_were(store: Store, key: WindowKey) -> None:
    given = [
        message(0, "You are kind.", role="system", exchange=-1, at=-1),
        message(1, "Flights to Rome?", exchange=0, at=1_750_000_000_000_000),
        message(2, "Two.", role="assistant", exchange=0, at=0),
        message(3, "{}", role="tool", exchange=0, at=2**63 - 1),
        message(4, "The second.", exchange=1, at=-(2**63)),
    ]
    store.open().append(key, SHAPE, 0, given)
    found = store.open()
    assert found.count(key) == 5
    assert found.shape(key) == SHAPE
    assert list(found.read(key)) == kept(range(5), given)
    assert list(found.digests(key)) == [m.digest for m in given]
    assert [m.id for m in found.read(key)] == ["m0", "m1", "m2", "m3", "m4"]


@pytest.mark.slow
def test_appending_goes_on_where_it_ended(originals: Originals, key: WindowKey) -> None:
    sizes, at = [1, 3, 1, 12, 2, 1], 0
    for size in sizes:
        originals.append(key, SHAPE, at, messages(at, at + size))
        at += size
        assert originals.count(key) == at
    assert list(originals.read(key)) == kept(range(at), messages(0, at))
    assert list(originals.digests(key)) == [m.digest for m in messages(0, at)]


@pytest.mark.slow
def test_any_part_of_a_run_can_be_read(originals: Originals, key: WindowKey) -> None:
    at = 0
    for size in (1, 2, 1):
        originals.append(key, SHAPE, at, messages(at, at + size))
        at += size
    whole = kept(range(4), messages(0, 4))
    for start in range(6):
        assert list(originals.read(key, start)) == whole[start:]
        for stop in (0, 1, 2, 3, 4, 6):
            assert list(originals.read(key, start, stop)) == whole[start:stop], (start, stop)
    assert list(originals.read(key, 0, 2**40)) == whole
    assert list(originals.read(key, 2**40)) == []


def test_windows_are_kept_apart(originals: Originals) -> None:
    keys = [WindowKey(*ids) for ids in ("abc", "abd", "acc", "bbc")]
    for number, key in enumerate(keys):
        originals.append(key, SHAPE, 0, messages(number, number + 2))
    for number, key in enumerate(keys):
        assert list(originals.read(key)) == kept(range(2), messages(number, number + 2))
    assert list(originals.runs("a", "b")) == ["c", "d"]
    assert list(originals.runs("b", "b")) == ["c"]
    assert list(originals.runs("b", "a")) == []


def test_runs_come_in_the_order_they_began(originals: Originals, key: WindowKey) -> None:
    names = [f"run-{number}" for number in (7, 3, 11, 1, 9)]
    for name in names:
        originals.append(replace(key, run=name), SHAPE, 0, messages(0, 1))
    for name in reversed(names):
        originals.append(replace(key, run=name), SHAPE, 1, messages(1, 2))
    assert list(originals.runs(key.scope, key.conversation)) == names


def test_each_run_has_its_shape(originals: Originals, key: WindowKey) -> None:
    originals.append(key, SHAPE, 0, messages(0, 1))
    other = replace(key, run="run-2")
    originals.append(other, "converse", 0, messages(0, 1))
    assert (originals.shape(key), originals.shape(other)) == (SHAPE, "converse")
    for first, more in ((1, messages(1, 2)), (0, messages(0, 1)), (1, []), (9, messages(9, 10))):
        with pytest.raises(InvalidInput, match="shape") as refusal:
            originals.append(key, "converse", first, more)
        assert refusal.value.place == "shape"
    assert originals.count(key) == 1


def test_an_empty_append_stores_nothing(originals: Originals, key: WindowKey) -> None:
    originals.append(key, SHAPE, 0, [])
    assert originals.shape(key) is None
    assert list(originals.runs(key.scope, key.conversation)) == []
    originals.append(key, SHAPE, 0, messages(0, 3))
    for first in range(4):
        originals.append(key, SHAPE, first, [])
    with pytest.raises(ConcurrentAppend):
        originals.append(key, SHAPE, 4, [])
    assert originals.count(key) == 3


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


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_bytes_are_kept_bit_for_bit(store: Store, wire: bytes, key: WindowKey) -> None:
    given = [replace(message(0), wire=wire), message(1), replace(message(2), wire=wire)]
    store.open().append(key, SHAPE, 0, given)
    assert [m.wire for m in store.open().read(key)] == [m.wire for m in given]
    digest = store.open().keep_result(key.scope, key.conversation, wire)
    assert store.open().result(key.scope, key.conversation, digest) == wire


@pytest.mark.slow
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=6), st.integers(0, 10**9))
def test_any_bytes_are_kept(
    originals: Originals, key: WindowKey, wires: list[bytes], run: int
) -> None:
    key = replace(key, run=f"run-{run}")
    originals.forget(key.scope, key.conversation)
    given = [replace(message(n), wire=wire) for n, wire in enumerate(wires)]
    originals.append(key, SHAPE, 0, given)
    assert list(originals.read(key)) == kept(range(len(given)), given)


ODD_IDS = [
    "/",
    "..",
    "a/b",
    "%2F",
    "🙂 '\";--",
    "?x=1#y&z",
    "~*",
    "x" * 512,
    "é",
    "e\u0301",
    "A",
    "a",
]


@pytest.mark.slow
def test_ids_may_hold_anything(originals: Originals) -> None:
    """Whatever E4 allows, in each of the three places; none is taken for another."""
    for number, odd in enumerate(ODD_IDS):
        originals.append(WindowKey(odd, odd, odd), SHAPE, 0, messages(number, number + 1))
        originals.append(WindowKey("s", "c", odd), SHAPE, 0, messages(number, number + 1))
    for number, odd in enumerate(ODD_IDS):
        for odd_key in (WindowKey(odd, odd, odd), WindowKey("s", "c", odd)):
            assert list(originals.read(odd_key)) == kept(range(1), messages(number, number + 1))
        assert list(originals.runs(odd, odd)) == [odd]
    assert list(originals.runs("s", "c")) == ODD_IDS
    originals.forget("a", "a")
    assert originals.count(WindowKey("A", "A", "A")) == 1
    assert originals.count(WindowKey("a", "a", "a")) == 0


def test_long_ids_together(originals: Originals) -> None:
    long = WindowKey("基" * 512, "金" * 512, "年" * 512)
    originals.append(long, SHAPE, 0, messages(0, 1))
    assert originals.count(long) == 1
    assert list(originals.runs(long.scope, long.conversation)) == [long.run]


@pytest.mark.slow
def test_large_messages_and_many_at_once(store: Store, key: WindowKey) -> None:
    """Larger than an item of DynamoDB, larger than a page; and more than one statement takes."""
    large = replace(message(0), wire=bytes(range(256)) * 4 * 10_240)  # 10 MiB
    originals = store.open()
    originals.append(key, SHAPE, 0, [message(0), large])
    many = messages(2, 5_002)
    originals.append(key, SHAPE, 2, many)
    originals.append(key, SHAPE, 5_002, [large])
    assert originals.count(key) == 5_003
    assert [m.wire for m in originals.read(key, 1, 2)] == [large.wire]
    assert list(originals.read(key, 4_998)) == kept(range(4_998, 5_003), [*many[-4:], large])
    assert list(originals.digests(key))[2:-1] == [m.digest for m in many]
    originals.append(key, SHAPE, 1, [large])  # again (A9)
    originals.append(key, SHAPE, 2, many)
    with pytest.raises(ConcurrentAppend):
        originals.append(key, SHAPE, 2, [*many[:-1], message(9)])
    assert originals.count(key) == 5_003


# --- who was first (A8, A9) ----------------------------------------------------------------------


def test_the_same_messages_again_are_no_error(originals: Originals, key: WindowKey) -> None:
    originals.append(key, SHAPE, 0, messages(0, 3))
    originals.append(key, SHAPE, 3, messages(3, 5))
    for start, stop in ((0, 3), (3, 5), (0, 5), (1, 4)):
        originals.append(key, SHAPE, start, messages(start, stop))
    later = [replace(m, at=99, wire=b"written anew") for m in messages(0, 3)]
    originals.append(key, SHAPE, 0, later)  # compared by role, exchange and digest
    assert list(originals.read(key)) == kept(range(5), messages(0, 5))


@pytest.mark.slow
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
    originals: Originals, first: int, given: list[NewOriginal], key: WindowKey
) -> None:
    originals.append(key, SHAPE, 0, messages(0, 2))
    originals.append(key, SHAPE, 2, messages(2, 3))
    with pytest.raises(ConcurrentAppend, match="run-1"):
        originals.append(key, SHAPE, first, given)
    assert list(originals.read(key)) == kept(range(3), messages(0, 3))


def test_a_run_begins_at_its_beginning(originals: Originals, key: WindowKey) -> None:
    with pytest.raises(ConcurrentAppend):
        originals.append(key, SHAPE, 1, messages(1, 2))
    assert originals.shape(key) is None
    assert list(originals.runs(key.scope, key.conversation)) == []


@pytest.mark.slow
def test_of_threads_at_the_same_place_one_wins(store: Store, key: WindowKey) -> None:
    sessions = [store.open() for _ in range(4)]

    def write(number: int) -> bool:
        try:
            sessions[number].append(key, SHAPE, at, messages(at, at + 1 + number, f"by {number}"))
        except ConcurrentAppend:
            return False
        return True

    at = 0
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            won = list(pool.map(write, range(4)))
            assert sum(won) == 1
            winner = won.index(True)
            expected = messages(at, at + 1 + winner, f"by {winner}")
            assert list(sessions[0].read(key, at)) == kept(range(at, at + 1 + winner), expected)
            at += 1 + winner
    assert sessions[1].count(key) == at
    assert list(sessions[0].runs(key.scope, key.conversation)) == [key.run]


@pytest.mark.slow
def test_of_threads_with_the_same_messages_all_win(store: Store, key: WindowKey) -> None:
    sessions = [store.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for at in range(2):
            list(pool.map(lambda one, at=at: one.append(key, SHAPE, at, [message(at)]), sessions))
    assert list(sessions[0].read(key)) == kept(range(2), messages(0, 2))


@pytest.mark.slow
def test_threads_begin_runs_at_once_and_none_is_lost(store: Store, key: WindowKey) -> None:
    sessions = [store.open() for _ in range(3)]

    def begin(number: int) -> None:
        for n in range(3):
            begun = replace(key, run=f"run-{number}-{n}")
            sessions[number].append(begun, SHAPE, 0, messages(0, 1))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(begin, range(3)))
    found = list(sessions[0].runs(key.scope, key.conversation))
    assert sorted(found) == sorted(f"run-{w}-{n}" for w in range(3) for n in range(3))
    for number in range(3):
        own = [run for run in found if run.startswith(f"run-{number}-")]
        assert own == [f"run-{number}-{n}" for n in range(3)]


# --- tool results (T14) --------------------------------------------------------------------------


def test_a_result_is_kept_once_by_its_content(store: Store, key: WindowKey) -> None:
    originals, content = store.open(), b'[{"flight":"LG 1"}]'
    digest = originals.keep_result(key.scope, key.conversation, content)
    assert digest == hashlib.sha256(content).hexdigest()
    assert originals.keep_result(key.scope, key.conversation, content) == digest
    assert store.open().result(key.scope, key.conversation, digest) == content


def test_a_result_belongs_to_its_conversation(originals: Originals) -> None:
    digest = originals.keep_result("a", "b", b"x")
    for place in (("a", "c"), ("b", "b"), ("b", "a")):
        assert originals.result(*place, digest) is None
    assert originals.result("a", "b", "00" * 32) is None
    for no_digest in ("", "x", digest.upper(), f"../{digest}", digest + "0"):
        assert originals.result("a", "b", no_digest) is None


@pytest.mark.slow
def test_a_large_result_is_kept(store: Store, key: WindowKey) -> None:
    content = b"0123456789abcdef" * 200_000  # 3.2 MB
    digest = store.open().keep_result(key.scope, key.conversation, content)
    assert store.open().result(key.scope, key.conversation, digest) == content
    assert store.open().keep_result(key.scope, key.conversation, content) == digest


# --- forget (S3) ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_conversation_is_forgotten_and_can_begin_again(store: Store, key: WindowKey) -> None:
    originals = store.open()
    for run in ("run-1", "run-2"):
        for at in range(2):
            originals.append(replace(key, run=run), SHAPE, at, [message(at)])
    digest = originals.keep_result(key.scope, key.conversation, b"x" * 700_000)
    beside = [
        WindowKey(key.scope, "c-10", "run-1"),
        WindowKey(key.scope + "0", key.conversation, "r"),
    ]
    for other in beside:
        originals.append(other, SHAPE, 0, messages(0, 2))
        originals.keep_result(other.scope, other.conversation, b"x" * 700_000)
    for _ in range(2):
        originals.forget(key.scope, key.conversation)
        assert originals.count(key) == 0
        assert originals.shape(key) is None
        assert list(originals.runs(key.scope, key.conversation)) == []
        assert list(originals.digests(key)) == []
        assert originals.result(key.scope, key.conversation, digest) is None
    for other in beside:
        assert originals.count(other) == 2
        assert originals.result(other.scope, other.conversation, digest) == b"x" * 700_000
    originals.append(key, "converse", 0, messages(5, 7))
    assert list(originals.read(key)) == kept(range(2), messages(5, 7))
    assert list(originals.digests(key)) == [m.digest for m in messages(5, 7)]
    assert list(originals.runs(key.scope, key.conversation)) == ["run-1"]


# --- a ledger on it ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_ledger_takes_any_store_in_place_of_its_own(
    originals: Originals, key: WindowKey, tmp_path: Path
) -> None:
    turns = [{"role": "user", "content": "Which flights leave for Rome?"}]
    for _ in range(2):  # opened again, it goes on
        with (
            Ledger.open(tmp_path / "ledger.db", originals=originals) as ledger,
            ledger.window(
                key.conversation,
                run=key.run,
                shape=SHAPE,
                budget=4_000,
                scope=key.scope,
                background=False,
            ) as window,
        ):
            window.prepare(turns)
            turns += [{"role": "assistant", "content": "Two."}, {"role": "user", "content": "And?"}]
            window.prepare(turns)
            assert window.history.search("Rome").hits[0].quote == turns[0]["content"]
    assert [json.loads(m.wire) for m in originals.read(key)] == turns
    assert [m.exchange for m in originals.read(key)] == [0, 0, 1, 1, 2]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger._parts.originals.count(key) == 0


# --- what is refused -----------------------------------------------------------------------------

BAD_IDS: list[Any] = ["", "x" * 513, "a\nb", "\x00", "\ud800", 7, None, b"id"]


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
def test_an_id_that_is_none_is_refused_everywhere(
    originals: Originals, key: WindowKey, bad: Any
) -> None:
    keys = [WindowKey(bad, "c", "r"), WindowKey("s", bad, "r"), WindowKey("s", "c", bad)]
    attempts: list[Callable[[], object]] = []
    for bad_key in keys:
        attempts.append(partial(originals.append, bad_key, SHAPE, 0, messages(0, 1)))
        attempts += [
            partial(ask, bad_key)
            for ask in (originals.count, originals.shape, originals.digests, originals.read)
        ]
    for scope, conversation in ((bad, "c"), ("s", bad)):
        attempts += [
            partial(originals.runs, scope, conversation),
            partial(originals.keep_result, scope, conversation, b"x"),
            partial(originals.result, scope, conversation, "ab" * 32),
            partial(originals.forget, scope, conversation),
        ]
    attempts.append(lambda: originals.append(key, bad, 0, messages(0, 1)))
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


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("bad", BAD_MESSAGES.values(), ids=BAD_MESSAGES)
def test_a_malformed_message_is_named_and_nothing_is_stored(
    originals: Originals, bad: NewOriginal, key: WindowKey
) -> None:
    with pytest.raises(InvalidInput, match="message 1"):
        originals.append(key, SHAPE, 0, [message(0), bad])
    assert originals.count(key) == 0


def test_numbers_that_are_none_are_refused(originals: Originals, key: WindowKey) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: originals.append(key, SHAPE, -1, messages(0, 1)),
        lambda: originals.append(key, SHAPE, 2**31, messages(0, 1)),
        lambda: originals.append(key, SHAPE, "0", messages(0, 1)),  # type: ignore[arg-type]
        lambda: originals.read(key, -1),
        lambda: originals.read(key, 0, -1),
        lambda: originals.keep_result("s", "c", "text"),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInput):
            attempt()
