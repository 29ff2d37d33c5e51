"""Archives of made-up conversations in the native format, of any size, always the same, streamed to disk.

A reply is a handful of sentences out of a few hundred, so that there is something to summarize, and a
thousand pairs take some hundredths of a second to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import BinaryIO, Literal

from compaction_ledger.domain.windows import WindowPolicy

SCOPES = ("acme", "globex", "initech")
MIXED = (500, 12, 60, 29, 30, 240, 1, 95, 1_500, 45)
"""Pairs of conversations of mixed sizes, over and over; some are too short for any range."""

Layout = Literal["ndjson", "files"]

_SUBJECTS = (
    *("The pump", "Line 4", "The north depot", "The invoice run"),
    *("Gate 12", "The fund", "The tower"),
)
_STATES = ("stood at", "rose to", "fell to", "was measured at", "ended the day at")
_UNITS = ("EUR", "bar", "degrees", "percent", "pieces", "kWh", "minutes")
_POOL = 499  # a prime number, so that steps of any width come to every sentence


@dataclass(frozen=True, slots=True)
class Archive:
    """What was written. ``ranges`` counts the targets of the usual policy (W1)."""

    files: tuple[Path, ...]
    conversations: int
    pairs: int
    ranges: int
    bytes: int


def write_archive(
    folder: Path,
    pairs: int,
    *,
    each: int | None = 500,
    scopes: Sequence[str] = SCOPES,
    layout: Layout = "ndjson",
) -> Archive:
    """Write conversations of ``each`` pairs, or (``None``) of mixed sizes, for each scope in turn.

    ``ndjson``: one file for each scope, ``SCOPE.ndjson``. ``files``: one for each conversation,
    ``SCOPE/CONVERSATION.jsonl``.
    """
    policy = WindowPolicy()
    given = list(sizes(pairs, each))
    files: dict[Path, int] = {}
    with ExitStack() as opened:
        streams: dict[str, BinaryIO] = {}
        for number, (scope, size) in enumerate(zip(cycle(scopes), given, strict=False)):
            name = f"{scope}-{number:06d}"
            data = b"".join(conversation_lines(name, size))
            path = folder / (f"{scope}.ndjson" if layout == "ndjson" else f"{scope}/{name}.jsonl")
            if layout == "files":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            else:
                if scope not in streams:
                    folder.mkdir(parents=True, exist_ok=True)
                    streams[scope] = opened.enter_context(path.open("wb"))
                streams[scope].write(data)
            files[path] = files.get(path, 0) + len(data)
    ranges = sum(map(policy.count, given))
    return Archive(tuple(files), len(given), pairs, ranges, sum(files.values()))


def sizes(pairs: int, each: int | None) -> Iterator[int]:
    """The sizes of conversations that have ``pairs`` pairs together; the last one has what is left."""
    for size in cycle(MIXED if each is None else (each,)):
        if pairs <= 0:
            return
        yield min(size, pairs)
        pairs -= size


def conversation_lines(name: str, pairs: int) -> Iterator[bytes]:
    """One conversation: its own record, then for each pair its run and its two messages."""
    yield f'{{"type":"conversation","id":"{name}"}}\n'.encode()
    seed = sum(name.encode())
    for n in range(pairs):
        yield (
            f'{{"type":"run","id":"r{n}","state":"completed"}}\n'
            f'{{"type":"message","id":"u{n}","run":"r{n}","role":"user","text":"{_question(seed, n)}"}}\n'
            f'{{"type":"message","id":"a{n}","run":"r{n}","role":"assistant","text":"{_reply(seed, n)}"}}\n'
        ).encode()


def _question(seed: int, n: int) -> str:
    about = _SUBJECTS[(seed + n) % len(_SUBJECTS)].lower()
    return f"Question {n}: what do we know of {about} today, and what has changed since {n % 28 + 1} May?"


def _reply(seed: int, n: int) -> str:
    pool = _sentences()
    first, step = seed * 31 + n * 7, n % 13 + 1
    return " ".join(pool[(first + k * step) % _POOL] for k in range(4 + n % 5))


@cache
def _sentences() -> tuple[str, ...]:
    return tuple(
        f"{_SUBJECTS[n % 7]} {_STATES[n % 5]} {100 + n * 37 % 900}.{n % 10} {_UNITS[n * 3 % 7]} on "
        f"{n % 28 + 1} March, which is {n % 17} more than the {n % 9 + 2} days before."
        for n in range(_POOL)
    )
