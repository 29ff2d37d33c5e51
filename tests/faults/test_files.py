"""Files that are no ledger, cannot be written, or lie on a full disk.

One typed error for each, nothing half stored, and all well again afterwards.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backends import SQLiteBackend
from copies import copy_ledger
from disks import small_disk, unwritable
from histories import CONVERSATION, SCOPE, Worker, every_kind, fill, lines, made_up_job
from processes import output, worker

from compaction_ledger import Ledger, NewMessage
from compaction_ledger.domain.errors import (
    DamagedLog,
    DiskFull,
    KeysUnavailable,
    LedgerError,
    LedgerReadOnly,
    NewerFormat,
    NotALedger,
    StoreUnavailable,
)
from compaction_ledger.infrastructure.sqlite.formats import APPLICATION_ID, FORMAT

BIG = "x" * 200_000


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """A ledger with a history, closed."""
    folder = tmp_path / "closed"
    folder.mkdir()
    store = SQLiteBackend(folder)
    parts = store.open()
    fill(parts, 80)
    every_kind(parts)
    parts.read_models.catch_up(parts.context.log)
    store.close()
    return store.path


def pages_gone(path: Path) -> None:
    """Cut the file in the middle."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def pages_scrambled(path: Path) -> None:
    """Overwrite all pages but the first."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


# --- files that are none ------------------------------------------------------------------------


def text_file(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1_000)


def short_text(path: Path) -> None:
    path.write_text("hello")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(8_192))


def folder(path: Path) -> None:
    path.mkdir()


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()


def other_application(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 7")
    connection.close()


def other_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()


@pytest.mark.parametrize(
    "make",
    [text_file, short_text, zeros, folder, other_database, other_application, other_version],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_ledger_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], read_only: bool
) -> None:
    path = tmp_path / "given"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(NotALedger, match="given"):
        Ledger.open(path, read_only=read_only)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [other.name for other in tmp_path.iterdir()] == ["given"]


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    for read_only, create in ((True, True), (False, False)):
        with pytest.raises(NotALedger):
            Ledger.open(path, read_only=read_only, create=create)
    assert path.stat().st_size == 0
    with Ledger.open(path) as ledger:
        assert ledger.size() == 0
        assert ledger.verify().ok


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for read_only, create in ((True, True), (False, False)):
        with pytest.raises(NotALedger, match="there is no ledger"):
            Ledger.open(path, read_only=read_only, create=create)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(NotALedger, match="there is no folder"):
        Ledger.open(tmp_path / "nowhere" / "ledger.db")
    with pytest.raises(NotALedger):
        Ledger.open(tmp_path / "nowhere" / "ledger.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    ["x" * 300, "a\0b", "/dev/null", "/dev/zero/ledger.db"],
    ids=["long", "nul", "null", "in a device"],
)
def test_a_path_that_cannot_be_one(tmp_path: Path, path: str) -> None:
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path / path)


def test_odd_names_are_just_names(tmp_path: Path) -> None:
    for name in ("a b?mode=ro#x.db", "100%.db", "%41.db", ":memory:", "帳簿.db", "file:x.db", "-"):
        with Ledger.open(tmp_path / name) as ledger:
            ledger.transcripts.append(SCOPE, name, [])
        with Ledger.open(tmp_path / name, read_only=True) as ledger:
            assert list(ledger.conversations()) == [(SCOPE, name)]
        assert (tmp_path / name).is_file()


def test_a_newer_format_is_named_as_such(ledger_file: Path) -> None:
    with sqlite3.connect(ledger_file) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}"):
            Ledger.open(ledger_file, read_only=read_only)


def test_a_file_that_only_claims_to_be_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "liar.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.close()
    with pytest.raises(LedgerError), Ledger.open(path) as ledger:
        ledger.size()


@pytest.mark.parametrize("damage", [pages_gone, pages_scrambled], ids=lambda d: d.__name__)
def test_damaged_pages_are_told_as_such(ledger_file: Path, damage: Callable[[Path], None]) -> None:
    damage(ledger_file)

    def questions() -> list[Callable[[Ledger], object]]:
        return [
            lambda ledger: list(ledger.events()),
            lambda ledger: ledger.catch_up(),
            lambda ledger: ledger.rebuild(),
            lambda ledger: ledger.plan(CONVERSATION, scope=SCOPE),
            lambda ledger: ledger.compact(CONVERSATION, scope=SCOPE),
            lambda ledger: ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6),
        ]

    for question in questions():
        with pytest.raises((DamagedLog, NotALedger)), Ledger.open(ledger_file) as ledger:
            question(ledger)


@pytest.mark.parametrize("damage", [pages_gone, pages_scrambled], ids=lambda d: d.__name__)
def test_verification_finds_damaged_pages(
    ledger_file: Path, damage: Callable[[Path], None]
) -> None:
    with Ledger.open(ledger_file, read_only=True) as ledger:
        damage(ledger_file)
        assert not ledger.verify().ok


# --- not to be written --------------------------------------------------------------------------


def test_a_ledger_on_a_read_only_disk_can_be_read(ledger_file: Path) -> None:
    with unwritable(ledger_file.parent), Ledger.open(ledger_file, read_only=True) as ledger:
        assert ledger.size() > 15
        assert ledger.verify().ok
        assert ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6).manifest.summaries
        with pytest.raises(LedgerReadOnly):
            ledger.transcripts.append(SCOPE, "new", [])
        with pytest.raises(LedgerReadOnly):
            ledger.compact(CONVERSATION, scope=SCOPE)
        with pytest.raises(LedgerReadOnly):
            ledger.rebuild()


def test_a_ledger_on_a_read_only_disk_cannot_be_opened_for_writing(ledger_file: Path) -> None:
    with (
        unwritable(ledger_file.parent),
        pytest.raises(LedgerReadOnly),
        Ledger.open(ledger_file) as ledger,
    ):
        ledger.transcripts.append(SCOPE, "new", [])
    with Ledger.open(ledger_file) as ledger:
        ledger.transcripts.append(SCOPE, "new", [])
        assert ledger.verify().ok


def test_no_ledger_can_be_made_on_a_read_only_disk(tmp_path: Path) -> None:
    with unwritable(tmp_path), pytest.raises(LedgerReadOnly):
        Ledger.open(tmp_path / "ledger.db")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_on_a_read_only_disk(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    with unwritable(tmp_path), pytest.raises(LedgerReadOnly):
        Ledger.open(tmp_path / "ledger.db")
    assert (tmp_path / "ledger.db").stat().st_size == 0


def test_a_disk_that_turns_read_only_while_the_ledger_is_open(ledger_file: Path) -> None:
    with Ledger.open(ledger_file) as before:
        assert before.size() > 15
    with Ledger.open(ledger_file, read_only=True) as ledger:
        with pytest.raises(LedgerReadOnly):
            ledger.transcripts.append(SCOPE, "new", [])
        assert ledger.verify().ok


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_else_cannot_write_it(ledger_file: Path) -> None:
    """Permissions, as a process without root's rights meets them."""
    nobody = 65_534

    def tried(path: Path) -> str:
        process = worker("open_as", path, nobody)
        return output(process).strip()

    opened_up = ledger_file.parent
    while opened_up != opened_up.parent:
        opened_up.chmod(opened_up.stat().st_mode | 0o055)
        if opened_up.name.startswith("pytest-of-"):
            break
        opened_up = opened_up.parent
    ledger_file.chmod(0o644)
    assert tried(ledger_file) == "error LedgerReadOnly"
    ledger_file.chmod(0o600)
    assert tried(ledger_file) in ("error StoreUnavailable", "error LedgerReadOnly")
    ledger_file.parent.chmod(0o700)
    assert tried(ledger_file) in (
        "error StoreUnavailable",
        "error LedgerReadOnly",
        "error NotALedger",
    )
    with Ledger.open(ledger_file) as ledger:
        assert ledger.verify().ok


