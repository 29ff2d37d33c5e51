"""What every store of wrapped data keys promises (S1 to S3), and the ring over it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from interleaving import just_after, just_before
from key_stores import STORES, folder_ring, memory_ring, two_sessions

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import (
    DamagedLog,
    Erased,
    KeyMissing,
    NewerFormat,
    StoreError,
    WrongKey,
)
from compaction_ledger.infrastructure.keys.memory import MemoryKeyProvider, MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys
from compaction_ledger.infrastructure.keys.wrapped_keys import (
    Tombstone,
    WrappedKey,
    WrappedKeys,
)

SUBJECT = Subject("1" * 32, "", "live", "tenant", "c-1")
PLACE = ("5" * 32, 1, "RangeClaimed@1")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrappedKeys]:
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture(params=STORES)
def sessions(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[WrappedKeys, WrappedKeys]]:
    """Two on one store, in which no time passes."""
    one, other = two_sessions(request.param, tmp_path)
    yield one, other
    one.close()
    other.close()


def rings_on(sessions: tuple[WrappedKeys, WrappedKeys]) -> tuple[KeyRing, KeyRing]:
    """A ring on each, as two processes have them."""
    provider = MemoryKeyProvider()
    one, other = (KeyRing(lambda: provider, store) for store in sessions)
    return one, other


def wrapped(number: int, epoch: str = "1", secret: bytes = b"wrapped") -> WrappedKey:
    return WrappedKey(f"{number:032x}", epoch, secret)


def test_keys_are_kept_and_found(store: WrappedKeys) -> None:
    assert store.find("0" * 32) is None
    store.add([wrapped(1), wrapped(2, "2")])
    assert store.find(wrapped(1).id) == wrapped(1)
    assert store.count() == {"1": 1, "2": 1}


def test_a_key_that_is_there_is_never_replaced_by_another(store: WrappedKeys) -> None:
    store.add([wrapped(1)])
    store.add([wrapped(1, "9", b"another")])
    assert store.find(wrapped(1).id) == wrapped(1)


def test_keys_of_other_epochs_are_replaced_only_where_they_are_as_they_were(
    store: WrappedKeys,
) -> None:
    store.add([wrapped(1), wrapped(2), wrapped(3, "2")])
    assert {key.id for key in store.older_than("2", 10)} == {wrapped(1).id, wrapped(2).id}
    assert len(store.older_than("2", 1)) == 1
    stale = wrapped(2, "1", b"as it was before")
    pairs = [(wrapped(1), wrapped(1, "2", b"new")), (stale, wrapped(2, "2", b"new"))]
    assert store.replace(pairs) == 1
    assert store.replace([(wrapped(2, "9"), wrapped(2, "2", b"new"))]) == 0
    assert store.find(wrapped(1).id) == wrapped(1, "2", b"new")
    assert store.find(wrapped(2).id) == wrapped(2)


def test_an_erasure_goes_one_way(store: WrappedKeys) -> None:
    store.add([wrapped(1)])
    before = store.revision()
    tombstone = Tombstone("r-1", b"name", wrapped(1).id, "begun")
    store.bury(tombstone)
    assert store.tombstones() == [tombstone]
    assert store.find(wrapped(1).id) == wrapped(1)
    store.destroy("r-1")
    assert store.find(wrapped(1).id) == wrapped(1, "1", b"")
    store.complete("r-1")
    store.bury(tombstone)
    store.destroy("r-1")
    assert store.tombstones() == [tombstone._replace(state="completed")]
    assert store.revision() > before
    assert store.older_than("9", 10) == []
    assert store.count() == {}


def test_every_session_sees_a_revision_at_once(tmp_path: Path) -> None:
    one, other = SQLiteWrappedKeys(tmp_path / "k.db"), SQLiteWrappedKeys(tmp_path / "k.db")
    assert one.revision() == 0  # and nothing was made to be read
    assert not (tmp_path / "k.db").exists()
    other.add([wrapped(1)])
    assert one.revision() == other.revision() == 0
    other.bury(Tombstone("r-1", b"name", wrapped(1).id, "begun"))
    assert one.revision() == other.revision() == 1
    one.destroy("r-1")
    assert other.revision() == 2
    one.close()
    other.close()


def test_a_look_sees_what_another_session_did(
    sessions: tuple[WrappedKeys, WrappedKeys],
) -> None:  # S3
    one, other = sessions
    other.add([wrapped(1)])
    acts: list[Callable[[], None]] = [
        lambda: other.bury(Tombstone("r-1", b"name", wrapped(1).id, "begun")),
        lambda: other.destroy("r-1"),
        lambda: other.complete("r-1"),
    ]
    for act in acts:
        before = one.revision()
        act()
        one.look()
        assert one.revision() > before


def test_a_look_that_began_before_an_erasure_is_not_what_is_known_behind_it(
    sessions: tuple[WrappedKeys, WrappedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:  # S3
    """One thread has read the number, and has not noted it yet; another one erases, in the same process."""
    store: Any = sessions[0]
    ring = KeyRing(MemoryKeyProvider, store)
    subject = SUBJECT._replace(key=ring.fresh())
    store.look()
    if hasattr(store, "_read"):
        just_after(monkeypatch, store, "_read", lambda: ring.begin(subject))
        store.revision()
    else:  # nothing is noted that another thread might have changed
        ring.begin(subject)
    assert ring.was_erased(subject.scope, subject.conversation)


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    keys = SQLiteWrappedKeys(tmp_path / "keys" / "k.db")
    keys.add([wrapped(1)])
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys" / "k.db").stat().st_mode) == 0o600
    keys.close()


def test_a_destroyed_key_stands_nowhere_in_the_folder(tmp_path: Path) -> None:
    keys = SQLiteWrappedKeys(tmp_path / "k.db")
    needle = os.urandom(60)
    keys.add([wrapped(number, "1", os.urandom(60)) for number in range(2, 400)])
    keys.add([wrapped(1, "1", needle)])
    assert any(needle in path.read_bytes() for path in tmp_path.iterdir())
    keys.bury(Tombstone("r-1", b"name", wrapped(1).id, "begun"))
    keys.destroy("r-1")
    keys.close()
    assert not any(needle in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + bytes(4_000)])
def test_a_file_that_is_none_of_ours_is_no_word_of_an_erasure(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "k.db").write_bytes(content)
    keys = SQLiteWrappedKeys(tmp_path / "k.db")
    with pytest.raises(StoreError):
        keys.find("0" * 32)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    keys = SQLiteWrappedKeys(tmp_path / "k.db")
    keys.add([wrapped(1)])
    with keys._writing() as cursor:
        cursor.execute("PRAGMA user_version = 2")
    keys.close()
    with pytest.raises(NewerFormat):
        SQLiteWrappedKeys(tmp_path / "k.db").find(wrapped(1).id)


# --- the ring -----------------------------------------------------------------------------------


def test_what_one_ring_encrypts_another_opens(tmp_path: Path) -> None:
    one, other = folder_ring(tmp_path), folder_ring(tmp_path)
    key = one.fresh()
    stored = one.encrypt(key, *PLACE, b"{}")
    assert other.decrypt(*PLACE, stored) == b"{}"
    with pytest.raises(DamagedLog, match="not encrypted for this place"):
        other.decrypt("6" * 32, 1, "RangeClaimed@1", stored)
    one.close()
    other.close()


def test_no_two_conversations_share_a_key(tmp_path: Path) -> None:
    rings = [folder_ring(tmp_path) for _ in range(3)]
    found: list[str] = []
    threads = [
        Thread(target=lambda ring=ring: found.extend(ring.fresh() for _ in range(100)))
        for ring in rings * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 600
    for ring in rings:
        ring.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_takes_no_spare_key_of_its_parent(tmp_path: Path) -> None:
    ring = folder_ring(tmp_path)
    for _ in range(4):
        ring.fresh()  # by now there are spare ones
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ring.fresh().encode())
        os._exit(0)
    os.waitpid(child, 0)
    of_child = os.read(reading, 100).decode()
    own = {ring.fresh() for _ in range(80)}
    assert len(of_child) == 32
    assert of_child not in own
    ring.close()


def test_an_unknown_key_is_missing_and_not_erased() -> None:
    ring = memory_ring()
    stored = ring.encrypt(ring.fresh(), *PLACE, b"{}")
    with pytest.raises(KeyMissing):
        memory_ring().decrypt(*PLACE, stored)


def test_a_wrong_keyring_is_an_error_and_not_an_erasure() -> None:
    keys = MemoryWrappedKeys()
    ring = KeyRing(MemoryKeyProvider, keys)
    stored = ring.encrypt(ring.fresh(), *PLACE, b"{}")
    with pytest.raises(WrongKey):
        KeyRing(MemoryKeyProvider, keys).decrypt(*PLACE, stored)


def test_an_emptied_key_without_a_tombstone_is_no_erasure() -> None:
    keys = MemoryWrappedKeys()
    ring = KeyRing(MemoryKeyProvider, keys)
    key = ring.fresh()
    stored = ring.encrypt(key, *PLACE, b"{}")
    found = keys.find(key)
    assert found is not None
    keys.replace([(found, found._replace(wrapped=b""))])
    provider = ring.provider
    with pytest.raises(KeyMissing, match="nothing says that it was erased"):
        KeyRing(lambda: provider, keys).decrypt(*PLACE, stored)


def test_from_the_beginning_of_an_erasure_nothing_is_read_in_any_process(tmp_path: Path) -> None:
    one, other = folder_ring(tmp_path), folder_ring(tmp_path)
    key = one.fresh()
    stored = one.encrypt(key, *PLACE, b"{}")
    assert other.decrypt(*PLACE, stored) == b"{}"  # and has the key in memory now
    one.begin(SUBJECT._replace(key=key))
    for ring in (one, other):
        with pytest.raises(Erased):
            ring.decrypt(*PLACE, stored)
        with pytest.raises(Erased):
            ring.encrypt(key, *PLACE, b"{}")
        with pytest.raises(Erased):
            ring.check("tenant", "c-1")
        ring.check("tenant", "c-2")
    one.destroy(SUBJECT.reference)
    with pytest.raises(Erased):
        other.decrypt(*PLACE, stored)
    one.close()
    other.close()


def test_what_is_erased_while_its_key_is_looked_for_is_erased_and_not_missing(
    sessions: tuple[WrappedKeys, WrappedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:  # S3
    ring, other = rings_on(sessions)
    key = other.fresh()
    ring.check("tenant", "c-1")

    def erase() -> None:
        other.begin(SUBJECT._replace(key=key))
        other.destroy(SUBJECT.reference)

    just_before(monkeypatch, sessions[0], "find", erase)
    with pytest.raises(Erased):
        ring.secret(key)


def test_a_key_that_is_destroyed_while_it_is_opened_does_not_stay_in_memory(
    sessions: tuple[WrappedKeys, WrappedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:  # S3
    ring, other = rings_on(sessions)
    key = other.fresh()

    def erase() -> None:  # another thread
        ring.begin(SUBJECT._replace(key=key))
        ring.destroy(SUBJECT.reference)

    just_after(monkeypatch, ring.provider, "unwrap", erase)
    ring.secret(key)
    assert key not in ring._secrets
    with pytest.raises(Erased):
        ring.secret(key)


def test_names_are_not_to_be_guessed(tmp_path: Path) -> None:
    """What is kept of a name is made with a key: of two ledgers it is not the same."""
    names: list[bytes] = []
    for number in "12":
        ring = folder_ring(tmp_path / number)
        ring.begin(SUBJECT)
        (tombstone,) = SQLiteWrappedKeys(tmp_path / number / "data-keys.db").tombstones()
        names.append(tombstone.name)
        ring.close()
    assert names[0] != names[1]


def test_rotation_wraps_data_keys_anew_and_changes_nothing_else(tmp_path: Path) -> None:
    ring = folder_ring(tmp_path)
    stored = {ring.encrypt(ring.fresh(), *PLACE, b"{}") for _ in range(30)}
    epochs = ring.epochs()
    assert epochs is not None
    before = epochs.current
    after = ring.rotate()
    assert after != before
    total = sum(epochs.data_keys.values())
    assert ring.rewrap() == total
    assert ring.rewrap() == 0
    again = folder_ring(tmp_path)
    assert {again.decrypt(*PLACE, one) for one in stored} == {b"{}"}
    told = again.epochs()
    assert told is not None
    assert dict(told.data_keys) == {before: 0, after: total}
    ring.close()
    again.close()


def test_a_rotation_that_was_interrupted_is_resumed(tmp_path: Path) -> None:
    ring = folder_ring(tmp_path)
    stored = [ring.encrypt(ring.fresh(), *PLACE, b"{}") for _ in range(30)]
    ring.rotate()
    keys = SQLiteWrappedKeys(tmp_path / "data-keys.db")
    epochs = ring.epochs()
    assert epochs is not None
    some = keys.older_than(epochs.current, 7)
    keys.replace([(old, ring._rewrapped(old)) for old in some])  # and here it ended
    assert all(folder_ring(tmp_path).decrypt(*PLACE, one) == b"{}" for one in stored)
    assert folder_ring(tmp_path).rewrap() == sum(epochs.data_keys.values()) - 7
    told = ring.epochs()
    assert told is not None
    assert sum(told.data_keys.values()) == told.data_keys[told.current]


def test_wrapping_anew_ends_although_another_begins_an_epoch_meanwhile(
    sessions: tuple[WrappedKeys, WrappedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:  # S2
    ring, other = rings_on(sessions)
    stored = {ring.encrypt(ring.fresh(), *PLACE, b"{}") for _ in range(3)}
    epochs = ring.epochs()
    assert epochs is not None
    ring.rotate()
    just_before(monkeypatch, ring.provider, "unwrap", other.rotate)
    rounds: list[int] = []

    def count(done: int, total: int) -> None:
        rounds.append(done)
        assert len(rounds) < 10

    assert ring.rewrap(count) == sum(epochs.data_keys.values())
    told = ring.epochs()
    assert told is not None
    assert sum(told.data_keys.values()) == told.data_keys[told.current]
    assert {other.decrypt(*PLACE, one) for one in stored} == {b"{}"}


def test_two_threads_that_rotate_a_provider_in_memory_begin_two_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # S2
    provider = MemoryKeyProvider()
    kept: list[tuple[str, bytes]] = []

    def rotate_and_wrap() -> None:
        provider.rotate()
        kept.append(provider.wrap(b"s" * 32, b"context"))

    just_before(monkeypatch, secrets, "token_bytes", rotate_and_wrap)
    provider.rotate()
    assert provider.unwrap(*kept[0], b"context") == b"s" * 32
    assert len(provider.epochs()) == 3


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    """S4."""
    ring = folder_ring(tmp_path)
    secret = ring.secret(ring.fresh())
    for shown in (repr(ring), str(ring), repr(ring.provider), repr(ring.reader())):
        assert secret.hex() not in shown
        assert repr(secret) not in shown
    ring.close()
