"""Where published checkpoints go: witnesses, copies that are never replaced, time stamps (K3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import aws_servers
import pytest
from manipulations import Victim, other_text, victim
from signed_logs import signed_log
from timestamp_authority import TimestampAuthority, running_authority
from witnesses import running_witness

from compaction_ledger import InvalidSetting
from compaction_ledger.domain.errors import (
    BadTimestamp,
    Forked,
    LedgerReadOnly,
    StoreUnavailable,
    TimestampUnavailable,
    WitnessRefused,
    WitnessUnavailable,
)
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.notes import NoteSignature, parse_note, sign_note
from compaction_ledger.infrastructure.proof.beside import BesideFolder
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)
from compaction_ledger.infrastructure.proof.folder import CheckpointFolder
from compaction_ledger.infrastructure.proof.s3_copies import S3Copies
from compaction_ledger.infrastructure.proof.write_once import FolderCopies
from compaction_ledger.infrastructure.timestamps.rfc3161 import Rfc3161Authority, trusted
from compaction_ledger.infrastructure.witness.keys import witness_key
from compaction_ledger.usecases.signing import LogSigner
from compaction_ledger.usecases.spreading import Spread, Spreader


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Victim]:
    """A ledger of three events in a file, signed."""
    with victim("sqlite", tmp_path, "") as made:
        made.grow("c-1")
        made.sign()
        yield made


@pytest.fixture(scope="module")
def authority() -> Iterator[TimestampAuthority]:
    """A time-stamp authority."""
    with running_authority() as running:
        yield running


def spread(log: Victim, **settings: object) -> Spread:
    """Sign and spread, under these settings."""
    log.settings = log.settings.model_copy(update=settings)
    with log.opened() as ledger:
        found = ledger.spread(ledger.checkpoint())
    assert found is not None
    return found


def kinds(found: Spread) -> list[type[Exception]]:
    return [type(error) for _, error in found.failures]


# --- witnesses ---


@pytest.mark.slow
def test_a_checkpoint_is_cosigned_and_kept_with_that(log: Victim, tmp_path: Path) -> None:  # K3
    with (
        running_witness(tmp_path / "w1", log.verifier_keys()) as one,
        running_witness(tmp_path / "w2", log.verifier_keys()) as two,
    ):
        settings = (one.setting, two.setting)
        found = spread(log, witnesses=settings)
        assert (found.cosigned, found.failures) == ((one.name, two.name), ())
        newest = (log.checkpoints / "checkpoint").read_bytes()
        assert newest == (log.checkpoints / "cosigned" / "3").read_bytes() == found.note
        assert {sig.name for sig in parse_note(newest).signatures} >= {one.name, two.name}
        assert len(parse_note((log.checkpoints / "checkpoints" / "3").read_bytes()).signatures) == 1
        again = spread(log)
        assert (again.note, again.cosigned) == (found.note, found.cosigned)  # nobody was asked

        log.grow("c-2", 3)
        assert spread(log).cosigned == (one.name, two.name)
        with log.opened(read_only=True) as ledger:
            assert ledger.verify().ok
            (proof,) = ledger.prove(4)
        assert one.name in proof.checkpoint.decode()


@pytest.mark.slow
def test_a_witness_that_is_away_is_asked_the_next_time(log: Victim, tmp_path: Path) -> None:  # K3
    keys = log.verifier_keys()
    with (
        running_witness(tmp_path / "w1", keys) as one,
        running_witness(tmp_path / "w2", keys) as two,
    ):
        two.stop()
        found = spread(log, witnesses=(one.setting, two.setting))
        assert (found.cosigned, kinds(found)) == ((one.name,), [WitnessUnavailable])
    with running_witness(tmp_path / "w2", keys) as back:
        found = spread(log, witnesses=(one.setting, back.setting))
        assert (found.cosigned, found.failures) == ((one.name, back.name), ())
        assert len(parse_note(found.note).signatures) == 3


class Asked:
    """A witness that signs, once something has happened, unless it is away."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.is_away = False
        self.meanwhile: Callable[[], object] = lambda: None
        self._key = witness_key(folder / name, lambda: 1, name)

    def add(self, request: WitnessRequest) -> tuple[NoteSignature, ...]:
        if self.is_away:
            raise WitnessUnavailable("away")
        self.meanwhile()
        return sign_note(parse_note(request.checkpoint).text, [self._key]).signatures

    def latest(self, origin: str) -> bytes | None:
        raise AssertionError(origin)


