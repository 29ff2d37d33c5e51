"""`checkpoint`, `work` and `verify` with a witness, copies and time stamps, as operators use them (K3)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import call, run
from copies import copy_ledger
from witness_logs import LooseLog
from witnesses import RunningWitness, WitnessProcess, running_witness

from compaction_ledger.domain.proof.notes import parse_note

VARIABLES = (
    "COMPACTION_LEDGER_WITNESSES",
    "COMPACTION_LEDGER_COPIES",
    "COMPACTION_LEDGER_TIMESTAMPS",
)
ROLES = ["user", "assistant"]


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def signed(ledger: Path) -> Path:
    """The demonstration's ledger, signed once."""
    call("checkpoint", ledger=ledger).fine()
    return ledger


def keys_of(ledger: Path) -> list[str]:
    """The public keys that sign a ledger."""
    document = call("keys", "show", "--json", ledger=ledger).fine().json
    return [key["key"] for key in document["signers"]]


@pytest.fixture
def witness(signed: Path, tmp_path: Path) -> Iterator[RunningWitness]:
    with running_witness(tmp_path / "witness", keys_of(signed)) as running:
        yield running


def cut(ledger: Path, size: int) -> None:
    """Cut the tail off, and set the head back."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("DROP TRIGGER stored_events_no_delete")
        connection.execute("DELETE FROM stored_events WHERE idx >= ?", (size,))
        connection.execute("UPDATE log_head SET size = ?", (size,))


@pytest.mark.slow
def test_from_the_checkpoint_to_the_fork(
    signed: Path, witness: RunningWitness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # K3, K4
    once = tmp_path / "once"
    monkeypatch.setenv("COMPACTION_LEDGER_WITNESSES", witness.setting)
    monkeypatch.setenv("COMPACTION_LEDGER_COPIES", f"{once}, ")
    document = call("checkpoint", "--json", ledger=signed).fine().json
    assert (document["cosigned"], document["failures"]) == ([witness.name], [])
    assert document["copies"] == [f"the folder {once}"]
    assert len(parse_note(document["note"].encode()).signatures) == 2
    shown = call("checkpoint", ledger=signed).fine().out
    assert f"Cosigned by  {witness.name}" in shown

    size = document["size"]
    verified = call("verify", "--json", ledger=signed).fine().json
    assert (verified["heads"], verified["signed"]) == (1, size)  # the same, in three places
    assert verified["witnesses"] == [witness.name]
    shown = call("verify", ledger=signed).fine().out
    assert f"Asked the witness {witness.name}.\n" in shown
    assert f"with 1 signed head: the first {size} events are as they were signed" in shown

    cut(signed, 10)
    shutil.rmtree(f"{signed}.checkpoints")
    done = call("verify", "--seal-only", "--json", ledger=signed)
    assert done.code == 1
    (fork,) = done.json["findings"]
    assert (fork["code"], fork["index"]) == ("fork", 10)
    assert witness.name in fork["sides"][0]
    assert fork["sides"][1].splitlines()[1] == "10"
    text = call("verify", "--seal-only", ledger=signed).out
    assert "Signed (fork):" in text
    assert "The log now (fork):" in text

    monkeypatch.delenv("COMPACTION_LEDGER_WITNESSES")
    call("verify", "--seal-only", ledger=signed).fine()  # nobody is left who knows
    given = ["--witness", witness.url, "--witness-key", witness.key]
    assert call("verify", "--seal-only", *given, ledger=signed).code == 1
    (copy,) = (path for path in once.rglob("*") if path.is_file())
    (key,) = keys_of(signed)
    done = call(
        "verify", "--seal-only", "--checkpoint", copy, "--key", key, "--json", ledger=signed
    )
    assert [finding["code"] for finding in done.json["findings"]] == ["rollback"]


@pytest.mark.slow
def test_a_witness_that_is_away(
    signed: Path, witness: RunningWitness, monkeypatch: pytest.MonkeyPatch
) -> None:  # K3
    monkeypatch.setenv("COMPACTION_LEDGER_WITNESSES", witness.setting)
    witness.stop()
    done = call("checkpoint", "--json", ledger=signed)
    assert (done.code, done.err) == (1, "")
    (failure,) = done.json["failures"]
    assert (failure["name"], failure["code"]) == (witness.name, "witness_unavailable")
    assert "witness_unavailable" in call("checkpoint", ledger=signed).out
    done = call("verify", "--json", ledger=signed)
    assert [finding["code"] for finding in done.json["findings"]] == ["witness"]


@pytest.mark.slow
def test_a_worker_has_its_checkpoints_cosigned(
    signed: Path, witness: RunningWitness, transcript: Path
) -> None:  # K3
    call("import", transcript, "--conversation", "more", ledger=signed).fine()
    words = ["work", "--until-idle", "--sign-every", "60", "--json", "--ledger", str(signed)]
    done = run(*words, COMPACTION_LEDGER_WITNESSES=witness.setting)
    assert done.code == 0, done
    note = witness.client().latest(_origin(signed))
    assert note is not None
    size = call("verify", "--json", ledger=signed).fine().json["events"]
    assert parse_note(note).text.splitlines()[1] == str(size)


def _origin(ledger: Path) -> str:
    with closing(sqlite3.connect(ledger)) as connection:
        ((origin,),) = connection.execute("SELECT origin FROM log_head")
        return str(origin)


def test_keys_are_read_from_files(signed: Path, witness: RunningWitness, tmp_path: Path) -> None:
    ours, its = tmp_path / "ours", tmp_path / "its"
    another = LooseLog(_origin(signed)).key
    ours.write_text("\n".join([another, *keys_of(signed), ""]))  # several in one file
    its.write_text(f"{witness.key}\n")
    words = ["--key", f"@{ours}", "--witness", witness.url, "--witness-key", f"@{its}", "--json"]
    done = call("verify", *words, ledger=signed)
    assert done.json["witnesses"] == [witness.name]
    assert (done.json["heads"], done.json["signed"]) == (1, done.json["events"])
    ours.write_text(f"{another}\n")
    done = call("verify", *words, ledger=signed)
    assert "checkpoint" in {finding["code"] for finding in done.json["findings"]}


@pytest.mark.slow
def test_a_witness_reads_the_keys_of_logs_from_a_file(signed: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("\n".join([LooseLog().key, *keys_of(signed)]))
    process = WitnessProcess(tmp_path / "w", [f"@{file}"])
    try:
        words = ["checkpoint", "--json", "--ledger", signed]
        done = run(*words, COMPACTION_LEDGER_WITNESSES=process.setting)
        assert (done.code, len(done.json["cosigned"])) == (0, 1)
    finally:
        assert process.stop() == 0


@pytest.mark.slow
def test_two_logs_of_one_size(signed: Path, witness: RunningWitness, tmp_path: Path) -> None:  # K4
    """The witness has cosigned another log than the one that is here, of the same size."""
    words = ["--witness", witness.url, "--witness-key", witness.key]
    other = copy_ledger(signed, tmp_path / "other.db")
    for place in ("keys", "checkpoints"):
        shutil.copytree(f"{signed}.{place}", f"{other}.{place}", dirs_exist_ok=True)
    for ledger, messages in ((signed, "one"), (other, "two")):
        chat = tmp_path / f"{messages}.json"
        chat.write_text(json.dumps([{"role": r, "content": messages} for r in ROLES * 30]))
        call("import", chat, "--conversation", messages, ledger=ledger).fine()
        call("compact", messages, ledger=ledger).fine()
    call("checkpoint", ledger=signed).fine()
    run("checkpoint", "--ledger", other, COMPACTION_LEDGER_WITNESSES=witness.setting).fine()
    before = call("verify", "--json", ledger=signed).fine().json
    done = call("verify", *words, "--json", ledger=signed)
    assert done.code == 1
    (fork,) = done.json["findings"]
    assert fork["code"] == "fork"
    size = before["signed"]
    assert f"two different logs of {size} events were signed" in fork["message"]
    assert [side.splitlines()[1] for side in fork["sides"]] == [str(size)] * 2
    assert fork["sides"][0].splitlines()[2] != fork["sides"][1].splitlines()[2]
    assert done.json["signed"] == fork["index"] < size
    text = call("verify", *words, ledger=signed).out
    assert f"Asked the witness {witness.name}." in text
    assert f"the first {size} events" not in text


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_file_without_a_key_is_wrong_usage(
    signed: Path, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_text(content)
    for words in (
        ["verify", "--key", f"@{file}"],
        ["verify", "--witness", "http://127.0.0.1:1", "--witness-key", f"@{file}"],
    ):
        assert str(file) in call(*words, ledger=signed).failed("usage").replace("\n", "")
    done = run("witness", "serve", "--folder", tmp_path / "w", "--log-key", f"@{file}", "--json")
    assert done.code == 2
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--witness", "http://127.0.0.1:1"], "usage"),
        (["--witness", "http://u:secret@127.0.0.1:1", "--witness-key", "k"], "invalid_setting"),
        (["--checkpoint", "none", "--key", "nonsense"], "invalid_setting"),
    ],
)
def test_wrong_words(signed: Path, words: list[str], code: str) -> None:
    assert "secret" not in call("verify", *words, ledger=signed).failed(code)


def test_wrong_settings(signed: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # S4
    for name, value in (
        ("COMPACTION_LEDGER_WITNESSES", "http://u:secret@127.0.0.1:1 key"),
        ("COMPACTION_LEDGER_TIMESTAMPS", "http://u:secret@127.0.0.1:1 /none.pem"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            assert "secret" not in call("checkpoint", ledger=signed).failed("invalid_setting")
