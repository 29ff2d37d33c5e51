"""`export` and the verifier of bundles: what an operator and an auditor do (K5, S3)."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import call
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger import Ledger, bundle_verifier
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.proof.notes import NoteSignature, parse_note
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Cosigner

CONVERSATION = "chat"


@pytest.fixture
def ledger(transcript: Path, tmp_path: Path) -> Path:
    """A ledger with two conversations, in a folder of its own."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    path = folder / "ledger.db"
    for name in (CONVERSATION, "other"):
        call("import", transcript, "--conversation", name, ledger=path).fine()
        call("compact", name, ledger=path).fine()
    return path


def verified(bundle: Path, key: str, *words: str) -> tuple[int, str]:
    """Run the verifier as an auditor does."""
    done = subprocess.run(
        [sys.executable, "-I", bundle_verifier.__file__, str(bundle), "--key", key, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("which", [("--all",), ("--conversation", CONVERSATION)])
def test_an_operator_exports_and_an_auditor_verifies(
    ledger: Path, tmp_path: Path, which: tuple[str, ...]
) -> None:
    bundle = tmp_path / "bundle.zip"
    words = ("export", *which, "--sign", "--output", bundle, "--json")
    document = call(*words, ledger=ledger).fine().json
    (key,) = document["keys"]
    assert document["later"] == 0
    assert document["kind"] == ("log" if which == ("--all",) else "conversation")
    code, said = verified(bundle, key, "--json")
    found = json.loads(said)
    assert (code, found["ok"], found["sha256"]) == (0, True, document["sha256"])
    assert (found["events"], found["root"]) == (document["events"], document["root"])
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_it_says_what_an_auditor_needs(ledger: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    words = ("export", "--conversation", CONVERSATION, "--with-envelopes", "--sign", "-o", bundle)
    said = call(*words, ledger=ledger).fine().out
    key = said.partition("Verifier key: ")[2].splitlines()[0]
    code, report = verified(bundle, key)
    assert code == 0
    assert "No event of this conversation is left out" in report


@pytest.mark.slow
def test_what_came_later_is_said(ledger: Path, tmp_path: Path) -> None:
    call("export", "--all", "--sign", "-o", tmp_path / "1.zip", ledger=ledger).fine()
    with Ledger.open(ledger) as opened:
        assembly = opened.assemble(CONVERSATION, budget=40_000)
        opened.record_delivery(assembly)
    said = call("export", "--all", "-o", tmp_path / "2.zip", ledger=ledger).fine().out
    assert "1 event came after the checkpoint and not into the bundle" in said
    document = call("export", "--all", "--sign", "-o", tmp_path / "3.zip", "--json", ledger=ledger)
    assert (document.json["later"], document.json["checkpoints"]) == (0, 1)
    first, third = ((tmp_path / name).read_bytes() for name in ("1.zip", "2.zip"))
    assert first == third  # the same checkpoint of the same log


@pytest.mark.slow
def test_as_of_a_checkpoint_in_a_file(ledger: Path, tmp_path: Path) -> None:
    call("export", "--all", "--sign", "-o", tmp_path / "1.zip", ledger=ledger).fine()
    note = tmp_path / "note"
    with zipfile.ZipFile(tmp_path / "1.zip") as archive:
        note.write_bytes(archive.read("checkpoint"))
    words = ("export", "--all", "--checkpoint", note, "-o", tmp_path / "2.zip")
    call(*words, ledger=ledger).fine()
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    call(*words, "--sign", "--force", ledger=ledger).failed("invalid_setting")
    note.write_text("not a note")
    call(*words, "--force", ledger=ledger).failed("malformed_proof")
    note.unlink()
    assert "note" in call(*words, "--force", ledger=ledger).failed("store_unavailable")


@pytest.mark.slow
def test_the_signatures_of_witnesses_go_along(ledger: Path, tmp_path: Path) -> None:
    """K3: they are kept beside the checkpoints, by size."""
    first = call("export", "--all", "--sign", "-o", tmp_path / "1.zip", "--json", ledger=ledger)
    key, size = first.json["keys"][0], first.json["size"]
    folder = Path(f"{ledger}.checkpoints")
    note = parse_note((folder / "checkpoint").read_bytes())
    witness = Ed25519Cosigner("w.example", Ed25519PrivateKey.generate(), lambda: 1_750_000_000)
    made = NoteSignature(witness.name, witness.key_id, witness.sign(note.text.encode()))
    (folder / "cosigned").mkdir()
    (folder / "cosigned" / str(size)).write_bytes(note.and_signed([made]).encode())
    call("export", "--all", "-o", tmp_path / "2.zip", ledger=ledger).fine()
    named = ("--witness", str(witness.verifier_key))
    assert verified(tmp_path / "1.zip", key, *named)[0] == 1
    code, said = verified(tmp_path / "2.zip", key, *named)
    assert code == 0
    assert "The witness w.example saw it at 2025-06-15T15:06:40Z" in said


@pytest.mark.slow
def test_an_erased_conversation(ledger: Path, tmp_path: Path) -> None:
    """S3: it is exported by its reference, once its erasure is signed, and the log still verifies."""
    call("checkpoint", ledger=ledger).fine()
    erased = call("erase", "--conversation", CONVERSATION, "--yes", "--json", ledger=ledger).json
    reference = erased["erased"][0]["reference"]
    words = ("export", "--all", "-o", tmp_path / "all.zip")
    said = call(*words, ledger=ledger).failed("invalid_setting")
    assert "erased after the checkpoint: sign a new one first" in said
    assert list(tmp_path.glob("*.zip")) == list(tmp_path.glob(".*.part")) == []
    document = call(*words, "--sign", "--json", ledger=ledger).fine().json
    (key,) = document["keys"]
    code, said = verified(tmp_path / "all.zip", key)
    assert code == 0
    assert "6 events cannot be read any more, and the log records their erasure" in said
    named = ("export", "--conversation", CONVERSATION, "-o", tmp_path / "one.zip")
    call(*named, ledger=ledger).failed("unknown_conversation")
    by_reference = ("export", "--subject", reference, "-o", tmp_path / "one.zip")
    call(*by_reference, ledger=ledger).fine()
    assert verified(tmp_path / "one.zip", key)[0] == 0
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert (manifest["subject"], manifest["conversation"]) == (reference, None)


def test_nothing_was_signed(ledger: Path, tmp_path: Path) -> None:
    said = call("export", "--all", "-o", tmp_path / "x.zip", ledger=ledger).failed(
        "invalid_setting"
    )
    assert "nothing was signed yet: run checkpoint, or export with --sign" in said
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.slow
def test_a_file_that_is_there_is_kept(ledger: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    bundle.write_text("mine")
    words = ("export", "--all", "--sign", "-o", bundle)
    assert "--force" in call(*words, ledger=ledger).failed("invalid_setting")
    assert bundle.read_text() == "mine"
    call(*words, "--force", ledger=ledger).fine()
    assert bundle.read_bytes()[:4] == b"PK\x03\x04"


@pytest.mark.slow
def test_wrong_usage(ledger: Path, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "x.zip")
    for words in (
        (),
        ("--all", "--conversation", CONVERSATION),
        ("--all", "--subject", "0" * 32),
        ("--all", "--with-envelopes"),
    ):
        call("export", *words, *out, ledger=ledger).failed("usage")
    call("export", "--conversation", "none", "--sign", *out, ledger=ledger).failed(
        "unknown_conversation"
    )
    call("export", "--subject", "0" * 32, "--sign", *out, ledger=ledger).failed(
        "unknown_conversation"
    )
    call("export", "--subject", "../x", "--sign", *out, ledger=ledger).failed("invalid_setting")
    call("export", "--all", "--sign", "-o", tmp_path / "none" / "x", ledger=ledger).failed(
        "invalid_setting"
    )


@pytest.mark.slow
def test_the_python_face(ledger: Path, tmp_path: Path) -> None:
    with Ledger.open(ledger) as opened:
        made = opened.export(tmp_path / "x.zip", conversation=CONVERSATION, sign=True)
        assert verified(made.path, made.keys[0])[0] == 0
        with pytest.raises(InvalidSetting, match="either a conversation or its reference"):
            opened.export(tmp_path / "y.zip", conversation="a", subject="0" * 32)
    with Ledger.in_memory() as opened, pytest.raises(InvalidSetting, match="nothing was signed"):
        opened.export(tmp_path / "z.zip")