def test_what_two_who_spread_were_given_is_kept(tmp_path: Path) -> None:  # K3
    """One looked before the other kept what its witness signed, and keeps its own behind it."""
    one, two = Asked(tmp_path, "w1"), Asked(tmp_path, "w2")
    with signed_log(tmp_path, 3) as log:
        signed = log.signer().sign()
        beside = BesideFolder(log.published)
        spreader = Spreader(beside, [one, two], [], None)

        def spread_beside() -> None:
            one.meanwhile = lambda: None
            one.is_away, two.is_away = True, False
            assert spreader.spread(signed.data, lambda _: ()).cosigned == ("w2",)
            one.is_away, two.is_away = False, True

        one.meanwhile = spread_beside
        assert spreader.spread(signed.data, lambda _: ()).cosigned == ("w1",)
        for note in (beside.cosigned(3), log.published.newest()):
            assert note is not None
            names = [signature.name for signature in parse_note(note).signatures]
            assert sorted(names) == sorted([log.origin, "w1", "w2"])
        assert spreader.spread(signed.data, lambda _: ()).cosigned == ("w1", "w2")


def test_a_new_signature_of_the_same_size_is_not_replaced(tmp_path: Path) -> None:  # K2, K3
    """While a witness is asked, a new key signs what the old one has signed."""
    witness = Asked(tmp_path, "w1")
    with signed_log(tmp_path, 3) as log:
        signed = log.signer().sign()
        new = Ed25519Signer(log.origin, private_key(bytes([9]) * 32))
        keys = [Ed25519Verifier(key.verifier_key) for key in (new, log.key)]

        def sign() -> None:
            assert LogSigner(log.tree, log.published, [new], keys, "two").sign().new

        witness.meanwhile = sign
        spreader = Spreader(BesideFolder(log.published), [witness], [], None)
        spreader.spread(signed.data, lambda _: ())
        newest = log.published.newest()
        assert newest is not None
        found = {(each.name, each.key_id) for each in parse_note(newest).signatures}
        assert {(log.origin, new.key_id), (log.origin, log.key.key_id)} <= found
        assert "w1" in {name for name, _ in found}


