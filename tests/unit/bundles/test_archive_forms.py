"""K5: a bundle is a ZIP of one form. Every other is refused before anything of it is read into memory."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import BinaryIO, cast

import pytest
from bundles import Keeper, Members, check, zipped

from compaction_ledger import bundle_verifier
from compaction_ledger.bundle_verifier import BundleError


def refused(data: bytes, keeper: Keeper) -> BundleError:
    with pytest.raises(BundleError) as caught:
        check(data, [keeper.key])
    return caught.value


def by_zipfile(members: list[tuple[str | zipfile.ZipInfo, bytes]], compression: int) -> bytes:
    """A ZIP as Python writes it."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


NAMES = {
    "traversal": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "a drive": "C:\\windows",
    "a folder": "checkpoints/",
    "another case": "Manifest.json",
    "a dot": "./manifest.json",
    "no ASCII": "mänifest.json",
    "a zero byte": "manifest.json\0",
}


@pytest.mark.parametrize("case", NAMES)
def test_no_other_name_is_accepted(keeper: Keeper, whole: Members, case: str) -> None:
    renamed = [
        (NAMES[case], data) if n == "manifest.json" else (n, data) for n, data in whole.items()
    ]
    assert refused(by_zipfile(list(renamed), zipfile.ZIP_STORED), keeper).place == "manifest.json"
    if NAMES[case].isascii():
        assert refused(zipped(renamed), keeper).place == "manifest.json"
        behind = zipped([*whole.items(), (NAMES[case], b"x")])
        assert refused(behind, keeper).place == "the ZIP directory"


def test_a_member_twice(keeper: Keeper, whole: Members) -> None:
    items = list(whole.items())
    assert refused(zipped([items[0], *items]), keeper).place == "keys.json"
    assert refused(zipped([*items, items[-1]]), keeper).place == "the ZIP directory"


def test_a_link_is_no_member(keeper: Keeper, whole: Members) -> None:
    link = zipfile.ZipInfo("manifest.json")
    link.external_attr = 0o120777 << 16
    members: list[tuple[str | zipfile.ZipInfo, bytes]] = [(link, b"/etc/passwd")]
    assert refused(by_zipfile(members, zipfile.ZIP_STORED), keeper).place == "manifest.json"


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_form_of_other_writers_is_refused(
    keeper: Keeper, whole: Members, compression: int
) -> None:
    data = by_zipfile(list(whole.items()), compression)
    assert "another form of ZIP" in refused(data, keeper).message


@pytest.mark.slow
def test_a_zip_bomb_is_refused_before_it_is_read(keeper: Keeper) -> None:
    bomb = by_zipfile([("manifest.json", bytes(200 * 2**20))], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 2**20
    tracemalloc.start()
    try:
        error = refused(bomb, keeper)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "compressed" in error.message
    assert most < 2**20


class Endless:
    """A file that says it is very long, and counts what is read of it."""

    def __init__(self, data: bytes, length: int) -> None:
        self._data = data
        self._length = length
        self.taken = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._length if whence else offset

    def read(self, count: int) -> bytes:
        data, self._data = self._data[:count], self._data[count:]
        self.taken += count
        return data + b" " * (count - len(data))


def test_a_member_that_is_too_long_is_not_read(keeper: Keeper) -> None:
    header = bundle_verifier.local_header(b"manifest.json", 0, 2**40)
    file = Endless(header, 2**41)
    with pytest.raises(BundleError, match=r"manifest\.json: 1099511627776 bytes, at most"):
        bundle_verifier.Bundle(cast(BinaryIO, file), [], [])
    assert file.taken == len(header)


def test_a_line_that_does_not_end_is_not_read(
    whole: Members, monkeypatch: pytest.MonkeyPatch, keeper: Keeper
) -> None:
    monkeypatch.setattr(bundle_verifier, "MAX_LINE", 2**20)
    endless = zipped({**whole, "events.jsonl": b" " * 2**22})
    error = refused(endless, keeper)
    assert error.message == f"longer than {2**20} bytes"


def test_a_member_longer_than_the_file(keeper: Keeper, whole: Members) -> None:
    data = bytearray(zipped(whole))
    size = 30 + len("manifest.json") + 4
    struct.pack_into("<2Q", data, size, 2**20, 2**20)
    assert refused(bytes(data), keeper).message == "the file ends too early"


def _comment(data: bytes) -> bytes:
    return data[:-2] + b"\x05\x00hello"


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: data[:0],
    "no ZIP": lambda data: b"x" * len(data),
    "something before it": lambda data: b"#!/bin/sh\n" + data,
    "something behind it": lambda data: data + b"\0",
    "two of them": lambda data: data + data,
    "a comment": _comment,
    "half of it": lambda data: data[: len(data) // 2],
    "no directory": lambda data: data[: data.rindex(b"PK\x06\x06")],
    "another time": lambda data: data.replace(b"\x00\x00\x21\x00", b"\x01\x00\x21\x00", 1),
    "an attribute in the directory": lambda data: _patched(data, b"PK\x01\x02", 38, b"\xff"),
    "another size in the directory": lambda data: _patched(data, b"PK\x01\x02", 24, b"\x01"),
    "another checksum in both": lambda data: _patched(data, b"PK\x03\x04", 14, b"\xff"),
}


def _patched(data: bytes, mark: bytes, offset: int, value: bytes) -> bytes:
    at = data.index(mark) + offset
    assert data[at : at + 1] != value
    return data[:at] + value + data[at + 1 :]


@pytest.mark.parametrize("case", FORMS)
def test_other_forms_are_refused(keeper: Keeper, whole: Members, case: str) -> None:
    changed = FORMS[case](zipped(whole))
    assert changed != zipped(whole)
    refused(changed, keeper)


def test_every_truncation_is_refused(keeper: Keeper, one: Members) -> None:
    data = zipped(one)
    for length in range(0, len(data), 97):
        refused(data[:length], keeper)
    refused(data[:-1], keeper)


def test_a_file_that_becomes_shorter_while_it_is_read(keeper: Keeper, whole: Members) -> None:
    class Shrinking(BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            return super().read(count)[:10]

    with pytest.raises(BundleError, match="the file changed while it was read"):
        bundle_verifier.Bundle(Shrinking(zipped(whole)), [], [])
