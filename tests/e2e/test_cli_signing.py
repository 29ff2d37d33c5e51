"""`checkpoint`, `prove`, `keys`, and `work --sign-every` (K1, K2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backends import everyday_database
from command_line import call, run
from copies import copy_ledger
from jsonschema import Draft202012Validator
from pg_servers import fresh_schema
from signed_logs import cut_leaves

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.proof.checkpoints import open_checkpoint
from compaction_ledger.domain.proof.inclusion import parse_inclusion, parse_witness_request
from compaction_ledger.domain.proof.merkle import leaf_hash
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.settings import Settings


@pytest.fixture
def ledger(demo_ledger: Path, tmp_path: Path) -> Path:
    """A copy of the demonstration's ledger, with nothing signed yet."""
    return copy_ledger(demo_ledger, tmp_path / "ledger.db")


def fits(document: Any, name: str, repo_root: Path) -> None:
    """The document is of its committed schema."""
    path = repo_root / "docs" / "schemas" / f"{name}.schema.json"
    Draft202012Validator(json.loads(path.read_text())).validate(document)


def verifiers(ledger: Path) -> list[Ed25519Verifier]:
    """The keys that are handed on."""
    signers = call("keys", "show", "--json", ledger=ledger).fine().json["signers"]
    return [Ed25519Verifier.parse(one["key"]) for one in signers]


def test_a_checkpoint_is_published_beside_the_ledger(ledger: Path, repo_root: Path) -> None:
    document = call("checkpoint", "--json", ledger=ledger).fine().json
    fits(document, "checkpoint", repo_root)
    assert document["new"] is True
    folder = ledger.with_name("ledger.db.checkpoints")
    assert (folder / "checkpoint").read_text() == document["note"]
    signed = open_checkpoint(document["note"].encode(), verifiers(ledger), document["origin"])
    assert (signed.checkpoint.size, signed.checkpoint.root.hex()) == (
        document["size"],
        document["root"],
    )
    again = call("checkpoint", ledger=ledger).fine().out
    assert f"Size       {document['size']}" in again
    assert "Nothing has happened since" in again


@pytest.mark.slow
def test_prove_an_event_on_stdout_and_a_range_into_files(
    ledger: Path, tmp_path: Path, repo_root: Path
) -> None:
    message = call("prove", "--index", 2, ledger=ledger).failed("invalid_setting")
    assert "nothing was signed yet: run `compaction-ledger checkpoint` first" in message
    call("checkpoint", ledger=ledger).fine()
    proof = parse_inclusion(call("prove", "--index", 2, ledger=ledger).fine().out.encode())
    proof.check(leaf_hash(proof.extra), verifiers(ledger))
    assert proof.index == 2

    folder = tmp_path / "a" / "proofs"
    words = ["prove", "fund-research", 0, "--output", folder]
    shown = call(*words, ledger=ledger).fine().out
    files = sorted(folder.iterdir())
    assert len(files) > 3
    assert f"{len(files)} events proved" in shown
    for file in files:
        proof = parse_inclusion(file.read_bytes())
        proof.check(leaf_hash(proof.extra), verifiers(ledger))
        assert file.name == f"{proof.index}.tlog-proof"
    document = call(*words, "--json", ledger=ledger).fine().json
    fits(document, "prove", repo_root)
    assert [one["file"] for one in document["proofs"]] == [
        str(folder / f"{one['index']}.tlog-proof") for one in document["proofs"]
    ]
    many = call("prove", "--index", 0, "--index", 1, "--json", ledger=ledger).fine().json
    assert [one["index"] for one in many["proofs"]] == [0, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody", 0], "pair 0 of conversation 'nobody' in scope 'default'"),
        (["fund-research", 9990], "pair 9990 of conversation 'fund-research'"),
        (["fund-research", 3], "pair 3 of conversation 'fund-research'"),
        (["fund-research", 0, "--scope", "else"], "in scope 'else'"),
    ],
)
def test_where_nothing_was_recorded_nothing_is_proved(
    ledger: Path, tmp_path: Path, words: list[object], said: str
) -> None:
    call("checkpoint", ledger=ledger).fine()
    message = call("prove", *words, "--output", tmp_path / "p", ledger=ledger).failed(
        "invalid_input"
    )
    assert message.startswith("the log has nothing on a range that begins with")
    assert said in message
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
def test_prove_that_the_log_began_so(ledger: Path, tmp_path: Path, repo_root: Path) -> None:
    size = call("checkpoint", "--json", ledger=ledger).fine().json["size"]
    out = call("prove", "--consistency", 3, ledger=ledger).fine().out
    request = parse_witness_request(out.encode())
    assert request.old == 3
    document = call(
        "prove", "--consistency", 3, "--output", tmp_path / "p", "--json", ledger=ledger
    ).fine()
    fits(document.json, "prove", repo_root)
    assert (tmp_path / "p" / f"3-{size}.consistency").read_text() == out
    call("prove", "--consistency", size + 1, ledger=ledger).failed("invalid_setting")
    call("prove", "--index", size, ledger=ledger).failed("invalid_setting")


