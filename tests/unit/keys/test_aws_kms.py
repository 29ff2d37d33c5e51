"""What is particular to AWS KMS, on moto's server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from aws_servers import answering, client, running_aws, serving
from key_services import AwsService

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    LedgerError,
    WrongKey,
)
from compaction_ledger.infrastructure.keys import aws_kms
from compaction_ledger.infrastructure.keys.aws_kms import AwsKms

SECRET = b"a data key"
NOWHERE = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_aws() as address:
        yield address


@pytest.fixture
def service(url: str) -> Iterator[AwsService]:
    made = AwsService(url)
    yield made
    made.close()


@pytest.mark.slow
def test_the_epoch_is_the_arn_and_the_number_of_rotations(service: AwsService) -> None:  # S1, S2
    for key in (service.key, service.key.rpartition("/")[2], service.new_alias(service.key)):
        assert AwsKms(service.client, key).current_epoch() == f"{service.key}#0"
    assert service.open().rotate() == f"{service.key}#1"
    assert list(service.open().epochs()) == [f"{service.key}#0", f"{service.key}#1"]


def test_an_alias_that_points_elsewhere_is_another_epoch(service: AwsService) -> None:  # S2
    alias = service.new_alias(service.key)
    running = AwsKms(service.client, alias)
    old = running.wrap(SECRET, b"")
    target = service.new_key()
    service.client.update_alias(AliasName=alias, TargetKeyId=target)
    assert running.current_epoch() == f"{target}#0"
    assert running.unwrap(*old, b"") == SECRET  # it has seen the alias point there
    fresh = AwsKms(service.client, alias)
    with pytest.raises(KeyMissing):  # whoever can write an epoch does not choose the key
        fresh.unwrap(*old, b"")
    assert AwsKms(service.client, service.key).unwrap(*old, b"") == SECRET


def test_the_encryption_context_is_bound(service: AwsService) -> None:  # S1
    _, wrapped = service.open().wrap(SECRET, b"mine")
    with pytest.raises(service.client.exceptions.InvalidCiphertextException):
        service.client.decrypt(CiphertextBlob=wrapped)


@pytest.mark.parametrize("key", ["alias/nobody", NOWHERE, NOWHERE.rpartition("/")[2]])
def test_a_key_that_is_not_there_is_missing(service: AwsService, key: str) -> None:
    provider = AwsKms(service.client, key)
    for call in (
        provider.current_epoch,
        provider.rotate,
        lambda: provider.wrap(SECRET, b""),
        lambda: provider.unwrap(f"{NOWHERE}#0", b"x", b""),
    ):
        with pytest.raises(KeyMissing):
            call()


class _SlowKms:
    """Answers as KMS does while a rotation is under way: complete when it has been asked so often."""

    def __init__(self, polls: int) -> None:
        self.polls, self.begun, self.done = polls, False, 0
        self.asked: list[str] = []

    def __call__(self, environ: Mapping[str, Any], start_response: Any) -> list[bytes]:
        what = environ["HTTP_X_AMZ_TARGET"].partition(".")[2]
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        self.asked.append(what)
        start_response("200 said", [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(getattr(self, what)(body)).encode()]

    def ListKeyRotations(self, body: Any) -> Any:  # noqa: N802 - the name of the method
        self.polls -= self.begun
        if self.begun and self.polls <= 0:
            self.begun, self.done = False, self.done + 1
        at = int(body.get("Marker", 0))  # one on each page
        page = [{"KeyId": NOWHERE, "RotationType": "ON_DEMAND"}][: self.done - at]
        more = {"Truncated": True, "NextMarker": str(at + 1)} if at + 1 < self.done else {}
        return {"Rotations": page, **more}

    def GetKeyRotationStatus(self, body: Any) -> Any:  # noqa: N802
        begun = {"OnDemandRotationStartDate": 1_700_000_000} if self.begun else {}
        return {"KeyRotationEnabled": False, "KeyId": NOWHERE, **begun}

    def RotateKeyOnDemand(self, body: Any) -> Any:  # noqa: N802
        assert not self.begun
        self.begun = True
        return {"KeyId": NOWHERE}


def test_a_rotation_that_was_left_under_way_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # S2
    monkeypatch.setattr(aws_kms, "_POLL_SECONDS", 0.01)
    slow = _SlowKms(polls=6)
    with serving(slow) as url:
        kms = client("kms", url)
        provider = AwsKms(kms, NOWHERE)
        monkeypatch.setattr(aws_kms, "ROTATION_SECONDS", 0.0)
        with pytest.raises(KeysUnavailable, match="still being rotated"):
            provider.rotate()
        monkeypatch.setattr(aws_kms, "ROTATION_SECONDS", 20.0)
        assert provider.rotate() == f"{NOWHERE}#1"
        assert slow.asked.count("RotateKeyOnDemand") == 1
        slow.polls = 2
        assert provider.rotate() == f"{NOWHERE}#2"
        assert slow.asked.count("RotateKeyOnDemand") == 2
        slow.polls = 2
        assert provider.rotate() == provider.epochs()[-1] == f"{NOWHERE}#3"
        kms.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NotFoundException", KeyMissing),
        ("InvalidCiphertextException", WrongKey),
        ("IncorrectKeyException", WrongKey),
        ("InvalidKeyUsageException", InvalidSetting),
        ("AccessDeniedException", KeysUnavailable),
        ("DisabledException", KeysUnavailable),
        ("KMSInvalidStateException", KeysUnavailable),
        ("ThrottlingException", KeysUnavailable),
        ("ExpiredTokenException", KeysUnavailable),
    ],
)
def test_what_kms_says_in_our_words(code: str, kind: type[LedgerError]) -> None:  # S3
    said = f'{{"__type": "{code}", "message": "said"}}'.encode()
    with answering(400, said, "application/x-amz-json-1.1") as url:
        kms = client("kms", url, tries=1)
        with pytest.raises(kind) as caught:
            AwsKms(kms, NOWHERE).unwrap(f"{NOWHERE}#0", b"wrapped", b"")
        assert type(caught.value) is kind
        kms.close()