def test_a_time_stamp_is_kept_beside_a_signer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # K3
    """Who signs takes its temporary file for what a dead writer left behind."""
    folder = CheckpointFolder(tmp_path / "checkpoints")
    with folder.locked():
        folder.publish(1, b"note")
    link = os.link

    def sign_and_link(source: Path, path: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        with folder.locked():
            pass
        link(source, path)

    monkeypatch.setattr(os, "link", sign_and_link)
    BesideFolder(folder).keep_timestamp(1, b"stamp")
    assert BesideFolder(folder).timestamp(1) == b"stamp"
    assert [path.name for path in folder.folder.glob(".tmp-*")] == []


def test_where_there_is_no_folder_no_time_stamp_is_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoints")
    with folder.locked(), pytest.raises(StoreUnavailable):
        BesideFolder(folder).keep_timestamp(1, b"stamp")


def test_a_witness_that_does_not_know_the_log_or_the_key(log: Victim, tmp_path: Path) -> None:  # K3
    folder = tmp_path / "another"
    folder.mkdir()
    with victim("sqlite", folder, "") as another:
        another.grow("c")
        with running_witness(
            tmp_path / "w", another.verifier_keys() or _signed(another)
        ) as witness:
            found = spread(log, witnesses=(witness.setting,))
            (error,) = (error for _, error in found.failures)
            assert isinstance(error, WitnessRefused)
            assert error.reason == "unknown_log"


def _signed(log: Victim) -> list[str]:
    log.sign()
    return log.verifier_keys()


@pytest.mark.slow
def test_a_fork_shows_both_sides(log: Victim, tmp_path: Path) -> None:  # K3
    log.grow("c-2", 2)
    with running_witness(tmp_path / "w", log.verifier_keys()) as witness:
        assert spread(log, witnesses=(witness.setting,)).failures == ()
        log.put(log.rows()[:3])
        log.forget_signing()
        log.grow("c-other", 4)
        found = spread(log)
        (error,) = (error for _, error in found.failures)
        assert isinstance(error, Forked)
        ours, theirs = error.sides
        assert parse_note(ours.encode()).text.splitlines()[1] == "15"
        assert parse_note(theirs.encode()).text.splitlines()[1] == "9"
        assert witness.name in theirs


def test_a_log_that_was_set_back(log: Victim, tmp_path: Path) -> None:  # K3
    log.grow("c-2", 2)
    with running_witness(tmp_path / "w", log.verifier_keys()) as witness:
        spread(log, witnesses=(witness.setting,))
        log.cut(3)
        log.forget_signing()
        (error,) = (error for _, error in spread(log).failures)
        assert isinstance(error, WitnessRefused)
        assert (error.reason, error.size) == ("stale", 9)


# --- copies ---


@pytest.mark.slow
def test_copies_in_a_folder(log: Victim, tmp_path: Path) -> None:  # K3
    place = tmp_path / "once"
    found = spread(log, checkpoint_copies=(str(place),))
    assert found.copies == (f"the folder {place}",)
    (copy,) = (path for path in place.rglob("*") if path.is_file())
    assert copy.read_bytes() == (log.checkpoints / "checkpoints" / "3").read_bytes()
    assert copy.parent.name == parse_note(copy.read_bytes()).text.splitlines()[0].rpartition("/")[2]
    assert spread(log).failures == ()

    log.rewrite(other_text(0))
    log.forget_signing()
    (error,) = (error for _, error in spread(log).failures)
    assert isinstance(error, Forked)
    ours, theirs = error.sides
    assert theirs == copy.read_text()
    assert ours != theirs
    copy.write_bytes(b"nonsense")
    assert kinds(spread(log)) == [Forked]


def test_a_folder_that_cannot_be_written(log: Victim, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kinds(spread(log, checkpoint_copies=(str(tmp_path / "file" / "x"),))) == [
        StoreUnavailable
    ]


def test_copies_in_a_bucket(log: Victim) -> None:  # K3
    note = (log.checkpoints / "checkpoint").read_bytes()
    with aws_servers.running_aws() as url:
        s3, bucket = aws_servers.client("s3", url), aws_servers.fresh_name()
        with pytest.raises(StoreUnavailable):
            S3Copies(s3, bucket, "proofs").put("log/3", note)
        aws_servers.make_bucket(s3, bucket)
        copies = S3Copies(s3, bucket, "/proofs/")
        assert copies.name == f"s3://{bucket}/proofs/"
        assert copies.put("log/3", note) == note
        assert copies.put("log/3", b"other") == note
        assert s3.get_object(Bucket=bucket, Key="proofs/log/3")["Body"].read() == note
        s3.close()
    denied = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
    with aws_servers.answering(403, denied) as url, pytest.raises(LedgerReadOnly):
        S3Copies(aws_servers.client("s3", url, tries=1), "bucket").put("log/3", note)
    with pytest.raises(InvalidSetting):
        S3Copies(None, "")


@pytest.mark.slow
def test_a_fork_is_seen_in_a_bucket(log: Victim, monkeypatch: pytest.MonkeyPatch) -> None:  # K3
    """By the settings alone: boto3 finds address and credentials in the environment."""
    with aws_servers.running_aws() as url:
        s3, bucket = aws_servers.client("s3", url), aws_servers.fresh_name()
        aws_servers.make_bucket(s3, bucket)
        for name, value in (
            ("AWS_ENDPOINT_URL", url),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "not-to-be-shown"),
            ("AWS_DEFAULT_REGION", aws_servers.REGION),
        ):
            monkeypatch.setenv(name, value)
        place = f"s3://{bucket}/proofs"
        assert spread(log, checkpoint_copies=(place,)).copies == (f"{place}/",)
        assert spread(log).failures == ()
        log.rewrite(other_text(0))
        log.forget_signing()
        (error,) = (error for _, error in spread(log).failures)
        assert isinstance(error, Forked)
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="proofs/")["Contents"]
        kept = s3.get_object(Bucket=bucket, Key=listed[0]["Key"])["Body"].read().decode()
        assert (len(listed), error.sides[1]) == (1, kept)
        s3.close()
    (error,) = (error for _, error in spread(log, checkpoint_copies=(place,)).failures)
    assert isinstance(error, StoreUnavailable)
    assert "not-to-be-shown" not in str(error)


