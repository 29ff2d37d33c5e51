"""The keyring file: who may read it, and that it is read strictly."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from key_services import everything_of, spellings

from compaction_ledger.domain.errors import (
    KeyMissing,
    KeysUnavailable,
    NewerFormat,
    WrongKey,
)
from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring
from compaction_ledger.infrastructure.keys.keyring_format import EpochKey, decode, encode

KEYS = [EpochKey("file:1", 1, bytes(range(32))), EpochKey("file:2", 2, bytes(range(32, 64)))]
GOOD: dict[str, Any] = json.loads(encode(KEYS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FileKeyring.open(tmp_path / "keys", create=True)
    return tmp_path / "keys"


# S1: for its owner alone


def test_folder_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        FileKeyring.open(tmp_path / "a" / "keys", create=True).rotate()
    finally:
        os.umask(old)
    assert (tmp_path / "a" / "keys").stat().st_mode & 0o777 == 0o700
    assert {
        path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a" / "keys").iterdir()
    } == {"keyring.json": 0o600, "keyring.lock": 0o600}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_or_write_is_refused(folder: Path, mode: int) -> None:
    (folder / "keyring.json").chmod(mode)
    for create in (True, False):
        with pytest.raises(KeysUnavailable, match=f"mode {mode:o}.*chmod 600"):
            FileKeyring.open(folder, create=create)


@pytest.mark.parametrize("mode", [0o710, 0o750, 0o755, 0o777])
def test_a_folder_that_others_may_enter_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(KeysUnavailable, match=f"mode {mode:o}.*chmod 700"):
        FileKeyring.open(folder, create=False)


def test_a_missing_keyring_is_missing_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing, match="no keyring"):
        FileKeyring.open(tmp_path / "keys", create=False)
    assert not (tmp_path / "keys").exists()


def test_a_keyring_that_goes_away_is_missing(folder: Path) -> None:
    keyring = FileKeyring.open(folder, create=True)
    epoch, wrapped = keyring.wrap(b"secret", b"")
    (folder / "keyring.json").unlink()
    with pytest.raises(KeyMissing):  # what is in memory is not used on behind the operator's back
        keyring.unwrap(epoch, wrapped, b"")
    with pytest.raises(KeyMissing):
        keyring.rotate()


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys" / "keyring.json").mkdir()
    with pytest.raises(KeysUnavailable):
        FileKeyring.open(tmp_path / "keys", create=True)


# the format, closed by default


def test_what_is_written_is_read() -> None:
    assert decode(encode(KEYS), "it") == tuple(KEYS)


def _with(**members: Any) -> bytes:
    return json.dumps({**GOOD, **members}).encode()


def _epoch(**members: Any) -> bytes:
    return _with(epochs=[{**GOOD["epochs"][0], **members}])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        encode(KEYS)[:-3],
        encode(KEYS) + b"{}",
        encode(KEYS).replace(b'"version": 1', b'"version": 1, "version": 1'),
        encode(KEYS).replace(b'"created": 1', b'"created": 1, "created": 1'),
        encode(KEYS) + b" " * 1_048_576,
        _with(format="another"),
        _with(version=True),
        _with(version=1.0),
        _with(version=0),
        _with(version="1"),
        _with(more=1),
        _with(epochs=[]),
        _with(epochs={}),
        _with(epochs=[1]),
        _with(epochs=[GOOD["epochs"][0], GOOD["epochs"][0]]),
        _epoch(id=""),
        _epoch(id=1),
        _epoch(id="é"),
        _epoch(id="x" * 65),
        _epoch(created=-1),
        _epoch(created=1.5),
        _epoch(created=True),
        _epoch(key=None),
        _epoch(key="AAAA"),
        _epoch(key=GOOD["epochs"][0]["key"].rstrip("=")),
        _epoch(key=GOOD["epochs"][0]["key"][:-2] + "9="),  # the same bytes, spelled in another way
        _epoch(key=GOOD["epochs"][0]["key"] + "\n"),
        _epoch(key="é"),
        _epoch(more=1),
    ],
)
def test_what_is_not_of_its_form_is_refused(data: bytes) -> None:
    with pytest.raises(WrongKey, match=r"^the keyring") as caught:
        decode(data, "the keyring")
    said = everything_of(caught.value)
    assert not any(text in said for one in KEYS for text in spellings(one.key))  # S4


def test_a_newer_version_is_told_apart() -> None:
    with pytest.raises(NewerFormat, match="version 2"):
        decode(_with(version=2, more="of it"), "it")


def _outcome(keyring: FileKeyring, wrapped: tuple[str, bytes]) -> str:
    """It opens, where only the time or white space was hit; else one of three errors."""
    try:
        assert keyring.unwrap(*wrapped, b"") == b"secret"
    except (KeyMissing, WrongKey, NewerFormat) as error:
        return everything_of(error)
    return ""


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_keyring_that_was_changed_never_opens_as_another(
    folder: Path, data: st.DataObject
) -> None:
    path = folder / "keyring.json"
    good = path.read_bytes()
    keyring = FileKeyring.open(folder, create=False)
    key = decode(good, "it")[0].key
    wrapped = keyring.wrap(b"secret", b"")
    at = data.draw(st.integers(0, len(good) - 1))
    changed = bytes([good[at] ^ data.draw(st.integers(1, 255))])
    path.write_bytes(good[:at] + changed + good[at + 1 :])
    said = _outcome(keyring, wrapped)
    assert not any(text in said for text in spellings(key))  # S4
    path.write_bytes(good)
    assert keyring.unwrap(*wrapped, b"") == b"secret"


# S4


def test_a_key_is_not_shown_or_pickled() -> None:
    key = EpochKey("file:1", 1, b"k" * 32)
    assert "kkkk" not in f"{key!r} {key} {[key]}"
    with pytest.raises(TypeError, match="holds secrets"):
        pickle.dumps(key)
