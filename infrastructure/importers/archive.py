"""Archives: folders and files with the conversations of many scopes, read one conversation at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from compaction_ledger.domain.errors import InvalidInput, InvalidSetting, MalformedRecord
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.takeover import ArchivedThread, NewThread, ScopeFrom, UnreadThread
from compaction_ledger.infrastructure.importers.interface import Importer, Sample
from compaction_ledger.infrastructure.importers.native import NativeImporter
from compaction_ledger.infrastructure.importers.native_archive import read_native
from compaction_ledger.infrastructure.importers.reading import first_record, shown
from compaction_ledger.infrastructure.importers.registry import detect, importer_named


class _File(NamedTuple):
    """A file of an archive: its path, and that path as seen from the archive."""

    path: Path
    within: Path


@dataclass(frozen=True, slots=True)
class Archive:
    """Folders, with all that lies below them, and files.

    ``format_name=None`` means that each file must say beyond doubt what it is. ``scope_from`` says whose the
    conversations are: ``scope``'s, or that of whom the folder or the file is named after.
    """

    places: Sequence[Path]
    format_name: str | None
    scope_from: ScopeFrom
    scope: str

    def check(self) -> None:
        """Raise :class:`InvalidSetting` for a place or a format that is not there."""
        if self.format_name is not None:
            importer_named(self.format_name)
        for place in self.places:
            if not place.exists():
                raise InvalidSetting("there is no such file or folder", place=shown(str(place)))

    def measure(self) -> tuple[int, int]:
        """How many files there are, and how many bytes. :class:`OSError` for a folder that is closed."""
        files = size = 0
        for file in self._files():
            files += 1
            size += _size(file.path)
        return files, size

    def __iter__(self) -> Iterator[ArchivedThread | UnreadThread]:
        """Every conversation, always in the same order; what cannot be read is told in its place."""
        for file in self._files():
            name = shown(str(file.within))
            try:
                scope = self._scope_of(file, name)
                importer = self._importer(file.path)
            except InvalidInput as error:
                yield UnreadThread(None, name, None, error, _size(file.path))
                continue
            if isinstance(importer, NativeImporter):
                yield from read_native(file.path, name, scope)
            else:
                yield from _read_whole(importer, file.path, name, scope)

    def _files(self) -> Iterator[_File]:
        for place in self.places:
            if not place.is_dir():
                yield _File(place, Path(place.name))
                continue
            for folder, folders, names in os.walk(place, onerror=_unreadable):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(names):
                    if not name.startswith("."):
                        path = Path(folder, name)
                        yield _File(path, path.relative_to(place))

    def _importer(self, path: Path) -> Importer:
        if self.format_name is not None:
            return importer_named(self.format_name)
        # Of a file of ours the first line is enough: what is malformed behind it concerns one conversation.
        first, native = first_record(path), NativeImporter()
        return native if native.sniff(Sample((first,))) else detect(path)

    def _scope_of(self, file: _File, name: str) -> str:
        """Whose the conversations of a file are. Raises :class:`InvalidInput` kinds."""
        if self.scope_from == "option":
            return self.scope
        if self.scope_from == "file":
            return check_id(file.path.stem, f"{name}: scope")
        if len(file.within.parts) > 1:
            return check_id(file.within.parts[0], f"{name}: scope")
        if file.path in self.places:
            return check_id(file.path.absolute().parent.name, f"{name}: scope")
        raise MalformedRecord("lies in no folder that could name its scope", place=name)


def _read_whole(
    importer: Importer, path: Path, name: str, scope: str
) -> Iterator[ArchivedThread | UnreadThread]:
    """The conversations of a file of another format, of which nothing is taken if it is malformed."""
    try:
        found = importer.read(path).conversations
    except InvalidInput as error:
        yield UnreadThread(scope, name, None, error, _size(path))
        return
    for number, one in enumerate(found):
        thread = NewThread(one.conversation, one.messages, one.runs)
        yield ArchivedThread(scope, name, thread, 0 if number else _size(path))


def _unreadable(error: OSError) -> NoReturn:
    raise error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is gone, or was never there: a broken link
        return 0
