"""Disks of a PostgreSQL server that are full or fail: real small disks, and a real error of fsync."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

import psycopg
import pytest
from histories import SCOPE, Worker, lines, made_up_job
from kept_processes import find_program, open_folder, wait_until
from pg_disks import server_on_small_disk
from pg_ledgers import Session, are_once, ledger_on
from pg_load import Load
from pg_servers import Server, Wanted, running_server
from scenarios import good

from compaction_ledger.domain.errors import DiskFull, StoreUnavailable
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.usecases.range_session import Outcome

pytestmark = pytest.mark.slow

LONG = "x" * 5_900
ROUND = 5_000
SMALL_LOG = {"max_wal_size": "8MB", "min_wal_size": "2MB"}


class Filler:
    """Completes ranges until it cannot, and notes what it is told."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.told: list[tuple[int, RangeFact]] = []
        self._numbers = count()

    def complete(self) -> None:
        """One more range, with a long summary."""
        worker = Worker(self.session.parts, made_up_job(10 * next(self._numbers)))
        for step in (worker.claim, worker.start, partial(worker.finish, good(LONG))):
            outcome: Outcome = step()
            self.told += zip(outcome.indices, outcome.facts, strict=True)

    def complete_many(self) -> None:
        """More than there is room for."""
        for _ in range(ROUND):
            self.complete()

    def write_many(self) -> None:
        """The same with conversations."""
        for number in range(ROUND):
            messages = lines(20, sentences=1_000)
            self.session.parts.transcripts.append(SCOPE, f"c{number}", *messages)


def test_a_full_disk_is_told_nothing_of_it_is_stored_and_it_goes_on_when_there_is_room() -> None:
    with server_on_small_disk() as (server, disk), ledger_on(server.url()) as ledger:
        filler = Filler(ledger.open())
        filler.complete()
        disk.fill()
        with pytest.raises(DiskFull, match="nothing was stored"):
            filler.complete_many()
        size = filler.session.log.size()
        assert size == len(filler.told)
        with pytest.raises(DiskFull, match="nothing was stored"):
            filler.write_many()
        disk.free()
        filler.complete()
        entries = ledger.check()
        are_once(entries, filler.told)
        assert len(entries) == size + 3


@pytest.mark.slow
def test_where_the_servers_own_log_has_no_room_it_is_down_and_nothing_is_lost() -> None:
    """It panics, and cannot start; as soon as it is started where there is room, all is there."""
    with (
        server_on_small_disk("wal", 24 * 1_024, SMALL_LOG) as (server, disk),
        ledger_on(server.url()) as ledger,
    ):
        hasty = Filler(ledger.open(patience=0.3))
        hasty.complete()
        disk.fill()
        with pytest.raises(StoreUnavailable):
            hasty.complete_many()
        wait_until(lambda: not server.alive(), 30)
        assert "PANIC" in server.log_text()
        with pytest.raises(StoreUnavailable):
            hasty.session.log.size()
        disk.free()
        server.start()
        wait_until(lambda: _answers(hasty.session))
        hasty.complete()
        are_once(ledger.check(), hasty.told)


def _answers(session: Session) -> bool:
    try:
        session.log.size()
    except StoreUnavailable:
        return False
    return True


@pytest.mark.slow
def test_patience_outlasts_a_log_disk_that_is_full_for_a_while() -> None:
    with (
        server_on_small_disk("wal", 24 * 1_024, SMALL_LOG) as (server, disk),
        ledger_on(server.url()) as ledger,
    ):
        with Load(ledger, [ledger.open(patience=60)], threads=4) as load:
            load.get_on()
            disk.fill()
            wait_until(lambda: not server.alive(), 60)
            disk.free()
            server.start()
            load.get_on()
        load.check()
        assert load.errors == []


# --- fsync fails --------------------------------------------------------------------------------

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *sign = getenv("FSYNC_FAILS_WHILE");
    return sign && access(sign, F_OK) == 0;
}

int fsync(int file) {
    if (fails()) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    if (fails()) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
"""


@contextmanager
def server_on_failing_disk() -> Iterator[tuple[Server, Path]]:
    """A server whose disk answers each fsync with an error, for as long as there is a certain file."""
    compiler = find_program("cc") or pytest.skip("needs a C compiler")
    if sys.platform != "linux":
        pytest.skip("needs a linker as Linux has it")
    folder = open_folder("shim")
    library, sign = folder / "shim.so", folder / "sign"
    try:
        (folder / "shim.c").write_text(SHIM)
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-o", library, folder / "shim.c", "-ldl"], check=True
        )
        loaded = {"LD_PRELOAD": str(library), "FSYNC_FAILS_WHILE": str(sign)}
        with running_server(Wanted(environment=loaded)) as server:
            yield server, sign
    finally:
        shutil.rmtree(folder)


def test_where_fsync_fails_nothing_is_told_as_stored_that_is_not() -> None:
    """The server panics rather than go on; whoever was told of a success finds it behind the recovery."""
    with server_on_failing_disk() as (server, sign), ledger_on(server.url()) as ledger:
        with Load(ledger, [ledger.open(), ledger.open()], threads=4) as load:
            load.get_on()
            sign.touch()
            wait_until(lambda: not server.alive() or "PANIC" in server.log_text(), 60)
            sign.unlink()
            if not _comes_back(server):
                server.start()
            load.get_on()
        load.check()
        assert "could not fsync" in server.log_text() or "could not fdatasync" in server.log_text()


def _comes_back(server: Server) -> bool:
    """Whether the server recovers by itself, as it does unless its recovery fails, too."""
    end = time.monotonic() + 20
    while server.alive() and time.monotonic() < end:
        with suppress(psycopg.Error):
            server.execute("SELECT 1")
            return True
        time.sleep(0.1)
    return False
