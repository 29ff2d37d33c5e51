"""K1, K2, S4: the signer's keys in files."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from at_once import all_at_once

from compaction_ledger.domain.errors import InvalidInput, UnusableSignerKey
from compaction_ledger.domain.proof.notes import VerifierKey, parse_verifier_key
from compaction_ledger.infrastructure.proof.keys import PRIVATE, PUBLIC, SignerKeys

NAME = "compaction-ledger/0123456789abcdef0123456789abcdef"
# From the documentation of Go's golang.org/x/mod/sumdb/note.
GO_PRIVATE = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where nothing is yet."""
    return tmp_path / "made" / "keys"


def keys_in(folder: Path) -> Sequence[VerifierKey]:
    return SignerKeys(folder, NAME).verifier_keys()


def test_k1_looking_makes_no_key_and_signing_makes_one(folder: Path) -> None:
    keys = SignerKeys(folder, NAME)
    assert [*keys.verifier_keys(), *keys.active_keys(), *keys.verifiers()] == []
    assert not folder.exists()
    (signer,) = keys.signers()
    assert signer.name == NAME
    assert [one.verifier_key for one in SignerKeys(folder, NAME).signers()] == [signer.verifier_key]
    assert list(keys_in(folder)) == [signer.verifier_key]
    assert (folder.stat().st_mode & 0o777, (folder / PRIVATE).stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    (verifier,) = keys.verifiers()
    assert verifier.verify(b"text", signer.sign(b"text"))


def test_k1_many_who_make_the_first_key_have_one(folder: Path) -> None:
    def made(_: int, wait: Callable[[], object]) -> bytes:
        wait()
        (signer,) = SignerKeys(folder, NAME).signers()
        return signer.key_id

    assert len(set(all_at_once(8, made))) == 1
    assert sorted(path.name for path in folder.iterdir()) == [PRIVATE]


def test_k1_the_first_key_is_made_beside_one_who_rotates(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds the lock takes the other's temporary file for what a dead writer left behind."""
    link = os.link
    rotated: list[VerifierKey] = []

    def rotate_and_link(source: Path, path: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        rotated.append(SignerKeys(folder, NAME).rotate())
        link(source, path)

    monkeypatch.setattr(os, "link", rotate_and_link)
    (signer,) = SignerKeys(folder, NAME).signers()
    assert [signer.verifier_key] == rotated == list(SignerKeys(folder, NAME).active_keys())


def test_k2_go_s_private_key_is_read(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    path = folder / PRIVATE
    path.write_text(GO_PRIVATE + "\n")
    path.chmod(0o600)
    keys = SignerKeys(folder, "PeterNeumann")
    assert str(keys.signers()[0].verifier_key) == GO_PUBLIC
    with pytest.raises(UnusableSignerKey, match="the key of PeterNeumann, the log is"):
        SignerKeys(folder, NAME).signers()


def test_k2_a_new_key_replaces_the_old_one_which_still_verifies(folder: Path) -> None:
    keys = SignerKeys(folder, NAME)
    (old,) = keys.signers()
    signature = old.sign(b"text")
    new = keys.rotate()
    assert [one.verifier_key for one in keys.signers()] == [new]
    assert list(keys.verifier_keys()) == [new, old.verifier_key]
    assert any(one.verify(b"text", signature) for one in keys.verifiers())
    newest = keys.rotate()
    assert list(keys.verifier_keys()) == [newest, new, old.verifier_key]
    lines = (folder / PUBLIC).read_text().splitlines()
    assert [parse_verifier_key(line) for line in lines] == [newest, new, old.verifier_key]


def test_k2_keys_may_overlap_up_to_four(folder: Path) -> None:
    keys = SignerKeys(folder, NAME)
    for count in range(2, 5):
        keys.rotate(overlap=True)
        assert len(keys.signers()) == len(keys.active_keys()) == count
    with pytest.raises(InvalidInput, match="4 keys sign already"):
        keys.rotate(overlap=True)
    new = keys.rotate()
    assert list(keys.active_keys()) == [new]
    assert len(keys.verifier_keys()) == 5


def test_k2_an_overlap_is_ended_and_one_key_is_left(folder: Path) -> None:
    keys = SignerKeys(folder, NAME)
    (old,) = keys.signers()
    with pytest.raises(InvalidInput, match="the only key"):
        keys.retire(old.key_id)
    new = keys.rotate(overlap=True)
    with pytest.raises(InvalidInput, match="no key of the id 00000000"):
        keys.retire(bytes(4))
    assert keys.retire(old.key_id) == old.verifier_key
    assert list(keys.active_keys()) == [new]
    assert list(keys.verifier_keys()) == [new, old.verifier_key]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o700 | 0o011])
def test_s4_a_key_that_others_may_read_is_refused(folder: Path, mode: int) -> None:
    SignerKeys(folder, NAME).signers()
    (folder / PRIVATE).chmod(mode)
    for use in (SignerKeys.signers, SignerKeys.rotate, SignerKeys.verifier_keys):
        with pytest.raises(UnusableSignerKey, match=f"mode {mode:04o}"):
            use(SignerKeys(folder, NAME))


def test_s4_a_folder_that_others_may_write_is_refused(folder: Path) -> None:
    SignerKeys(folder, NAME).signers()
    folder.chmod(0o770)
    with pytest.raises(UnusableSignerKey, match="mode 0770"):
        SignerKeys(folder, NAME).signers()
    folder.chmod(0o750)
    SignerKeys(folder, NAME).signers()


def secret_of(line: str) -> str:
    """The part of a private key that is one. Base64 has a plus, too."""
    return line.split("+", 4)[4]


def spoiled(line: str) -> list[str]:
    secret = secret_of(line)
    start = line.removesuffix(f"+{secret}")
    return [
        "",
        line[:-1],
        line.replace("PRIVATE+KEY+", ""),
        line.replace("PRIVATE", "private"),
        f"{start}+{secret[4:]}",
        f"{start}+Aw{secret[2:]}",
        line.replace(start[-8:], "00000000"),
        line + "\n" + "nothing",
        "\n".join([line] * 5),
        "\xff",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_s4_a_spoiled_key_is_refused_and_not_shown(folder: Path, number: int) -> None:
    SignerKeys(folder, NAME).signers()
    path = folder / PRIVATE
    line = path.read_text().strip()
    path.write_bytes(spoiled(line)[number].encode("latin-1") + b"\n")
    with pytest.raises(UnusableSignerKey) as refusal:
        SignerKeys(folder, NAME).signers()
    assert PRIVATE in str(refusal.value)
    secret = secret_of(line)
    told = "".join((str(refusal.value), repr(refusal.value), repr(refusal.getrepr())))
    assert secret[4:30] not in told


def test_s4_a_signer_does_not_show_or_hand_on_its_key(folder: Path) -> None:
    (signer,) = SignerKeys(folder, NAME).signers()
    secret = secret_of((folder / PRIVATE).read_text().strip())
    assert secret[4:30] not in f"{signer!r} {signer} {signer.private!r}"
    with pytest.raises(TypeError):
        pickle.dumps(signer)


@pytest.mark.parametrize("text", ["nonsense\n", GO_PUBLIC + "\n", "\xff", "x" * 300_000])
def test_k2_a_spoiled_list_of_keys_is_refused(folder: Path, text: str) -> None:
    SignerKeys(folder, NAME).signers()
    (folder / PUBLIC).write_bytes(text.encode("latin-1"))
    with pytest.raises(Exception, match=PUBLIC):
        keys_in(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Exception, match="keys"):
        SignerKeys(tmp_path / "keys", NAME).signers()