@pytest.mark.parametrize(
    "words", [[], ["fund-research"], ["--index", 1, "--consistency", 2], ["chat", 0, "--index", 1]]
)
def test_prove_one_thing_at_a_time(ledger: Path, words: list[object]) -> None:
    done = call("prove", *words, ledger=ledger)
    assert done.code == 2
    assert "give CONVERSATION and FROM_PAIR" in done.err


def test_a_log_that_was_cut_is_refused_with_both_heads(ledger: Path) -> None:
    size = call("checkpoint", "--json", ledger=ledger).fine().json["size"]
    cut_leaves(ledger, size - 1)
    message = call("checkpoint", ledger=ledger).failed("smaller_tree", exit_code=1)
    assert f"signed size {size}, root" in message
    assert f"found size {size - 1}, root" in message


@pytest.mark.slow
def test_keys_are_shown_and_changed(ledger: Path, repo_root: Path) -> None:
    assert "No key signs this ledger yet" in call("keys", "show", ledger=ledger).fine().out
    call("checkpoint", ledger=ledger).fine()
    (first,) = call("keys", "show", "--json", ledger=ledger).fine().json["signers"]
    both = call("keys", "rotate-signer", "--overlap", "--json", ledger=ledger).fine().json
    fits(both, "keys", repo_root)
    assert [one["signs"] for one in both["signers"]] == [True, True]
    assert both["signers"][1] == first
    signed = call("checkpoint", "--json", ledger=ledger).fine().json
    assert (signed["new"], len(signed["keys"])) == (True, 2)
    assert call("keys", "retire-signer", "xyz", ledger=ledger).code == 2
    one = call("keys", "retire-signer", first["id"], "--json", ledger=ledger).fine().json
    fits(one, "keys", repo_root)
    assert [one["signs"] for one in one["signers"]] == [True, False]
    lines = call("keys", "rotate-signer", ledger=ledger).fine().out.splitlines()
    shown = [line for line in lines if line.startswith(("signs ", "retired "))]
    assert [line.split()[0] for line in shown] == ["signs", "retired", "retired"]
    assert [Ed25519Verifier.parse(line.split()[1]) for line in shown]
    call("checkpoint", ledger=ledger).fine()


@pytest.mark.slow
def test_s4_no_command_shows_a_private_key(ledger: Path) -> None:
    told = ""
    for words in (["checkpoint"], ["keys", "show"], ["keys", "rotate-signer"], ["checkpoint"]):
        for more in ([], ["--json"]):
            done = call(*words, *more, ledger=ledger)
            told += done.out + done.err
    path = ledger.with_name("ledger.db.keys") / "signer-keys"
    path.chmod(0o644)
    message = call("checkpoint", ledger=ledger).failed("unusable_signer_key")
    assert "0644" in message
    secret = path.read_text().strip().split("+", 4)[4]
    assert secret[4:] not in told + message


