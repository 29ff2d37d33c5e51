"""What is particular to Vault, on a loopback server that ``hvac`` talks to as well."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path

import hvac
import pytest
from aws_servers import answering, serving
from hvac.exceptions import InvalidRequest
from key_services import VaultService, black_hole, everything_of
from vault_server import TOKEN, TransitKey, VaultServer, certificate, running_vault

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    LedgerError,
    WrongKey,
)
from compaction_ledger.infrastructure.keys import vault_http
from compaction_ledger.infrastructure.keys.vault import Vault

SECRET = b"a data key"


@pytest.fixture
def server() -> Iterator[VaultServer]:
    with running_vault() as running:
        yield running


@pytest.fixture
def service(server: VaultServer) -> VaultService:
    return VaultService(server)


def _open(
    service: VaultService, environment: Mapping[str, str] | None = None, key: str = ""
) -> Vault:
    named = {"VAULT_ADDR": service.server.url, "VAULT_TOKEN": TOKEN}
    return Vault.open(key or service.key, {**named, **(environment or {})})


def test_the_epoch_is_a_version_of_the_key(service: VaultService) -> None:  # S1, S2
    provider = _open(service)
    assert provider.current_epoch() == f"{service.key}:v1"
    assert provider.rotate() == f"{service.key}:v2"
    epoch, wrapped = provider.wrap(SECRET, b"")
    assert epoch == f"{service.key}:v2"
    assert wrapped.startswith(b"vault:v2:")


def test_another_client_of_vault_understands_server_and_key(service: VaultService) -> None:  # S1
    other = hvac.Client(service.server.url, TOKEN).secrets.transit
    mount, _, name = service.key.partition("/")
    provider = _open(service)
    epoch, wrapped = provider.wrap(SECRET, b"context")
    data = b"compaction-ledger/wrapped/1\x00" + epoch.encode() + b"\x00context"
    answer = other.decrypt_data(
        name, wrapped.decode(), mount_point=mount, associated_data=base64.b64encode(data).decode()
    )
    assert base64.b64decode(answer["data"]["plaintext"])[32:] == SECRET
    other.rotate_key(name, mount_point=mount)
    assert provider.current_epoch() == f"{service.key}:v2"
    assert other.read_key(name, mount_point=mount)["data"]["latest_version"] == 2
    with pytest.raises(InvalidRequest):
        other.decrypt_data(name, wrapped.decode(), mount_point=mount)


def test_a_server_that_passes_over_associated_data(service: VaultService) -> None:  # S1
    service.server.knows_associated_data = False
    provider = _open(service)
    epoch, wrapped = provider.wrap(SECRET, b"mine")
    assert provider.unwrap(epoch, wrapped, b"mine") == SECRET
    with pytest.raises(WrongKey):
        provider.unwrap(epoch, wrapped, b"another's")


def test_a_key_that_is_missing_is_not_made(service: VaultService) -> None:  # S1
    provider = _open(service, key="transit/nowhere")
    for call in (
        provider.current_epoch,
        provider.rotate,
        lambda: provider.wrap(SECRET, b""),
        lambda: provider.unwrap("transit/nowhere:v1", b"vault:v1:AAAA", b""),
    ):
        with pytest.raises(KeyMissing):
            call()
    assert "transit/nowhere" not in service.server.keys


def test_a_version_that_may_not_open_any_more_is_missing(service: VaultService) -> None:  # S3
    provider = _open(service)
    wrapped = provider.wrap(SECRET, b"")
    provider.rotate()
    service.server.keys[service.key].least = 2
    assert list(provider.epochs()) == [f"{service.key}:v2"]
    with pytest.raises(KeyMissing):
        provider.unwrap(*wrapped, b"")
    service.server.keys[service.key].least = 1
    assert provider.unwrap(*wrapped, b"") == SECRET


def test_a_server_restored_from_before_a_rotation(service: VaultService) -> None:  # S3
    provider = _open(service)
    provider.rotate()
    wrapped = provider.wrap(SECRET, b"")
    del service.server.keys[service.key].versions[1]
    with pytest.raises(KeyMissing):
        provider.unwrap(*wrapped, b"")


def test_another_spelling_of_the_same_bytes_is_refused(service: VaultService) -> None:
    provider = _open(service)
    epoch, wrapped = provider.wrap(SECRET, b"")
    assert wrapped.endswith(b"=")
    for changed in (wrapped.rstrip(b"="), wrapped + b"\n", wrapped.replace(b"v1", b"v01")):
        with pytest.raises(WrongKey):
            provider.unwrap(epoch, changed, b"")


@pytest.mark.parametrize("kind", ["rsa-2048", "ed25519", "hmac"])
def test_a_key_for_something_else_is_no_setting_for_this(service: VaultService, kind: str) -> None:
    service.server.keys[service.key] = TransitKey(kind)
    with pytest.raises(InvalidSetting, match="aes256-gcm96"):
        _open(service).wrap(SECRET, b"")


# the token


def test_the_token_file_is_read_each_time(service: VaultService, tmp_path: Path) -> None:
    file = tmp_path / "token"
    named = {"VAULT_TOKEN": "", "COMPACTION_LEDGER_VAULT_TOKEN_FILE": str(file)}
    provider = _open(service, named)
    with pytest.raises(KeysUnavailable, match="no token"):
        provider.current_epoch()
    file.write_text("hvs.another\n")
    with pytest.raises(KeysUnavailable, match="403: permission denied"):
        provider.current_epoch()
    service.server.tokens = {"hvs.another"}  # an agent has renewed it
    assert provider.current_epoch() == f"{service.key}:v1"


def test_the_token_of_vaults_own_command_line(
    service: VaultService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".vault-token").write_text(TOKEN)
    assert _open(service, {"VAULT_TOKEN": ""}).current_epoch() == f"{service.key}:v1"


@pytest.mark.parametrize("token", ["hvs.secret\nmore", "hvs.secret more", "hvs.secretÄ", "\x7f"])
def test_a_token_that_no_header_may_hold_is_not_shown(service: VaultService, token: str) -> None:
    with pytest.raises(InvalidSetting) as caught:  # S4
        _open(service, {"VAULT_TOKEN": token}).current_epoch()
    assert "secret" not in everything_of(caught.value)


# the address


@pytest.mark.parametrize(
    "address",
    [
        "http://vault.example:8200",
        "http://10.0.0.1:8200",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "127.0.0.1:8200",
        "https://",
        "https://user:password@vault.example",
        "http://[::1",
    ],
)
def test_an_address_that_would_give_the_token_away(service: VaultService, address: str) -> None:
    with pytest.raises(InvalidSetting, match="VAULT_ADDR") as caught:  # S4
        _open(service, {"VAULT_ADDR": address})
    assert "password" not in everything_of(caught.value)


def test_certificates_that_cannot_be_read(service: VaultService) -> None:
    with pytest.raises(InvalidSetting, match="VAULT_CACERT"):
        _open(service, {"VAULT_CACERT": "/nowhere.pem"})


def test_no_proxy_is_given_the_token(
    service: VaultService, monkeypatch: pytest.MonkeyPatch
) -> None:  # S4
    with running_vault() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("all_proxy", proxy.url)
        assert _open(service).current_epoch() == f"{service.key}:v1"
        assert proxy.asked == []


def test_the_servers_certificate_is_checked(service: VaultService, tmp_path: Path) -> None:  # S4
    trusted, key = certificate(tmp_path)
    with serving(service.server, (str(trusted), str(key))) as url:
        address = url.replace("http:", "https:")
        with pytest.raises(KeysUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            _open(service, {"VAULT_ADDR": address, "VAULT_SKIP_VERIFY": "1"}).current_epoch()
        assert service.server.asked == []
        provider = _open(service, {"VAULT_ADDR": address, "VAULT_CACERT": str(trusted)})
        assert provider.unwrap(*provider.wrap(SECRET, b""), b"") == SECRET


def test_a_namespace(service: VaultService) -> None:
    service.server.namespace = "team-a"
    with pytest.raises(KeyMissing):
        _open(service).current_epoch()
    provider = _open(service, {"VAULT_NAMESPACE": "team-a"})
    assert provider.unwrap(*provider.wrap(SECRET, b""), b"") == SECRET


def test_a_server_that_stands_by_sends_to_the_active_one(service: VaultService) -> None:
    with running_vault() as standby:
        standby.active = service.server.url
        provider = _open(service, {"VAULT_ADDR": standby.url})
        assert provider.unwrap(*provider.wrap(SECRET, b""), b"") == SECRET
        assert provider.rotate() == f"{service.key}:v2"
        standby.active = standby.url  # in a circle
        with pytest.raises(KeysUnavailable):
            provider.current_epoch()
        standby.active = "http://192.0.2.1:8200"  # the token would go over it in the clear
        with pytest.raises(InvalidSetting):
            provider.current_epoch()


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    service: VaultService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_http, "CALL_SECONDS", 0.1)
    with black_hole() as url, pytest.raises(KeysUnavailable, match="timed out"):
        _open(service, {"VAULT_ADDR": url}).current_epoch()


def test_a_sealed_server_is_unavailable(service: VaultService) -> None:  # S3
    service.server.sealed = True
    with pytest.raises(KeysUnavailable, match="503: Vault is sealed"):
        _open(service).current_epoch()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>", KeysUnavailable),
        (200, b"[]", KeysUnavailable),
        (200, b"{}", InvalidSetting),
        (200, b'{"data": {"type": "aes256-gcm96", "latest_version": "1"}}', KeysUnavailable),
        (200, b'{"data": 1, "data": 2}', KeysUnavailable),
        (404, b"{}", KeyMissing),
        (429, b"{}", KeysUnavailable),
        (500, b"oops", KeysUnavailable),
    ],
)
def test_answers_of_other_kinds(
    service: VaultService, status: int, body: bytes, kind: type[LedgerError]
) -> None:
    with answering(status, body, "application/json") as url, pytest.raises(kind) as caught:
        _open(service, {"VAULT_ADDR": url}).current_epoch()
    assert type(caught.value) is kind
