"""A Bedrock client that makes one call: botocore would otherwise make up to five, each paid for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic_ai.providers import Provider
from pydantic_ai.providers.bedrock import BedrockProvider

from compaction_ledger.domain.errors import InvalidSetting

_LONGEST_READ = 3_600
"""In seconds; the deadline of the call itself is shorter and is kept elsewhere."""


def single_call_provider(base_url: str | None) -> Provider[Any]:
    """A provider whose client never retries. Region and credentials are AWS's usual ones."""
    boto3: Any = import_module("boto3")  # neither of them has types
    botocore: Any = import_module("botocore")
    config = import_module("botocore.config").Config(
        retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=_LONGEST_READ
    )
    try:
        client = boto3.client("bedrock-runtime", config=config, endpoint_url=base_url)
    except botocore.exceptions.BotoCoreError as error:
        raise InvalidSetting(f"no Bedrock client: {error}", place="model") from error
    return BedrockProvider(bedrock_client=client)
