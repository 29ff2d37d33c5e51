"""What is particular to AWS KMS, on moto's server."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from aws_servers import REGION, answering, running_aws
from botocore.config import Config
from key_services import AwsService

from compaction_ledger.domain.errors import (
    InvalidSetting,
    KeyMissing,
    KeysUnavailable,
    LedgerError,
    WrongKey,
)
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
        client = boto3.client(
            "kms",
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        with pytest.raises(kind) as caught:
            AwsKms(client, NOWHERE).unwrap(f"{NOWHERE}#0", b"wrapped", b"")
        assert type(caught.value) is kind
        client.close()
