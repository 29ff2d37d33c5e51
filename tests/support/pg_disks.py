"""Servers whose data, or whose write-ahead log, lies on a small real disk, which can be filled and freed."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from disks import small_disk
from kept_processes import open_folder
from pg_servers import Server, Wanted, running_server

Part = Literal["data", "wal"]
# The smallest files for the write-ahead log, so that little of it fits on a small disk.
SMALL_SEGMENTS = ("--locale=C", "--wal-segsize=1")


@dataclass(frozen=True)
class SmallDisk:
    """A disk of a server."""

    folder: Path

    @property
    def filler(self) -> Path:
        """The file that takes the room."""
        return self.folder / "filler"

    def room(self) -> int:
        """How many bytes are free."""
        return shutil.disk_usage(self.folder).free

    def fill(self, leave: int = 0) -> None:
        """Take all the room but so many bytes."""
        with self.filler.open("ab", buffering=0) as file:
            while (size := min(self.room() - leave, 1 << 20)) > 0:
                try:
                    file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def free(self) -> None:
        """Give the room back."""
        self.filler.unlink(missing_ok=True)


@contextmanager
def server_on_small_disk(
    part: Part = "data",
    kilobytes: int = 96 * 1_024,
    settings: Mapping[str, str] | None = None,
) -> Iterator[tuple[Server, SmallDisk]]:
    """A durable server with all its data, or only its write-ahead log, on a disk of its own.

    Skipped where we may not mount one.
    """
    folder = open_folder("disk")
    place = folder / "disk"
    try:
        with small_disk(place, kilobytes):
            own = place / part
            wanted = Wanted(
                settings={"shared_buffers": "16MB", **(settings or {})},
                initdb=SMALL_SEGMENTS,
                data=own if part == "data" else None,
                wal=own if part == "wal" else None,
                mounts=[place],
            )
            with running_server(wanted) as server:
                yield server, SmallDisk(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
