"""Erasure and what may go wrong with it (S3, S4): kills at each step, old backups, keys lost or mixed up."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from backends import PostgresBackend, SQLiteBackend
from command_line import call
from erasures import RUN, fill_everything
from histories import SCOPE
from window_runs import RememberingSummarizer, growing, window_on

from compaction_ledger import Ledger
from compaction_ledger.domain.erasure import ErasedFact, ErasureCompleted, ErasureRequested
from compaction_ledger.domain.errors import Erased, KeyMissing, StoreError, WrongKey
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.erasing import Resumed

GONE, KEPT = "c-gone", "c-kept"
WORDS = (b"apple", b"c-gone", b"Never spend more than 500 euros on apple")
STORES = ("transcripts", "originals", "history", "work", "read_models")
STEPS = ("begun", "requested", "key destroyed", *STORES, "scrubbed", "purged", "completed")
TASK = Path(__file__).parents[1] / "support" / "erasure_tasks.py"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a ledger with two conversations that are everywhere."""
    store = SQLiteBackend(tmp_path_factory.mktemp("original"))
    fill_everything(store.open(), KEPT, "pear")
    fill_everything(store.open(), GONE, "apple")
    store.close()
    return store.folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of it, keys and all."""
    return Path(shutil.copytree(original, tmp_path / "ledger"))


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresBackend]:
    store = PostgresBackend(tmp_path)
    fill_everything(store.open(), KEPT, "pear")
    fill_everything(store.open(), GONE, "apple")
    yield store
    store.close()


def erase_in_a_process(place: Path | str, conversation: str, step: str = "") -> int:
    """Its exit code; minus nine where it was killed."""
    done = subprocess.run(
        [sys.executable, TASK, place, SCOPE, conversation, step],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == "" or step == "", done.stderr
    return done.returncode


def is_refused(ledger: Ledger) -> bool:
    try:
        ledger.assemble(GONE, scope=SCOPE, budget=10**6)
    except Erased:
        return True
    return False


def found_in(folder: Path) -> dict[str, list[bytes]]:
    """Every file below, with the words of the erased conversation that stand in it, byte for byte."""
    found: dict[str, list[bytes]] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            words = [
                word
                for word in WORDS
                if word in content or word.decode().encode("utf-16-le") in content
            ]
            if words:
                found[path.name] = words
    return found


def is_erased_once(ledger: Ledger) -> None:
    """All is done, nothing is done twice, and the other conversation is whole."""
    assert is_refused(ledger)
    verification = ledger.verify()
    assert verification.findings == ()
    told = [
        type(entry.fact)
        for entry in ledger.events()
        if isinstance(entry.fact, ErasureRequested | ErasureCompleted)
    ]
    assert told == [ErasureRequested, ErasureCompleted]
    assert ledger.resume_erasures() == Resumed((), (), 0)
    assert all(ledger.summary_text(row) for row in ledger.summaries(KEPT, scope=SCOPE))
    assert ledger.window_pins(KEPT, run=RUN, scope=SCOPE)


@pytest.mark.slow
def test_the_words_are_there_to_be_found(folder: Path) -> None:
    assert found_in(folder)["ledger.db"] == list(WORDS)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_is_completed_by_the_next(folder: Path, step: str) -> None:
    place = folder / "ledger.db"
    assert erase_in_a_process(place, GONE, step) == -signal.SIGKILL
    with Ledger.open(place) as ledger:
        assert is_refused(ledger)  # from the first step on
    assert erase_in_a_process(place, "--resume") == 0
    with Ledger.open(place) as ledger:
        is_erased_once(ledger)
    assert found_in(folder) == {}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["begun", "requested", "history", "purged"])
def test_killed_and_asked_for_again_by_name(folder: Path, step: str) -> None:
    place = folder / "ledger.db"
    assert erase_in_a_process(place, GONE, step) == -signal.SIGKILL
    assert erase_in_a_process(place, GONE, "key destroyed") == -signal.SIGKILL
    assert erase_in_a_process(place, GONE) == 0
    with Ledger.open(place) as ledger:
        is_erased_once(ledger)
    assert found_in(folder) == {}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_on_postgresql(postgres: PostgresBackend, step: str) -> None:
    assert erase_in_a_process(postgres.url, GONE, step) in (-signal.SIGKILL, 0)
    with Ledger.open(postgres.url) as ledger:
        assert is_refused(ledger)
    assert erase_in_a_process(postgres.url, "--resume") == 0
    with Ledger.open(postgres.url) as ledger:
        is_erased_once(ledger)
    database = postgres.database()
    schemas = (database.address.schema, database.address.read_models_schema)
    tables = database.call(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(%s)", (list(schemas),)
    )
    assert len(tables) > 20
    for schema, table in tables:
        dump = f'SELECT string_agg(t::text, chr(10)) FROM "{schema}"."{table}" AS t'
        ((rows,),) = database.call(dump.encode())
        for word in WORDS:
            assert word.decode() not in (rows or ""), table
            assert word.hex() not in (rows or ""), table


def test_no_word_is_left_in_any_file(folder: Path) -> None:
    """Write-ahead log, full-text index and side files included (S3)."""
    with Ledger.open(folder / "ledger.db") as other:  # which reads meanwhile, as others do
        other.events()
        with Ledger.open(folder / "ledger.db") as ledger:
            ledger.erase(GONE, scope=SCOPE)
        assert found_in(folder) == {}
    assert found_in(folder) == {}


def test_a_restored_backup_stays_unreadable_and_can_be_erased_again(folder: Path) -> None:
    """The database comes back; what is kept outside of it says that the conversation does not (S3)."""
    place = folder / "ledger.db"
    backup = Path(shutil.copy(place, folder.parent / "backup.db"))
    with Ledger.open(place) as ledger:
        ledger.erase(GONE, scope=SCOPE)
    for path in folder.glob("ledger.db*"):
        if path.is_file():
            path.unlink()
    shutil.copy(backup, place)
    with Ledger.open(place) as ledger:
        assert is_refused(ledger)
        for act in (
            lambda: ledger.summaries(GONE, scope=SCOPE),
            lambda: ledger.window_pins(GONE, scope=SCOPE),
            lambda: ledger.transcripts.conversation(SCOPE, GONE),
            lambda: ledger.history(GONE, from_pair=0, scope=SCOPE),
            lambda: ledger.compact(GONE, scope=SCOPE),
        ):
            with pytest.raises(Erased):
                act()
        assert (SCOPE, GONE) not in set(ledger.conversations())
        assert len(ledger.resume_erasures().erasures) == 1
        is_erased_once(ledger)
    assert found_in(folder) == {}


def test_a_restored_keyring_without_the_data_key_opens_nothing(folder: Path) -> None:
    """The data key is not in the keyring: that only wrapped it."""
    place = folder / "ledger.db"
    keyring = (folder / "ledger.db.keys" / "keyring.json").read_bytes()
    backup = Path(shutil.copy(place, folder.parent / "backup.db"))
    with Ledger.open(place) as ledger:
        done = ledger.erase(GONE, scope=SCOPE)
    assert (folder / "ledger.db.keys" / "keyring.json").read_bytes() == keyring
    other = folder.parent / "other"
    (other / "keys").mkdir(parents=True, mode=0o700)
    shutil.copy(backup, other / "ledger.db")
    shutil.copytree(folder / "ledger.db.keys", other / "keys", dirs_exist_ok=True)
    with Ledger.open(
        other / "ledger.db", settings=Settings(keys_folder=other / "keys")
    ) as restored:
        assert is_refused(restored)
    assert done.reference


def test_a_missing_keyring_is_an_error_and_is_not_made_anew(folder: Path) -> None:
    keyring = folder / "ledger.db.keys" / "keyring.json"
    kept = keyring.read_bytes()
    keyring.unlink()
    with Ledger.open(folder / "ledger.db") as ledger:
        assembly = ledger.assemble(GONE, scope=SCOPE, budget=10**6)
        assert assembly.manifest.summaries == ()  # the originals are there, and no summary is (H9)
        assert {rejected.reason for rejected in assembly.manifest.rejected} == {"damaged"}  # H8
        with pytest.raises(KeyMissing):
            ledger.history(GONE, from_pair=0, scope=SCOPE)
        with pytest.raises(KeyMissing):
            list(ledger.events())
        assert ledger.verify(seal_only=True).findings == ()
    assert not keyring.exists()
    keyring.write_bytes(kept)
    keyring.chmod(0o600)
    with Ledger.open(folder / "ledger.db") as ledger:
        assert ledger.verify().findings == ()


def test_missing_data_keys_are_an_error(folder: Path) -> None:
    (folder / "ledger.db.keys" / "data-keys.db").unlink()
    with Ledger.open(folder / "ledger.db") as ledger, pytest.raises(KeyMissing):
        list(ledger.events())


def test_anothers_keyring_is_an_error(folder: Path, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "another.db") as another:
        fill_everything(another._parts, KEPT, "plum")
    strange = (tmp_path / "another.db.keys" / "keyring.json").read_bytes()
    (folder / "ledger.db.keys" / "keyring.json").write_bytes(strange)
    with Ledger.open(folder / "ledger.db") as ledger:
        with pytest.raises((KeyMissing, WrongKey)):
            list(ledger.events())
        with pytest.raises(StoreError):
            ledger.history(GONE, from_pair=0, scope=SCOPE)


@pytest.mark.parametrize("lost", ["keyring.json", "data-keys.db"])
def test_the_command_line_says_which_key_and_never_that_it_was_erased(
    folder: Path, lost: str
) -> None:
    (folder / "ledger.db.keys" / lost).unlink()
    done = call("log", "--json", ledger=folder / "ledger.db")
    done.failed("key_missing")


@pytest.mark.slow
def test_erasing_by_the_command_line(folder: Path) -> None:
    place = folder / "ledger.db"
    call("erase", ledger=place).failed("usage")
    call("erase", "--resume", "--conversation", GONE, ledger=place).failed("usage")
    found = call(
        "erase", "--conversation", GONE, "--scope", SCOPE, "--yes", "--json", ledger=place
    ).fine()
    (erased,) = found.json["erased"]
    assert erased["purged"] == list(STORES)
    call("erase", "--conversation", GONE, "--scope", SCOPE, "--yes", ledger=place).failed("erased")
    assert call("erase", "--resume", "--json", ledger=place).fine().json["erased"] == []
    call("plan", GONE, "--scope", SCOPE, ledger=place).failed("erased")
    events = call("log", "--json", "--limit", 1000, ledger=place).fine().json["events"]
    gone = [event for event in events if event["erased"]]
    assert {event["fact"]["subject"] for event in gone} == {erased["reference"]}
    assert {event["conversation"] for event in gone} == {None}
    shown = call("log", "--limit", 1000, ledger=place).fine().out
    assert shown.count("erased") == len(gone)
    call("verify", ledger=place).fine()


def secrets_of(folder: Path) -> list[bytes]:
    """The key-encryption key of a ledger, and the data keys of its conversations."""
    keyring = json.loads((folder / "ledger.db.keys" / "keyring.json").read_text())
    held = [base64.b64decode(epoch["key"]) for epoch in keyring["epochs"]]
    with Ledger.open(folder / "ledger.db") as ledger:
        ring = ledger._parts.ring
        log: Any = ledger._parts.context.log
        assert ring is not None
        held += [ring.secret(one.key) for one in log.sealed.subjects().values()]
    assert [len(secret) for secret in held] == [32, 32, 32]
    return held


def test_secrets_stand_nowhere_but_in_their_files(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S4: neither in the ledger nor in its checkpoints, its answers, its errors, or what it logs."""
    caplog.set_level("DEBUG")
    place = folder / "ledger.db"
    call("checkpoint", ledger=place).fine()
    held = secrets_of(folder)
    shown: list[str] = []
    with Ledger.open(place) as ledger:
        shown += [repr(ledger._parts), repr(ledger._parts.ring), repr(ledger.key_epochs())]
        ledger.erase(GONE, scope=SCOPE)
        with pytest.raises(Erased) as error:
            ledger.history(GONE, from_pair=0, scope=SCOPE)
        shown += [repr(error.value), str(error.value), repr(error.value.__cause__)]
    for words in (["keys", "show"], ["log"], ["status"], ["verify"], ["keys", "rotate", "--json"]):
        done = call(*words, ledger=place).fine()
        shown += [done.out, done.err]
    shown.append(caplog.text)
    forms = [
        form
        for secret in held
        for form in (secret, secret.hex().encode(), base64.b64encode(secret)[:-1])
    ]
    assert not any(form in text.encode() for form in forms for text in shown)
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "keyring.json":
            assert not any(form in path.read_bytes() for form in forms), path


