"""A setting names the key provider."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compaction_ledger import InvalidSetting, Settings
from compaction_ledger.domain.errors import KeyMissing
from compaction_ledger.domain.keys import ProviderName, provider_names
from compaction_ledger.key_parts import key_provider_text, provider_named

GOOGLE = "projects/p-1/locations/global/keyRings/ring/cryptoKeys/ledger"
ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("file", [("file", "")]),
        (f"aws-kms:{ARN}", [("aws-kms", ARN)]),
        ("aws-kms:alias/ledger,file", [("aws-kms", "alias/ledger"), ("file", "")]),
        (f"google-kms:{GOOGLE}", [("google-kms", GOOGLE)]),
        (
            "vault:transit/ledger, vault:a/b/old",
            [("vault", "transit/ledger"), ("vault", "a/b/old")],
        ),
    ],
)
def test_names_of_providers(text: str, names: list[tuple[str, str]]) -> None:
    assert list(provider_names(text)) == [ProviderName(*name) for name in names]
    assert Settings(key_provider=text).key_provider == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "File",
        "file:",
        "file:x",
        "file,file",
        "file,",
        "aws-kms",
        "aws-kms:",
        "aws-kms:a b",
        "google-kms:projects/p/cryptoKeys/k",
        f"google-kms:{GOOGLE}/cryptoKeyVersions/1",
        f"google-kms:{GOOGLE}\n",
        "vault:ledger",
        "vault:/ledger",
        "vault:transit/",
        "vault:transit/../ledger",
        "vault:transit/ledger?",
        "azure:x",
        "hvs.secret-token",
        "aws-kms:" + "x" * 201,
    ],
)
def test_other_texts_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^key_provider: ") as caught:
        provider_names(text)
    assert "secret-token" not in str(caught.value)  # S4
    with pytest.raises(InvalidSetting, match=r"^key_provider: "):
        Settings(key_provider=text)


def test_settings_come_before_the_environment_and_that_before_the_default() -> None:
    named = {"COMPACTION_LEDGER_KEY_PROVIDER": "vault:transit/ledger"}
    assert key_provider_text(Settings(), {}) == "file"
    assert key_provider_text(Settings(), named) == "vault:transit/ledger"
    assert key_provider_text(Settings(key_provider="file"), named) == "file"


def test_the_file_keyring_is_made_only_where_it_is_the_current_one(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing):
        provider_named("file", tmp_path / "keys", create=False)
    environment = {"VAULT_TOKEN": "t", "VAULT_ADDR": "http://127.0.0.1:9"}
    with pytest.raises(KeyMissing):
        provider_named(
            "vault:transit/x,file", tmp_path / "keys", create=True, environment=environment
        )
    made = provider_named("file", tmp_path / "keys", create=True)
    assert made.name == "file"
    moved = provider_named(
        "vault:transit/x,file", tmp_path / "keys", create=True, environment=environment
    )
    assert moved.name == "vault"
    assert moved.unwrap(*made.wrap(b"secret", b""), b"") == b"secret"


@pytest.mark.slow
def test_nothing_is_asked_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert provider_named(f"aws-kms:{ARN}", tmp_path, create=True).name == "aws-kms"
    assert provider_named("aws-kms:alias/x", tmp_path, create=True).name == "aws-kms"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "module", "extra"),
    [
        (f"aws-kms:{ARN}", "boto3", "aws-kms"),
        (f"google-kms:{GOOGLE}", "google.cloud.kms_v1", "google-kms"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidSetting, match=rf"pip install 'compaction-ledger\[{extra}\]'"):
        provider_named(text, tmp_path, create=True)