def test_the_first_of_two_writers_stays(tmp_path: Path) -> None:  # K3
    copies = FolderCopies(tmp_path)
    assert copies.put("log/1", b"one") == b"one"
    assert copies.put("log/1", b"two") == b"one"


# --- time stamps ---


def test_a_checkpoint_is_stamped(
    log: Victim, authority: TimestampAuthority, tmp_path: Path
) -> None:
    place = tmp_path / "once"
    found = spread(log, timestamps=authority.setting, checkpoint_copies=(str(place),))
    assert (found.timestamped, found.failures) == (True, ())
    copy = log.checkpoints / "checkpoints" / "3"
    response = copy.with_name("3.tsr")
    assert authority.accepts(copy, response)
    assert [path.read_bytes() for path in place.rglob("*.tsr")] == [response.read_bytes()]
    asked = authority.asked
    assert spread(log).timestamped
    assert authority.asked == asked  # one stamp is enough
    client = Rfc3161Authority.parse(authority.setting)
    note = copy.read_bytes()
    assert client.check(note, response.read_bytes()) > 1_700_000_000
    with pytest.raises(BadTimestamp):
        client.check(note + b"x", response.read_bytes())
    assert log.verify().ok


def test_a_stamp_of_somebody_else(log: Victim, authority: TimestampAuthority) -> None:  # K3
    note = (log.checkpoints / "checkpoint").read_bytes()
    with running_authority() as other:
        stranger = Rfc3161Authority(other.url, trusted(authority.root))
        with pytest.raises(BadTimestamp):
            stranger.stamp(note)


@pytest.mark.parametrize("at", [5, 60, -1])
def test_a_changed_stamp(log: Victim, authority: TimestampAuthority, at: int) -> None:  # K3
    note = (log.checkpoints / "checkpoint").read_bytes()
    client = Rfc3161Authority.parse(authority.setting)
    response = bytearray(client.stamp(note))
    response[at] ^= 1
    with pytest.raises((BadTimestamp, TimestampUnavailable)):
        client.check(note, bytes(response))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((500, "text/plain", b"no"), TimestampUnavailable),
        ((200, "text/html", b"<html>"), TimestampUnavailable),
        ((200, "application/timestamp-reply", b"nonsense"), BadTimestamp),
        (
            (200, "application/timestamp-reply", bytes.fromhex("30053003020102")),
            TimestampUnavailable,
        ),
        ((200, "application/timestamp-reply", b"x" * 300_000), TimestampUnavailable),
    ],
)
def test_an_authority_that_gives_none(
    log: Victim,
    authority: TimestampAuthority,
    answer: tuple[int, str, bytes],
    error: type[Exception],
) -> None:  # K3
    authority.answer = answer
    try:
        found = spread(log, timestamps=authority.setting)
    finally:
        authority.answer = None
    assert (found.timestamped, kinds(found)) == (False, [error])


def test_an_old_stamp_is_no_answer(log: Victim, authority: TimestampAuthority) -> None:  # K3
    note = (log.checkpoints / "checkpoint").read_bytes()
    client = Rfc3161Authority.parse(authority.setting)
    authority.answer = (200, "application/timestamp-reply", client.stamp(note))
    try:
        with pytest.raises(BadTimestamp, match="Nonce"):
            client.stamp(note)
    finally:
        authority.answer = None


@pytest.mark.parametrize(
    "setting", ["", "http://127.0.0.1:1", "http://127.0.0.1:1 /none.pem", "ftp://x /none.pem"]
)
def test_an_authority_that_is_set_wrongly(setting: str) -> None:
    with pytest.raises(InvalidSetting):
        Rfc3161Authority.parse(setting)