# --- a full disk --------------------------------------------------------------------------------


def fill_up(ledger: Ledger) -> int:
    """Append until the disk is full; how many conversations went in."""
    for stored in range(1_000):
        try:
            append_big(ledger, f"big-{stored}")
        except DiskFull:
            return stored
    raise AssertionError("the disk is never full")


def append_big(ledger: Ledger, name: str) -> None:
    ledger.transcripts.append(SCOPE, name, [NewMessage("m", "r", "user", BIG)])


def test_a_full_disk_is_told_and_nothing_is_half_stored(tmp_path: Path, ledger_file: Path) -> None:
    with small_disk(tmp_path / "disk", 4_096) as disk:
        path = disk / "ledger.db"
        copy_ledger(ledger_file, path)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1_024 * 1_024))
        with Ledger.open(path) as ledger:
            stored = fill_up(ledger)
            assert stored > 0
            for _ in range(3):  # every further try is refused alike, none hangs or half succeeds
                with pytest.raises(DiskFull):
                    append_big(ledger, "more")
            assert ledger.verify().ok
            names = [name for _, name in ledger.conversations()]
            assert names == sorted([CONVERSATION, *(f"big-{n}" for n in range(stored))])
            for name in names[:-1]:
                assert ledger.transcripts.conversation(SCOPE, name).messages[0].text == BIG
            ballast.unlink()
            append_big(ledger, "more")
            assert ledger.compact(CONVERSATION, scope=SCOPE).completed > 0
            assert ledger.verify().ok


