"""Native files of many conversations, one behind the other, read one conversation at a time.

Each begins with its ``conversation`` record; the first one of a file may be without. Where a line is
malformed, its conversation is left out, up to the next ``conversation`` record, and the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from compaction_ledger.domain.errors import InvalidInput, MalformedRecord
from compaction_ledger.domain.takeover import ArchivedThread, NewThread, UnreadThread
from compaction_ledger.infrastructure.importers.interface import JsonValue
from compaction_ledger.infrastructure.importers.native import Gathered, native_record
from compaction_ledger.infrastructure.importers.reading import Line, parse_json, raw_lines


@dataclass(slots=True)
class _Part:
    """One conversation of the file while it is read, and the first error in it."""

    place: str
    begin: int
    end: int = 0
    gathered: Gathered = field(default_factory=Gathered)
    error: InvalidInput | None = None

    def take(self, value: JsonValue, line: Line) -> None:
        if self.error is None:
            try:
                self.gathered.take(native_record(value, line.place), line.place)
            except InvalidInput as error:
                self.error = error

    def fail(self, error: InvalidInput) -> None:
        self.error = self.error or error

    def read(self, scope: str, otherwise: str) -> ArchivedThread | UnreadThread:
        head, size = self.gathered.head, self.end - self.begin
        try:
            if self.error is not None:
                raise self.error
            found = self.gathered.conversation(otherwise, self.place)
        except InvalidInput as error:
            name = None if head is None else head.id
            return UnreadThread(scope, self.place, name, error, size)
        thread = NewThread(found.conversation, found.messages, found.runs)
        return ArchivedThread(scope, self.place, thread, size)


def read_native(path: Path, name: str, scope: str) -> Iterator[ArchivedThread | UnreadThread]:
    """The conversations of a file in its order. ``name`` is what places call the file.

    What keeps the rest of the file from being read is the error of the last one.
    """
    part: _Part | None = None
    end = 0
    try:
        for line in raw_lines(path, name):
            value, error = _parsed(line)
            if part is None or _is_head(value):
                if part is not None:
                    yield part.read(scope, path.stem)
                part = _Part(line.place, end)
            part.end = end = line.end
            if error is None:
                part.take(value, line)
            else:
                part.fail(error)
    except MalformedRecord as error:
        part = part or _Part(name, end)
        part.fail(_final(error))
    if part is not None:
        yield part.read(scope, path.stem)


def _parsed(line: Line) -> tuple[JsonValue, InvalidInput | None]:
    try:
        return parse_json(line.data, line.place), None
    except MalformedRecord as error:
        return None, error


def _final(error: MalformedRecord) -> MalformedRecord:
    message = str(error).removeprefix(f"{error.place}: ")
    return MalformedRecord(f"{message}; nothing behind it was read", place=error.place)


def _is_head(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("type") == "conversation"
