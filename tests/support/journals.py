"""What a process asked a ledger and what it was told, written down so that no kill can take it away.

Each command has two lines, of JSON: one before it is given, and one behind the answer. Each line is on the
disk before anything else is done. Whoever was killed in between leaves a command without an answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from claim_register import Asked, Claim, Finish, Release, Renew, Start, Told

ASKED: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Claim, Start, Renew, Finish, Release)
}


@dataclass(frozen=True, slots=True)
class About:
    """What a command is about: the range, the number of its job there, and what the job is known by."""

    from_pair: int
    number: int
    source: str
    identity: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a command.

    ``now`` is the time that it was judged at last, in microseconds; ``places`` the index and the digest of
    each fact that was stored, whether or not there was a refusal beside it. ``error`` is the code of an error
    of the store, behind which it is not known what was done. ``beaten`` counts how often others were faster.
    """

    now: int
    places: Sequence[tuple[int, str]] = ()
    told: Told | None = None
    error: str | None = None
    beaten: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One command in a journal. Times of calling and returning are nanoseconds of the machine's own clock."""

    process: str
    about: About
    asked: Asked
    called: int
    returned: int | None
    wall: tuple[int, int] | None
    """The time of day before and after, in microseconds."""
    answer: Answer | None

    @property
    def told(self) -> Told | None:
        """The answer; ``None`` where it is not known what was done."""
        return self.answer.told if self.answer else None


def wall() -> int:
    """The time of day, in microseconds since the epoch."""
    return time.time_ns() // 1_000


class Journal:
    """The journal of one process."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._called = (0, 0)

    def calling(self, about: About, asked: Asked) -> None:
        """A command is about to be given."""
        self._write(
            {
                "about": asdict(about),
                "kind": type(asked).__name__,
                "asked": asdict(asked),
                "called": time.monotonic_ns(),
            }
        )
        self._called = time.monotonic_ns(), wall()

    def returned(self) -> tuple[int, int]:
        """The times by both clocks: to be taken at once when an answer is there."""
        return time.monotonic_ns(), wall()

    def answered(self, at: tuple[int, int], answer: Answer) -> None:
        """The answer to the command that was given last."""
        called, before = self._called
        returned, after = at
        self._write(
            {
                "called": called,
                "returned": returned,
                "wall": [before, after],
                "answer": asdict(answer),
            }
        )

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(f"{json.dumps(line, separators=(',', ':'))}\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_journals(folder: Path) -> list[Entry]:
    """Every command of every process that has a journal in the folder."""
    return [entry for path in sorted(folder.glob("*.journal")) for entry in _read(path)]


def _read(path: Path) -> Iterator[Entry]:
    """The commands of one process. A line that a kill cut short was never acted upon."""
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    called: dict[str, Any] | None = None
    for line in map(json.loads, lines):
        if "asked" in line:
            assert called is None, f"{path.name}: a command without an answer in between"
            called = line
        else:
            assert called is not None
            yield _entry(path.stem, called, line)
            called = None
    if called is not None:
        yield _entry(path.stem, called, None)


def _entry(process: str, called: dict[str, Any], returned: dict[str, Any] | None) -> Entry:
    about, asked = About(**called["about"]), ASKED[called["kind"]](**called["asked"])
    if returned is None:
        return Entry(process, about, asked, called["called"], None, None, None)
    before, after = returned["wall"]
    answer = _answer(**returned["answer"])
    return Entry(
        process, about, asked, returned["called"], returned["returned"], (before, after), answer
    )


def _answer(told: dict[str, Any] | None, places: list[list[Any]], **more: Any) -> Answer:
    return Answer(
        told=_told(**told) if told else None,
        places=[(index, digest) for index, digest in places],
        **more,
    )


def _told(effects: list[list[str]], refusal: list[Any] | None, **more: Any) -> Told:
    refused = None if refusal is None else tuple(refusal)
    return Told(effects=tuple(map(tuple, effects)), refusal=refused, **more)
