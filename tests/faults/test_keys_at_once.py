"""Keys that threads, processes and forks use at once: none is lost, nobody waits for ever (S1, S3, K1)."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Barrier, Thread, current_thread
from typing import Any

import pytest
from key_stores import folder_ring

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import StoreError
from compaction_ledger.infrastructure import forking
from compaction_ledger.infrastructure.keys import keyring_file
from compaction_ledger.infrastructure.keys.ring import NAME_KEY
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys
from compaction_ledger.infrastructure.keys.wrapped_keys import Tombstone, WrappedKey
from compaction_ledger.infrastructure.proof import files

SECONDS = 20
"""Long enough for a loaded machine; nothing waits so long unless it would wait for ever."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def run(script: str, *arguments: object) -> str:
    """What another process of that text says."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


# --- a file of data keys that two ledgers of a process share ---

IS_FREE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("free")
except sqlite3.OperationalError as error:
    print(error)
"""
ADD = """
import sys
from pathlib import Path
from compaction_ledger.domain.errors import StoreError
from compaction_ledger.infrastructure.keys import sqlite_keys
sqlite_keys.BUSY_SECONDS = 0.2
keys = sqlite_keys.SQLiteWrappedKeys(Path(sys.argv[1]))
try:
    keys.add([sqlite_keys.WrappedKey("theirs", "e", b"1")])
    print("kept")
except StoreError:
    print("refused")
"""


def test_who_connects_or_closes_leaves_the_locks_of_the_process(tmp_path: Path) -> None:  # S1
    path = tmp_path / "data-keys.db"
    one, two, three = (SQLiteWrappedKeys(path) for _ in range(3))
    one.add([])
    three.count()
    with one._writing():
        assert run(IS_FREE, path) == "database is locked"
        two.count()
        assert run(IS_FREE, path) == "database is locked"
        two.close()
        three.close()
        assert run(IS_FREE, path) == "database is locked"
    assert run(IS_FREE, path) == "free"
    one.close()


def test_a_key_that_was_kept_is_not_lost_to_another_ledger_of_the_process(
    tmp_path: Path,
) -> None:  # S1
    path = tmp_path / "data-keys.db"
    one, two = SQLiteWrappedKeys(path), SQLiteWrappedKeys(path)
    one.add([])
    said: list[str] = []

    class Keys(list[WrappedKey]):
        def __iter__(self) -> Iterator[WrappedKey]:
            yield WrappedKey("ours", "e", b"2")
            two.count()  # a thread that uses the other ledger for the first time
            said.append(run(ADD, path))

    one.add(Keys())
    one.close()
    two.close()
    after = SQLiteWrappedKeys(path)
    assert after.find("ours") is not None
    assert said == ["refused"]
    assert after.find("theirs") is None
    after.close()


