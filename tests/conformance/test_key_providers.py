"""Every key provider keeps the same promises: a file, AWS KMS, Google Cloud KMS, Vault."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_servers import running_aws
from google_kms_server import GoogleServer, running_google
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from key_services import (
    AwsService,
    FileService,
    GoogleService,
    KeyService,
    VaultService,
    everything_of,
    fresh_secret,
    spellings,
)
from vault_server import VaultServer, running_vault

from compaction_ledger.domain.errors import KeyMissing, KeysUnavailable, StoreError, WrongKey
from compaction_ledger.domain.keys import MAX_EPOCH, KeyProvider
from compaction_ledger.infrastructure.keys.moved import MovedKeys

SECRET = bytes(range(32))
CONTEXT = b"compaction-ledger/0123 key 4567"

shared = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with running_aws() as url:
        yield url


@pytest.fixture(scope="module")
def google() -> Iterator[GoogleServer]:
    with running_google() as server:
        yield server


@pytest.fixture(scope="module")
def vault() -> Iterator[VaultServer]:
    with running_vault() as server:
        yield server


@pytest.fixture(params=["file", "aws-kms", "google-kms", "vault"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyService]:
    made: KeyService
    if request.param == "file":
        made = FileService(tmp_path / "keys")
    elif request.param == "aws-kms":
        made = AwsService(request.getfixturevalue("aws"))
    elif request.param == "google-kms":
        made = GoogleService(request.getfixturevalue("google"))
    else:
        made = VaultService(request.getfixturevalue("vault"))
    yield made
    made.close()


@pytest.fixture
def provider(service: KeyService) -> KeyProvider:
    return service.open()


# S1


@pytest.mark.slow
@shared
@given(secret=st.binary(min_size=1, max_size=64), context=st.binary(max_size=200))
def test_what_was_wrapped_is_opened(
    service: KeyService, provider: KeyProvider, secret: bytes, context: bytes
) -> None:
    epoch, wrapped = provider.wrap(secret, context)
    assert epoch == provider.current_epoch()
    assert provider.unwrap(epoch, wrapped, context) == secret
    assert service.open().unwrap(epoch, wrapped, context) == secret
    assert not any(text.encode() in wrapped for text in spellings(secret) if len(secret) > 8)


def test_epochs_are_short_texts(service: KeyService, provider: KeyProvider) -> None:
    assert provider.name == service.name
    assert list(provider.epochs()) == [provider.current_epoch()]
    assert 1 <= len(provider.current_epoch()) <= MAX_EPOCH


def test_the_same_key_is_wrapped_differently_each_time(provider: KeyProvider) -> None:
    assert len({provider.wrap(SECRET, CONTEXT) for _ in range(20)}) == 20


@pytest.mark.slow
@shared
@given(other=st.binary(max_size=200).filter(lambda context: context != CONTEXT))
def test_another_context_does_not_open(provider: KeyProvider, other: bytes) -> None:
    epoch, wrapped = provider.wrap(SECRET, CONTEXT)
    with pytest.raises(WrongKey):
        provider.unwrap(epoch, wrapped, other)


@pytest.mark.slow
@shared
@given(data=st.data())
def test_what_was_tampered_with_is_not_opened(
    service: KeyService, provider: KeyProvider, data: st.DataObject
) -> None:
    epoch, wrapped = provider.wrap(SECRET, CONTEXT)
    at = data.draw(st.integers(0, len(wrapped) - 1))
    changed = data.draw(
        st.sampled_from(
            [
                wrapped[:at]
                + bytes([wrapped[at] ^ data.draw(st.integers(1, 255))])
                + wrapped[at + 1 :],
                wrapped[:at],
                wrapped[at:] if at else b"",
                wrapped + data.draw(st.binary(min_size=1, max_size=4)),
                data.draw(st.binary(max_size=80)),
            ]
        )
    )
    with pytest.raises(_refusals(service)):
        provider.unwrap(epoch, changed, CONTEXT)


def _refusals(service: KeyService) -> tuple[type[StoreError], ...]:
    # Moto says "access denied" of a ciphertext whose key it does not know, where KMS calls it invalid.
    return (WrongKey, KeysUnavailable) if service.name == "aws-kms" else (WrongKey,)


def test_the_key_of_another_keyring_does_not_open(service: KeyService) -> None:
    mine, other = service.open(), service.other()
    epoch, wrapped = other.wrap(SECRET, CONTEXT)
    with pytest.raises(KeyMissing):
        mine.unwrap(epoch, wrapped, CONTEXT)
    with pytest.raises(_refusals(service)):  # said to be of an epoch that is known
        mine.unwrap(mine.current_epoch(), wrapped, CONTEXT)


@pytest.mark.parametrize(
    "epoch", ["", "nothing", "arn:x#1", "transit/x:v1", "projects/x", "é" * 300]
)
def test_an_epoch_that_is_not_known_is_missing(provider: KeyProvider, epoch: str) -> None:
    _, wrapped = provider.wrap(SECRET, CONTEXT)
    with pytest.raises(KeyMissing):
        provider.unwrap(epoch, wrapped, CONTEXT)


# S2


@pytest.mark.slow
def test_old_epochs_open_after_a_rotation(service: KeyService, provider: KeyProvider) -> None:
    waiting = service.open()
    wraps = [provider.wrap(SECRET, CONTEXT)]
    for _ in range(3):
        made = provider.rotate()
        assert made == provider.current_epoch() == waiting.current_epoch()
        wraps.append(waiting.wrap(SECRET, CONTEXT))
        assert wraps[-1][0] == made
    epochs = [epoch for epoch, _ in wraps]
    assert len(set(epochs)) == 4
    for opened in (provider, waiting, service.open()):
        assert list(opened.epochs()) == epochs
        assert all(opened.unwrap(*wrap, CONTEXT) == SECRET for wrap in wraps)


def test_the_epoch_is_authenticated(service: KeyService, provider: KeyProvider) -> None:
    old, wrapped = provider.wrap(SECRET, CONTEXT)
    new = provider.rotate()
    with pytest.raises(WrongKey):
        provider.unwrap(new, wrapped, CONTEXT)
    assert provider.unwrap(old, wrapped, CONTEXT) == SECRET


def test_keys_are_moved_to_another_provider(service: KeyService, tmp_path: Path) -> None:
    before = FileService(tmp_path / "before").open()
    old = before.wrap(SECRET, CONTEXT)
    moved = MovedKeys(service.open(), [before])
    assert moved.unwrap(*old, CONTEXT) == SECRET
    new = moved.wrap(SECRET, CONTEXT)
    assert new[0] == moved.current_epoch() == service.open().current_epoch()
    assert list(moved.epochs()) == [old[0], new[0]]
    assert moved.unwrap(*new, CONTEXT) == SECRET
    assert moved.name == service.name
    assert moved.unwrap(moved.rotate(), moved.wrap(SECRET, CONTEXT)[1], CONTEXT) == SECRET
    with pytest.raises(
        WrongKey
    ):  # it is not said to be missing: the provider that knows the epoch has spoken
        moved.unwrap(*old, b"another")
    with pytest.raises(KeyMissing):
        moved.unwrap("nobody's", old[1], CONTEXT)


# S3: none of these is ever an erasure


def test_a_service_that_is_away_is_unavailable(service: KeyService) -> None:
    epoch, wrapped = service.open().wrap(SECRET, CONTEXT)
    away = service.cut_off()
    for call in (
        away.current_epoch,
        away.epochs,
        away.rotate,
        lambda: away.wrap(SECRET, CONTEXT),
        lambda: away.unwrap(epoch, wrapped, CONTEXT),
    ):
        with pytest.raises(KeysUnavailable):
            call()


# S4


def test_no_secret_is_shown_or_copied(service: KeyService, provider: KeyProvider) -> None:
    provider.wrap(SECRET, CONTEXT)
    moved = MovedKeys(provider, [])
    for shown in (repr(provider), str(provider), f"{provider}", repr(moved), repr([provider])):
        assert not any(text in shown for key in service.secrets() for text in spellings(key))
    for holder in (provider, moved):
        for copying in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="holds secrets"):
                copying(holder)


def test_no_secret_is_logged(
    service: KeyService, provider: KeyProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = fresh_secret()
    epoch, wrapped = provider.wrap(secret, CONTEXT)
    provider.rotate()
    assert service.open().unwrap(epoch, wrapped, CONTEXT) == secret
    with pytest.raises(WrongKey):
        provider.unwrap(epoch, wrapped, b"another")
    with pytest.raises(KeysUnavailable):
        service.cut_off().wrap(secret, CONTEXT)
    said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    for one in (secret, *service.secrets()):
        assert not any(text in said for text in spellings(one))


def test_no_secret_is_in_an_error(service: KeyService, provider: KeyProvider) -> None:
    secret = fresh_secret()
    epoch, wrapped = provider.wrap(secret, CONTEXT)
    away = service.cut_off()
    for call in (
        lambda: provider.unwrap(epoch, wrapped, b"another"),
        lambda: provider.unwrap(epoch, b"\x01" + wrapped, CONTEXT),
        lambda: provider.unwrap("nothing", wrapped, CONTEXT),
        lambda: away.wrap(secret, CONTEXT),
        lambda: away.unwrap(epoch, wrapped, CONTEXT),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        said = everything_of(caught.value)
        for one in (secret, *service.secrets()):
            assert not any(text in said for text in spellings(one))
