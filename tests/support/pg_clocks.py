"""Clocks that are wrong: a server, or a process of the tests, by a clock that can be set while it runs.

Done by libfaketime (Debian's package of that name), which is loaded into a program before all else and
answers its questions after the time. Tests are skipped where there is none. Only the wall clock is wrong:
waiting, and the clock that counts from the start of the machine, are as ever.

One thing is not as on a machine whose clock is wrong: while a server waits, the library shows it the true
time. If its clock is ahead, it takes a time limit that runs out then (`statement_timeout`, `lock_timeout`,
`deadlock_timeout`) to be as far away as the clock is ahead. If it is behind, all limits hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kept_processes import first_existing, open_folder
from pg_servers import Server, Wanted, running_server

PLACES = (
    *sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")),
    Path("/usr/lib/faketime/libfaketimeMT.so.1"),
    Path("/usr/local/lib/faketime/libfaketimeMT.so.1"),
)


@dataclass(frozen=True)
class WrongClock:
    """A clock that is off by so many seconds. ``environment`` is for those who are to go by it."""

    file: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program goes by this clock."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, seconds: float) -> None:
        """Have the clock be off by so many seconds, ahead or (below zero) behind, from now on."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+.6f}\n")
        new.chmod(0o644)
        new.replace(self.file)


def library() -> Path:
    """The library that does it; else the test is skipped."""
    return first_existing(PLACES) or pytest.skip("needs libfaketime (the package libfaketime)")


@contextmanager
def wrong_clock(seconds: float = 0) -> Iterator[WrongClock]:
    """A clock that is off by so many seconds, until it is set anew."""
    folder = open_folder("clock")
    clock = WrongClock(folder / "clock")
    clock.set(seconds)
    try:
        yield clock
    finally:
        clock.file.unlink()
        folder.rmdir()


@contextmanager
def server_with_clock(
    seconds: float = 0, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Server, WrongClock]]:
    """A durable server with a clock of its own."""
    with wrong_clock(seconds) as clock:
        wanted = Wanted(environment=clock.environment, settings=settings or {})
        with running_server(wanted) as server:
            yield server, clock
