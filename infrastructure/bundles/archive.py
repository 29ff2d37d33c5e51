"""The one form of ZIP that an audit bundle has (K5): see ``docs/reference/audit-bundle.md``.

Members are stored as they are, in a fixed order, without times; sizes stand in ZIP64 fields. The same
members give the same bytes, and every byte is determined, so that a reader can compare them all.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import BinaryIO

VERSION = 45  # ZIP64
FIRST_DAY = 0x21  # 1980-01-01, at midnight
ELSEWHERE = 0xFFFFFFFF  # the number stands in the ZIP64 field

_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_LOCAL_SIZES = struct.Struct("<HHQQ")
_ENTRY = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_ENTRY_SIZES = struct.Struct("<HHQQQ")
_END64 = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR = struct.Struct("<4sLQL")
_END = struct.Struct("<4sHHHHLLH")


class BundleArchive:
    """Writes members one after the other into ``file``, which must be empty and can seek.

    Nothing is there before :meth:`finish`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._entries: list[bytes] = []

    def member(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a member as its pieces come. The name is ASCII, and is not checked."""
        raw, offset = name.encode("ascii"), self._file.tell()
        self._file.write(_local(raw, 0, 0))
        checksum = size = 0
        for piece in pieces:
            checksum = zlib.crc32(piece, checksum)
            size += len(piece)
            self._file.write(piece)
        end = self._file.tell()
        self._file.seek(offset)
        self._file.write(_local(raw, checksum, size))
        self._file.seek(end)
        self._entries.append(_entry(raw, checksum, size, offset))

    def finish(self) -> None:
        """Write the directory."""
        offset, directory, count = self._file.tell(), b"".join(self._entries), len(self._entries)
        length = len(directory)
        self._file.write(directory)
        self._file.write(
            _END64.pack(
                b"PK\x06\x06",
                _END64.size - 12,
                VERSION,
                VERSION,
                0,
                0,
                count,
                count,
                length,
                offset,
            )
        )
        self._file.write(_LOCATOR.pack(b"PK\x06\x07", 0, offset + length, 1))
        self._file.write(_END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, ELSEWHERE, ELSEWHERE, 0))


def _local(name: bytes, checksum: int, size: int) -> bytes:
    header = _LOCAL.pack(
        b"PK\x03\x04",
        VERSION,
        0,
        0,
        0,
        FIRST_DAY,
        checksum,
        ELSEWHERE,
        ELSEWHERE,
        len(name),
        _LOCAL_SIZES.size,
    )
    return header + name + _LOCAL_SIZES.pack(1, _LOCAL_SIZES.size - 4, size, size)


def _entry(name: bytes, checksum: int, size: int, offset: int) -> bytes:
    header = _ENTRY.pack(
        b"PK\x01\x02",
        VERSION,
        VERSION,
        0,
        0,
        0,
        FIRST_DAY,
        checksum,
        ELSEWHERE,
        ELSEWHERE,
        len(name),
        _ENTRY_SIZES.size,
        0,
        0,
        0,
        0,
        ELSEWHERE,
    )
    return header + name + _ENTRY_SIZES.pack(1, _ENTRY_SIZES.size - 4, size, size, offset)