@pytest.mark.slow
def test_where_keys_and_checkpoints_are_can_be_said(ledger: Path, tmp_path: Path) -> None:
    run(
        "checkpoint",
        "--ledger",
        ledger,
        COMPACTION_LEDGER_KEYS=str(tmp_path / "k"),
        COMPACTION_LEDGER_CHECKPOINTS=str(tmp_path / "c"),
    ).fine()
    assert (tmp_path / "k" / "signer-keys").exists()
    assert (tmp_path / "c" / "checkpoint").exists()
    assert not (tmp_path / "ledger.db.keys" / "signer-keys").exists()
    assert not (tmp_path / "ledger.db.checkpoints").exists()


def test_a_ledger_in_memory_is_not_signed() -> None:
    with Ledger.in_memory() as ledger, pytest.raises(InvalidSetting, match="in memory"):
        ledger.checkpoint()


def test_on_postgresql(tmp_path: Path) -> None:
    settings = Settings(keys_folder=tmp_path / "keys", checkpoints_folder=tmp_path / "checkpoints")
    database = everyday_database()
    with (
        fresh_schema(database) as schema,
        Ledger.open(f"{database}?schema={schema}", settings=settings) as ledger,
    ):
        signed = ledger.checkpoint()
        assert signed.checkpoint.size == 0
        assert ledger.newest_checkpoint() == signed.checkpoint
        assert ledger.prove_consistency(0).hashes == ()


@pytest.mark.slow
def test_work_signs_and_what_goes_wrong_with_that_disturbs_nobody(
    transcript: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.db"
    call("import", transcript, ledger=path).fine()
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    words = ["work", "--until-idle", "--sign-every", "3600", "--json", "--ledger", path]
    done = run(*words, COMPACTION_LEDGER_CHECKPOINTS=str(blocked))
    assert done.code == 1
    lines = [json.loads(line) for line in done.out.splitlines()]
    failed = [line for line in lines if line["event"] == "signing_failed"]
    assert [line["error"]["code"] for line in failed] == ["store_unavailable"] * len(failed)
    assert failed
    assert lines[-1]["counts"]["ranges_completed"] == 2
    plain = [word for word in words if word != "--json"]
    assert "is not signed" in run(*plain, COMPACTION_LEDGER_CHECKPOINTS=str(blocked)).out

    done = run(*words)
    assert done.code == 0
    assert json.loads(done.out.splitlines()[-1])["counts"]["checkpoints"] == 2
    with Ledger.open(path, read_only=True, create=False) as ledger:
        assert ledger.newest_checkpoint().size == ledger.size() > 0


@pytest.mark.slow
def test_one_of_several_processes_signs(transcript: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    call("import", transcript, ledger=path).fine()
    words = ["work", "--until-idle", "--processes", 2, "--sign-every", "3600", "--json"]
    done = run(*words, "--ledger", path).fine()
    assert json.loads(done.out.splitlines()[-1])["counts"]["checkpoints"] == 2


@pytest.mark.slow
def test_k2_no_new_key_is_made_in_silence_where_something_was_signed(ledger: Path) -> None:
    call("checkpoint", ledger=ledger).fine()
    (old,) = call("keys", "show", "--json", ledger=ledger).fine().json["signers"]
    keys = ledger.with_name("ledger.db.keys")
    signer = (keys / "signer-keys").read_bytes()
    for name in ("signer-keys", "verifier-keys"):
        (keys / name).unlink(missing_ok=True)
    message = call("checkpoint", ledger=ledger).failed("key_missing")
    assert "rotate-signer" in message
    assert not (keys / "signer-keys").exists()
    # Nor without the checkpoints: the database remembers that something was signed.
    checkpoints, elsewhere = ledger.with_name("ledger.db.checkpoints"), ledger.with_name("away")
    checkpoints.rename(elsewhere)
    call("checkpoint", ledger=ledger).failed("key_missing")
    elsewhere.rename(checkpoints)
    # On purpose, as the message says: who checks must know the key that signed before.
    (keys / "verifier-keys").write_text(old["key"] + "\n")
    call("keys", "rotate-signer", ledger=ledger).fine()
    assert (keys / "signer-keys").read_bytes() != signer
    call("assemble", "fund-research", "--budget", 10**6, "--record", ledger=ledger).fine()
    (new,) = call("checkpoint", "--json", ledger=ledger).fine().json["keys"]
    assert not new.endswith(old["id"])
