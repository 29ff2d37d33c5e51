"""A bundle's file is there as a whole or not at all (K5)."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from compaction_ledger.domain.errors import DiskFull, InvalidSetting
from compaction_ledger.infrastructure.bundles.files import whole_file


def written(
    path: Path, data: bytes, *, replace: bool = False, meanwhile: bytes | None = None
) -> None:
    with whole_file(path, replace=replace) as file:
        file.write(data)
        if meanwhile is not None:
            path.write_bytes(meanwhile)
        assert not path.exists() or path.read_bytes() != data


def test_it_has_its_name_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    written(path, b"all of it")
    assert path.read_bytes() == b"all of it"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(b"before")
    with suppress(KeyboardInterrupt), whole_file(path, replace=True) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["missing/bundle", "file/bundle"])
def test_where_there_is_no_folder_that_is_said(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSetting, match="there is no folder"):
        written(tmp_path / place, b"new")


def test_where_no_file_can_be_made_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> tuple[int, str]:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(DiskFull):
        written(tmp_path / "bundle", b"new")


@pytest.mark.parametrize("link", [False, True])
def test_a_file_is_replaced_only_if_that_is_wanted(tmp_path: Path, link: bool) -> None:
    path, target = tmp_path / "bundle", tmp_path / "elsewhere"
    target.write_bytes(b"before")
    if link:
        path.symlink_to(target)
    else:
        path.write_bytes(b"before")
    with pytest.raises(InvalidSetting, match="there is a file already"):
        written(path, b"new")
    written(path, b"new", replace=True)
    assert path.read_bytes() == b"new"
    assert target.read_bytes() == b"before"  # a link is replaced, and what it names is not
    assert not path.is_symlink()


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_came_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path = tmp_path / "bundle"

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(InvalidSetting if links else PermissionError):
        written(path, b"ours", meanwhile=b"theirs")
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_without_links_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    written(tmp_path / "bundle", b"ours")
    assert (tmp_path / "bundle").read_bytes() == b"ours"