# --- backups of one without the other ---


def test_a_backup_from_before_its_first_event_brings_no_conversation_back(tmp_path: Path) -> None:
    """The database knows no reference for it then: its lines are found by its name (S3)."""
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        for name in (GONE, KEPT):
            lines = [NewMessage(f"{name}-1", "r", "user", f"apple of {name}")]
            ledger.transcripts.append(SCOPE, name, lines, [NewRun("r", "completed")])
    backup = shutil.copy(place, tmp_path / "backup.db")
    with Ledger.open(place) as ledger:
        ledger.erase(GONE, scope=SCOPE)
    shutil.copy(backup, place)
    with Ledger.open(place) as ledger:
        told = [one.message for one in ledger.verify().findings if one.code == "erasure"]
        assert [message for message in told if "erase --resume" in message]
        assert ledger.erasure_leftovers() == [(SCOPE, GONE)]
        assert ledger.resume_erasures() == Resumed((), (), 1)
        assert ledger.erasure_leftovers() == []
        assert not [one for one in ledger.verify().findings if "--resume" in one.message]
        assert set(ledger.conversations()) == {(SCOPE, KEPT)}
    assert b"apple of c-gone" not in place.read_bytes()
    shutil.copy(backup, place)
    with Ledger.open(place) as ledger, pytest.raises(Erased):
        ledger.erase(GONE, scope=SCOPE)  # asked for by name, it goes as well
    assert b"apple of c-gone" not in place.read_bytes()


