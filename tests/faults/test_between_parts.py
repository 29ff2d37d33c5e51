"""Where keys, erasures, signers, witnesses and bundles meet (K1 to K5, S1, S3), all at once, or one of
another ledger.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import pytest
from command_line import call
from histories import SCOPE, bring_in, fill, present_job
from manipulated import GOOD, LATE, OTHER, REQUESTED, SIZE, Original, original
from manipulations import SQLiteVictim, Victim
from manipulations_beside import (
    data_keys,
    keys_of,
    request_made_up,
    tombstone_made_up,
)
from manipulations_of_rows import key_of_another, key_of_nobody
from witnesses import running_witness

from compaction_ledger import Ledger, bundle_verifier
from compaction_ledger.domain.erasure import ErasedFact
from compaction_ledger.domain.errors import DamagedLog, Erased, KeyMissing, LedgerError
from compaction_ledger.settings import Settings


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pg_server: str
) -> Iterator[Original]:
    """A ledger with some of everything, encrypted."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        yield stack.enter_context(original(request.param, folder, pg_server))


@pytest.fixture
def victim(ledger: Original, tmp_path: Path) -> Victim:
    """A copy of it."""
    return ledger.copied(tmp_path / "copy")


# --- all at once ---


@contextmanager
def meanwhile(*acts: Callable[[], object]) -> Iterator[None]:
    """Each act in a thread of its own; what they raise is raised when the context ends."""
    errors: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def test_verification_finds_nothing_while_others_write_erase_and_sign(victim: Victim) -> None:  # K4
    names = [f"c-{number}" for number in range(15)]
    done = threading.Event()
    verified = 0

    def write() -> None:
        try:
            for name in names:
                with suppress(Erased):
                    victim.grow(name)
        finally:
            done.set()

    def erase() -> None:
        with victim.opened() as ledger:
            for name in names:
                ledger.erase(name, scope=SCOPE, unknown=True)  # of some nothing is recorded yet

    def sign() -> None:
        while not done.is_set():
            victim.sign()

    with meanwhile(write, erase, sign):
        while not done.is_set():
            with victim.opened(read_only=True) as ledger:
                assert ledger.verify().findings == ()
                verified += 1
    assert verified > 2
    with victim.opened() as ledger:
        assert ledger.verify().findings == ()
        assert ledger.size() > SIZE + 2 * len(names)


def test_what_is_erased_during_a_rebuild_stays_away(victim: Victim) -> None:  # S3
    done = threading.Event()

    def rebuild() -> None:
        while not done.is_set():
            with victim.opened() as ledger:
                ledger.rebuild()

    def erase() -> None:
        try:
            with victim.opened() as ledger:
                for name in (GOOD, OTHER, LATE):
                    ledger.erase(name, scope=SCOPE, unknown=True)
        finally:
            done.set()

    with meanwhile(rebuild, erase):
        pass
    with victim.opened() as ledger:
        ledger.catch_up()
        assert {row.conversation for row in ledger.ranges()} == set()
        assert ledger.verify().findings == ()


def test_a_key_that_comes_while_its_conversation_is_erased_is_destroyed(
    victim: Victim,
) -> None:  # S3
    """A worker that asked for a key before the erasure began, and records before it is requested."""
    with victim.opened() as ledger, victim.opened() as other:
        parts = other._parts
        fill(parts, 40, "c-plain")
        job = present_job(parts, conversation="c-plain")
        assert ledger._parts.eraser is not None

        def on_step(step: str) -> None:
            if step == "begun":
                ring = parts.ring
                assert ring is not None
                checked, ring.check = ring.check, lambda *_: None  # type: ignore[method-assign]
                bring_in(parts, job, "a secret")
                ring.check = checked  # type: ignore[method-assign]

        done = ledger.erase("c-plain", scope=SCOPE, on_step=on_step)
        (index,) = (one.idx for one in victim.rows()[SIZE:] if one.topic == "SummaryImported@1")
        assert done.requested > index
        key = victim.rows()[index].payload[1:17].hex()
        assert ledger.verify().findings == ()
    with data_keys(victim) as connection:
        found = connection.execute("SELECT wrapped FROM data_keys WHERE id = ?", (key,))
        assert found.fetchall() == [(b"",)]


# --- changed references ---


@pytest.mark.parametrize("change", [key_of_nobody, key_of_another])
def test_nothing_is_erased_where_another_key_would_be_destroyed(
    victim: Victim, change: Callable[[Victim], object]
) -> None:  # S3
    change(victim)
    with victim.opened() as ledger:
        with pytest.raises(DamagedLog, match="name"):
            ledger.erase(GOOD, scope=SCOPE)
        assert ledger.size() == SIZE
        assert {entry.index for entry in ledger.events()} == set(range(SIZE))
    with data_keys(victim) as connection:
        ((states,),) = connection.execute("SELECT count(*) FROM erasures").fetchall()
        assert states == 1  # that of GONE


# --- keys that are not there ---


