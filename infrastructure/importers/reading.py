"""Reading files strictly: every way a file can be bad is a :class:`MalformedRecord` with its place.

A place is ``file.jsonl:LINE`` for JSON Lines and ``file.json[2].messages[0]`` inside a document.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.interface import JsonValue, Sample

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
SAMPLE_LINES = 20

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """A line of a file that says something: its place, its bytes, and how far into the file it goes."""

    place: str
    data: bytes
    end: int


def shown(text: str) -> str:
    """``text`` as places show it: escaped where it is not well-formed."""
    return text.encode("utf-8", "backslashreplace").decode()


def label(path: Path) -> str:
    """The file's name as places show it."""
    return shown(path.name or str(path))


def read_lines(path: Path) -> Iterator[tuple[str, JsonValue]]:
    """Each line of a JSON Lines file with its place. Blank lines are passed over.

    Memory is bounded by the longest line, and no line may be longer than ``MAX_LINE_BYTES``.
    """
    for place, line, _ in raw_lines(path, label(path)):
        yield place, parse_json(line, place)


def raw_lines(path: Path, name: str) -> Iterator[Line]:
    """As :func:`read_lines`, with the lines as they are; ``name`` is what places call the file."""
    found, end = False, 0
    with _opened(path, name) as stream:
        for number, line in _lines(stream, name):
            end += len(line)
            if number == 1:
                _check_start(line, f"{name}:1")
            if line.isspace():
                continue
            found = True
            yield Line(f"{name}:{number}", line, end)
    if not found:
        raise MalformedRecord("the file is empty", place=name)


def read_document(path: Path) -> JsonValue:
    """The one JSON value of a file of at most ``MAX_DOCUMENT_BYTES``."""
    name = label(path)
    with _opened(path) as stream:
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise MalformedRecord(f"is larger than {MAX_DOCUMENT_BYTES} bytes", place=name)
    if not data or data.isspace():
        raise MalformedRecord("the file is empty", place=name)
    _check_start(data, name)
    return parse_json(data, name)


def read_records(path: Path) -> Iterator[tuple[str, JsonValue]]:
    """The lines of a JSON Lines file, or the one value of a JSON document, each with its place."""
    if is_json_lines(path):
        yield from read_lines(path)
    else:
        yield label(path), read_document(path)


def is_json_lines(path: Path) -> bool:
    """Whether the file is read by lines: its first line that is not blank is a JSON object."""
    return first_record(path) is not None


def first_record(path: Path) -> JsonValue:
    """The first line of a file that is read by lines; ``None`` if it is no JSON object."""
    line = _first_line(path)
    if line is None or not line.lstrip().startswith(b"{"):
        return None
    try:
        return parse_json(line, label(path))
    except MalformedRecord:
        return None


def read_sample(path: Path) -> Sample:
    """The first lines of a JSON Lines file, or the whole of a JSON document."""
    if not is_json_lines(path):
        return Sample((read_document(path),))
    records: list[JsonValue] = []
    for _, record in read_lines(path):
        records.append(record)
        if len(records) == SAMPLE_LINES:
            break
    return Sample(tuple(records))


def parse_json(data: bytes, place: str) -> JsonValue:
    """One JSON value, strictly: UTF-8, no key twice, no NaN, no number out of range, not deep."""
    try:
        value: JsonValue = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedRecord(
            f"is not valid UTF-8: {error.reason} at byte {error.start}", place=place
        ) from error
    except json.JSONDecodeError as error:
        where = (
            f"line {error.lineno} column {error.colno}"
            if error.lineno > 1
            else f"column {error.colno}"
        )
        raise MalformedRecord(f"is not valid JSON: {error.msg} at {where}", place=place) from error
    except RecursionError as error:
        raise MalformedRecord("is nested too deeply", place=place) from error
    except ValueError as error:
        raise MalformedRecord(f"is not valid JSON: {error}", place=place) from error
    return value


def to_json(value: JsonValue, place: str) -> str:
    """The JSON text of a value, compact, keys in the file's order; surrogates stay as they are."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise MalformedRecord("is nested too deeply", place=place) from error


@contextmanager
def _opened(path: Path, name: str | None = None) -> Generator[BinaryIO]:
    """The open file; whatever the system says against it is a :class:`MalformedRecord`."""
    name = name or label(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise MalformedRecord(f"is {what}", place=name)
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        reason = error.strerror or str(error)
        raise MalformedRecord(f"cannot be read: {reason}", place=name) from error


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise MalformedRecord(
                f"the line is longer than {MAX_LINE_BYTES} bytes", place=f"{name}:{number}"
            )
        yield number, line


def _first_line(path: Path) -> bytes | None:
    """The first line that says anything; None if it is longer than a line may be."""
    with _opened(path) as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            if not line.isspace():
                return None if len(line) > MAX_LINE_BYTES else line
    return None


def _check_start(data: bytes, place: str) -> None:
    if data.startswith(_BYTE_ORDER_MARKS):
        raise MalformedRecord(
            "starts with a byte order mark; UTF-8 without one is read", place=place
        )


def _no_key_twice(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!a} stands twice in one object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


# Made once: that takes longer than to read a line with it.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_float=_finite
)