def test_older_keys_beside_the_present_database_open_nothing_that_was_erased(folder: Path) -> None:
    """The log says what was erased, and with which key: that is destroyed once more (S3)."""
    place, keys = folder / "ledger.db", folder / "ledger.db.keys"
    shutil.copytree(keys, folder.parent / "old-keys")
    with Ledger.open(place) as ledger:
        done = ledger.erase(GONE, scope=SCOPE)
        size = ledger.size()
    shutil.rmtree(keys)
    shutil.copytree(folder.parent / "old-keys", keys)
    with Ledger.open(place) as ledger:
        facts = [entry.fact for entry in ledger.events()]
        erased = [fact for fact in facts if isinstance(fact, ErasedFact)]
        assert {fact.subject for fact in erased} == {done.reference}
        ledger.rebuild()
        assert ledger.ranges(GONE, scope=SCOPE) == []
        assert ledger.resume_erasures() == Resumed((), (done.reference,), 0)
        assert ledger.size() == size
        assert ledger.verify().findings == ()
        ring = ledger._parts.ring
        log: Any = ledger._parts.context.log
        assert ring is not None
        with pytest.raises(Erased):
            ring.secret(log.sealed.subject_of(done.reference).key)


@pytest.mark.parametrize("lost", ["data-keys.db", "keyring.json", "everything"])
def test_without_keys_nothing_is_said_to_be_erased_and_none_are_made(
    folder: Path, lost: str
) -> None:
    keys = folder / "ledger.db.keys"
    shutil.copytree(keys, folder.parent / "kept")
    if lost == "everything":
        shutil.rmtree(keys)
    else:
        (keys / lost).unlink()
    with Ledger.open(folder / "ledger.db") as ledger:
        if lost != "keyring.json":
            with pytest.raises(KeyMissing, match="COMPACTION_LEDGER_KEYS"):
                ledger.resume_erasures()
        with pytest.raises(KeyMissing):
            ledger.erase(GONE, scope=SCOPE)
        lines = [NewMessage("n", "r", "user", "Hello")]
        ledger.transcripts.append(SCOPE, "c-new", lines, [NewRun("r", "completed")])
        window = window_on(ledger._parts, RememberingSummarizer(), place=(SCOPE, "c-new", RUN))
        for messages in growing(14):
            window.prepare(messages)
        with pytest.raises(KeyMissing):
            window.compact()
    shutil.rmtree(keys, ignore_errors=True)
    shutil.copytree(folder.parent / "kept", keys)
    with Ledger.open(folder / "ledger.db") as ledger:
        assert ledger.verify().findings == ()