def test_a_full_disk_while_facts_are_appended(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 600) as disk:
        store = SQLiteBackend(disk)
        parts = store.open()
        acknowledged: list[int] = []

        def work(number: int) -> None:
            one = Worker(parts, made_up_job(number * 10), f"w{number}")
            for step in (one.claim, one.start, one.finish):
                acknowledged.extend(step().indices)

        with pytest.raises(DiskFull):
            list(map(work, range(10_000)))
        log = parts.context.log
        assert acknowledged == list(range(log.size()))
        assert list(log.verify()) == []
        assert len(log.read(0, 100_000)) == log.size()
        store.close()


def test_a_full_disk_before_the_ledger_is_made(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(56 * 1_024))
        with pytest.raises(DiskFull):
            Ledger.open(disk / "ledger.db")
        with pytest.raises(DiskFull):
            Ledger.open(disk / "ledger.db")
        ballast.unlink()
    with small_disk(tmp_path / "larger", 2_048) as disk, Ledger.open(disk / "ledger.db") as ledger:
        assert ledger.verify().ok


@pytest.mark.slow
def test_a_full_disk_during_a_rebuild_leaves_the_old_rows_serving(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 6_000) as disk,
        Ledger.open(disk / "ledger.db") as ledger,
    ):
        ledger.transcripts.append(SCOPE, CONVERSATION, *lines(600))
        ledger.compact(CONVERSATION, scope=SCOPE)
        before = ledger.summaries(CONVERSATION, scope=SCOPE)
        room = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(bytes(max(0, room - 16 * 1_024)))
        with pytest.raises(DiskFull):
            ledger.rebuild()
        assert ledger.summaries(CONVERSATION, scope=SCOPE) == before
        assert ledger.verify().ok
        (disk / "ballast").unlink()
        ledger.rebuild()
        assert ledger.summaries(CONVERSATION, scope=SCOPE) == before
        assert ledger.verify().ok


@pytest.mark.slow
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """Where no disk can be mounted: the operating system's own limit, in a process of its own."""
    path = tmp_path / "ledger.db"
    told = output(worker("fill_limited", path, 2_000_000)).split()
    assert told[0] in ("DiskFull", "StoreUnavailable")
    with Ledger.open(path) as ledger:
        assert len(list(ledger.conversations())) == int(told[1])
        assert ledger.verify().ok
        append_big(ledger, "more")


# --- too few file descriptors -------------------------------------------------------------------


def test_no_file_descriptor_left_is_told_and_passes(ledger_file: Path) -> None:
    with Ledger.open(ledger_file) as ledger:
        assert ledger.size() > 15
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Take the connections that are there, so that a new one is needed and cannot be had.
        pool = ledger._parts.context.log.sealed.datastore.pool  # type: ignore[attr-defined]
        taken = [pool.get_connection() for _ in range(pool.num_in_pool)]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            for _ in range(2):
                with pytest.raises((StoreUnavailable, KeysUnavailable)):
                    ledger.transcripts.append(SCOPE, "new", [])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for connection in taken:
                pool.put_connection(connection)
        ledger.transcripts.append(SCOPE, "new", [])  # and nothing is locked by what failed
        assert (SCOPE, "new") in ledger.conversations()


@pytest.mark.slow
def test_a_ledger_closed_under_its_threads_hands(tmp_path: Path) -> None:
    """What is under way ends, what comes after is refused, and nobody waits, hangs or crashes."""
    for round_number in range(5):
        ledger = Ledger.open(tmp_path / f"{round_number}.db")
        acknowledged: list[str] = []

        def work(name: str, ledger: Ledger = ledger, known: list[str] = acknowledged) -> None:
            for n in range(100_000):
                ledger.transcripts.append(SCOPE, name, [NewMessage(f"m{n}", "r", "user", "t")])
                known.append(f"{name}/m{n}")
                ledger.transcripts.conversation(SCOPE, name)

        with ThreadPoolExecutor(4) as pool:
            working = [pool.submit(work, f"c{number}") for number in range(4)]
            time.sleep(0.05)
            ledger.close()
            begun = time.monotonic()
            for future in working:
                with pytest.raises(StoreUnavailable, match="closed"):
                    future.result()
        assert time.monotonic() - begun < 25
        with Ledger.open(tmp_path / f"{round_number}.db", read_only=True) as again:
            stored = {
                f"{name}/{message.id}"
                for scope, name in again.conversations()
                for message in again.transcripts.conversation(scope, name).messages
            }
        assert set(acknowledged) <= stored


def test_a_closed_ledger_says_so(ledger_file: Path) -> None:
    ledger = Ledger.open(ledger_file)
    ledger.close()
    ledger.close()
    for question in (ledger.size, ledger.verify, ledger.rebuild, lambda: list(ledger.events())):
        with pytest.raises(StoreUnavailable, match="closed"):
            question()