def test_what_a_process_opened_beside_a_file_is_closed_in_the_end(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("no /proc here")

    def opened() -> int:
        return sum(
            one.is_symlink() and str(one.readlink()).startswith(str(tmp_path))
            for one in descriptors.iterdir()
        )

    path = tmp_path / "data-keys.db"
    sessions = [SQLiteWrappedKeys(path) for _ in range(3)]
    for session in sessions:
        session.add([])
        session.revision()
    for session in sessions:
        session.close()
    forgotten = SQLiteWrappedKeys(path)
    forgotten.revision()
    del forgotten  # by whoever never closes
    gc.collect()
    other = SQLiteWrappedKeys(tmp_path / "other.db")
    other.add([])
    other.close()
    assert opened() == 0


def test_a_look_into_a_file_that_another_thread_closes(tmp_path: Path) -> None:
    path = tmp_path / "data-keys.db"
    keys = SQLiteWrappedKeys(path)
    keys.bury(Tombstone("1" * 32, b"name", "k", "begun"))
    assert keys.revision() == 1
    header, seen = keys._header, keys._seen
    keys.before_fork()  # as it is while another thread forks
    keys.after_fork()
    keys._header, keys._seen = header, seen  # what this thread had in its hands
    assert keys.revision() == 1
    keys.close()


def test_a_revision_is_not_of_what_a_killed_writer_left(tmp_path: Path) -> None:  # S3
    """It had written the file, and was killed before it removed the journal: the next who reads undoes it."""
    path = tmp_path / "data-keys.db"
    writer, reader = SQLiteWrappedKeys(path), SQLiteWrappedKeys(path)
    writer.add([WrappedKey("k", "e", b"x")])
    reader.revision()
    with writer._writing() as cursor:
        cursor.execute("UPDATE data_keys SET wrapped = x'01'")
        os.link(f"{path}-journal", tmp_path / "kept")
    writer.close()
    (tmp_path / "kept").rename(f"{path}-journal")
    assert reader.revision() == 0
    another = SQLiteWrappedKeys(path)
    assert another.find("k") == WrappedKey("k", "e", b"x")
    another.bury(Tombstone("1" * 32, b"name", "k", "begun"))
    assert reader.revision() == another.revision() == 1
    another.close()
    reader.close()


# --- threads ---


def test_two_threads_that_erase_first_make_one_key_of_names(tmp_path: Path) -> None:  # S3
    """Else a tombstone has a name that nobody can make again, and what was erased can be written again."""
    ring: Any = folder_ring(tmp_path)
    found_none, one_is_done = Barrier(2), Barrier(2)
    find, wrap = ring._store.find, ring.provider.wrap

    def find_late(key: str) -> WrappedKey | None:
        found: WrappedKey | None = find(key)
        if key == NAME_KEY and found is None:
            found_none.wait(SECONDS)
        return found

    class Provider:
        def __getattr__(self, name: str) -> Any:
            return getattr(folder_ring(tmp_path).provider, name)

        def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
            if current_thread().name == "second":
                one_is_done.wait(SECONDS)  # the first one has its key, and makes its name meanwhile
            return wrap(secret, context)  # type: ignore[no-any-return]

    ring._store.find = find_late
    ring._provider = Provider()
    subjects = [Subject(str(n) * 32, "", "live", "s", f"c-{n}") for n in (1, 2)]

    def erase(subject: Subject) -> None:
        ring.begin(subject)
        if current_thread().name == "first":
            one_is_done.wait(SECONDS)

    threads = [
        Thread(target=erase, args=(subject,), name=name, daemon=True)
        for subject, name in zip(subjects, ("first", "second"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    again = folder_ring(tmp_path)
    assert all(again.was_erased(one.scope, one.conversation) for one in subjects)
    again.close()
    ring.close()


# --- forks ---

FORK = """
import os, random, signal, sys, threading, time
signal.alarm(20)
from pathlib import Path
from compaction_ledger.infrastructure.keys.memory import MemoryKeyProvider, MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.keys.sqlite_keys import SQLiteWrappedKeys

inside = threading.Event()

def fork_beside(act, in_child):
    thread = threading.Thread(target=act)
    thread.start()
    assert inside.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(10)
        in_child()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    thread.join()
"""
FORK_BESIDE_KEYS = """
holes = [SQLiteWrappedKeys(Path(sys.argv[1])) for _ in range(100)]
random.shuffle(holes)
pairs = []
for _ in range(40):  # in whatever order they are told of a fork, it is the wrong one of some
    holes.pop()
    store = SQLiteWrappedKeys(Path(sys.argv[1]))
    holes.pop()
    pairs.append((KeyRing(MemoryKeyProvider, store), store))
begun = threading.Barrier(41)

def use(ring, store):
    def count():
        begun.wait(10)
        time.sleep(0.2)  # the ring's lock is held, and that of the store is wanted next
        with store._lock:
            return {"e": 1}
    store.count, store.add, store.find = count, lambda keys: None, lambda key: None
    ring.fresh()

def use_all():
    threads = [threading.Thread(target=use, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    begun.wait(10)
    inside.set()
    for thread in threads:
        thread.join()

fork_beside(use_all, lambda: [ring.fresh() for ring, _ in pairs])
"""
FORK_BESIDE_A_PROVIDER = """
def slow():
    inside.set()
    time.sleep(0.3)
    return MemoryKeyProvider()

ring, other = KeyRing(slow, MemoryWrappedKeys()), KeyRing(MemoryKeyProvider, MemoryWrappedKeys())
fork_beside(lambda: ring.provider, lambda: (ring.provider, other.provider))
"""


@needs_fork
@pytest.mark.parametrize("beside", [FORK_BESIDE_KEYS, FORK_BESIDE_A_PROVIDER])
def test_a_fork_beside_a_thread_that_uses_keys(tmp_path: Path, beside: str) -> None:
    assert run(FORK + beside, tmp_path / "data-keys.db") == "0"


@needs_fork
@pytest.mark.parametrize(
    "locked",
    [
        keyring_file.locked,
        lambda folder, seconds: files.locked(folder / "lock", seconds),
    ],
    ids=["keyring", "checkpoints"],
)
def test_a_lock_ends_with_its_holder_and_not_with_a_child(
    tmp_path: Path, locked: Callable[[Path, float], AbstractContextManager[None]]
) -> None:  # S2, K1
    reading, writing = os.pipe()
    with locked(tmp_path, 1):
        child = os.fork()  # by another thread: a web server begins a worker
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the parent is done, or dead
            os._exit(0)
    os.close(reading)
    try:
        with locked(tmp_path, 0):
            pass
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def test_a_lock_that_is_not_had_is_not_released(tmp_path: Path) -> None:  # S2, K1
    with keyring_file.locked(tmp_path), files.locked(tmp_path / "lock"):
        for _ in range(2):
            with pytest.raises(StoreError), keyring_file.locked(tmp_path, 0):
                pytest.fail("it was locked twice")
            with pytest.raises(StoreError), files.locked(tmp_path / "lock", 0):
                pytest.fail("it was locked twice")


class _Told:
    """Keeps who was told of a fork, in that order."""

    def __init__(self, told: list[_Told]) -> None:
        self._told = told

    def before_fork(self) -> None:
        self._told.append(self)

    def after_fork(self) -> None:
        """In the parent."""

    def begin_anew(self) -> None:
        """In the child."""


def test_who_uses_another_is_told_of_a_fork_before_it() -> None:
    """A ring is made after its store, and takes its own lock first: a fork takes them in the same order."""
    told: list[_Told] = []
    watched = forking._Watched()
    everyone = [_Told(told) for _ in range(50)]
    for one in everyone:
        watched.add(one)
    watched.before()
    watched.in_parent()
    assert told == everyone[::-1]