def test_without_keys_the_seal_is_checked_and_it_is_said_that_no_more_is(
    victim: Victim,
) -> None:  # S3
    shutil.rmtree(keys_of(victim))
    shutil.rmtree(victim.checkpoints)
    assert victim.verify().findings == ()
    with victim.opened(read_only=True) as ledger:
        (finding,) = ledger.verify().findings
        assert finding.code == "keys"
        assert "the seal was checked" in finding.message
        with pytest.raises(KeyMissing):
            list(ledger.events())


def test_data_keys_that_are_no_database(victim: Victim) -> None:  # S3
    (keys_of(victim) / "data-keys.db").write_bytes(b"nonsense" * 1000)
    with victim.opened(read_only=True) as ledger:
        assert ledger.verify(seal_only=True).findings == ()  # which needs none
        (finding,) = ledger.verify().findings
    assert finding.code == "keys"
    assert "without the keys" in finding.message


def test_the_command_says_it_plainly(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(victim, SQLiteVictim):
        pytest.skip("the command is the same for both")
    monkeypatch.setenv("COMPACTION_LEDGER_KEYS", str(keys_of(victim).with_name("none")))
    monkeypatch.setenv("COMPACTION_LEDGER_CHECKPOINTS", str(keys_of(victim).with_name("none")))
    place = Path(victim.place)
    done = call("verify", ledger=place)
    assert done.code == 1
    assert "the seal was checked" in " ".join(done.out.split())
    assert call("verify", "--seal-only", ledger=place).code == 0


# --- plain payloads ---


def test_a_ledger_may_be_mixed_if_somebody_means_it(tmp_path: Path) -> None:  # S1
    path = tmp_path / "ledger.db"
    modes: list[Literal["on", "off"]] = ["on", "off", "on"]
    for number, encryption in enumerate(modes):
        with Ledger.open(path, settings=Settings(encryption=encryption)) as ledger:
            fill(ledger._parts, 40, f"c-{number}")
            bring_in(ledger._parts, present_job(ledger._parts, conversation=f"c-{number}"))
            assert ledger.verify().findings == ()
            assert len(list(ledger.events())) == number + 1


def test_a_ledger_that_was_plain_goes_on_encrypted(tmp_path: Path) -> None:  # S1
    path = tmp_path / "ledger.db"
    modes: list[Literal["on", "off"]] = ["off", "on"]
    for number, encryption in enumerate(modes):
        with Ledger.open(path, settings=Settings(encryption=encryption)) as ledger:
            if not number:
                fill(ledger._parts, 60)
            bring_in(ledger._parts, present_job(ledger._parts, 10 * number))
            assert ledger.verify().findings == ()


# --- what is not of this ledger ---


class _Answer(BaseHTTPRequestHandler):
    data = b""

    def do_GET(self) -> None:
        """Whatever is asked for."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.data)))
        self.end_headers()
        self.wfile.write(self.data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""


@pytest.mark.slow
def test_a_witness_that_answers_with_another_log(victim: Victim, tmp_path: Path) -> None:  # K3
    folder = tmp_path / "another"
    settings = Settings(keys_folder=folder / "keys", checkpoints_folder=folder / "checkpoints")
    folder.mkdir()
    another = SQLiteVictim(folder / "ledger.db", settings)
    another.grow("c-1")
    another.sign()
    with running_witness(tmp_path / "witness", another.verifier_keys()) as witness:
        witness.cosign(another)
        with another.opened(read_only=True) as opened:
            note = witness.client().latest(opened.newest_checkpoint().origin)
    assert note is not None
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answer", (_Answer,), {"data": note}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        setting = f"http://127.0.0.1:{server.server_address[1]} {witness.key}"
        found = victim.verify(witnesses=[setting]).findings
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [finding.code for finding in found] == ["witness"]


@pytest.mark.parametrize("change", [tombstone_made_up, request_made_up])
def test_a_bundle_does_not_hide_by_an_erasure_that_was_made_up(
    victim: Victim, tmp_path: Path, change: Callable[[Victim], object]
) -> None:  # K5, S3
    """It is not exported, or its verifier says so: only what a signed request erased is hidden."""
    keys = victim.verifier_keys()
    change(victim)
    path = tmp_path / "bundle.zip"
    try:
        with victim.opened() as ledger:
            ledger.export(path, sign=True)
    except LedgerError:
        return
    with pytest.raises(bundle_verifier.BundleError):
        bundle_verifier.verify(path, keys)


def test_what_was_erased_stays_erased_in_a_ledger_without_its_tombstones(
    victim: Victim,
) -> None:  # S3
    """The database knows of the request, and the keys do not any more; verification names it."""
    with data_keys(victim) as connection:
        connection.execute("DELETE FROM erasures")
    with victim.opened(read_only=True) as ledger:
        assert any(isinstance(entry.fact, ErasedFact) for entry in ledger.events())
        codes = {(finding.code, finding.index) for finding in ledger.verify().findings}
        assert ("erasure", REQUESTED) in codes
