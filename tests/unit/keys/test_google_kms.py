"""What is particular to Google Cloud KMS, on a loopback server, through Google's own client."""

from __future__ import annotations

from collections.abc import Iterator

import google_kms_server as server
import pytest
from google_kms_server import RING, CryptoKey, GoogleServer, google_client, running_google
from key_services import GoogleService, black_hole, everything_of, fresh_secret, spellings

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    StoreError,
)
from compaction_ledger.infrastructure.keys import google_kms
from compaction_ledger.infrastructure.keys.google_kms import GoogleKms

SECRET = b"a data key"


@pytest.fixture(scope="module")
def running() -> Iterator[GoogleServer]:
    with running_google() as found:
        yield found


@pytest.fixture
def service(running: GoogleServer) -> Iterator[GoogleService]:
    yield GoogleService(running)
    running.garble = running.denies = None
    running.pending = 0


def test_the_epoch_is_the_primary_version(service: GoogleService) -> None:  # S1, S2
    provider = service.open()
    assert provider.current_epoch() == f"{service.key}/cryptoKeyVersions/1"
    assert provider.rotate() == f"{service.key}/cryptoKeyVersions/2"
    assert service.server.keys[service.key].primary == 2
    for _ in range(9):
        provider.rotate()
    assert [epoch.rpartition("/")[2] for epoch in provider.epochs()] == [
        str(number) for number in range(1, 12)
    ]


def test_a_rotation_waits_until_the_version_is_made(
    service: GoogleService, monkeypatch: pytest.MonkeyPatch
) -> None:  # S2
    monkeypatch.setattr(google_kms, "_POLL_SECONDS", 0.01)
    service.server.pending = 3
    assert service.open().rotate() == f"{service.key}/cryptoKeyVersions/2"
    monkeypatch.setattr(google_kms, "ROTATION_SECONDS", 0.0)
    service.server.pending = 100
    with pytest.raises(KeysUnavailable, match="still being made"):
        service.open().rotate()
    assert service.server.keys[service.key].primary == 2
    service.server.pending = 0
    assert service.open().rotate() == f"{service.key}/cryptoKeyVersions/4"  # goes on after it


@pytest.mark.parametrize("garble", ["encrypt request", "encrypt answer", "decrypt answer"])
def test_what_is_damaged_on_the_way_is_noticed(service: GoogleService, garble: str) -> None:
    provider = service.open()
    wrapped = provider.wrap(SECRET, b"")
    service.server.garble = garble
    with pytest.raises(KeysUnavailable, match="damaged on the way"):
        provider.unwrap(*(provider.wrap(SECRET, b"") if "encrypt" in garble else wrapped), b"")
    service.server.garble = None
    assert provider.unwrap(*wrapped, b"") == SECRET


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (server.DISABLED, KeysUnavailable),
        (server.DESTROY_SCHEDULED, KeysUnavailable),
        (server.DESTROYED, KeyMissing),
    ],
)
def test_a_version_that_does_not_open_any_more(
    service: GoogleService, state: int, kind: type[StoreError]
) -> None:  # S3
    provider = service.open()
    wrapped = provider.wrap(SECRET, b"")
    provider.rotate()
    service.server.keys[service.key].versions[0].state = state
    with pytest.raises(kind) as caught:
        provider.unwrap(*wrapped, b"")
    assert type(caught.value) is kind
    assert list(provider.epochs()) == [f"{service.key}/cryptoKeyVersions/2"]


def test_an_error_does_not_keep_the_request(service: GoogleService) -> None:  # S4
    secret = fresh_secret()
    service.server.keys[service.key].versions[0].state = server.DISABLED
    with pytest.raises(KeysUnavailable) as caught:
        service.open().wrap(secret, b"")
    said = everything_of(caught.value)
    assert not any(text in said for text in spellings(secret))


def test_a_key_that_is_not_there_is_missing(service: GoogleService) -> None:
    nowhere = f"{RING}/cryptoKeys/nowhere"
    provider = GoogleKms(google_client(service.server.url), nowhere)
    for call in (
        provider.current_epoch,
        provider.epochs,
        provider.rotate,
        lambda: provider.wrap(SECRET, b""),
        lambda: provider.unwrap(f"{nowhere}/cryptoKeyVersions/1", b"x", b""),
        lambda: service.open().unwrap(f"{service.key}/cryptoKeyVersions/7", b"x", b""),
    ):
        with pytest.raises(KeyMissing):
            call()


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    service: GoogleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(google_kms, "CALL_SECONDS", 0.1)
    with black_hole() as url, pytest.raises(KeysUnavailable, match="timed out"):
        GoogleKms(google_client(url), service.key).current_epoch()


def test_who_is_not_allowed_is_told_so(service: GoogleService) -> None:
    service.server.denies = 403
    with pytest.raises(KeysUnavailable, match="Permission denied"):
        service.open().current_epoch()


@pytest.mark.parametrize("key", [CryptoKey(purpose=5), CryptoKey(primary=0)])
def test_a_key_for_something_else_is_no_setting_for_this(
    service: GoogleService, key: CryptoKey
) -> None:
    service.server.keys[service.key] = key
    with pytest.raises(InvalidSetting):
        service.open().wrap(SECRET, b"")
